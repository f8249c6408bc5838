"""The tools of the mutants: an edit that does not fit is an error, and a run that does not say what it should is noticed."""

import re
import unittest

from bench import Bench, executable, judge
from edits import COMMIT_EMPTY, EXPECT, MMA, S0, S1, WAIT_EMPTY, WAIT_FULL, expects, no_wait
from edits_step07 import S7
from mutant import GOOD, Good, Mutant, always, hangs, mismatch, race, seeds
from surgery import Edit, Executable, Kernel, Move, SurgeryError
from tools import build


class Edits(unittest.TestCase):
    def setUp(self):
        self.rung = executable(S1)

    def assert_refused(self, part, *edits):
        with self.assertRaisesRegex(SurgeryError, part):
            self.rung.mutated(edits)

    def changed(self, *edits):
        """The lines of the PTX that went and came, in the order of the text."""
        data = self.rung.mutated(edits)
        self.assertEqual(len(data), len(self.rung.data))
        begin, end = self.rung.begin, self.rung.end
        self.assertEqual(data[:begin] + data[end:], self.rung.data[:begin] + self.rung.data[end:])
        old, new = (text.split("\n") for text in (self.rung.ptx, data[begin:end].decode()))
        return [line for line in old if line not in new], [line for line in new if line not in old]

    def test_only_the_lines_of_the_statement_change(self):
        gone, come = self.changed(expects(4096))
        self.assertEqual(gone, [])  # the other kernels have the same line
        self.assertEqual(len(come), 1)
        self.assertRegex(come[0], r"^mbarrier\.arrive\.expect_tx\.shared::cta\.b64 _, \[%r\d+\], 4096;$")

    def test_a_longer_text_takes_room_from_empty_lines(self):
        _, come = self.changed(Edit(EXPECT, r"(mbarrier\.arrive.*)", r"\1" + 10 * " nanosleep.u32 1;"))
        self.assertEqual(len(come), 1)

    def test_no_room(self):
        self.assert_refused("bytes too long", Edit(EXPECT, r"(mbarrier\.arrive.*)", r"\1" + 10_000 * " nanosleep.u32 1;"))

    def test_nothing_to_change(self):
        self.assert_refused("matches 0 times in the PTX of step01_kloop/blackwell.cu:", Edit(EXPECT, "mbarrier.inval", ""))

    def test_too_much_to_change(self):
        self.assert_refused("matches [0-9]+ times in the PTX of all of step01_kloop, not 1", Edit(None, r"mov\.b32", "mov.u32"))

    def test_statements(self):
        self.assert_refused("0 places with 'frobnicate'", Edit("frobnicate", "a", "b"))
        self.assert_refused("2 places with '__syncthreads", Edit("__syncthreads();", "a", "b"))

    def test_moves(self):
        data = self.rung.mutated([Move(COMMIT_EMPTY, MMA)])
        text = data[self.rung.begin:self.rung.end]
        self.assertLess(text.index(b"tcgen05.commit"), text.index(b"tcgen05.mma"))
        self.assertLess(self.rung.ptx.index("tcgen05.mma"), self.rung.ptx.index("tcgen05.commit"))
        self.assertEqual(sorted(data), sorted(self.rung.data))
        self.assert_refused("not in one piece", Move("if (row < m) store_row", MMA))

    def test_lines_of_the_source(self):
        lines = self.rung.source.text.split("\n")
        for statement in (EXPECT, WAIT_FULL, MMA):
            self.assertIn(statement.split("(")[0], lines[self.rung.source.line(statement) - 1])

    def test_an_executable_without_the_kernel(self):
        with self.assertRaisesRegex(SurgeryError, "0 PTX texts with the kernel step01_kloop"):
            Executable(build.rung(S0), Kernel(S1))

    def test_the_kernel_of_a_variant(self):
        places = {variant: executable(S7, variant).source.place("mbarrier_init(shared_address(tile_empty[stage])")
                  for variant in ("pair", "persistent", "walk=2,tile-n=256")}
        self.assertEqual([place.split(":")[0] for place in places.values()],
                         [f"{S7}/{name}.cu" for name in ("pair", "persistent", "blackwell")])

    def test_one_instance_of_a_kernel(self):
        wide, narrow = (executable(S7, f"tile-n={columns}") for columns in (256, 128))
        alone = executable(S7, "cta-group=1,tile-n=256")
        edit = Edit("const int first_tile = static_cast", r"%ctaid\.x", "%ctaid.y")
        texts = {rung.kernel.arguments: rung.mutated([edit]) for rung in (wide, narrow, alone)}
        self.assertEqual(len(set(texts.values())), 3)
        for arguments, text in texts.items():
            edited = re.findall(r"\.entry (\w+)\((?:(?!\.entry).)*%ctaid\.y", text[wide.begin:wide.end].decode(), re.DOTALL)
            self.assertEqual([f"I{arguments}L" in name for name in edited], [True])

    def test_a_variant_that_leaves_the_instance_open(self):
        with self.assertRaisesRegex(SurgeryError, "variant 'walk=2': .* name one with tile-n="):
            executable(S7, "walk=2")


