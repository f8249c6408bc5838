"""The rungs' own command line: what each refuses before anything runs, and matrices in and out of files."""

import json
import os
import random
import re
import tempfile
import unittest
from pathlib import Path

import npy
from support import BUILD, NOBODY, Refusals, run

STEP00 = BUILD / "bin" / "step00_single_mma"
STEP01 = BUILD / "bin" / "step01_kloop"
STEP07 = BUILD / "bin" / "step07_persistent"
RUNGS = [STEP00, STEP01]


class Refused(Refusals):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory(prefix="ladder-rungs-")
        cls.folder = Path(cls.home.name)

    @classmethod
    def tearDownClass(cls):
        cls.home.cleanup()

    def refuse(self, rung, options, *parts):
        self.assert_refused_in_one_line(run([rung, *options]), *parts)


class Options(Refused):
    def test_unknown(self):
        for rung in RUNGS:
            self.refuse(rung, ["--shpae", "128x256x16"], "--shpae", "did you mean --shape?")
            self.refuse(rung, ["--frobnicate"], "--frobnicate", "--help")
            self.refuse(rung, ["128x256x16"], "128x256x16", "--help")
            self.refuse(rung, ["--m"], "--m: its value is missing", "--m M")
            self.refuse(rung, ["--dtype", "--m", "128"], "--dtype: its value is missing")
            self.refuse(rung, ["--m", "1", "--m", "2"], "--m: given more than once")

    def test_values(self):
        for options, parts in ((["--m", "many"], ["--m many", "whole number"]),
                               (["--m", "12.5"], ["--m 12.5", "whole number"]),
                               (["--seed", "-1"], ["--seed -1"]),
                               (["--dtype", "f8"], ["--dtype f8", "f16", "bf16"]),
                               (["--out-dtype", "f64"], ["--out-dtype f64", "f32"]),
                               (["--dtype", "f16", "--out-dtype", "bf16"], ["--out-dtype bf16", "f32"]),
                               (["--input", "zeros"], ["--input zeros", "random", "integer", "position"]),
                               (["--on", "b300"], ["--on b300", "b200", "h200"]),
                               (["--variant", "fast"], ["--variant fast"]),
                               (["--time-limit", "0"], ["--time-limit 0"]),
                               (["--shape", "128x256x16", "--m", "5"], ["--shape", "--m"])):
            self.refuse(STEP01, options, *parts)

    def test_help(self):
        for rung in RUNGS:
            done = run([rung, "--help"])
            self.assertEqual(done.returncode, 0, done.stderr)
            for option in ("--shape", "--dtype", "--variant", "--check", "--json", "--on", "decode-attn-out"):
                self.assertIn(option, done.stdout)


class Shapes(Refused):
    def test_what_tma_cannot_address(self):
        for rung in RUNGS:
            self.refuse(rung, ["--m", "16", "--n", "12", "--k", "16"], "N = 12", "multiple of 8", "8 or 16")
            self.refuse(rung, ["--m", "0", "--n", "16", "--k", "16"], "M = 0", "at least 1")
            self.refuse(rung, ["--m", "-5", "--n", "16", "--k", "16"], "M = -5", "at least 1")
            self.refuse(rung, ["--shape", "3000000000x16x16"], "M = 3000000000", "at most 2147483647")
        self.refuse(STEP01, ["--shape", "16x16x20"], "K = 20", "multiple of 8", "16 or 24")

    def test_step00_takes_one_k(self):
        for k in (8, 24, 32, 4096):
            self.refuse(STEP00, ["--m", "128", "--n", "256", "--k", str(k)], f"K = {k}", "16", "step01_kloop")

    def test_not_a_shape(self):
        for text in ("128", "128x256", "128x256x16x2", "axbxc", "128 256 16", "decode"):
            self.refuse(STEP01, ["--shape", text], f"--shape {text}", "MxNxK", "decode-attn-out")

    def test_more_than_memory_holds(self):
        self.refuse(STEP01, ["--shape", "2000000000x2000000000x64", "--on", "b200"], "smaller shape")


