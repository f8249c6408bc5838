"""Exhibits of the bug museum on the emulator: `test_museum.py NAME`, `test_museum.py` for all.

The fixed twin is right under every schedule, and nothing is said of it. The broken one shows something under at least one
schedule, a wrong result or a report, unless museum.NOT_SHOWN names it; then it is right under all, so that the list stays
true."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

import museum


RESULT = re.compile(r"(wrong \(\d+ of \d+ values; first at \d+: got .*, expected .*\)|launch failed: cudaError\w+)")


def outcomes(exhibit, twin):
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(museum.SCHEDULES, pool.map(lambda schedule: exhibit.run(twin, schedule), museum.SCHEDULES)))


class Museum(unittest.TestCase):
    def fixed(self, exhibit):
        runs = {**outcomes(exhibit, "fixed"), museum.STRICT: exhibit.run("fixed", museum.STRICT)}
        for schedule, outcome in runs.items():
            self.assertTrue(outcome.right, f"{schedule}: {outcome.result}\n{outcome.report}")
            self.assertEqual(outcome.report, "", schedule)

    def broken(self, exhibit):
        runs = outcomes(exhibit, "broken")
        shown = {schedule: outcome for schedule, outcome in runs.items() if not outcome.right}
        if exhibit.name in museum.NOT_SHOWN:
            self.assertFalse(shown, "it shows now: take it off museum.NOT_SHOWN")
        elif exhibit.expected == ["wgmma-wait"]:
            # ptxas waits where nobody else does, and so does the emulator, unless it is strict.
            self.assertFalse(shown)
            self.assertFalse(exhibit.run("broken", museum.STRICT).right)
        else:
            self.assertTrue(shown, "right under every schedule")
        for outcome in shown.values():
            self.assertTrue(RESULT.match(outcome.result), outcome.result)

    def bounded(self, exhibit):
        self.assertIn("cudaErrorLaunchTimeout", exhibit.run("broken", "earliest").result)
        self.assertIn("a wait gave up", exhibit.run("broken", "earliest", "--bounded").result)

    def label(self, exhibit):
        """What the source says of itself."""
        self.assertEqual(list(exhibit.fields), list(museum.FIELDS))
        for field, text in exhibit.fields.items():
            self.assertTrue(text, field)
        self.assertLessEqual(set(exhibit.expected), set(museum.FINDINGS))
        self.assertEqual(exhibit.text.count("// The mistake: "), 1)
        self.assertIn("Who does", exhibit.text)


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


class Readme(unittest.TestCase):
    def test_tables(self):
        text = museum.README.read_text()
        self.assertEqual(museum.with_tables(text), text, "tests/museum/museum.py --write renews it")

    def test_not_shown(self):
        self.assertLessEqual(museum.NOT_SHOWN, {exhibit.name for exhibit in museum.exhibits()})


def add(exhibit):
    for part in ("label", "fixed", "broken", *(["bounded"] if exhibit.hangs else [])):
        setattr(Museum, f"test_{exhibit.name}_{part}", lambda self, part=part: getattr(self, part)(exhibit))


if __name__ == "__main__":
    names = sys.argv[1:]
    unknown = set(names) - {each.name for each in museum.exhibits()} - {"readme", "record"}
    if unknown:
        sys.exit(f"no exhibit is called {', '.join(sorted(unknown))}")
    for each in museum.exhibits():
        if not names or each.name in names:
            add(each)
    if names:
        for other in (Record, Readme):
            if other.__name__.lower() not in names:
                del globals()[other.__name__]
        del other
    unittest.main(argv=sys.argv[:1])
