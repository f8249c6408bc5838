"""Shapes at the edges: one row, one TMA row of columns, one element more or less than a tile, one K slice."""

import itertools
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools import build, fuzz  # noqa: E402
from tools.rung import Case, execute, variants  # noqa: E402

ROWS = [1, 127, 128, 129]
COLUMNS = [8, 248, 256, 264]
DEPTHS = itertools.cycle([8, 40, 72, 264])
SCHEDULES = ["earliest", "latest", "random:1"]


class Checked(unittest.TestCase):
    def check(self, case):
        outcome = execute(case)
        self.assertTrue(outcome.clean, fuzz.complaint(case, outcome))
        self.assertIs(outcome.report["check"]["passed"], True, case.command_line())
        return outcome.report["d_hash"]


class Edges(Checked):
    def test_tiles(self):
        """Every rung in turn, with every variant, at every edge in M and N."""
        turn = itertools.cycle(itertools.product(SCHEDULES, ["f16", "bf16"], ["integer", "random"], [1, 2]))
        for rung in build.rungs():
            names = itertools.cycle(variants(rung))
            for m, n in itertools.product(ROWS, COLUMNS):
                schedule, dtype, kind, threads = next(turn)
                k = 16 if rung == "step00_single_mma" else next(DEPTHS)
                case = Case(rung, m, n, k, dtype, "f32", kind, variant=next(names), schedule=schedule, threads=threads)
                with self.subTest(case=case.command_line()):
                    self.check(case)

    def test_every_output_type(self):
        """Wide stores have to give way where a row of D does not allow them."""
        for rung in build.rungs():
            names = itertools.cycle(variants(rung))
            for n, dtype in itertools.product([8, 24, 40, 264], ["f16", "bf16"]):
                for out_dtype in (dtype, "f32"):
                    case = Case(rung, 130, n, 16, dtype, out_dtype, "integer", variant=next(names))
                    with self.subTest(case=case.command_line()):
                        self.check(case)

    def test_every_variant_gives_the_same_bits(self):
        """Of all rungs but the first, under every schedule, on a grid that no cluster divides; the last K tile is ragged."""
        for kind, dtype in (("random", "f16"), ("random", "bf16"), ("position", "f16")):
            hashes = {}
            schedules = itertools.cycle(itertools.product(SCHEDULES, [1, 2]))
            for rung in build.rungs()[1:]:
                for variant in variants(rung):
                    schedule, threads = next(schedules)
                    case = Case(rung, 300, 776, 328, dtype, "f32", kind, variant=variant, schedule=schedule, threads=threads)
                    with self.subTest(case=case.command_line()):
                        hashes[rung, variant] = self.check(case)
            self.assertEqual(len(set(hashes.values())), 1, f"{kind} {dtype}: {hashes}")

    def test_one_variant_under_every_schedule(self):
        for rung in build.rungs()[1:]:
            hashes = set()
            for schedule, threads in itertools.product([*SCHEDULES, "random:2"], [1, 2]):
                case = Case(rung, 200, 520, 136, "f16", "f32", schedule=schedule, threads=threads)
                with self.subTest(case=case.command_line()):
                    hashes.add(self.check(case))
            self.assertEqual(len(hashes), 1, f"{rung}: {hashes}")

    def test_rings_longer_and_shorter_than_k(self):
        """From one K tile to two rounds of the ring and one tile more."""
        for rung in build.rungs()[2:]:
            tile_k = 16 if rung < "step04" else 64
            for k_tiles in (1, 2, 3, 4, 5, 8, 9):
                case = Case(rung, 130, 264, k_tiles * tile_k - 8, "bf16", "f32", schedule="latest")
                with self.subTest(case=case.command_line()):
                    self.check(case)

    def test_one_tile_more_than_there_are_sms(self):
        for rung in build.rungs()[1:]:
            self.check(Case(rung, 149 * 128, 8, 24, "f16", "f16", "integer"))

    def test_long_rows(self):
        for rung in build.rungs()[1:]:
            self.check(Case(rung, 3, 16, 30_000, "bf16", "f32", "integer"))
        self.check(Case("step01_kloop", 5000, 8, 24, "f16", "f32", "integer"))
        self.check(Case("step00_single_mma", 1, 20_000, 16, "f16", "f32", "random"))


if __name__ == "__main__":
    unittest.main()
