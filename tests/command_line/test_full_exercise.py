"""Exercises whose checks take long: each builds a kernel of step07's and runs it some dozens of times."""

import unittest

from support import ROOT
from test_exercise import Exercises
from tools import lesson


class Chain(Exercises):
    def test_a_chains_step_untouched_is_not_done_and_itself_is(self):
        """Of the pair's exercise the compiler can make nothing: the cluster's shape, which it mentions, is of the rung before."""
        grid = lesson.named("step07:persistent")
        done = self.check("step07:persistent", lesson.exercise(grid))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        todo = sum(block.number > 0 for block in lesson.blocks(grid))
        for part in (f"{todo} TODOs left. Every result is right", "at 384x768x640, variant persistent", "TMA stores, warp 0"):
            self.assertIn(part, done.stderr)
        for short in ("step07:pair", "step07:persistent"):
            step = lesson.named(short)
            done = self.check(short, (ROOT / step.path).read_text())
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn(f"Right: 24 runs, each with the bits of {step.kernel}", done.stdout)

    def test_every_setting_of_the_last_step_counts(self):
        """Here the scheduler's, which does nothing: every tile has a cluster of its own."""
        text = (ROOT / "step07_persistent" / "blackwell.cu").read_text()
        wrong = text.replace("plan.launch_control", "false")
        self.assertNotEqual(text, wrong)
        done = self.check("step07:blackwell", wrong)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"Every result is right(.|\n)*at 2560x2304x64, variant scheduler=clc .*\n.*CTAs  +\d+  +148\n")


if __name__ == "__main__":
    unittest.main()
