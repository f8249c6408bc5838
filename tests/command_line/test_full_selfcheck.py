"""All known answers by every rung and variant: made anew on the emulator, where all must agree, they are the committed ones."""

import os
import tempfile
import unittest
from pathlib import Path

from support import BUILD, ROOT, run


class Whole(unittest.TestCase):
    def test_made_anew(self):
        with tempfile.TemporaryDirectory() as folder:
            again = Path(folder, "again.json")
            done = run([ROOT / "ladder", "selfcheck", "--record", "--answers", again],
                       env={**os.environ, "LADDER_BUILD": str(BUILD)}, timeout=1500)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(again.read_text(), (ROOT / "docs" / "known_answers.json").read_text())


if __name__ == "__main__":
    unittest.main()
