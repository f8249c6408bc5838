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
from pathlib import Path

import museum

sys.path.append(str(museum.ROOT))

import page  # noqa: E402


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
        self.assertLessEqual({*exhibit.names, *exhibit.also}, {*museum.rules(), *museum.faults()})
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
                         ("error", "accessed by threads and then through the async proxy without a proxy fence"))

    def test_faults_are_read(self):
        faults = museum.faults()
        source = (museum.ROOT / "emulator" / "machine" / "fault_kind.h").read_text()
        self.assertEqual(len(faults), int(re.search(r"kFaultKinds = (\d+);", source)[1]))
        self.assertEqual(faults["tensor-memory-leak"], "CTA ends with tensor memory still allocated")
        # A name that both have is the same thing, seen coming and come.
        self.assertEqual(set(faults) & set(museum.rules()), {"peer-gone"})

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


class Page(unittest.TestCase):
    """How docs/bug_museum.md is made; that it is up to date is for tests/command_line/test_pages.py to say."""

    def twins(self, *lines):
        return page.twin("\n".join(lines), True), page.twin("\n".join(lines), False)

    def test_twins(self):
        for source, broken, fixed in (
                ("  if constexpr (!kBroken) wait(full, 0);", [], ["  wait(full, 0);"]),
                ("  if constexpr (kBroken) __syncthreads();", ["  __syncthreads();"], []),
                ("  if (!kBroken || lane != 0) go();", ["  if (lane != 0) go();"], ["  go();"]),
                ("  if (kBroken || elect_sync()) go();", ["  go();"], ["  if (elect_sync()) go();"]),
                ("  if (warp == (kBroken ? 1 : 0) && x) go();", ["  if (warp == 1 && x) go();"], ["  if (warp == 0 && x) go();"]),
                ("  int x = kBroken ? 2 * y : y;", ["  int x = 2 * y;"], ["  int x = y;"]),
                ("  const bool x = kBroken;", ["  const bool x = true;"], ["  const bool x = false;"]),
                ("  // The mistake: none.", ["  // The mistake: none."], [])):
            self.assertEqual(self.twins(source), (broken, fixed), source)
        self.assertEqual(self.twins("  if constexpr (!kBroken) {", "    arrive();", "    wait();", "  }", "  end();"),
                         (["  end();"], ["  arrive();", "  wait();", "  end();"]))
        self.assertEqual(self.twins("  if (!kBroken && warp == 0) {", "    free();", "  }"),
                         ([], ["  if (warp == 0) {", "    free();", "  }"]))
        with self.assertRaisesRegex(ValueError, "use<kBroken>"):
            page.twin("  use<kBroken>();", True)

    def test_every_exhibit_shows_its_mistake_and_its_lines(self):
        for exhibit in museum.exhibits():
            lines = page.difference(exhibit)
            self.assertEqual(sum(line.startswith("- ") and "// The mistake: " in line for line in lines), 1, exhibit.name)
            self.assertLessEqual(len(lines), 16, exhibit.name)
            self.assertTrue(any(line.startswith("+ ") for line in lines), exhibit.name)
            numbers = {int(number) for line in lines for number in re.findall(r"// line (\d+):?$", line)}
            self.assertEqual(numbers, exhibit.reported, exhibit.name)
            source = exhibit.text.splitlines()
            for at, line in enumerate(lines):
                if mark := re.search(r" *// line (\d+)(:?)$", line):
                    code = lines[at + 1] if mark[2] else line[:mark.start()]
                    self.assertEqual(code[1:].strip() in source[int(mark[1]) - 1] or "kBroken" in source[int(mark[1]) - 1], True, line)

    def test_prose(self):
        for text, shown in (("wait for tile_empty[stage], then __syncthreads().", "wait for `tile_empty[stage]`, then `__syncthreads()`."),
                            ("cp.async.bulk.wait_group.read 0, .release.cluster; tcgen05.wait::ld.",
                             "`cp.async.bulk.wait_group.read` 0, `.release.cluster`; `tcgen05.wait::ld`."),
                            ("(common/layout/smem_descriptor.h)", "(`common/layout/smem_descriptor.h`)"),
                            ("D = A B + D; membar/fence, bytes.", "D = A B + D; membar/fence, bytes.")):
            self.assertEqual(page.prose(text), shown)

    def test_what_was_measured(self):
        def entry(twin, **counts):
            return {"exhibit": "hopper_x", "twin": twin, "runs": sum(counts.values()),
                    **{kind: counts.get(kind, 0) for kind in page.KINDS}}
        broken = {**entry("broken", right=150, wrong=48, failed=2), "first_wrong": "wrong (1 of 2 values; first at 0: got 1, expected 2)",
                  "errors": {"cudaErrorLaunchFailure": 2}}
        kept = page.RECORD
        self.addCleanup(lambda: setattr(page, "RECORD", kept))
        with tempfile.TemporaryDirectory() as folder:
            page.RECORD = Path(folder, "record.json")
            self.assertEqual(page.measured("hopper_x"), "")
            page.RECORD.write_text(json.dumps({"recorded": "2026-01-02", "exhibits": [broken, entry("fixed", right=200)]}))
            self.assertEqual(page.measured("hopper_x"),
                             "**On a real H200**, *measured* on 2026-01-02: broken: of 200 runs 150 right, 48 wrong, 2 failed (1 of 2 "
                             "values; first at 0: got 1, expected 2; cudaErrorLaunchFailure); fixed: all 200 runs right.")
            self.assertEqual(page.measured("hopper_y"), "")

    def test_every_theme_has_its_place(self):
        asked = re.findall(r"^<!-- museum: (.*) -->$", (museum.ROOT / "docs" / "bug_museum.md").read_text(), re.MULTILINE)
        self.assertEqual(asked, ["table", *museum.THEMES])


def add(exhibit):
    for part in ("label", "fixed", "broken", *(["bounded"] if exhibit.hangs else [])):
        setattr(Museum, f"test_{exhibit.name}_{part}", lambda self, part=part: getattr(self, part)(exhibit))


if __name__ == "__main__":
    names = sys.argv[1:]
    unknown = set(names) - {each.name for each in museum.exhibits()} - {"page", "record", "rules"}
    if unknown:
        sys.exit(f"no exhibit is called {', '.join(sorted(unknown))}")
    for each in museum.exhibits():
        if not names or each.name in names:
            add(each)
    if names:
        for other in (Page, Record, Rules):
            if other.__name__.lower() not in names:
                del globals()[other.__name__]
        del other
    unittest.main(argv=sys.argv[:1])
