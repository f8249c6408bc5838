"""`ladder exercise`: what it leaves to the reader, and what it takes for done."""

import tempfile
import unittest
from pathlib import Path

from support import ROOT, Refusals, ladder
from tools import lesson

STEPS = lesson.steps()[1:]  # that have one before them
STEP03 = lesson.named("step03")


class Lessons(unittest.TestCase):
    def test_the_steps_are_the_kernel_files_in_the_order_of_the_ladder(self):
        rungs = sorted(path.parent.name for path in ROOT.glob("step[0-9][0-9]_*/main.cpp"))
        last = [f"step07_persistent/{file}.cu" for file in ("pair", "persistent", "blackwell")]
        self.assertEqual([step.path for step in lesson.steps()], [f"{rung}/blackwell.cu" for rung in rungs[:-1]] + last)
        self.assertEqual([step.short for step in STEPS[-4:]], ["step06", "step07:pair", "step07:persistent", "step07:blackwell"])
        self.assertEqual([step.kernel for step in STEPS[-4:]],
                         ["step06_multicast", "step07_pair", "step07_persistent_grid", "step07_persistent"])
        self.assertEqual(lesson.predecessor(lesson.named("step07:pair")), lesson.named("step06"))
        self.assertEqual(lesson.predecessor(lesson.named("step07")), lesson.named("step07_persistent:persistent"))

    def test_the_exercise_with_every_todo_done_is_the_step(self):
        for step in STEPS:
            text, known = lesson.exercise(step), lesson.words_of(step)
            for block in lesson.blocks(step):
                if block.number:
                    todo = "\n".join([*block.task(known), *block.old])
                    self.assertEqual(text.count(todo), 1, todo)
                    place = todo + "\n" if not block.new else todo
                    text = text.replace(place, "\n".join(block.new))
            self.assertEqual(text, (ROOT / step.path).read_text(), step.path)

    def test_the_exercise_without_its_todos_is_the_step_before(self):
        """But for what is given: comments, includes, and the parameter of the launch."""
        def code(text):
            lines = ("".join(line.split("//")[0].split()) for line in text.split("\n"))
            return [line for line in lines if line and "#include" not in line and "launch" not in line]
        for step in STEPS:
            before = lesson.predecessor(step)
            old = (ROOT / before.path).read_text().replace(before.kernel, step.kernel)
            self.assertEqual(code(lesson.exercise(step)), code(old), step.path)

    def test_every_step_leaves_something_to_do(self):
        for step in STEPS:
            numbers = [block.number for block in lesson.blocks(step) if block.number]
            self.assertEqual(numbers, list(range(1, len(numbers) + 1)))
            self.assertGreater(len(numbers), 3)

    def test_the_kernel_has_the_name_of_the_step(self):
        for step in STEPS[-3:]:
            text = lesson.exercise(step)
            self.assertIn(f"\n    {step.kernel}(const __grid_constant__", text)
            self.assertIn(f"\nvoid launch_{step.kernel}(const Gemm& gemm", text)
            self.assertNotIn(lesson.predecessor(step).kernel + "(", text)

    def test_lines_that_move_are_told_apart_from_those_that_go(self):
        text = lesson.exercise(STEP03)
        self.assertIn("Of the old ones, 6 come again at TODO 3.", " ".join(text.replace("//", " ").split()))

    def test_new_names_are_names(self):
        """And no ends of numbers, and no words of what a program says."""
        texts = [" ".join(lesson.exercise(step).replace("//", " ").split()) for step in STEPS[-3:]]
        self.assertIn('New here: kPairCtas, kBoth. "of a pair', texts[0])  # 0b11 stands there, too
        self.assertIn("cudaDevAttrL2CacheSize, clusters,", texts[2])      # "asking for the size of L2"

    def test_lines_stay_within_the_width(self):
        for step in STEPS:
            for line in lesson.exercise(step).split("\n"):
                self.assertLessEqual(len(line), lesson.WIDTH, line)


class Exercises(Refusals):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="ladder-exercise-")
        self.addCleanup(self.folder.cleanup)

    def exercise(self, *arguments):
        return ladder("exercise", *arguments, "--folder", self.folder.name)

    def check(self, short, text=None):
        if text is not None:
            source = Path(self.folder.name, lesson.named(short).path)
            source.parent.mkdir(exist_ok=True)
            source.write_text(text)
        return self.exercise(short, "--check")