class Files(Refused):
    def pair(self, a, b, *options):
        return [STEP01, ["--a", str(a), "--b", str(b), *options]]

    def good(self, rows=4, columns=16, name="good.npy", descr="<f2"):
        return npy.save(self.folder / name, [[1] * columns] * rows, descr)

    def test_unreadable(self):
        b = self.good()
        self.refuse(*self.pair("/nowhere/a.npy", b), "/nowhere/a.npy", "cannot be read")
        self.refuse(*self.pair(self.folder, b), str(self.folder), "folder")
        text = self.folder / "text.npy"
        text.write_text("1 2 3\n4 5 6\n")
        self.refuse(*self.pair(text, b), "text.npy", "not an .npy file")
        empty = self.folder / "empty.npy"
        empty.write_bytes(b"")
        self.refuse(*self.pair(empty, b), "empty.npy")

    def test_wrong_type(self):
        b = self.good()
        for descr, parts in (("<f8", ["<f8", "float16"]), ("<i4", ["<i4"]), ("|u1", ["|u1"]), (">f2", ["big-endian"]),
                             ("<f4", ["float32", "--round"])):
            a = npy.save(self.folder / "a.npy", [[1] * 16] * 4, descr)
            self.refuse(*self.pair(a, b), "a.npy", *parts)
        self.refuse(*self.pair(self.good(name="u2.npy", descr="<u2"), b), "bf16")
        self.refuse(*self.pair(b, b, "--dtype", "bf16"), "--dtype", "bf16")

    def test_wrong_layout(self):
        b = self.good()
        a = npy.save(self.folder / "a.npy", [[1] * 16] * 4, fortran_order=True)
        self.refuse(*self.pair(a, b), "column by column", "ascontiguousarray")
        a = npy.save(self.folder / "a.npy", [[1] * 16], shape=(16,))
        self.refuse(*self.pair(a, b), "(16,)", "two")
        a = npy.save(self.folder / "a.npy", [[1] * 16] * 3, shape=(4, 16))
        self.refuse(*self.pair(a, b), "96 bytes", "128")
        a = npy.save(self.folder / "a.npy", [[1] * 16] * 4, extra=b"\0" * 8)
        self.refuse(*self.pair(a, b), "136 bytes")

    def test_shapes_that_do_not_fit(self):
        a, b = self.good(columns=24, name="a.npy"), self.good()
        self.refuse(*self.pair(a, b), "a.npy", "4 x 24", "4 x 16")
        self.refuse(*self.pair(self.good(rows=5, name="b.npy"), self.good(rows=5)), "N = 5", "multiple of 8")
        self.refuse(*self.pair(self.good(rows=8), self.good(rows=8), "--m", "9"), "8 x 8 x 16")
        self.refuse(STEP01, ["--a", str(self.good())], "--b")

    def test_no_place_for_d(self):
        self.refuse(STEP01, ["--shape", "16x16x16", "--out", "/nowhere/d.npy"], "/nowhere")
        self.refuse(STEP01, ["--shape", "16x16x16", "--out", str(self.folder)], "folder")
        if os.getuid() == 0:  # who may write everywhere notices only as somebody else
            done = run([STEP01, "--shape", "16x16x16", "--out", "/d.npy"], user=NOBODY)
        else:
            done = run([STEP01, "--shape", "16x16x16", "--out", "/d.npy"])
        self.assertEqual(done.returncode, 2)
        self.assertIn("--out /d.npy: cannot be written (Permission denied)", done.stderr)


class Multiplies(unittest.TestCase):
    """D = A Bᵀ from files to a file, against Python's own arithmetic. The numbers are small integers: every type is exact."""

    def test_files(self):
        draw = random.Random(3)
        with tempfile.TemporaryDirectory(prefix="ladder-rungs-") as home:
            folder = Path(home)
            for rung, (m, n, k) in ((STEP00, (131, 264, 16)), (STEP01, (131, 264, 16)), (STEP01, (37, 40, 152))):
                a = [[draw.randint(-2, 2) for _ in range(k)] for _ in range(m)]
                b = [[draw.randint(-1, 1) for _ in range(k)] for _ in range(n)]
                expected = [[sum(x * y for x, y in zip(row, column)) for column in b] for row in a]
                for dtype, out_dtype in (("f16", "f16"), ("f16", "f32"), ("bf16", "bf16"), ("bf16", "f32")):
                    with self.subTest(rung=rung.name, m=m, n=n, k=k, dtype=dtype, out_dtype=out_dtype):
                        self.multiply(folder, rung, a, b, expected, dtype, out_dtype)

    def multiply(self, folder, rung, a, b, expected, dtype, out_dtype):
        descr = {"f16": "<f2", "bf16": "<u2", "f32": "<f4"}
        stored = (lambda rows: [[npy.bf16(value) for value in row] for row in rows]) if dtype == "bf16" else (lambda rows: rows)
        files = [npy.save(folder / "a.npy", stored(a), descr[dtype]), npy.save(folder / "b.npy", stored(b), descr[dtype])]
        done = run([rung, "--a", files[0], "--b", files[1], "--out", folder / "d.npy", "--out-dtype", out_dtype, "--on", "b200"])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found_descr, d = npy.load(folder / "d.npy")
        self.assertEqual(found_descr, descr[out_dtype])
        if out_dtype == "bf16":
            expected = [[npy.bf16(value) for value in row] for row in expected]
        self.assertEqual(d, expected)

    def test_rounded_float32(self):
        with tempfile.TemporaryDirectory(prefix="ladder-rungs-") as home:
            folder = Path(home)
            # 1 + 2^-11 is half way between two f16 and goes to the even one, 1; 1 + 2^-10 stays.
            a = npy.save(folder / "a.npy", [[1 + 2**-11] + [0] * 15, [1 + 2**-10] + [0] * 15], "<f4")
            b = npy.save(folder / "b.npy", [[1] + [0] * 15] * 8, "<f4")
            done = run([STEP01, "--a", a, "--b", b, "--round", "--out", folder / "d.npy", "--out-dtype", "f32", "--on", "b200"])
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(npy.load(folder / "d.npy"), ("<f4", [[1.0] * 8, [1 + 2**-10] * 8]))


