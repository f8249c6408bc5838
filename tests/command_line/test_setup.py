"""Setting up a machine: what is missing, who may install it, and what the front door says when it cannot."""

import os
import unittest

from support import NOBODY, PYTHON, Machine, Refusals, run

AS_ROOT = os.geteuid() == 0


class Setup(Refusals):
    def setUp(self):
        self.machine = Machine()
        self.addCleanup(self.machine.close)

    def ordinary_user(self):
        """A user without rights: nobody when the tests run as root, else whoever runs them."""
        return NOBODY if AS_ROOT else None

    def sudo(self, allowed):
        self.machine.program("sudo", 'shift; exec "$@"' if allowed else "exit 1")
        self.machine.program("true", "exit 0")


class Compiler(Setup):
    def test_none(self):
        done = self.machine.ladder("build")
        self.assert_refused_in_one_line(done, "No C++ compiler found", "apt-get install", "g++")

    def test_too_old(self):
        self.machine.compiler(version="11")
        done = self.machine.ladder("build")
        self.assert_refused_in_one_line(done, "GCC 11", "12 or newer", "CXX=g++-12")

    def test_a_newer_one_beside_an_old_one_is_taken(self):
        self.machine.compiler(version="11")
        self.machine.compiler(version="12").rename(self.machine.bin / "g++-12")
        self.machine.compiler(version="11")
        self.machine.build_tools()
        done = self.machine.ladder("build", LADDER_TOOLKIT="/nowhere")
        self.assert_refused(done, "LADDER_TOOLKIT=/nowhere")  # it got past the compiler

    def test_named_but_absent(self):
        done = self.machine.ladder("build", CXX="g++-99")
        self.assert_refused_in_one_line(done, "CXX=g++-99")


class Packages(Setup):
    def test_no_rights(self):
        self.machine.compiler(lacks=["libhwy-dev", "catch2"])
        self.machine.build_tools()
        self.machine.program("apt-get", "exit 0")
        self.sudo(allowed=False)
        done = self.machine.ladder("build", user=self.ordinary_user())
        self.assert_refused_in_one_line(done, "please type: sudo apt-get install -y --no-install-recommends", "libhwy-dev", "catch2")
        self.assertFalse([line for line in self.machine.logged() if line.startswith("apt-get")])

    def test_everything_missing_is_named_at_once(self):
        self.machine.compiler(lacks=["libhwy-dev"])
        self.machine.program("apt-get", "exit 0")
        self.sudo(allowed=False)
        done = self.machine.ladder("build", user=self.ordinary_user())
        self.assert_refused_in_one_line(done, "cmake", "ninja-build", "pkg-config", "libhwy-dev")

    def test_sudo_without_a_password_installs(self):
        self.machine.compiler(lacks=["libhwy-dev"])
        self.machine.build_tools()
        self.machine.program("apt-get", f'case "$*" in *install*) touch {self.machine.home}/installed;; esac')
        self.sudo(allowed=True)
        done = self.machine.ladder("build", user=self.ordinary_user(), LADDER_TOOLKIT="/nowhere")
        self.assert_refused(done, "LADDER_TOOLKIT=/nowhere")  # all that was left to complain of
        apt = [line for line in self.machine.logged() if line.startswith("apt-get")]
        self.assertEqual(len(apt), 2, apt)
        self.assertIn("update", apt[0])
        self.assertRegex(apt[1], r"install -y --no-install-recommends libhwy-dev$")

    @unittest.skipUnless(AS_ROOT, "needs root")
    def test_root_installs(self):
        self.machine.compiler(lacks=["liblz4-dev"])
        self.machine.build_tools()
        self.machine.program("apt-get", f'case "$*" in *install*) touch {self.machine.home}/installed;; esac')
        done = self.machine.ladder("build", LADDER_TOOLKIT="/nowhere")
        self.assert_refused(done, "LADDER_TOOLKIT=/nowhere")
        self.assertRegex(self.machine.logged()[-3], r"^apt-get .*install -y --no-install-recommends liblz4-dev$")

    @unittest.skipUnless(AS_ROOT, "needs root")
    def test_no_network(self):
        self.machine.compiler(lacks=["liblz4-dev"])
        self.machine.build_tools()
        self.machine.program("apt-get", 'echo "E: Unable to fetch some archives"; exit 100')
        done = self.machine.ladder("build")
        self.assert_refused(done, "no network?", "Unable to fetch some archives", "apt-get install -y", "liblz4-dev")

    def test_told_never_to_install(self):
        self.machine.compiler(lacks=["liblz4-dev"])
        self.machine.build_tools()
        self.machine.program("apt-get", "exit 0")
        done = self.machine.ladder("build", LADDER_INSTALL="never")
        self.assert_refused_in_one_line(done, "LADDER_INSTALL=never", "liblz4-dev")

    def test_another_system(self):
        self.machine.compiler(lacks=["liblz4-dev"])
        self.machine.build_tools()
        done = self.machine.ladder("build")
        self.assert_refused_in_one_line(done, "liblz4-dev", "package manager", "Dockerfile")

    def test_old_cmake(self):
        self.machine.compiler()
        self.machine.build_tools()
        self.machine.program("cmake", 'echo "cmake version 3.18.4"')
        done = self.machine.ladder("build")
        self.assert_refused_in_one_line(done, "3.18", "3.22")


