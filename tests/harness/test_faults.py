"""A rung that goes wrong in known ways, on the emulator: the harness notices each, names it, and exits with 1."""

import json
import os
import subprocess
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("LADDER_BUILD") or Path(__file__).resolve().parents[2] / "build")
RUNG = BUILD / "tests" / "faulty_rung"
SMALL = "200x512x64"   # compared everywhere
LARGE = "130x264x2048"  # sampled and projected


def run(variant, *options, shape=SMALL, check=True, environment=None):
    command = [str(RUNG), "--variant", variant, "--shape", shape, "--input", "integer", "--out-dtype", "f32", "--on", "b200",
               *(["--check"] if check else []), *options]
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120, env={**os.environ, **(environment or {})})


class Faults(unittest.TestCase):
    def assert_fails(self, done, *parts):
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for part in parts:
            self.assertIn(part, done.stdout + done.stderr)

    def test_good(self):
        for shape in (SMALL, LARGE):
            done = run("none", shape=shape)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("check     ok", done.stdout)
            self.assertIn("an emulated B200", done.stdout)

    def test_bands(self):
        """Noticed whether or not the result is checked."""
        for check in (True, False):
            self.assert_fails(run("after-d", check=check), "past the end of D: byte 20 after it")
            self.assert_fails(run("before-d", check=check), "before the start of D: byte 4 before it")
            self.assert_fails(run("into-a", check=check), "wrote into A: element [1][2] changed")

    def test_unwritten(self):
        self.assert_fails(run("unwritten", check=False), "18432 of 102400 outputs were never written")
        self.assert_fails(run("unwritten"), "18432 of 102400 outputs never written", "wrong in 1 of 4", "rows all 72; columns all 256")

    def test_values(self):
        self.assert_fails(run("nan"), "512 of 102400 outputs NaN", "rows 5; columns all")
        self.assert_fails(run("one-element"), "MISMATCH: 1 of 102400", "D[199][511]")
        self.assert_fails(run("one-element", shape=LARGE), "MISMATCH", "D[129][263]")

    def test_timed_launches_are_looked_at(self):
        self.assertEqual(run("once").returncode, 0)
        self.assert_fails(run("once", "--bench"), "the last timed launch left other bits in D than the first launch")
        self.assertEqual(run("none", "--bench").returncode, 0)

    def test_what_arrived(self):
        self.assert_fails(run("k-tile"), "K tile 2 (k = 32..47) is missing")
        command = [str(RUNG), "--variant", "k-tile", "--shape", SMALL, "--input", "position", "--check", "--on", "b200"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        self.assert_fails(done, "position code", "K tile 2 (k = 32..47) is missing")

    def test_json(self):
        done = run("one-element", "--json")
        self.assertEqual(done.returncode, 1)
        report = json.loads(done.stdout)
        self.assertIs(report["good"], False)
        self.assertIs(report["check"]["passed"], False)
        self.assertEqual(report["check"]["mismatches"], 1)
        self.assertIn("MISMATCH", done.stderr)
        report = json.loads(run("after-d", "--json", check=False).stdout)
        self.assertIs(report["good"], False)
        self.assertIsNone(report["check"]["passed"])
        self.assertEqual(len(report["faults"]), 1)

    def test_device_faults(self):
        self.assert_fails(run("wild"), "cudaErrorIllegalAddress", "faulty_rung.cu")
        self.assert_fails(run("hang"), "hang", "never")
        self.assert_fails(run("too-large"), "launching the kernel: cudaErrorInvalidValue")

    def test_time_limit(self):
        self.assert_fails(run("slow", "--time-limit", "0.5"), "did not end within 0.5 s and was killed", "--time-limit")
        done = run("none", "--time-limit", "60")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_no_other_runtime_passes_for_the_emulator(self):
        done = run("none", environment={"LADDER_STAGE": "gpu"})
        self.assert_fails(done, "the CUDA runtime is", "libcudart")
        done = run("none", environment={"LADDER_STAGE": "nowhere"})
        self.assert_fails(done, "LADDER_STAGE=nowhere")


if __name__ == "__main__":
    unittest.main()