class Settings(Refused):
    """Variants that have no name of their own."""

    def report(self, variant, shape="520x1032x72", **environment):
        done = run([STEP07, "--shape", shape, "--variant", variant, "--json", "--on", "b200"], env={**os.environ, **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_any_that_go_together(self):
        report = self.report("accumulators=1,walk=3")
        self.assertEqual(report["variant"], "accumulators=1,walk=3")
        self.assertEqual(report["plan"], "3 x 9 tiles of 256 x 128, walk 3; 27 clusters of 2; 8 stages, 1 accumulator")
        self.assertEqual(self.report("walk=3,accumulators=1")["plan"], report["plan"])
        few = self.report("stages=2,tile-n=224", LADDER_SMS="4")
        self.assertEqual(few["plan"], "3 x 5 tiles of 256 x 224, walk 1; 2 clusters of 2; 2 stages, 2 accumulators")
        self.assertEqual((few["device"]["sm_count"], few["counters"]["ctas"]), (4, 4))

    def test_the_plan_is_said(self):
        done = run([STEP07, "--shape", "128x128x64", "--on", "b200", "--variant", "cta-group=1"])
        self.assertIn("\n  plan      1 x 1 tiles of 128 x 128, walk 1; 1 cluster of 1; 6 stages, 2 accumulators\n", done.stdout)
        for rung, variant in ((STEP01, "plain"), (STEP07, "pair")):  # nothing to choose
            done = run([rung, "--shape", "128x128x64", "--on", "b200", "--variant", variant])
            self.assertNotIn("plan", done.stdout)
            done = run([rung, "--shape", "128x128x64", "--on", "b200", "--variant", variant, "--json"])
            self.assertIsNone(json.loads(done.stdout)["plan"])

    def test_refused(self):
        for variant, *parts in (("walk=33", "walk=33: must be auto|1..32"),
                                ("speed=1", "--variant: 'speed=1' is no setting; expected NAME=VALUE", "of cta-group, multicast, "),
                                ("share=c", "share=c: must be b|a"),  # a setting of the twin's only
                                ("walk=1,walk=2", "--variant: walk is set twice"),
                                ("multicast=on", "multicast=on: ", "add cta-group=1"),
                                ("scheduler=clc,persistent=off", "scheduler=clc: ", "leave persistent=off out"),
                                ("clusters=3,scheduler=clc", "clusters=3: with scheduler=clc ", "leave one of them out"),
                                ("walk", "--variant walk: a setting wants a value: walk=auto|1..32"),
                                ("fast", "--variant fast: step07_persistent has no such variant; it has best, pair, ",
                                 ", and what its settings make (--help)")):
            self.refuse(STEP07, ["--shape", "128x128x64", "--variant", variant], *parts)
            self.refuse(STEP07, ["--where", "--variant", variant], *parts)
        self.refuse(STEP01, ["--variant", "walk=1"], "--variant walk=1: step01_kloop has no such variant; it has plain")
        # What depends on the shape is known when the kernel is about to run.
        self.refuse(STEP07, ["--shape", "4096x4096x64", "--on", "b200", "--variant", "stages=7"],
                    "stages=7: 6 fit beside the store buffers where a tile is 256 columns wide; leave it out for as many, or add "
                    "stores=direct, which needs no buffers")

    def test_they_are_told(self):
        told = json.loads(run([STEP07, "--where", "--on", "b200"]).stdout)["settings"]
        said = run([STEP07, "--help"]).stdout
        self.assertEqual(told["walk"], ["auto", "1..32"])
        for name, values in told.items():
            self.assertRegex(said, rf"\n    {name}={re.escape('|'.join(values))} +\w.* \(default {values[0]}\)\n")
        self.assertEqual(json.loads(run([STEP01, "--where", "--on", "b200"]).stdout)["settings"], {})


class Json(unittest.TestCase):
    def test_one_object(self):
        done = run([STEP01, "--shape", "130x264x40", "--check", "--json", "--on", "b200", "--seed", "7"])
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((report["rung"], report["m"], report["n"], report["k"], report["seed"]),
                         ("step01_kloop", 130, 264, 40, 7))
        self.assertEqual((report["dtype"], report["out_dtype"]), ("f16", "f16"))
        self.assertIs(report["device"]["emulated"], True)
        self.assertIs(report["check"]["passed"], True)

    def test_seed_decides_the_bits(self):
        hashes = [json.loads(run([STEP01, "--shape", "130x264x40", "--json", "--on", "b200", "--seed", seed]).stdout)["d_hash"]
                  for seed in ("7", "7", "8")]
        self.assertEqual(hashes[0], hashes[1])
        self.assertNotEqual(hashes[0], hashes[2])


if __name__ == "__main__":
    unittest.main()
