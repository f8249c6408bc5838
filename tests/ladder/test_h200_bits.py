"""What an H200 gave, bit for bit: the record has every rung and variant, and the emulated chips give the same."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools import bits, build, figures, fuzz  # noqa: E402
from tools.rung import Case, execute, variants  # noqa: E402

# Of one, 64 and 256 rows, of which step07 makes three plans; the others take as long again. All of them: test_full_h200_bits.py.
DECODE = ["1x8192x8192", "64x8192x8192", "decode-attn-out"]


class H200Bits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.record = bits.read()

    def same_bits(self, rung, row, on):
        case = Case(rung, *figures.sizes(row["shape"]), row["in"], row["out"], on=on)
        with self.subTest(case=case.command_line()):
            outcome = execute(case, check=False)
            self.assertTrue(outcome.clean, fuzz.complaint(case, outcome))
            self.assertEqual(outcome.report["d_hash"], row["d_hash"], f"an H200 gave the latter ({bits.where(row)})")

    def test_the_record_has_every_rung_and_variant(self):
        self.assertEqual(self.record["gpu"], "NVIDIA H200")
        sides = {f"{rung}:{variant}" for rung in build.rungs() for variant in variants(rung, "h200")}
        self.assertFalse(sides - set(self.record["sides"]), "bench/h200_bits.json lacks these. On an H200: ./ladder bench --bits --json "
                         "bench/h200_bits.json")
        for row in self.record["records"]:
            self.assertNotIn("other", row)
            without = [] if row["shape"].endswith("x16") else ["step00_single_mma:plain"]  # which has a K of its own
            self.assertEqual(row.get("without", []), without, bits.where(row))

    def test_small_shapes_on_every_rung(self):
        small = [row for row in self.record["records"] if row["out"] == "f32"]
        self.assertTrue(small)
        for row in small:
            for rung in build.rungs():
                if f"{rung}:{variants(rung, 'h200')[0]}" in row.get("without", []):
                    continue
                for on in ("h200", "b200"):
                    self.same_bits(rung, row, on)

    def test_few_rows_on_the_last_rung(self):
        rows = {row["shape"]: row for row in self.record["records"]}
        for shape in DECODE:
            self.same_bits("step07_persistent", rows[shape], "h200")


if __name__ == "__main__":
    unittest.main()
