"""Rungs broken on purpose: each must be noticed, with the report that tells a reader what is wrong. Races under many seeds:
test_full_mutants.py."""

import unittest

from bench import Bench, judge
from catalogue import MUTANTS


class Mutants(unittest.TestCase):
    seeds = False

    @classmethod
    def setUpClass(cls):
        cls.bench = Bench()

    @classmethod
    def tearDownClass(cls):
        cls.bench.close()


def add(mutant):
    def test(self):
        wrong = judge(mutant, self.bench, self.seeds)
        self.assertFalse(wrong, "\n\n".join(f"under {schedule}: {lacks}\n{text}" for schedule, lacks, text in wrong))

    name = mutant.name if mutant.input == "random" else f"{mutant.name} {mutant.input}"
    title = "".join(letter if letter.isalnum() else "_" for letter in f"{mutant.rung[:6]} {name}")
    assert not hasattr(Mutants, "test_" + title), title
    test.__doc__ = f"{mutant.rung}: {mutant.name}"
    setattr(Mutants, "test_" + title, test)


for each in MUTANTS:
    add(each)

if __name__ == "__main__":
    unittest.main()
