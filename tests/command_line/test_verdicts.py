"""What the front door concludes from rungs that go wrong: a stand-in rung misbehaves in a known way and must be noticed."""

import contextlib
import io
import os
import struct
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import support  # noqa: F401  (puts the checkout on the path)

from tools import build, compare, fuzz, rung, run

# A rung that answers as the real ones do. MISBEHAVE says how it goes wrong.
STAND_IN = f'''#!{sys.executable}
import json, os, struct, sys
arguments = sys.argv[1:]
options = {{arguments[i][2:]: arguments[i + 1] for i in range(len(arguments) - 1) if arguments[i].startswith("--")}}
wrong = os.environ.get("MISBEHAVE", "")
settings = {{"speed": ["auto", "1..9"], "colour": ["red", "blue"]}} if "step02" in sys.argv[0] else {{}}
if arguments[0] == "--where":
    print(json.dumps({{"device": {{"emulated": True, "chip": "b200"}}, "variants": ["plain", "other"], "settings": settings}}))
    sys.exit(0)
if "speed=1" in options.get("variant", "") and "colour=blue" in options["variant"]:
    sys.exit(2)
if wrong == "remark":
    print("a store was lost", file=sys.stderr)
name = os.path.basename(sys.argv[0])
schedule, threads = os.environ.get("LADDER_SCHEDULE", ""), os.environ.get("LADDER_THREADS", "")
if wrong == "crash":
    os.abort()
if wrong == "silent":
    sys.exit(0)
if wrong == "status":
    sys.exit("warp 3 waits for ever")
off = (wrong == "schedule" and schedule == "latest") or (wrong == "rung" and name.startswith("step01"))
passed = not (wrong == "mismatch")
if "out" in options:
    m, n, _ = map(int, options["shape"].split("x"))
    header = "{{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }}" % (m, n)
    header += " " * (63 - (10 + len(header)) % 64) + "\\n"
    data = [1.0] * (m * n)
    if off:
        data[n + 2] = 1.5
    with open(options["out"], "wb") as stream:
        stream.write(b"\\x93NUMPY\\x01\\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<%df" % (m * n), *data))
if os.environ.get("LADDER_TRACE"):
    open(os.environ["LADDER_TRACE"], "w").write(threads if wrong == "trace" else "event")
m, n, k = map(int, options["shape"].split("x"))
print(json.dumps({{"rung": name, "m": m, "n": n, "k": k, "d_hash": "beef" if off else "f00d", "device": {{"emulated": True, "chip": "b200"}},
                  "good": passed, "check": {{"passed": passed, "compared": 384, "mismatches": 0 if passed else 12}},
                  "counters": {{"total": {{"instructions": 7 if wrong == "threads" and threads == "2" else 5}}}}}}))
sys.exit(0 if passed else 1)
'''


class StandIns(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="ladder-stand-in-")
        self.addCleanup(self.folder.cleanup)
        bin_folder = Path(self.folder.name, "bin")
        bin_folder.mkdir()
        for name in ("step00_single_mma", "step01_kloop"):
            self.stand_in(name)
        for patch in (mock.patch.object(build, "FOLDER", Path(self.folder.name)),
                      mock.patch.object(build, "build", lambda *_, **__: None)):
            patch.start()
            self.addCleanup(patch.stop)

    def outcome(self, action, misbehave=""):
        """(result, everything printed)."""
        said = io.StringIO()
        with mock.patch.dict(os.environ, {"MISBEHAVE": misbehave}), contextlib.redirect_stdout(said), \
                contextlib.redirect_stderr(said):
            result = action()
        return result, said.getvalue()

    def stand_in(self, name):
        path = Path(self.folder.name, "bin", name)
        path.write_text(STAND_IN)
        path.chmod(0o755)


class Run(StandIns):
    def test_good(self):
        status, said = self.outcome(lambda: run.command([]))
        self.assertEqual(status, 0, said)
        self.assertIn("All 5 runs passed", said)
        self.assertIn("emulated B200", said)

    def test_bad(self):
        for misbehave, says in (("mismatch", "5 of 5 runs failed"), ("crash", "exit status -6"), ("silent", "FAILED"),
                                ("status", "warp 3 waits for ever"), ("rung", "differ in the bits")):
            status, said = self.outcome(lambda: run.command([]), misbehave)
            self.assertEqual(status, 1, f"{misbehave}: {said}")
            self.assertIn(says, said)


class Compare(StandIns):
    def compare(self):
        return compare.command(["step00", "step01", "--shape", "24x16x16"])

    def test_same(self):
        status, said = self.outcome(self.compare)
        self.assertEqual(status, 0, said)
        self.assertIn("D has the same bits (f00d)", said)
        self.assertRegex(said, r"total\.instructions +5 +5")

    def test_different(self):
        status, said = self.outcome(self.compare, "rung")
        self.assertEqual(status, 1)
        self.assertIn("1 of 384 elements differ, in 1 of 24 rows; the first is D[1][2]: 1.0 and 1.5", said)

    def test_one_fails(self):
        status, said = self.outcome(self.compare, "status")
        self.assertEqual(status, 1)
        self.assertIn("warp 3 waits for ever", said)

    def test_difference_of_special_values(self):
        def matrix(*bits):
            return 1, len(bits), memoryview(struct.pack(f"{len(bits)}I", *bits)).cast("I")
        nan, other_nan, zero, minus_zero = 0x7FC00000, 0x7FC00001, 0, 0x80000000
        self.assertIsNone(compare.difference(matrix(nan, zero), matrix(nan, zero)))
        self.assertIn("1 of 2", compare.difference(matrix(nan, zero), matrix(other_nan, zero)))
        self.assertIn("1 of 2", compare.difference(matrix(nan, zero), matrix(nan, minus_zero)))
        self.assertIn("shapes differ", compare.difference(matrix(zero), matrix(zero, zero)))


