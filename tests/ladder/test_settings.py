"""step07's settings: each value of each, grids of any size, shapes at edges; under all schedules, held to the hazard rules.

test_full_settings.py has their combinations."""

import itertools
import unittest

from against_step01 import OPERANDS, RUNG, STORES, TILES, AgainstStep01
from tools.rung import settings

RAGGED = (300, 776, 136)   # tiles and K tiles that end outside: 2 rows of tiles for pairs, 3 for CTAs alone
TALL = (1100, 264, 72)     # 9 rows of tiles for CTAs alone
# What a value needs beside it to be taken, or to make a difference.
BESIDE = {"multicast=on": "cta-group=1", "stages": "tile-n=128,stores=direct", "walk": "cta-group=1"}


def each_value(name, values):
    """`name=value` for all of them; of a range the first few and the last."""
    for value in values:
        least, dots, most = value.partition("..")
        yield from (f"{name}={each}" for each in ([*range(int(least), 6), int(most)] if dots else [value]))


class Settings(AgainstStep01):
    def test_every_value(self):
        """Several tiles for each cluster: on two SMs there is room for one pair, on four for two."""
        seen = set()
        for name, values in settings(RUNG).items():
            for value in each_value(name, values):
                beside = BESIDE.get(value, BESIDE.get(name))
                shape = TALL if name == "walk" else RAGGED
                for sms in (2, 4):
                    seen.add(self.same_bits(shape, value, *([beside] if beside else []), sms=sms).get("plan"))
        self.assertGreater(len(seen), 30)  # they do change something

    def test_grids_of_any_size(self):
        """15 tiles of a pair, 25 of CTAs alone: few numbers divide them."""
        for operands, clusters in itertools.product(OPERANDS, (1, 2, 4, 6, 7, 14, 99)):
            report = self.same_bits((520, 1032, 72), operands, "tile-n=256", f"clusters={clusters}")
            tiles = 25 if operands == "cta-group=1" else 15
            self.assertIn(f"; {min(clusters, tiles)} cluster", report["plan"])

    def test_more_clusters_than_the_chip_holds(self):
        for operands, schedule in itertools.product(OPERANDS, ("earliest", "latest", "random:1")):
            self.same_bits((520, 1032, 72), operands, "tile-n=128", "clusters=9", sms=4, schedule=schedule)

    def test_tiles_from_the_hardware(self):
        """Clusters that are there ask for those that are not, which are handed out in any order."""
        for operands, sms, seed in itertools.product(OPERANDS, (2, 4, 6), range(4)):
            report = self.same_bits((520, 1032, 72), operands, "tile-n=128", "scheduler=clc", sms=sms,
                                    schedule=f"random:{seed}")
            self.assertEqual(report["counters"]["ctas"], sms)  # no other has started

    def test_edges(self):
        """One K tile and less; D narrower than what goes through a store buffer; a CTA of a pair without rows."""
        tiles, accumulators = itertools.cycle(TILES), itertools.cycle(["accumulators=2", "accumulators=2", "accumulators=1"])
        for shape in ((300, 776, 8), (300, 776, 64), (130, 8, 72), (300, 24, 200), (257, 40, 72), (1, 776, 136), (128, 1032, 200)):
            for operands, stores in itertools.product(OPERANDS, STORES):
                self.same_bits(shape, operands, stores, next(tiles), next(accumulators), sms=2)

    def test_stripes_that_do_not_divide_a_tile(self):
        """224 columns are three stripes and a half of 16-bit outputs: half stripes. Wherever D's last column is."""
        for (dtype, out_dtype), stores in itertools.product([("f16", "f16"), ("bf16", "bf16"), ("f16", "f32"), ("bf16", "f32")], STORES):
            for n in (200, 448, 480):
                self.same_bits((200, n, 72), "tile-n=224", stores, dtype=dtype, out_dtype=out_dtype, sms=2)

    def test_rings_shorter_and_longer_than_a_tile(self):
        """The ring goes on from tile to tile: 3 K tiles a tile, and from one stage to nine."""
        for stages, operands in zip(range(1, 10), itertools.cycle(OPERANDS)):
            tile = "tile-n=128,stores=direct" if stages > 4 else "tile-n=256"
            if stages > 7:
                operands = "cta-group=2"
            self.same_bits((300, 776, 136), operands, tile, f"stages={stages}", sms=2)


if __name__ == "__main__":
    unittest.main()
