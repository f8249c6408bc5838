"""`ladder exercise`: what it leaves to the reader, and what it takes for done."""

import tempfile
import unittest
from pathlib import Path

from support import ROOT, Refusals, ladder
from tools import lesson

RUNGS = sorted(path.parent.name for path in ROOT.glob("step[0-9][0-9]_*/main.cpp"))


class Lessons(unittest.TestCase):
    def test_the_exercise_with_every_todo_done_is_the_rung(self):
        for rung in RUNGS[1:]:
            before = lesson.predecessor(rung)
            text, known = lesson.exercise(before, rung), lesson.words_of(before, rung)
            for block in lesson.blocks(before, rung):
                if block.number:
                    todo = "\n".join([*block.task(known), *block.old])
                    self.assertEqual(text.count(todo), 1, todo)
                    place = todo + "\n" if not block.new else todo
                    text = text.replace(place, "\n".join(block.new))
            self.assertEqual(text, (ROOT / rung / "blackwell.cu").read_text(), rung)

    def test_the_exercise_without_its_todos_is_the_rung_before(self):
        """But for what is given: comments, includes, and the parameter of the launch."""
        def code(text):
            lines = ("".join(line.split("//")[0].split()) for line in text.split("\n"))
            return [line for line in lines if line and "#include" not in line and "launch" not in line]
        for rung in RUNGS[1:]:
            before = lesson.predecessor(rung)
            old = (ROOT / before / "blackwell.cu").read_text().replace(before, rung)
            self.assertEqual(code(lesson.exercise(before, rung)), code(old), rung)

    def test_every_rung_leaves_something_to_do(self):
        for rung in RUNGS[1:]:
            numbers = [block.number for block in lesson.blocks(lesson.predecessor(rung), rung) if block.number]
            self.assertEqual(numbers, list(range(1, len(numbers) + 1)))
            self.assertGreater(len(numbers), 3)

    def test_lines_that_move_are_told_apart_from_those_that_go(self):
        text = lesson.exercise("step02_pipeline", "step03_warpspec")
        self.assertIn("Of the old ones, 6 come again at TODO 3.", " ".join(text.replace("//", " ").split()))

    def test_lines_stay_within_the_width(self):
        for rung in RUNGS[1:]:
            for line in lesson.exercise(lesson.predecessor(rung), rung).split("\n"):
                self.assertLessEqual(len(line), lesson.WIDTH, line)


class Commands(Refusals):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="ladder-exercise-")
        self.addCleanup(self.folder.cleanup)

    def exercise(self, *arguments):
        return ladder("exercise", *arguments, "--folder", self.folder.name)

    def check(self, rung, text=None):
        if text is not None:
            Path(self.folder.name, rung).mkdir(exist_ok=True)
            Path(self.folder.name, rung, "blackwell.cu").write_text(text)
        return self.exercise(rung[:6], "--check")

    def test_refusals(self):
        self.assert_refused_in_one_line(self.exercise("step00"), "step00_single_mma is where the ladder begins")
        self.assert_refused_in_one_line(self.exercise("step99"), "step99: no such rung")
        self.assert_refused_in_one_line(self.exercise("step02", "--hint", "0"), "--hint 0: the TODOs of step02_pipeline are 1 to")
        self.assert_refused_in_one_line(self.exercise("step02", "--hint", "99"), "--hint 99")
        self.assert_refused(self.exercise("step02", "--check"), "does not exist", "./ladder exercise step02")

    def test_what_is_there_is_kept(self):
        self.assertEqual(self.exercise("step02").returncode, 0)
        source = Path(self.folder.name, "step02_pipeline", "blackwell.cu")
        source.write_text("mine")
        self.assert_refused_in_one_line(self.exercise("step02"), "is there already", "delete it")
        self.assertEqual(source.read_text(), "mine")

    def test_a_hint_is_what_the_rung_says(self):
        block = next(block for block in lesson.blocks("step01_kloop", "step02_pipeline") if block.number == 4)
        said = self.exercise("step02", "--hint", "4").stdout.splitlines()
        self.assertEqual(said, [f"-{line}" for line in block.old] + [f"+{line}" for line in block.new])

    def test_untouched_it_gives_right_results_and_is_not_done(self):
        self.assertEqual(self.exercise("step03").returncode, 0)
        done = self.check("step03_warpspec")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for part in ("4 TODOs left. Every result is right", "MMAs, warp 0", "360"):
            self.assertIn(part, done.stderr)

    def test_the_rung_itself_is_done(self):
        done = self.check("step03_warpspec", (ROOT / "step03_warpspec" / "blackwell.cu").read_text())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("Right: ", done.stdout)

    def test_a_mistake_is_told_with_the_line_of_the_exercise(self):
        text = (ROOT / "step03_warpspec" / "blackwell.cu").read_text()
        wrong = text.replace("parity ^ 1);", "parity);")
        self.assertNotEqual(text, wrong)
        done = self.check("step03_warpspec", wrong)
        self.assertEqual(done.returncode, 1)
        line = 1 + [i for i, line in enumerate(wrong.split("\n")) if "tile_empty[stage]), parity);" in line][0]
        for part in ("A run goes wrong", "hangs", f"step03_warpspec/blackwell.cu:{line}", "Again: LADDER_SCHEDULE=earliest"):
            self.assertIn(part, done.stderr)

    def test_what_the_compiler_refuses(self):
        done = self.check("step03_warpspec", "this is no kernel\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("step03_warpspec/blackwell.cu(1): error", done.stderr)
        self.assertIn("It does not build", done.stderr)


if __name__ == "__main__":
    unittest.main()