class Fuzz(StandIns):
    CASES = [rung.Case("step01_kloop", 100, 64, 32, schedule=schedule, threads=threads)
             for schedule in ("earliest", "latest") for threads in (1, 2)]

    def first_problem(self):
        import random
        draw = random.Random(1)
        return next(filter(None, (fuzz.problem(case, draw) for case in self.CASES)), None)

    def test_good(self):
        self.assertEqual(self.outcome(self.first_problem), (None, ""))

    def test_noticed(self):
        for misbehave, says in (("mismatch", "Exit status 1"), ("crash", "Exit status -6"), ("silent", "Exit status 0"),
                                ("status", "warp 3 waits for ever"), ("remark", "a store was lost"), ("schedule", "bits of D differ"),
                                ("threads", "counters depend"), ("trace", "trace depend")):
            found, _ = self.outcome(self.first_problem, misbehave)
            self.assertIsNotNone(found, misbehave)
            self.assertIn(says, found)
            self.assertIn("./ladder run step01_kloop --shape 100x64x32", found)

    def test_the_command_stops_at_the_first_and_says_the_seed(self):
        status, said = self.outcome(lambda: fuzz.command(["--minutes", "1", "--seed", "4"]), "mismatch")
        self.assertEqual(status, 1)
        self.assertIn("This case alone: ./ladder fuzz --minutes 0.01 --seed 4", said)

    def test_drawn_cases_are_what_tma_can_address(self):
        import random
        cases = [fuzz.draw_case(random.Random(seed), ["step00_single_mma", "step01_kloop"]) for seed in range(2000)]
        for case in cases:
            self.assertTrue(case.m >= 1 and case.n >= 8 and case.n % 8 == 0 and case.k >= 8 and case.k % 8 == 0, case)
            self.assertTrue(not case.rung.startswith("step00") or case.k == 16, case)
            tiles = -(-case.m // 128) * -(-case.n // 256)
            self.assertLessEqual(tiles * 2 * 128 * 256 * case.k, fuzz.LARGEST_FLOP, case)
        self.assertEqual(len({case.schedule.split(":")[0] for case in cases}), 3)
        for name in ("step00_single_mma", "step01_kloop"):
            self.assertEqual({case.variant for case in cases if case.rung == name}, set(rung.variants(name)))
        self.assertGreater(len({case.shape for case in cases}), 1500)

    def test_settings_are_drawn_that_a_rung_takes_together(self):
        import random
        self.stand_in("step02_pipeline")
        drawn = {fuzz.draw_case(random.Random(seed), ["step02_pipeline"]).variant for seed in range(150)}
        speeds, colours = ["speed=auto", *(f"speed={number}" for number in range(1, 10))], ["colour=red", "colour=blue"]
        self.assertEqual({each for variant in drawn for each in variant.split(",")}, {"plain", "other", *speeds, *colours})
        together = {variant for variant in drawn if "," in variant}
        self.assertGreater(len(together), 15)
        for variant in together:
            self.assertEqual({each.split("=")[0] for each in variant.split(",")}, {"speed", "colour"})
            self.assertFalse({"speed=1", "colour=blue"} <= set(variant.split(",")), variant)


class Json(StandIns):
    def test_of_a_rung(self):
        outcome = rung.execute(rung.Case("step00", 24, 16, 16), trace=True)
        self.assertTrue(outcome.good)
        self.assertEqual(outcome.counters, {"total": {"instructions": 5}})
        self.assertEqual(outcome.trace, b"event")
        self.assertGreater(outcome.peak_bytes, 1 << 20)

    def test_of_one_that_takes_too_long(self):
        path = Path(self.folder.name, "bin", "step02_slow")
        path.write_text("#!/bin/sh\nexec sleep 60\n")
        path.chmod(0o755)
        outcome = rung.execute(rung.Case("step02", 24, 16, 16), timeout=0.2)
        self.assertEqual(outcome.status, -9)
        self.assertFalse(outcome.good)
        self.assertIn("not ended after 0.2 s", outcome.text)

    def test_of_one_that_a_signal_ends(self):
        path = Path(self.folder.name, "bin", "step02_crash")
        path.write_text("#!/bin/sh\nkill -SEGV $$\n")
        path.chmod(0o755)
        outcome = rung.execute(rung.Case("step02", 24, 16, 16))
        self.assertEqual(outcome.status, -11)
        self.assertIn("ended by SIGSEGV", outcome.text)


if __name__ == "__main__":
    unittest.main()
