"""step07's settings in all their combinations, on few SMs, under seeds of their own, held to the hazard rules."""

import itertools
import unittest

from against_step01 import OPERANDS, STORES, TILES, AgainstStep01

SHAPES = [(300, 776, 136), (520, 1032, 8), (129, 2008, 72), (1100, 40, 200)]
HANDED_OUT = ["persistent=on", "clusters=1", "clusters=2", "clusters=5", "persistent=off", "scheduler=clc"]
SMS = [2, 4, 6, 0]


class Combinations(AgainstStep01):
    def check(self, handed_out, sms):
        shapes, walks, rings = itertools.cycle(SHAPES), itertools.cycle([1, 2, 3, 32]), itertools.cycle([1, 2, 3, 4, 3])
        for operands, tile, stores, accumulators in itertools.product(OPERANDS, TILES, STORES, (1, 2)):
            ring = f"stages={next(rings)}" if accumulators == 1 else "stages=auto"
            self.same_bits(next(shapes), operands, tile, stores, f"accumulators={accumulators}", handed_out, f"walk={next(walks)}",
                           ring, sms=sms)


for how, few in itertools.product(HANDED_OUT, SMS):
    setattr(Combinations, f"test_{how.replace('=', '_')}_on_{few or 'all'}_sms", lambda self, how=how, few=few: self.check(how, few))


if __name__ == "__main__":
    unittest.main()