class Commands(Exercises):
    def test_refusals(self):
        self.assert_refused_in_one_line(self.exercise("step00"), "step00_single_mma is where the ladder begins")
        self.assert_refused_in_one_line(self.exercise("step99"), "step99: no such rung")
        self.assert_refused_in_one_line(self.exercise("step02", "--hint", "0"), "--hint 0: the TODOs of step02_pipeline are 1 to")
        self.assert_refused_in_one_line(self.exercise("step02", "--hint", "99"), "--hint 99")
        self.assert_refused(self.exercise("step02", "--check"), "does not exist", "./ladder exercise step02")
        self.assert_refused(self.exercise("step07:pair", "--check"), "does not exist", "./ladder exercise step07:pair")
        self.assert_refused_in_one_line(self.exercise("step07:trio"), "step07:trio: no such step; step07_persistent has pair, ")
        self.assert_refused_in_one_line(self.exercise("step02:pair"), "step02:pair: no such step")

    def test_a_rung_of_several_steps_has_as_many_exercises(self):
        for arguments in ((), ("--check",), ("--hint", "1")):
            self.assert_refused_in_one_line(self.exercise("step07", *arguments), "step07_persistent is several steps, and each is an "
                                            "exercise: step07:pair, step07:persistent, step07:blackwell.")
        self.assertFalse(list(Path(self.folder.name).iterdir()))
        for file, before in (("pair", "step06_multicast"), ("persistent", "step07_pair"), ("blackwell", "step07_persistent_grid")):
            done = self.exercise(f"step07:{file}")
            self.assertEqual(done.returncode, 0, done.stderr)
            for part in (f"step07_persistent/{file}.cu: {before} under the name of ", f"./ladder exercise step07:{file} --check "):
                self.assertIn(part, done.stdout)
            self.assertEqual(Path(self.folder.name, "step07_persistent", f"{file}.cu").read_text(),
                             lesson.exercise(lesson.named(f"step07:{file}")))

    def test_what_is_there_is_kept(self):
        self.assertEqual(self.exercise("step02").returncode, 0)
        source = Path(self.folder.name, "step02_pipeline", "blackwell.cu")
        source.write_text("mine")
        self.assert_refused_in_one_line(self.exercise("step02"), "is there already", "delete it")
        self.assertEqual(source.read_text(), "mine")

    def test_a_hint_is_what_the_rung_says(self):
        for short in ("step02", "step07:persistent"):
            block = next(block for block in lesson.blocks(lesson.named(short)) if block.number == 4)
            said = self.exercise(short, "--hint", "4").stdout.splitlines()
            self.assertEqual(said, [f"-{line}" for line in block.old] + [f"+{line}" for line in block.new])

    def test_untouched_it_gives_right_results_and_is_not_done(self):
        self.assertEqual(self.exercise("step03").returncode, 0)
        done = self.check("step03")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for part in ("4 TODOs left. Every result is right", "MMAs, warp 0", "360"):
            self.assertIn(part, done.stderr)

    def test_the_rung_itself_is_done(self):
        done = self.check("step03", (ROOT / "step03_warpspec" / "blackwell.cu").read_text())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("Right: ", done.stdout)

    def test_a_grid_that_does_not_stay_is_not_the_work(self):
        text = (ROOT / "step07_persistent" / "persistent.cu").read_text()
        wrong = text.replace("std::min<int64_t>(m_pairs * n_tiles, resident_clusters(kernel, shape))", "m_pairs * n_tiles")
        self.assertNotEqual(text, wrong)
        done = self.check("step07:persistent", wrong)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"at 2560x2304x64, variant persistent .*\n.*CTAs  +180  +148\n")

    def test_a_mistake_is_told_with_the_line_of_the_exercise(self):
        text = (ROOT / "step03_warpspec" / "blackwell.cu").read_text()
        wrong = text.replace("parity ^ 1);", "parity);")
        self.assertNotEqual(text, wrong)
        done = self.check("step03", wrong)
        self.assertEqual(done.returncode, 1)
        line = 1 + [i for i, line in enumerate(wrong.split("\n")) if "tile_empty[stage]), parity);" in line][0]
        for part in ("A run goes wrong", "hangs", f"step03_warpspec/blackwell.cu:{line}", "Again: LADDER_SCHEDULE=earliest"):
            self.assertIn(part, done.stderr)

    def test_what_the_compiler_refuses(self):
        done = self.check("step03", "this is no kernel\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("step03_warpspec/blackwell.cu(1): error", done.stderr)
        self.assertIn("It does not build", done.stderr)


if __name__ == "__main__":
    unittest.main()
