"""Programs that the libraries refuse, in one line that says why and what to do, and programs that look similar and run.

The libraries are put in front by LD_LIBRARY_PATH alone, as somebody without the front door would do it.
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("LADDER_BUILD") or ROOT / "build")
PROGRAMS = ROOT / "tests" / "runtime" / "programs"
SHARED = ("-cudart", "shared")
BLACKWELL = ("-gencode", "arch=compute_100f,code=compute_100f")
HOPPER = ("-gencode", "arch=compute_90a,code=compute_90a")
RIGHT = "main\nmalloc: cudaSuccess\nlaunch: cudaSuccess\ncopy: cudaSuccess\nvalue 42\n"


def cmake_cache(name):
    for line in (BUILD / "CMakeCache.txt").read_text().splitlines():
        if line.startswith(name + ":"):
            return line.split("=", 1)[1]
    return None


def run(command, **environment):
    return subprocess.run([str(each) for each in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=300, env={**os.environ, **environment})


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="ladder-runtime-")
        cls.built = {}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def compile(self, sources, *flags):
        key = (tuple(sources), flags)
        if key not in self.built:
            path = Path(self.folder.name, f"program{len(self.built)}")
            done = run([cmake_cache("CMAKE_CUDA_COMPILER"), "-ccbin", cmake_cache("CMAKE_CXX_COMPILER"), *flags,
                        *[PROGRAMS / source for source in sources], "-o", path])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.built[key] = path
        return self.built[key]

    def emulate(self, program, *arguments, **environment):
        environment.setdefault("LADDER_CHIP", "b200")
        return run([program, *arguments], LD_LIBRARY_PATH=str(BUILD / "lib"), **environment)

    def assert_refused(self, done, *words):
        """Exit status 2, and one line of the emulator's with these words in it."""
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertTrue(lines[0].startswith("emulator: "), lines[0])
        for word in words:
            self.assertIn(word, lines[0])


class CodeForTheChip(Programs):
    def test_its_own(self):
        done = self.emulate(self.compile(["store.cu"], *SHARED, *BLACKWELL))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, RIGHT, ""))

    def test_older_plain_ptx(self):
        done = self.emulate(self.compile(["store.cu"], *SHARED, "-gencode", "arch=compute_90,code=compute_90"))
        self.assertEqual((done.returncode, done.stdout), (0, RIGHT), done.stderr)

    def test_only_another_chip_s(self):
        done = self.emulate(self.compile(["store.cu"], *SHARED, *HOPPER))
        self.assert_refused(done, "compute_90a", "compute_100f")
        self.assertEqual(done.stdout, "main\n")  # nothing of the device ran
        done = self.emulate(self.compile(["store.cu"], *SHARED, *HOPPER), LADDER_CHIP="h200")
        self.assertEqual((done.returncode, done.stdout), (0, RIGHT), done.stderr)

    def test_only_machine_code(self):
        done = self.emulate(self.compile(["store.cu"], *SHARED, "-gencode", "arch=compute_100f,code=sm_100f"))
        self.assert_refused(done, "sm_100f", "-gencode")

    def test_one_of_two_files(self):
        # The program can run; only the launch of what is missing fails, with the code that a real GPU gives.
        folder = Path(self.folder.name)
        compiler = [cmake_cache("CMAKE_CUDA_COMPILER"), "-ccbin", cmake_cache("CMAKE_CXX_COMPILER"), *SHARED]
        for name, flags in (("two", BLACKWELL), ("other", HOPPER)):
            done = run([*compiler, *flags, "-c", PROGRAMS / f"{name}.cu", "-o", folder / f"{name}.o"])
            self.assertEqual(done.returncode, 0, done.stderr)
        done = run([*compiler, folder / "two.o", folder / "other.o", "-o", folder / "both"])
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.emulate(folder / "both")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "own: cudaSuccess\nother: cudaErrorNoKernelImageForDevice\nafter: cudaSuccess\n")
        self.assertIn("compute_90a", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_device_code_that_has_to_be_linked(self):
        flags = (*SHARED, "-rdc=true", "-gencode", "arch=compute_100f,code=[compute_100f,sm_100f]")
        done = self.emulate(self.compile(["two.cu", "other.cu"], *flags))
        self.assert_refused(done, "-rdc=true", "2 translation units")
        done = self.emulate(self.compile(["store.cu"], *flags))
        self.assertEqual((done.returncode, done.stdout), (0, RIGHT), done.stderr)


class OwnRuntime(Programs):
    def test_static(self):
        done = self.emulate(self.compile(["store.cu"], "-cudart", "static", *BLACKWELL))
        self.assert_refused(done, "-cudart shared")
        self.assertEqual(done.stdout, "main\n")

    def test_found_through_an_rpath(self):
        toolkit = cmake_cache("cuda_runtime_library").rsplit("/", 1)[0]
        program = self.compile(["store.cu"], *SHARED, *BLACKWELL, f"-Xlinker=--disable-new-dtags,-rpath,{toolkit}")
        self.assert_refused(self.emulate(program), "rpath", "libcudart.so.13")


class Libraries(Programs):
    """What an interpreter loads does not end it: only the calls fail."""

    SHARED_OBJECT = ("--shared", "-Xcompiler", "-fPIC")
    LOAD = "import ctypes, sys\nprint([ctypes.CDLL(path).answer() for path in sys.argv[1:]])"

    def call(self, *libraries):
        return self.emulate(sys.executable, "-c", self.LOAD, *libraries)

    def test_one_without_code_for_the_chip(self):
        with_code = self.compile(["library.cu"], *SHARED, *self.SHARED_OBJECT, *BLACKWELL)
        without = self.compile(["library.cu"], *SHARED, *self.SHARED_OBJECT, *HOPPER)
        done = self.call(without, with_code, without)
        self.assertEqual((done.returncode, done.stdout), (0, "[-209, 42, -209]\n"), done.stderr)
        self.assertIn("compute_90a", done.stderr)

    def test_one_with_a_runtime_of_its_own(self):
        static = self.compile(["library.cu"], "-cudart", "static", *self.SHARED_OBJECT, *BLACKWELL)
        done = self.call(static, self.compile(["library.cu"], *SHARED, *self.SHARED_OBJECT, *BLACKWELL))
        self.assertEqual((done.returncode, done.stdout), (0, "[-801, 42]\n"), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("-cudart shared", done.stderr)
        compiler = Path(static).with_name("libnvrtc.so.13")  # it has one, and launches nothing
        compiler.write_bytes(Path(static).read_bytes())
        done = self.call(compiler)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "[-801]\n", ""))


