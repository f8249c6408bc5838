"""What only an unlucky schedule shows of a broken rung, the hazard rules see under the kindest one; and of a right one nothing.
Of all of them `./ladder check` says what the catalogue has; the pages quote that."""

import re
import unittest

from bench import Bench
from catalogue import MUTANTS
from mutant import Good
from tools import build
from tools.check import SCHEDULES

EARLIEST = "earliest"
QUOTED = re.compile(r"<!-- check: (\w+), (.+?) -->")  # on a page

# Right under `earliest`, wrong or told under others, and no hazard: why.
NO_HAZARD = {
    ("step01_kloop", "no wait for the registers"): "their use waits for them (PTX ISA: a true register dependency)",
    ("step05_epilogue", "no wait for the columns read"): "their use waits for them",
    ("step05_epilogue", "no wait for either register set"): "their use waits for them",
}


def outcomes(mutant, schedule):
    """Those that `under` names for the schedule."""
    return [wanted for schedules, wanted in mutant.under.items()
            if schedule in (schedules if isinstance(schedules, tuple) else (schedules,))]


def depends_on_luck(mutant):
    """Nothing is noticed under `earliest`, something under another schedule."""
    kind = [isinstance(wanted, Good) for wanted in outcomes(mutant, EARLIEST)]
    return bool(kind) and all(kind) and not all(isinstance(wanted, Good) for wanted in mutant.under.values())


def always_right(mutant):
    return all(isinstance(wanted, Good) for wanted in mutant.under.values())


class Findings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bench = Bench()

    @classmethod
    def tearDownClass(cls):
        cls.bench.close()

    def said(self, mutant):
        outcome = self.bench.run(mutant, [EARLIEST], rules=True)[EARLIEST]
        self.assertTrue(outcome.good, outcome.text)
        return outcome.text

    def test_unedited_rungs_are_clean(self):
        unedited = [mutant for mutant in MUTANTS if not mutant.edits]
        self.assertGreater(len(unedited), 5)
        for mutant in unedited:
            with self.subTest(rung=mutant.rung):
                self.assertEqual(self.said(mutant), "")

    def test_what_luck_hides_is_found(self):
        found = 0
        for mutant in MUTANTS:
            if mutant.strict or not mutant.edits or not depends_on_luck(mutant):
                continue
            with self.subTest(mutant=f"{mutant.rung} {mutant.name}"):
                said = self.said(mutant)
                if (mutant.rung, mutant.name) in NO_HAZARD:
                    self.assertEqual(said, "", "it is a hazard after all: strike it off the list")
                    continue
                self.assertRegex(said, r"========= (Error|Rule): ")
                self.assertIn(f"{mutant.file}:", said)
                found += 1
        self.assertGreater(found, 15)

    def test_what_is_found(self):
        """The rules by name, in lines of the rung's own: of the mutants that no page quotes (for the others, `./ladder pages
        --check` is the test), and of all in test_full_findings.py."""
        quoted = {pair for page in (build.ROOT / "docs").glob("step*.md") for pair in QUOTED.findall(page.read_text())}
        left = [mutant for mutant in MUTANTS if (mutant.rung, mutant.name) not in quoted]
        self.assertGreater(len(left), 50)
        self.check_what_is_found(left)

    def check_what_is_found(self, mutants):
        for mutant in mutants:
            if mutant.strict and not mutant.found:
                continue
            with self.subTest(mutant=f"{mutant.rung} {mutant.name}"):
                findings = self.bench.found(mutant, SCHEDULES)
                self.assertEqual(", ".join(dict.fromkeys(finding["rule"] for finding in findings)), mutant.found)
                for finding in findings:
                    self.assertEqual(finding["kernel"], mutant.kernel.name)
                    for side in finding["sides"]:
                        self.assertIn(f"{mutant.file}:", side["where"])


if __name__ == "__main__":
    unittest.main()
