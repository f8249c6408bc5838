"""All rungs over 120 seeded random shapes: every element checked, the same bits from every rung, schedule and thread count.

LADDER_SHAPES=N runs N shapes instead. `./ladder fuzz` goes on where this stops."""

import itertools
import os
import random
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools import build, fuzz  # noqa: E402
from tools.rung import execute, settings  # noqa: E402

SHAPES = int(os.environ.get("LADDER_SHAPES", 120))
FIRST_SEED = 20_000
LARGEST_FLOP = 2.5e8  # keeps the whole test within a minute or two; `ladder fuzz` goes higher


class RandomShapes(unittest.TestCase):
    def test_every_rung(self):
        rungs = build.rungs()
        self.assertIn("step00_single_mma", rungs)
        self.assertIn("step01_kloop", rungs)
        for seed in range(FIRST_SEED, FIRST_SEED + SHAPES):
            draw = random.Random(seed)
            case = fuzz.draw_case(draw, [rungs[seed % len(rungs)]], LARGEST_FLOP)
            with self.subTest(seed=seed, case=case.command_line()):
                wrong = fuzz.problem(case, draw)
                self.assertIsNone(wrong, wrong)

    def test_settings_are_drawn(self):
        """Every word of every setting of either chip, and numbers in place of `auto`, in what the rung takes together."""
        for rung in build.rungs():
            values = {}
            for on in fuzz.CHIPS:
                for name, words in settings(rung, on).items():
                    values.setdefault(name, set()).update(words)
            missing = {f"{name}={value}" for name in values for value in values[name] if ".." not in value}
            numbers = {name for name in values if any(".." in value for value in values[name])}
            for seed in range(FIRST_SEED, FIRST_SEED + 250 if values else FIRST_SEED):
                draw = random.Random(seed)
                chosen = fuzz.draw_case(draw, [rung], LARGEST_FLOP).variant.split(",")
                missing -= set(chosen)
                numbers -= {each.split("=")[0] for each in chosen if each[-1:].isdigit()}
                if not missing and not numbers:
                    break
            self.assertEqual((missing, numbers), (set(), set()), rung)

    def test_rungs_agree(self):
        """The same inputs give the same bits in every rung, for K = 16, which all of them take."""
        rungs = build.rungs()
        for seed in range(FIRST_SEED, FIRST_SEED + max(1, SHAPES // 5)):
            draw = random.Random(seed)
            case = fuzz.draw_case(draw, ["step00_single_mma"], LARGEST_FLOP).but(out_dtype="f32")
            hashes = {}
            for name, on in itertools.product(rungs, ("b200", "h200")):
                other = case.but(rung=name, on=on, variant="")
                outcome = execute(other, check=False)
                self.assertTrue(outcome.clean, fuzz.complaint(other, outcome))
                hashes[name, on] = outcome.report["d_hash"]
            self.assertEqual(len(set(hashes.values())), 1, f"{case.command_line()}: {hashes}")


if __name__ == "__main__":
    unittest.main()