class Environment(Programs):
    def test_unknown_chip(self):
        program = self.compile(["store.cu"], *SHARED, *BLACKWELL)
        for arguments in ([], ["devices"]):
            self.assert_refused(self.emulate(program, *arguments, LADDER_CHIP="b300x"), "LADDER_CHIP", "b300x", "b200", "h200")

    def test_unknown_schedule(self):
        program = self.compile(["store.cu"], *SHARED, *BLACKWELL)
        self.assert_refused(self.emulate(program, LADDER_SCHEDULE="sometimes"), "LADDER_SCHEDULE", "earliest")

    def test_unknown_time_limit(self):
        program = self.compile(["store.cu"], *SHARED, *BLACKWELL)
        for limit in ("soon", "-1", "5s", "nan"):
            self.assert_refused(self.emulate(program, LADDER_TIME_LIMIT=limit), f"LADDER_TIME_LIMIT={limit}", "expected seconds")
        self.assertEqual(self.emulate(program, LADDER_TIME_LIMIT="60.5").returncode, 0)


    def test_number_of_sms(self):
        program = self.compile(["store.cu"], *SHARED, *BLACKWELL)
        for count in ("0", "3", "150"):
            self.assert_refused(self.emulate(program, LADDER_SMS=count), f"LADDER_SMS={count}", "an even number from 2 to 148")
        self.assert_refused(self.emulate(program, LADDER_SMS="all"), "LADDER_SMS=all", "no whole number")
        self.assertEqual(self.emulate(program, LADDER_SMS="2").returncode, 0)


class NotThere(Programs):
    def test_an_unimplemented_function_names_itself(self):
        done = self.emulate(self.compile(["store.cu"], *SHARED, *BLACKWELL), "array")
        self.assertEqual(done.stdout, "main\narray: cudaErrorNotSupported\narray: cudaErrorNotSupported\n")
        self.assertEqual(done.stderr.count("cudaMallocArray is not implemented"), 1, done.stderr)  # once


class Driver(Programs):
    def test_linked_against_libcuda(self):
        stubs = list(Path(cmake_cache("CMAKE_CUDA_COMPILER")).resolve().parents[1].glob("**/stubs/libcuda.so"))
        link = [f"-L{stubs[0].parent}", "-lcuda"] if stubs else [f"-Xlinker={BUILD / 'lib' / 'libcuda.so.1'}"]
        done = self.emulate(self.compile(["driver.cpp"], "-cudart", "none", *link))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "before: 3\nno context: 201\nfind nothing: 500\nvalue 42\narray: 801\n")
        self.assertIn("cuArrayCreate", done.stderr)


if __name__ == "__main__":
    unittest.main()
