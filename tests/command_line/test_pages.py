"""What the pages quote of the emulator is what it says now."""

import unittest

from support import ladder


class Pages(unittest.TestCase):
    def test_quoted_reports(self):
        done = ladder("pages", "--check")
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