class Toolkit(Setup):
    def setUp(self):
        super().setUp()
        self.machine.compiler()
        self.machine.build_tools()

    def test_too_old(self):
        done = self.machine.ladder("build", LADDER_TOOLKIT=str(self.machine.toolkit("12.4")))
        self.assert_refused_in_one_line(done, "CUDA 12.4", "CUDA 13", "LADDER_TOOLKIT=pypi")

    def test_not_there(self):
        done = self.machine.ladder("build", LADDER_TOOLKIT="/nowhere")
        self.assert_refused_in_one_line(done, "LADDER_TOOLKIT=/nowhere", "bin/nvcc", "LADDER_TOOLKIT=pypi")

    def test_wheels_without_network(self):
        # Port 9 of this machine: nobody listens, so the refusal comes at once.
        done = self.machine.ladder("build", LADDER_TOOLKIT="pypi", PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_RETRIES="0",
                                   PIP_CONFIG_FILE="/dev/null")
        if "has no pip" in done.stderr or "python3-pip" in done.stderr:
            self.skipTest("this Python has no pip")
        self.assert_refused(done, "could not be fetched from PyPI", "no network", "LADDER_TOOLKIT=/usr/local/cuda-13.0")
        self.assertFalse((self.machine.checkout / ".toolkit" / "cuda").exists())

    def test_disassembler_without_network(self):
        fetch = "from tools import terminal, toolkit\ntry: toolkit.disassembler()\nexcept terminal.Refusal as refusal: print(refusal)"
        done = run([PYTHON, "-c", fetch], cwd=self.machine.checkout, env={
            "PATH": str(self.machine.bin), "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0",
            "PIP_CONFIG_FILE": "/dev/null", "PYTHONDONTWRITEBYTECODE": "1"})
        if "has no pip" in done.stdout or "python3-pip" in done.stdout:
            self.skipTest("this Python has no pip")
        self.assertIn("The disassembler could not be fetched from PyPI", done.stdout, done.stderr)
        self.assertEqual([], list((self.machine.checkout / ".toolkit").iterdir()))

    @unittest.skipUnless(AS_ROOT, "needs root")
    def test_build_folder_not_writable(self):
        toolkit = self.machine.toolkit("13.0")
        done = self.machine.ladder("build", user=NOBODY, LADDER_TOOLKIT=str(toolkit), LADDER_BUILD="/proc/ladder")
        self.assert_refused(done, "/proc/ladder cannot be written", "LADDER_BUILD")

    def test_cmake_complaint_is_shown(self):
        toolkit = self.machine.toolkit("13.0")
        self.machine.program("cmake", 'case "$1" in --version) echo "cmake version 3.25.1";; *) echo "CMake Error: no"; exit 1;; esac')
        done = self.machine.ladder("build", LADDER_TOOLKIT=str(toolkit))
        self.assert_refused(done, "CMake could not configure", "CMake Error: no")


if __name__ == "__main__":
    unittest.main()
