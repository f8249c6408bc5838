"""The emulated H200 gives the bits that an H200 gave, on the last rung, at every shape that takes no more than a minute or two."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools import bits, figures, fuzz  # noqa: E402
from tools.rung import Case, execute  # noqa: E402

# Eight and three and a half times the work of 8192x8192x8192, which takes longer than all others together.
TOO_LONG = {"16384x16384x16384", "prefill-mlp-up"}


class FullH200Bits(unittest.TestCase):
    def test_every_shape(self):
        rows = bits.read()["records"]
        self.assertLess(TOO_LONG, {row["shape"] for row in rows})
        for row in rows:
            if row["shape"] in TOO_LONG:
                continue
            case = Case("step07_persistent", *figures.sizes(row["shape"]), row["in"], row["out"], on="h200")
            with self.subTest(case=case.command_line()):
                outcome = execute(case, check=False)
                self.assertTrue(outcome.clean, fuzz.complaint(case, outcome))
                self.assertEqual(outcome.report["d_hash"], row["d_hash"], f"an H200 gave the latter ({bits.where(row)})")


if __name__ == "__main__":
    unittest.main()
