"""The page of PTX instructions says what the emulator answers now."""

import unittest

from support import ladder


class Isa(unittest.TestCase):
    def test_page_is_current(self):
        done = ladder("isa", "--check")
        if "of CUDA 13.0" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