class Verdicts(unittest.TestCase):
    """What the judge must not let pass."""

    @classmethod
    def setUpClass(cls):
        cls.bench = Bench()

    @classmethod
    def tearDownClass(cls):
        cls.bench.close()

    def complaints(self, edits, under):
        return [lacks for _, lacks, _ in judge(Mutant("", S1, edits, under), self.bench)]

    def test_a_right_kernel_that_should_be_wrong(self):
        self.assertEqual(self.complaints((), always(mismatch())), 4 * ["exit status 0, not 1"])

    def test_a_wrong_kernel_that_should_be_right(self):
        self.assertEqual(self.complaints((expects(12304),), {"earliest": GOOD}), ["it should have ended well"])

    def test_another_report(self):
        self.assertEqual(self.complaints((expects(12304),), {"earliest": hangs("17 bytes missing")}),
                         ["it does not say: 17 bytes missing"])

    def test_another_order(self):
        wanted = hangs("waits for accumulator_full", "waits for tile_full")
        self.assertEqual(self.complaints((expects(12304),), {"earliest": wanted}),
                         ["it does not say: waits for tile_full, or not where it belongs"])

    def test_another_line(self):
        wrong = self.complaints((expects(12304),), {"earliest": hangs(f"warp 0, lane 0 at {{{WAIT_EMPTY}}}")})
        self.assertRegex(wrong[0], "^it does not say: warp 0, lane 0 at step01_kloop/blackwell.cu:[0-9]+$")

    def test_part_of_a_number(self):
        self.assertEqual(self.complaints((expects(12304),), {"earliest": hangs("0 of 1 arrival missing, 1")}),
                         ["it does not say: 0 of 1 arrival missing, 1, or not where it belongs"])

    def test_too_few_seeds(self):
        wrong = self.complaints((no_wait(WAIT_EMPTY),), {("earliest", "latest"): seeds(mismatch(), least=2)})
        self.assertEqual(wrong, ["1 seeds noticed, not 2 or more"])

    def test_a_seed_that_says_something_else(self):
        wrong = self.complaints((no_wait(WAIT_EMPTY),), {("earliest", "latest"): seeds(hangs(), mismatch("twice"), least=1)})
        self.assertEqual(wrong, ["it does not say: hangs: no thread of the block can go on; it does not say: twice"])

    def test_other_counters(self):
        self.assertEqual(self.complaints((), {"earliest": Good({"mmas": 5, "commits": 5})}),
                         ["of {'mmas': 5, 'commits': 5} it counted {'mmas': 4}"])

    def test_race_needs_every_schedule(self):
        self.assertEqual(len(self.complaints((), race(mismatch(), mismatch(), mismatch()))), 10)


if __name__ == "__main__":
    unittest.main()
