"""`ladder emulate`: a program of somebody else's on the emulated chip, and the programs it refuses before they run."""

import struct
import tempfile
import unittest
from pathlib import Path

from support import ROOT, Refusals, cmake_cache, ladder, run

PROGRAM = ROOT / "tests" / "command_line" / "programs" / "triple.cu"
SUM = "sum 1498500\n"  # 3 * (0 + ... + 999)
SHARED = ["-cudart", "shared"]


class Emulate(Refusals):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="ladder-programs-")
        cls.built = {}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def program(self, *flags):
        """The test program compiled with these nvcc flags."""
        if flags not in self.built:
            path = Path(self.folder.name, f"triple{len(self.built)}")
            compiler = ["-ccbin", cmake_cache("CMAKE_CXX_COMPILER")]
            done = run([cmake_cache("CMAKE_CUDA_COMPILER"), *compiler, *flags, PROGRAM, "-o", path])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.built[flags] = path
        return self.built[flags]


class Runs(Emulate):
    def assert_right(self, done):
        self.assertEqual((done.returncode, done.stdout), (0, SUM), done.stderr)

    def test_plain_ptx(self):
        self.assert_right(ladder("emulate", self.program(*SHARED, "-gencode", "arch=compute_100,code=compute_100")))

    def test_older_ptx_compressed(self):
        self.assert_right(ladder("emulate", self.program(*SHARED, "-gencode", "arch=compute_90,code=compute_90",
                                                         "-compress-mode=size")))

    def test_hopper(self):
        self.assert_right(ladder("emulate", "--chip", "h200",
                                 self.program(*SHARED, "-gencode", "arch=compute_90a,code=compute_90a")))

    def test_an_rpath_does_not_win(self):
        toolkit = cmake_cache("cuda_runtime_library").rsplit("/", 1)[0]
        path = self.program(*SHARED, "-gencode", "arch=compute_100,code=compute_100",
                            f"-Xlinker=--disable-new-dtags,-rpath,{toolkit}")
        self.assertIn("(RPATH)", run(["readelf", "-d", path]).stdout)
        self.assert_right(ladder("emulate", path))

    def test_options_after_the_program_are_its_own(self):
        done = ladder("emulate", "--schedule", "random", "--seed", "5", "--threads", "1",
                      self.program(*SHARED, "-gencode", "arch=compute_100,code=compute_100"), "--chip", "x")
        self.assertEqual((done.returncode, done.stdout), (0, "--chip\nx\n" + SUM), done.stderr)

    def test_exit_status_is_the_programs(self):
        done = ladder("emulate", "sh", "-c", "exit 41")
        self.assertEqual(done.returncode, 41, done.stderr)


