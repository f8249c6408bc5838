"""What the tests of step07's settings have in common: every run gives step01's bits, and nothing is remarked."""

import functools
import itertools
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools import fuzz  # noqa: E402
from tools.rung import Case, execute  # noqa: E402

RUNG = "step07_persistent"
OPERANDS = ["cta-group=2", "cta-group=1", "cta-group=1,multicast=on"]
TILES = ["tile-n=256", "tile-n=224", "tile-n=128"]
STORES = ["stores=tma", "stores=direct"]


@functools.lru_cache(maxsize=None)
def known(m, n, k, dtype, out_dtype):
    """The hash of step01's D, which --check has compared with references of its own."""
    outcome = execute(Case("step01_kloop", m, n, k, dtype, out_dtype))
    if not outcome.clean:
        raise AssertionError(outcome.text)
    return outcome.report["d_hash"]


def schedules(first_seed):
    """Without end; seeds that no other test has."""
    for seed in itertools.count(first_seed):
        yield from ("earliest", f"random:{2 * seed}", "latest", f"random:{2 * seed + 1}")


class AgainstStep01(unittest.TestCase):
    on = "b200"

    @classmethod
    def setUpClass(cls):
        cls.schedules = schedules(1000)

    def same_bits(self, shape, *settings, dtype="f16", out_dtype="f32", sms=0, schedule=None):
        """On so many SMs: for a pair two, so that a grid of few tiles is more than fits. Returns what the run reports."""
        case = Case(RUNG, *shape, dtype, out_dtype, variant=",".join(settings), on=self.on, sms=sms, rules=True,
                    schedule=schedule or next(self.schedules))
        with self.subTest(case=case.command_line()):
            outcome = execute(case, check=False)
            self.assertTrue(outcome.clean, fuzz.complaint(case, outcome))
            self.assertEqual(outcome.report["d_hash"], known(*shape, dtype, out_dtype))
            return outcome.report
        return {}
