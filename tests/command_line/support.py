"""A front door in a machine of our making: a PATH that holds only what a test puts there."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("LADDER_BUILD") or ROOT / "build")
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
NOBODY = 65534

sys.path.insert(0, str(ROOT))


def run(command, **options):
    options.setdefault("timeout", 300)
    return subprocess.run([str(each) for each in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, **options)


def ladder(*arguments, cwd=None, **environment):
    """The front door of this checkout, on the build folder under test."""
    return run([ROOT / "ladder", *arguments], env={**os.environ, "LADDER_BUILD": str(BUILD), **environment}, cwd=cwd)


def cmake_cache(name):
    for line in (BUILD / "CMakeCache.txt").read_text().splitlines():
        if line.startswith(name + ":"):
            return line.split("=", 1)[1]
    return None


class Machine:
    """A copy of the front door and a PATH with nothing but Python and the programs that a test writes."""

    def __init__(self):
        self.home = Path(tempfile.mkdtemp(prefix="ladder-machine-"))
        self.home.chmod(0o777)  # some tests run the front door as nobody
        self.bin, self.checkout = self.home / "bin", self.home / "checkout"
        self.bin.mkdir()
        self.checkout.mkdir()
        shutil.copy(ROOT / "ladder", self.checkout)
        shutil.copytree(ROOT / "tools", self.checkout / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        (self.bin / "python3").symlink_to(PYTHON)
        for tool in ("env", "sh", "cat", "touch"):
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.log = self.home / "log"
        self.log.touch()
        self.log.chmod(0o666)

    def close(self):
        shutil.rmtree(self.home, ignore_errors=True)

    def program(self, name, script, folder=None):
        """Writes a shell script that appends its command line to the log before it does anything else."""
        path = (folder or self.bin) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!{shutil.which("sh")}\necho "{name} $*" >> {self.log}\n{script}\n')
        path.chmod(0o755)
        return path

    def compiler(self, version="12", lacks=()):
        """A g++ that says its version and, asked to preprocess, that the headers of these packages are missing until
        somebody has made the file `installed`."""
        missing = "\n".join(f"missing:{package}" for package in lacks)
        return self.program("g++", f'''case "$*" in
  --version) echo "g++ (GCC) {version}" ;;
  -dumpversion) echo {version} ;;
  *-E*) cat > /dev/null; [ -e {self.home}/installed ] || echo "{missing}" ;;
esac''')

    def build_tools(self):
        self.program("cmake", 'echo "cmake version 3.25.1"')
        self.program("ninja", "exit 0")
        self.program("pkg-config", "exit 0")

    def toolkit(self, version):
        """A folder with an nvcc that only knows its version."""
        home = self.home / f"cuda-{version}"
        self.program("nvcc", f'echo "Cuda compilation tools, release {version}, V{version}.1"', home / "bin")
        return home

    def ladder(self, *arguments, user=None, **environment):
        variables = {"PATH": str(self.bin), "HOME": str(self.home), "LADDER_BUILD": str(self.home / "build"),
                     "PYTHONDONTWRITEBYTECODE": "1", **environment}
        identity = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        return run([PYTHON, self.checkout / "ladder", *arguments], env=variables, cwd=self.checkout, **identity)

    def logged(self):
        return self.log.read_text().splitlines()


class Refusals(unittest.TestCase):
    def assert_refused(self, done, *parts):
        """Exit status 2, nothing on stdout, and one message that holds every part."""
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        for part in parts:
            self.assertIn(part, done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def assert_refused_in_one_line(self, done, *parts):
        self.assert_refused(done, *parts)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
