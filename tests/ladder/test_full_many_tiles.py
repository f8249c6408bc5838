"""More tiles than a grid has CTAs in y."""

import unittest

from test_edges import Case, Checked


class ManyTiles(Checked):
    def test_more_tiles_than_a_grid_has_in_y(self):
        """65,537 tiles of 256 columns, of which the emulator computes one row each."""
        self.check(Case("step01_kloop", 1, 65_536 * 256 + 8, 8, "f16", "f16", "integer"))


if __name__ == "__main__":
    unittest.main()
