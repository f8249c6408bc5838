"""The compiler from its wheels, in a copy of the checkout, also where a toolkit is installed. Fetches about 105 MB."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import PYTHON, ROOT, run


class Wheels(unittest.TestCase):
    def test_build_and_run(self):
        with tempfile.TemporaryDirectory(prefix="ladder-wheels-") as home:
            checkout = Path(home, "checkout")
            files = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], stdout=subprocess.PIPE, check=True).stdout
            for name in filter(None, files.decode().split("\0")):
                if (ROOT / name).is_file():
                    (checkout / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(ROOT / name, checkout / name)

            environment = {name: value for name, value in os.environ.items()
                           if name not in ("LADDER_BUILD", "CUDACXX", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH")}
            environment["LADDER_TOOLKIT"] = "pypi"
            environment["PATH"] = ":".join(folder for folder in environment["PATH"].split(":") if "cuda" not in folder)

            built = run([PYTHON, checkout / "ladder", "build"], cwd=checkout, env=environment, timeout=1500)
            self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
            compiler = checkout / ".toolkit" / "cuda" / "bin" / "nvcc"
            cache = (checkout / "build" / "CMakeCache.txt").read_text()
            used = re.search(r"^CMAKE_CUDA_COMPILER:\w+=(.*)$", cache, re.M)
            self.assertEqual(used and used.group(1), str(compiler))
            self.assertIn("release 13.0, V13.0.88", run([compiler, "--version"]).stdout)
            self.assertFalse((checkout / ".toolkit" / "download").exists())

            once_more = run([PYTHON, checkout / "ladder", "build"], cwd=checkout, env=environment)
            self.assertEqual((once_more.returncode, once_more.stderr), (0, ""))

            ran = run([PYTHON, checkout / "ladder", "run", "step00", "--shape", "200x264x16", "--on", "b200", "--check"],
                      cwd=checkout, env=environment)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)


if __name__ == "__main__":
    unittest.main()
