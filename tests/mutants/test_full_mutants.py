"""The same as test_mutants.py, with all the seeds of every race."""

import unittest

import test_mutants


class AllSeeds(test_mutants.Mutants):
    seeds = True


del test_mutants

if __name__ == "__main__":
    unittest.main()
