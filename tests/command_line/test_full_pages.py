"""What the longest page quotes is what the rungs and the emulator say now."""

import unittest

from support import ladder
from test_pages import LONGEST


class Longest(unittest.TestCase):
    def test_all_that_is_quoted(self):
        done = ladder("pages", "--check", str(LONGEST))
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
