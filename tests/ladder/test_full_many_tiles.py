"""More tiles than a grid has CTAs in y."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools import fuzz  # noqa: E402
from tools.rung import Case, execute  # noqa: E402


class ManyTiles(unittest.TestCase):
    def test_more_tiles_than_a_grid_has_in_y(self):
        """65,537 tiles of 256 columns, of which the emulator computes one row each."""
        case = Case("step01_kloop", 1, 65_536 * 256 + 8, 8, "f16", "f16", "integer")
        outcome = execute(case)
        self.assertTrue(outcome.clean, fuzz.complaint(case, outcome))
        self.assertIs(outcome.report["check"]["passed"], True, case.command_line())


if __name__ == "__main__":
    unittest.main()
