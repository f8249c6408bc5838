"""Shapes at the edges: one row, one TMA row of columns, one element more or less than a tile, one K slice."""

import itertools
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools import fuzz  # noqa: E402
from tools.rung import Case, execute  # noqa: E402

ROWS = [1, 127, 128, 129]
COLUMNS = [8, 248, 256, 264]
SCHEDULES = ["earliest", "latest", "random:1"]


class Edges(unittest.TestCase):
    def check(self, case):
        outcome = execute(case)
        self.assertTrue(outcome.good, fuzz.complaint(case, outcome))
        self.assertIs(outcome.report["check"]["passed"], True, case.command_line())
        return outcome.report["d_hash"]

    def test_tiles(self):
        turn = itertools.cycle(itertools.product(SCHEDULES, ["f16", "bf16"], ["integer", "random"], [1, 2]))
        for m, n in itertools.product(ROWS, COLUMNS):
            for rung, k in (("step00_single_mma", 16), ("step01_kloop", 8), ("step01_kloop", 40)):
                schedule, dtype, kind, threads = next(turn)
                with self.subTest(rung=rung, m=m, n=n, k=k):
                    self.check(Case(rung, m, n, k, dtype, "f32", kind, schedule=schedule, threads=threads))

    def test_every_output_type(self):
        """Wide stores have to give way where a row of D does not allow them."""
        for rung, n, dtype in itertools.product(["step00_single_mma", "step01_kloop"], [8, 24, 40, 264], ["f16", "bf16"]):
            for out_dtype in (dtype, "f32"):
                with self.subTest(rung=rung, n=n, dtype=dtype, out_dtype=out_dtype):
                    self.check(Case(rung, 130, n, 16, dtype, out_dtype, "integer"))

    def test_every_kind_of_input_under_every_schedule(self):
        for kind, dtype in itertools.product(["random", "integer", "position"], ["f16", "bf16"]):
            hashes = set()
            for schedule, threads in itertools.product(SCHEDULES, [1, 2]):
                with self.subTest(kind=kind, dtype=dtype, schedule=schedule, threads=threads):
                    hashes.add(self.check(Case("step01_kloop", 200, 520, 136, dtype, "f32", kind, schedule=schedule,
                                               threads=threads)))
            self.assertEqual(len(hashes), 1, f"{kind} {dtype}: {hashes}")

    def test_long_rows(self):
        self.check(Case("step01_kloop", 3, 16, 30_000, "bf16", "f32", "integer"))
        self.check(Case("step01_kloop", 5000, 8, 24, "f16", "f32", "integer"))
        self.check(Case("step00_single_mma", 1, 20_000, 16, "f16", "f32", "random"))

    def test_more_tiles_than_a_grid_has_in_y(self):
        """65,537 tiles of 256 columns, of which the emulator computes one row each."""
        self.check(Case("step01_kloop", 1, 65_536 * 256 + 8, 8, "f16", "f16", "integer"))


if __name__ == "__main__":
    unittest.main()
