"""The front door's commands as such: names, help, a build that has nothing to do."""

import ctypes
import os
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from support import BUILD, PYTHON, ROOT, Refusals, ladder, run

COMMANDS = ["build", "run", "test", "compare", "selfcheck", "exercise", "trace", "check", "emulate", "fuzz", "sass", "isa",
            "pages", "bench", "profile", "sanitize", "record", "speed"]


class Commands(Refusals):
    def test_help_names_every_command_and_no_other(self):
        for arguments in ([], ["--help"], ["help"]):
            done = ladder(*arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            named = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")]
            self.assertEqual(named, COMMANDS)

    def test_every_command_explains_itself(self):
        for name in COMMANDS:
            done = ladder(name, "--help")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"ladder {name}", done.stdout)

    def test_unknown_command(self):
        self.assert_refused(ladder("frobnicate"), "no command 'frobnicate'", "build")

    def test_unknown_options(self):
        for name in ("bench", "build", "test", "compare", "fuzz", "profile", "record", "sanitize", "sass", "selfcheck", "speed", "trace"):
            self.assert_refused_in_one_line(ladder(name, "--frobnicate"), "ladder " + name, "--help")

    def test_unknown_rung(self):
        self.assert_refused_in_one_line(ladder("run", "step99"), "step99: no such rung", "step00_single_mma")
        self.assert_refused_in_one_line(ladder("compare", "step00", "step99"), "step99: no such rung")
        self.assert_refused_in_one_line(ladder("trace", "step99"), "step99: no such rung", "step00_single_mma")

    def test_bad_values(self):
        self.assert_refused_in_one_line(ladder("fuzz", "--minutes", "0"), "--minutes 0")
        self.assert_refused_in_one_line(ladder("fuzz", "--minutes", "soon"), "soon")
        self.assert_refused_in_one_line(ladder("fuzz", "--minutes", "nan"), "--minutes nan")
        self.assert_refused_in_one_line(ladder("build", "--jobs", "-3"), "--jobs -3")
        self.assert_refused_in_one_line(ladder("run", "--check"), "--check: options come behind the rung")
        self.assert_refused_in_one_line(ladder("run", "--shape", "8x8"), "--shape 8x8", "MxNxK")
        self.assert_refused_in_one_line(ladder("compare", "step00", "step01", "--shape", "12"), "--shape 12", "MxNxK")

    def test_all_rungs_on_one_shape(self):
        done = ladder("run")  # README's first command
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        runs = 1 + 4 * (len(list(ROOT.glob("step[0-9][0-9]_*/main.cpp"))) - 1)  # step00 takes one K only
        self.assertIn(f"All {runs} runs passed; rungs with the same inputs gave the same bits of D.", done.stdout)
        done = ladder("run", "--shape", "24x40x48", "--dtype", "bf16")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = [line.split() for line in done.stdout.splitlines() if line.startswith("step")]
        self.assertEqual([row[0] for row in rows], sorted(path.parent.name for path in ROOT.glob("step*/main.cpp")))
        self.assertEqual([row[1] for row in rows], ["24x40x16"] + ["24x40x48"] * (len(rows) - 1))
        self.assertEqual({row[2] for row in rows}, {"bf16"})
        self.assertEqual(len({row[-2] for row in rows}), 2)  # the bits of D: step00's, and one for all others

    def test_compare_wants_two(self):
        self.assert_refused_in_one_line(ladder("compare", "step01"), "stepB")

    def test_compare_variants(self):
        done = ladder("compare", "step06:2x1", "step06:2x2-alone", "--shape", "256x512x64")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("step06_multicast:2x1 and step06_multicast:2x2-alone at 256x512x64", done.stdout)
        row = next(line.split() for line in done.stdout.splitlines() if line.startswith("total.bytes_from_global"))
        self.assertEqual(row[1:3], ["131,072", "196,608"])
        self.assert_refused(ladder("compare", "step06:3x3", "step06", "--shape", "256x512x64"), "3x3", "2x2-alone")

    def test_settings_in_place_of_a_variant(self):
        done = ladder("run", "step07", "--shape", "300x264x72", "--on", "b200", "--variant", "accumulators=1,walk=3", "--check")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("  variant   accumulators=1,walk=3\n", done.stdout)
        done = ladder("compare", "step07", "step07:accumulators=1,clusters=1", "--shape", "512x512x64")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("step07_persistent and step07_persistent:accumulators=1,clusters=1 at 512x512x64", done.stdout)
        self.assertIn("D has the same bits", done.stdout)
        row = next(line.split() for line in done.stdout.splitlines() if line.startswith("ctas"))
        self.assertEqual(row[1:3], ["16", "2"])
        self.assert_refused(ladder("compare", "step07:walk=0", "step07", "--shape", "8x8x8"), "walk=0: must be auto|1..32")

    def test_a_reader_who_has_seen_enough(self):
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, "wb") as full:
            done = subprocess.run([PYTHON, str(ROOT / "ladder"), "compare", "step00", "step00", "--shape", "8x8x16"], stdout=full,
                                  stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr), (141, ""))

    def test_record_wants_a_gpu(self):
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError:
            self.assert_refused(ladder("record"), "no NVIDIA GPU", "tests/golden/README.md")
        else:
            self.skipTest("there is a driver")

    def test_arguments_are_looked_at_before_anything_is_built(self):
        with tempfile.TemporaryDirectory() as empty:
            fresh = str(Path(empty, "build"))
            self.assert_refused_in_one_line(ladder("run", "step99", LADDER_BUILD=fresh), "no such rung")
            self.assert_refused_in_one_line(ladder("compare", "step01", "step01", "--shape", "8x8", LADDER_BUILD=fresh), "8x8")
            self.assert_refused_in_one_line(ladder("trace", "step01", "--shape", "8x8", LADDER_BUILD=fresh), "8x8")
            self.assertFalse(Path(fresh).exists())

    def test_a_moment_of_fuzzing_tries_something(self):
        done = ladder("fuzz", "--minutes", "1e-9", "--seed", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 case, each run three ways, all right.", done.stdout)

    def test_from_another_folder(self):
        with tempfile.TemporaryDirectory() as elsewhere:
            done = run([PYTHON, ROOT / "ladder", "--help"], cwd=elsewhere, env={**os.environ, "LADDER_BUILD": str(BUILD)})
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_build_with_nothing_to_do_takes_a_moment(self):
        self.assertEqual(ladder("build").returncode, 0)
        begin = time.monotonic()
        done = ladder("build")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        self.assertLess(time.monotonic() - begin, 3)  # about 0.2 s alone; other tests run beside it


if __name__ == "__main__":
    unittest.main()
