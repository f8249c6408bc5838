"""The Hopper twins: every variant, shapes at edges, under all schedules, held to the hazard rules, with step01's bits. And each
setting of step07's, several tiles for each cluster. What is the same on Blackwell: test_edges.py, test_settings.py."""

import itertools
import unittest

from against_step01 import RUNG, AgainstStep01, known
from test_settings import each_value
from tools import build, fuzz
from tools.rung import Case, execute, settings, variants

CHIP = "h200"
# A tile and less, one more than a tile, tiles and K tiles that end outside, D narrower than a store, one row.
SHAPES = [(128, 256, 64), (129, 264, 72), (300, 520, 328), (64, 8, 8), (1, 776, 136)]
RAGGED, TALL = (300, 776, 136), (1100, 264, 72)
BESIDE = {"buffers": "tile-n=128,stages=2,ctas=1", "stages": "tile-n=64,ctas=1,stores=direct", "walk": "ctas=1"}


class Twins(unittest.TestCase):
    def test_every_variant(self):
        schedules = itertools.cycle(["earliest", "latest", "random:1", "random:2"])
        types = itertools.cycle([("f16", "f32"), ("bf16", "f32"), ("f16", "f16"), ("bf16", "bf16")])
        seen = 0
        for rung in build.rungs():
            for variant, (m, n, k) in itertools.product(variants(rung, CHIP), SHAPES):
                k = 16 if rung.startswith("step00") else k
                dtype, out = next(types)
                case = Case(rung, m, n, k, dtype, out, variant=variant, on=CHIP, schedule=next(schedules), rules=True, sms=8)
                with self.subTest(case=case.command_line()):
                    outcome = execute(case)
                    self.assertTrue(outcome.clean, fuzz.complaint(case, outcome))
                    self.assertEqual(outcome.report["d_hash"], known(m, n, k, dtype, out))
                    seen += 1
        self.assertGreater(seen, 150)


class Settings(AgainstStep01):
    on = CHIP

    def test_every_value(self):
        seen = set()
        for name, values in settings(RUNG, CHIP).items():
            for value in each_value(name, values):
                beside = BESIDE.get(name)
                for sms in (2, 4):
                    seen.add(self.same_bits(TALL if name == "walk" else RAGGED, value, *([beside] if beside else []),
                                            sms=sms).get("plan"))
        self.assertGreater(len(seen), 30)

    def test_together(self):
        """Tiles in turn and on demand, with and without a cluster, in rings of few stages, for outputs of both sizes."""
        stages = itertools.cycle(["stages=2", "stages=3", "stages=auto"])
        sms = itertools.cycle([2, 6, 6, 2, 2])
        for ctas, accumulators, scheduler, out in itertools.product((1, 2), (1, 2), ("static", "counter"), ("f16", "f32")):
            for width in ("tile-n=128",) if accumulators == 2 else ("tile-n=64", "tile-n=160", "tile-n=256"):
                self.same_bits((520, 776, 200), f"ctas={ctas}", f"accumulators={accumulators}", f"scheduler={scheduler}",
                               width, next(stages), sms=next(sms), out_dtype=out)

    def test_the_counter_is_set_back(self):
        """A second launch of the process begins with the first tile."""
        case = Case(RUNG, 520, 776, 72, variant="scheduler=counter,tile-n=64", on=CHIP, sms=4)
        for schedule in ("earliest", "latest", "random:1"):
            outcome = execute(case.but(schedule=schedule), check=False, bench=True)
            self.assertTrue(outcome.clean, outcome.text)


if __name__ == "__main__":
    unittest.main()
