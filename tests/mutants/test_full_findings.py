"""What the hazard rules find in every mutant: test_findings.py looks at those that no page quotes."""

import unittest

from catalogue import MUTANTS
from test_findings import Findings as Some


class Findings(Some):
    def test_what_is_found(self):
        self.check_what_is_found(MUTANTS)


del Some

if __name__ == "__main__":
    unittest.main()