class Refused(Emulate):
    def test_static_runtime(self):
        path = self.program("-gencode", "arch=compute_100,code=compute_100")
        self.assert_refused_in_one_line(ladder("emulate", path), str(path), "built in", "nvcc -cudart shared")

    def test_no_ptx_for_the_chip(self):
        path = self.program(*SHARED, "-gencode", "arch=compute_90a,code=compute_90a")
        self.assert_refused_in_one_line(ladder("emulate", path), "no PTX for a B200", "compute_90a",
                                        "-gencode arch=compute_100f,code=compute_100f")
        path = self.program(*SHARED, "-gencode", "arch=compute_100f,code=compute_100f")
        self.assert_refused_in_one_line(ladder("emulate", "--chip", "h200", path), "no PTX for a H200", "compute_100f",
                                        "-gencode arch=compute_90a,code=compute_90a")

    def test_machine_code_only(self):
        path = self.program(*SHARED, "-gencode", "arch=compute_100a,code=sm_100a")
        self.assert_refused_in_one_line(ladder("emulate", path), "no PTX for a B200", "only machine code")

    def test_not_an_executable(self):
        for path, says in ((PROGRAM, "not a 64-bit Linux executable"), (ROOT, "folder"), ("/nowhere", "no such file")):
            self.assert_refused_in_one_line(ladder("emulate", path), str(path), says)

    def test_no_execute_permission(self):
        path = Path(self.folder.name, "plain")
        path.write_bytes(Path(self.program(*SHARED, "-gencode", "arch=compute_100,code=compute_100")).read_bytes())
        self.assert_refused_in_one_line(ladder("emulate", path), "chmod +x")

    def test_another_processor(self):
        path = Path(self.folder.name, "foreign")
        image = bytearray(Path(self.program(*SHARED, "-gencode", "arch=compute_100,code=compute_100")).read_bytes())
        struct.pack_into("<H", image, 18, 8)  # e_machine: MIPS
        path.write_bytes(image)
        path.chmod(0o755)
        self.assert_refused_in_one_line(ladder("emulate", path), "another kind of processor")

    def test_truncated(self):
        path = Path(self.folder.name, "truncated")
        image = Path(self.program(*SHARED, "-gencode", "arch=compute_100,code=compute_100")).read_bytes()
        for length in (3, 40, 64, 1000, len(image) // 2):
            path.write_bytes(image[:length])
            path.chmod(0o755)
            self.assert_refused_in_one_line(ladder("emulate", path), "not a 64-bit Linux executable")

    def test_options(self):
        for options, says in ((["--chip", "b300"], "b200 or h200"), (["--schedule", "soon"], "random:SEED"),
                              (["--threads", "1000"], "1 to 256"), (["--seed", "-1"], "0 or more"),
                              (["--threads", "many"], "many"), (["--frobnicate"], "--help")):
            self.assert_refused_in_one_line(ladder("emulate", *options, "/bin/true"), says)
        self.assert_refused_in_one_line(ladder("emulate"), "PROGRAM")

    def test_chips_are_the_emulators(self):
        """The names that the front door knows are those that the emulator knows (emulator/machine/chip.cpp says which)."""
        from tools import program
        for chip in program.CHIPS:
            plain = self.program(*SHARED, "-gencode", "arch=compute_90,code=compute_90")
            self.assertEqual(ladder("emulate", plain, LADDER_CHIP=chip).stdout, SUM)
            done = ladder("emulate", "--chip", chip, plain, LADDER_CHIP="x")
            self.assertEqual(done.stdout, SUM, done.stderr)  # the option overrides the variable
            self.assert_refused_in_one_line(ladder("emulate", plain, LADDER_CHIP="x"), "LADDER_CHIP=x", "b200")
        hopper = self.program(*SHARED, "-gencode", "arch=compute_90a,code=compute_90a")
        self.assertEqual(ladder("emulate", hopper, LADDER_CHIP="h200").stdout, SUM)  # the variable says which it is

    def test_schedule(self):
        plain = self.program(*SHARED, "-gencode", "arch=compute_90,code=compute_90")
        for options in (["--schedule", "random:7"], ["--schedule", "random"], ["--seed", "7"], ["--schedule", "latest"]):
            self.assertEqual(ladder("emulate", *options, plain, LADDER_SCHEDULE="nonsense").stdout, SUM)
        done = ladder("emulate", plain, LADDER_SCHEDULE="nonsense")
        self.assertEqual(done.returncode, 2)
        self.assertIn("LADDER_SCHEDULE=nonsense", done.stderr)
        done = ladder("emulate", plain, LADDER_SCHEDULE="random:-1")
        self.assertIn("LADDER_SCHEDULE=random:-1: '-1'", done.stderr)
        self.assert_refused_in_one_line(ladder("emulate", "--schedule", "latest", "--seed", "3", plain), "--seed 3", "latest")

    def test_files_that_cannot_be_written(self):
        plain = self.program(*SHARED, "-gencode", "arch=compute_90,code=compute_90")
        for name in ("LADDER_COUNTERS", "LADDER_TRACE"):
            done = ladder("emulate", plain, **{name: "/nonexistent/file"})
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"{name}=/nonexistent/file: cannot be written (No such file or directory)", done.stderr)


class Ptx(unittest.TestCase):
    """Which PTX serves which chip. CUDA C++ programming guide, compute capability targets: plain PTX runs on that capability
    and all later ones, `f` on later ones of the family, `a` on that one alone."""

    def test_choice(self):
        from tools.program import Ptx
        b200, b300, h200, rtx = (10, 0), (10, 3), (9, 0), (12, 0)
        expected = {Ptx(90, ""): (b200, b300, h200, rtx), Ptx(90, "a"): (h200,), Ptx(100, ""): (b200, b300, rtx),
                    Ptx(100, "a"): (b200,), Ptx(100, "f"): (b200, b300), Ptx(103, "f"): (b300,), Ptx(120, ""): (rtx,)}
        for ptx, chips in expected.items():
            for chip in (b200, b300, h200, rtx):
                self.assertEqual(ptx.fits(chip), chip in chips, f"{ptx} on {chip}")


if __name__ == "__main__":
    unittest.main()
