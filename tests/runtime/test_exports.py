"""The emulator's libraries have every export of the real ones, under the same versions, and know every error code."""

import ctypes
import os
import re
import struct
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("LADDER_BUILD") or ROOT / "build")
SHT_DYNSYM, SHT_GNU_VERDEF, SHT_GNU_VERSYM = 11, 0x6FFFFFFD, 0x6FFFFFFF


def cmake_cache(name):
    for line in (BUILD / "CMakeCache.txt").read_text().splitlines():
        if line.startswith(name + ":"):
            return line.split("=", 1)[1]
    return None


def exports(path):
    """{name: version or None} of what an ELF library defines for others."""
    data = Path(path).read_bytes()
    start, = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]

    def text(table, offset):
        begin = sections[table][4] + offset
        return data[begin:data.index(b"\0", begin)].decode()

    of = {section[1]: section for section in sections}
    names = {}
    if SHT_GNU_VERDEF in of:
        at, link, left = of[SHT_GNU_VERDEF][4], of[SHT_GNU_VERDEF][6], of[SHT_GNU_VERDEF][7]
        for _ in range(left):
            _, _, index, _, _, first, step = struct.unpack_from("<HHHHIII", data, at)
            names[index] = text(link, struct.unpack_from("<I", data, at + first)[0])
            at += step
    symbols, found = of[SHT_DYNSYM], {}
    for i in range(symbols[5] // 24):
        name, info, other, section, _, _ = struct.unpack_from("<IBBHQQ", data, symbols[4] + 24 * i)
        if section == 0 or section >= 0xFFF0 or info >> 4 not in (1, 2) or other & 3:
            continue
        version = None
        if SHT_GNU_VERSYM in of:
            version = names.get(struct.unpack_from("<H", data, of[SHT_GNU_VERSYM][4] + 2 * i)[0] & 0x7FFF)
        found[text(symbols[6], name)] = version
    return found


def listed(name):
    return set((ROOT / "tests" / "runtime" / name).read_text().split())


class Exports(unittest.TestCase):
    def test_runtime(self):
        ours = exports(BUILD / "lib" / "libcudart.so.13")
        self.assertEqual(listed("exports_cudart_13.0.txt") - set(ours), set())
        self.assertEqual({name for name, version in ours.items() if version != "libcudart.so.13"}, set())
        self.assertEqual({name for name in ours if not re.match("(__)?cuda", name)}, set(), "only the API leaves the library")

    def test_driver(self):
        ours = exports(BUILD / "lib" / "libcuda.so.1")
        self.assertEqual(listed("exports_cuda_13.0.txt") - set(ours), set())
        self.assertEqual({name for name in ours if not name.startswith("cu")}, set())

    def test_the_lists_are_the_toolkit_s(self):
        real = cmake_cache("cuda_runtime_library")
        if not real or not Path(real).exists() or not (cmake_cache("CMAKE_CUDA_COMPILER_VERSION") or "13.0").startswith("13.0"):
            self.skipTest("no runtime library of CUDA 13.0 here")
        wanted = {name for name in exports(real) if re.match("(__)?cuda", name)}
        self.assertEqual(wanted ^ listed("exports_cudart_13.0.txt"), set())
        self.assertEqual(wanted - set(exports(BUILD / "lib" / "libcudart.so.13")), set())


class Errors(unittest.TestCase):
    """Against the toolkit's header: every code has its name; and against the toolkit's library: its text."""

    @classmethod
    def setUpClass(cls):
        cls.ours = ctypes.CDLL(str(BUILD / "lib" / "libcudart.so.13"), mode=os.RTLD_LOCAL)
        compiler = Path(cmake_cache("CMAKE_CUDA_COMPILER")).resolve()
        cls.headers = [folder / "driver_types.h" for folder in
                       (compiler.parents[1] / "include", compiler.parents[1] / "targets" / "x86_64-linux" / "include")]

    @staticmethod
    def ask(library, function, code):
        call = getattr(library, function)
        call.restype = ctypes.c_char_p
        return call(ctypes.c_int(code)).decode()

    def test_names(self):
        header = next((path for path in self.headers if path.exists()), None)
        if not header:
            self.skipTest("no driver_types.h")
        body = re.search(r"enum __device_builtin__ cudaError\s*\{(.*?)\n\s*\};", header.read_text(), re.S).group(1)
        codes = {int(number): name for name, number in re.findall(r"(cudaE\w+|cudaSuccess)\s*=\s*(\d+)", body)}
        self.assertGreater(len(codes), 120)
        wrong = {code: name for code, name in codes.items() if self.ask(self.ours, "cudaGetErrorName", code) != name}
        self.assertEqual(wrong, {})

    def test_texts(self):
        real = cmake_cache("cuda_runtime_library")
        if not real or not Path(real).exists():
            self.skipTest("no real runtime library here")
        theirs = ctypes.CDLL(real, mode=os.RTLD_LOCAL)
        for code in [*range(-1, 1100), 10000]:
            for function in ("cudaGetErrorName", "cudaGetErrorString"):
                self.assertEqual(self.ask(self.ours, function, code), self.ask(theirs, function, code), (function, code))


if __name__ == "__main__":
    unittest.main()
