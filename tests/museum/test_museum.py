"""Exhibits of the bug museum on the emulator, with its hazard checker: `test_museum.py NAME`, `test_museum.py` for all.

The fixed twin is right under every schedule, and nothing is said of it. Of the broken one it is told under every schedule, even
where its result is right, what is wrong, of which object and at which lines: as `Expect:` and the lines marked `// reported` in
its source say. Nothing else is told but what `Also:` names."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import museum


RESULT = re.compile(r"(right|wrong \(\d+ of \d+ values; first at \d+: got .*, expected .*\)|launch failed: cudaError\w+.*)")


class Museum(unittest.TestCase):
    def fixed(self, exhibit):
        for schedule, outcome in exhibit.runs("fixed", museum.SCHEDULES + museum.MORE_SCHEDULES).items():
            self.assertTrue(outcome.right, f"{schedule}: {outcome.result}\n{outcome.said}")
            self.assertEqual(outcome.names, [], f"{schedule}:\n{outcome.said}")
            self.assertEqual(outcome.said, "", schedule)

    def broken(self, exhibit):
        names, lines = set(), set()
        for schedule, outcome in exhibit.runs("broken", museum.SCHEDULES, threads=1).items():
            self.assertTrue(RESULT.fullmatch(outcome.result), outcome.result)
            if exhibit.name in museum.NOT_SEEN:
                self.assertEqual(outcome.names, [], "it is seen now: take it off museum.NOT_SEEN")
                continue
            telling = exhibit.telling(outcome)
            self.assertTrue(telling, f"{schedule}: nobody says {'; '.join(map(str, exhibit.expected))} at lines "
                                     f"{sorted(exhibit.reported)}\n{outcome.said}")
            self.assertLessEqual(set(outcome.names), {*exhibit.names, *exhibit.also}, f"{schedule}:\n{outcome.said}")
            names |= set(outcome.names)
            lines |= set.union(*(each for _, each in telling))
        if exhibit.name not in museum.NOT_SEEN:
            self.assertEqual(names, {*exhibit.names, *exhibit.also}, "some of these never come")
            self.assertEqual(lines, exhibit.reported, "some of these lines are never named")
        if "wgmma-wait" in exhibit.names:
            # ptxas waits where nobody else does, and so does the emulator, unless it is strict.
            self.assertFalse(exhibit.run("broken", "latest, strict").right)

    def bounded(self, exhibit):
        self.assertIn("cudaErrorLaunchTimeout", exhibit.run("broken", "earliest").result)
        self.assertIn("a wait gave up", exhibit.run("broken", "earliest", "--bounded").result)

    def label(self, exhibit):
        """What the source says of itself."""
        self.assertEqual([field for field in exhibit.fields if field != "Also"], list(museum.FIELDS))
        for field, text in exhibit.fields.items():
            self.assertTrue(text, field)
        self.assertIn(exhibit.fields["Theme"], museum.THEMES)
        self.assertLessEqual({*exhibit.names, *exhibit.also}, {*museum.rules(), *museum.FAULTS})
        self.assertEqual(exhibit.text.count("// The mistake: "), 1)
        self.assertIn("Who does", exhibit.text)
        seen = exhibit.name not in museum.NOT_SEEN
        self.assertEqual([bool(expected.objects) for expected in exhibit.expected], [seen] * len(exhibit.expected))
        self.assertEqual(bool(exhibit.reported), seen)


class Rules(unittest.TestCase):
    def test_they_are_read(self):
        rules = museum.rules()
        source = (museum.ROOT / "emulator" / "hazards" / "rules.h").read_text()
        self.assertEqual(len(rules), int(re.search(r"kRules = (\d+);", source)[1]))
        self.assertEqual(rules["proxy-fence"],
                         ("error", "written by threads and used through the async proxy without a proxy fence"))

    def test_not_seen(self):
        self.assertLessEqual(museum.NOT_SEEN, {exhibit.name for exhibit in museum.exhibits()})


class Record(unittest.TestCase):
    """record_h200.py, with the emulator and with programs of our own for an H200."""

    def record(self, programs, *options):
        with tempfile.TemporaryDirectory() as folder:
            out = f"{folder}/out.json"
            done = subprocess.run([sys.executable, museum.HERE / "record_h200.py", programs, out, *options],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=museum.SECONDS,
                                  env={**os.environ, "LD_LIBRARY_PATH": str(museum.BUILD / "lib"), "LADDER_CHIP": "h200",
                                       "LADDER_SCHEDULE": "latest"})
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(out) as text:
                entries = json.load(text)["exhibits"]
        for entry in entries:
            self.assertEqual(entry["runs"], sum(entry[kind] for kind in ("right", "wrong", "failed", "hung")), entry)
        return {(entry["exhibit"], entry["twin"]): entry for entry in entries}

    def test_exhibits(self):
        names = "hopper_store_source_reused", "hopper_too_many_arrivals", "hopper_too_many_bytes"
        entries = self.record(museum.BUILD / "tests" / "museum", *names, "--runs", "4", "--failures", "2")
        self.assertEqual(set(entries), {(name, twin) for name in names for twin in ("broken", "fixed")})
        for name in names:
            self.assertEqual(entries[name, "fixed"]["right"], 4)
        reused, arrivals, bytes_ = (entries[name, "broken"] for name in names)
        self.assertEqual(reused["wrong"], 4)
        self.assertIn("values; first at", reused["first_wrong"])
        self.assertEqual(arrivals["failed"], 2)  # so many processes may end badly
        self.assertEqual(arrivals["errors"], {"cudaErrorLaunchFailure": 2})
        self.assertEqual(bytes_["hung"], 2)

    def test_processes_that_end_otherwise(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {"hopper_sleeps": "exec sleep 30", "hopper_dies": "echo ouch >&2; exit 3"}.items():
                with open(f"{folder}/{name}", "w") as program:
                    program.write(f"#!/bin/sh\necho result: right\n{text}\n")
                os.chmod(f"{folder}/{name}", 0o755)
            entries = self.record(folder, "--runs", "9", "--failures", "3", "--limit", "0.5", "--kills", "1")
        sleeps, dies = entries["hopper_sleeps", "broken"], entries["hopper_dies", "broken"]
        self.assertEqual((sleeps["right"], sleeps["hung"], sleeps["errors"]), (1, 1, {"killed after 0.5 s": 1}))
        self.assertEqual((dies["right"], dies["failed"], dies["errors"]), (3, 3, {"ended early: ouch": 3}))


def add(exhibit):
    for part in ("label", "fixed", "broken", *(["bounded"] if exhibit.hangs else [])):
        setattr(Museum, f"test_{exhibit.name}_{part}", lambda self, part=part: getattr(self, part)(exhibit))


if __name__ == "__main__":
    names = sys.argv[1:]
    unknown = set(names) - {each.name for each in museum.exhibits()} - {"rules", "record"}
    if unknown:
        sys.exit(f"no exhibit is called {', '.join(sorted(unknown))}")
    for each in museum.exhibits():
        if not names or each.name in names:
            add(each)
    if names:
        for other in (Record, Rules):
            if other.__name__.lower() not in names:
                del globals()[other.__name__]
        del other
    unittest.main(argv=sys.argv[:1])
