"""Other people's CUDA programs on the emulated chip. LADDER_EXTERNAL=<folder of built executables>: each is run, with no
arguments, under every kind of schedule, and must end with exit status 0. LADDER_EXTERNAL_CHIP names the chip (b200)."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = os.environ.get("LADDER_EXTERNAL")
CHIP = os.environ.get("LADDER_EXTERNAL_CHIP", "b200")


class Programs(unittest.TestCase):
    def test_each(self):
        programs = sorted(path for path in Path(FOLDER).iterdir() if path.is_file() and os.access(path, os.X_OK))
        self.assertTrue(programs, f"LADDER_EXTERNAL={FOLDER} holds no executable")
        for program in programs:
            for schedule in ("earliest", "latest", "random"):
                with self.subTest(program=program.name, schedule=schedule):
                    done = subprocess.run(
                        [ROOT / "ladder", "emulate", "--chip", CHIP, "--schedule", schedule, "--seed", "1", program],
                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
                    self.assertEqual(done.returncode, 0, "\n".join(done.stdout.splitlines()[-40:]))


if __name__ == "__main__":
    if not FOLDER:
        print("LADDER_EXTERNAL is not set: nothing to run.")
        sys.exit(77)  # CTest shows this as skipped
    unittest.main()
