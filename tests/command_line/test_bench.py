"""`ladder bench`, and the tables and pictures of what was measured. Nothing here needs a GPU or a build."""

import contextlib
import io
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from xml.etree import ElementTree

from support import ROOT, Refusals, ladder
from tools import bench, bench_picture, bench_tables, bits, figures, gpu_tool, pages, sanitize
from tools.selfcheck import refuse_anothers
from tools.terminal import Refusal

TIMES = {"cublas:default": 110., "cublas:best": 100., "step01_kloop:plain": 1000., "step02_pipeline:stages-4": 500.,
         "step06_multicast:2x2": 160., "step06_multicast:2x1": 125., "step07_persistent:best": 80.}


def measured(shape, times, protocol="burst", sets=3, **more):
    m, n, k = figures.sizes(shape)
    return {"shape": shape, "m": m, "n": n, "k": k, "protocol": protocol, "sets": sets,
            "sides": [{"side": name, "median_us": us, "sm_mhz": 1500} for name, us in times.items()], **more}


def record(*results, **more):
    return {"date": "2026-01-02 03:04", "gpu": "NVIDIA H200", "cublas": "13.1.0", "in": "f16", "out": "f16", "results": list(results), **more}


def cells(text):
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]


class OwnFiles(Refusals):
    """A bench/ folder of the test's own: h200.json is what a test says."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ladder-bench-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.put(figures, "FILE", self.write("h200.json", record(measured("square-4096", TIMES))))

    def put(self, module, name, value):
        self.addCleanup(setattr, module, name, getattr(module, name))
        setattr(module, name, value)

    def write(self, name, content):
        path = self.folder / name
        path.write_text(json.dumps(content))
        return path


class Figures(OwnFiles):
    def test_named_shapes_are_the_harness_ones(self):
        text = (ROOT / "common" / "harness" / "shapes.cpp").read_text()
        found = re.findall(r'NamedShape\{"([\w-]+)", \{(\d+), (\d+), (\d+)\}', text)
        self.assertEqual({name: list(map(int, sizes)) for name, *sizes in found}, figures.origin()["shapes"])

    def test_the_origins_shares_are_those_of_its_times(self):
        origin = figures.origin()
        for step in origin["steps"]:
            self.assertTrue((ROOT / step["rung"]).is_dir())
            for shape, time in step["times"].items():
                if "of_cublas" in time:
                    self.assertAlmostEqual(origin["cublas_us"][shape] / time["us"], time["of_cublas"], delta=.015)

    def test_a_shape_by_either_name(self):
        mine = record(measured("256x8192x8192", TIMES))
        self.assertIs(figures.result(mine, "burst", "decode-attn-out"), mine["results"][0])
        self.assertIsNone(figures.result(mine, "sustained", "decode-attn-out"))

    def test_the_better_cublas(self):
        for better in figures.CUBLAS:
            self.assertEqual(figures.better_cublas(measured("square-4096", {**TIMES, better: 50.}))["side"], better)
        self.assertIsNone(figures.better_cublas(measured("square-4096", {"step01_kloop:plain": 5.})))

    def test_a_side_without_a_time(self):
        one = measured("square-4096", TIMES)
        one["sides"].append({"side": "theirs.so:gemm", "error": "hung"})
        self.assertIsNone(figures.side(one, "theirs.so:gemm"))
        self.assertNotIn("theirs.so:gemm", figures.names([one]))

    def test_what_is_no_record(self):
        (self.folder / "text.json").write_text("no")
        self.write("other.json", {"results": [{"shape": "square-4096"}]})
        for name, part in (("none.json", "no such file"), ("text.json", "not what gemm_bench writes"), ("other.json", "not what gemm_bench writes")):
            with self.assertRaisesRegex(Refusal, f"{name}: {part}"):
                figures.read(self.folder / name)

    def test_what_is_of_another_type(self):
        def changed(of, key, value):
            mine = record(measured("square-4096", TIMES, idle_s=.03))
            place = {"record": mine, "result": mine["results"][0], "side": mine["results"][0]["sides"][2]}[of]
            return self.write("mine.json", {**mine, key: value} if of == "record" else place.update({key: value}) or mine)
        for of, key, value, part in (("side", "median_us", "x", 'median_us of a side at square-4096 is "x", expected a number of 0 or more'),
                                     ("side", "median_us", float("nan"), "is NaN, expected"), ("side", "p10_us", -1, "is -1, expected"),
                                     ("side", "sm_mhz", [], r"is \[\], expected"), ("side", "side", 5, "side of a side at square-4096 is 5, expected text"),
                                     ("side", "median_us", True, "is true, expected"), ("side", "median_us", 10 ** 400, "too large"),
                                     ("record", "gpu", 5, "gpu of it is 5, expected text"), ("record", "date", {}, "expected text"),
                                     ("record", "results", {}, r"is \{\}, expected a list"), ("record", "results", [5], "result 1 is 5, expected an object"),
                                     ("result", "m", 0, "m of result 1 is 0, expected a whole number above 0"), ("result", "m", 1.5, "expected a whole"),
                                     ("result", "sides", None, "expected a list"), ("result", "shape", "", 'is "", expected text'),
                                     ("result", "idle_s", "x", "expected a number"), ("result", "sets", "3", "expected a whole number")):
            with self.assertRaisesRegex(Refusal, f"^[^\n]*mine.json: not what gemm_bench writes .*{part}"):
                figures.read(changed(of, key, value))
        self.assertTrue(figures.read(changed("side", "median_us", None)))  # that has no time
        self.assertEqual(figures.where(figures.read(changed("record", "date", None))), "NVIDIA H200")
        self.write("list.json", [])
        with self.assertRaisesRegex(Refusal, "list.json: not what gemm_bench writes"):
            figures.read(self.folder / "list.json")
        with self.assertRaisesRegex(Refusal, "mine.json: it has no results; "):
            figures.read(changed("record", "results", []))


class Tables(OwnFiles):
    def test_the_protocols_table(self):
        rows = cells(bench_tables.bench("burst"))
        self.assertEqual(rows[0], ["", "square-4096"])
        self.assertEqual([row[0] for row in rows[2:]], [f"`{name}`" for name in TIMES])
        self.assertEqual({row[0]: row[1] for row in rows[2:]}["`step07_persistent:best`"], "80.0 (1.250)")
        with self.assertRaisesRegex(Refusal, "decode-qkv: it has square-4096 of protocol burst"):
            bench_tables.bench("burst, square-4096 decode-qkv")
        with self.assertRaisesRegex(Refusal, "nothing of that"):
            bench_tables.bench("sustained")

    def test_the_spread_is_below(self):
        one = measured("square-4096", TIMES)
        for row, percent in zip(one["sides"], (1, 3, 2)):  # p10 and p90 about the median; the others have none
            row |= {"p10_us": row["median_us"] * (1 - percent / 100), "p90_us": row["median_us"] * (1 + percent / 100)}
        words = "Spread (half of p90 - p10, as a share of the median time): in the middle 2.0 %, at most 3.0 % (cublas:best at square-4096)."
        self.assertEqual(figures.spread_in_words([one]), words)
        self.assertNotIn("Spread", bench_tables.bench("burst"))
        self.write("h200.json", record(one))
        text = bench_tables.bench("burst")
        self.assertTrue(text.endswith(f" |\n\n{words}\n"), text)
        page = f"<!-- bench: burst -->\n{text}\nAfter.\n"
        for old in (page, page.replace("3.0 %", "9.9 %"), f"<!-- bench: burst -->\n| old |\n\nAfter.\n"):
            self.assertEqual(pages.renewed(old, {"bench": bench_tables.bench}), page)

    def test_the_page_has_the_spread(self):
        self.put(figures, "FILE", ROOT / "bench" / "h200.json")
        page = (ROOT / "docs" / "benchmarks.md").read_text()
        self.assertEqual(page.count("\nSpread (half of p90 - p10"), page.count("<!-- bench: "))
        for asked in re.findall(r"<!-- bench: (.*) -->", page):
            self.assertIn(bench_tables.bench(asked), page)

    def test_sides_of_a_file(self):
        self.put(bench_tables.build, "ROOT", self.folder)
        (self.folder / "bench").mkdir()
        self.write("bench/other.json", record(measured("square-4096", TIMES), measured("decode-qkv", {"step07_persistent:best": 40.})))
        rows = cells(bench_tables.sides("other.json, burst, step07:best, square-4096 decode-qkv, step06:2x2 step07_persistent:best"))
        self.assertEqual(rows, [["", "square-4096", "decode-qkv"], ["---", "---:", "---:"], ["`step06:2x2`", "160.0 (0.500)", ""],
                                ["`step07_persistent:best`", "80.0 (1.000)", "40.0 (1.000)"]])
        self.assertEqual(len(cells(bench_tables.sides("other.json, burst, cuBLAS, square-4096"))), 2 + len(TIMES))
        for asked, part in (("other.json, burst, step07:walk=1, square-4096", "bench/other.json has no side step07:walk=1 of that; it has cublas:default, "),
                            ("other.json, burst, cuBLAS, square-4096, step03", "has no side step03 of that"),
                            ("other.json, burst, cuBLAS, decode-mlp-up", "has nothing of decode-mlp-up: it has square-4096, decode-qkv"),
                            ("none.json, burst, cuBLAS, square-4096", "none.json: no such file"),
                            ("burst, square-4096", "expected perhaps a file of bench/")):
            with self.assertRaisesRegex(Refusal, re.escape(part)):
                bench_tables.sides(asked)

    def test_a_rung_beside_the_origin(self):
        both = record(measured("square-4096", TIMES), measured("square-4096", {"cublas:best": 200., "step07_persistent:best": 250.}, "sustained"),
                      measured("1x8192x8192", {"cublas:best": 30., "step07_persistent:best": 40.}))
        rows = cells(bench_tables.ladder("step07", both))
        self.assertEqual(rows[0], ["shape", "side", "*origin* B200, step 7: us", "*origin* B200, step 8: us", "*measured* H200, 2026-01-02, burst: us",
                                   "*measured* H200, 2026-01-02, sustained: us", "SM clock, burst: MHz"])
        by_shape = {row[0]: row[1:] for row in rows[2:]}
        # 109 / 107, 107 / 98; the default of the rung before is 2x2; no rung before was measured in the sustained run.
        self.assertEqual(by_shape["square-4096"], ["`best`", "107 (1.02x; 0.88)", "98.0 (1.09x; 0.97)", "80.0 (2.00x; 1.250)", "250.0 (0.800)", "1,500"])
        self.assertEqual(by_shape["1x8192x8192"], ["`best`", "", "", "40.0 (0.750)", "", "1,500"])
        self.assertEqual(by_shape["decode-mlp-down"], ["", "", "138 (0.81)", "", "", ""])  # the origin's alone
        self.assertNotIn("2048x2048x2048", by_shape)

    def test_sides_of_a_rung(self):
        rows = cells(bench_tables.ladder("step06_multicast"))[2:]
        self.assertEqual([row[:2] for row in rows[:2]], [["square-4096", "`2x2`"], ["", "`2x1`"]])
        self.assertEqual([row[2] for row in rows[:2]], ["109 (1.01x; 0.87)", ""])
        self.assertEqual(rows[0][3], "160.0 (0.625)")  # step05 was not measured here: no ratio to it, nor to step02
        self.assertEqual(next(row for row in rows if row[0] == "prefill-mlp-up")[2], "3,205 (0.96x step 4; 0.75)")

    def test_the_origins_own_ratios(self):
        rows = {row[0]: row[2] for row in cells(bench_tables.ladder("step04"))[2:]}
        self.assertEqual(rows["square-4096"], "110 (4.10x; 0.86)")
        self.assertEqual(rows["prefill-attn-out"], "3.55x")
        self.assertEqual(rows["decode-mlp-up"], "127 (3.56x step 2; 0.87)")
        with self.assertRaisesRegex(Refusal, "step99: no such rung"):
            bench_tables.ladder("step99")
        with self.assertRaisesRegex(Refusal, "anything of step00_single_mma"):
            bench_tables.ladder("step00")


SVG = "{http://www.w3.org/2000/svg}"


def drawing(text):
    root = ElementTree.fromstring(text)
    return root, [each.text for each in root.iter(f"{SVG}text")]


def filled(root):
    """What a bar's tip begins with -> its colour and width."""
    return {each.find(f"{SVG}title").text.partition(": ")[0]: (each.get("fill"), float(each.get("width"))) for each in root.iter(f"{SVG}rect")
            if each.find(f"{SVG}title") is not None}


class Pictures(OwnFiles):
    def test_every_bar(self):
        root, words = drawing(bench_picture.bars(figures.read(figures.FILE), "square-4096"))
        there = filled(root)
        self.assertEqual(list(there), ["step01_kloop:plain", "step02_pipeline:stages-4", "step06_multicast:2x2", "step06_multicast:2x1",
                                       "step07_persistent:best", "cublas:best"])
        self.assertEqual({colour for colour, _ in there.values()}, {bench_picture.RUNG, bench_picture.CUBLAS})
        self.assertAlmostEqual(there["step07_persistent:best"][1] / there["step06_multicast:2x2"][1], 2, places=2)
        for text in ("80.0", "1.250", "1,718.0", "1,500"):  # us, of cuBLAS, TFLOP/s, MHz
            self.assertIn(text, words)
        self.assertTrue([text for text in words if text.startswith("Measured: NVIDIA H200, 2026-01-02, burst")])

    def test_what_is_long_stays_in_its_column(self):
        theirs = "/home/somebody/with/a/long/folder/libtheirs.so"
        names = [f"{theirs}:tile-128", f"{theirs}:a_kernel_with_a_name_that_has_no_end_128x256x64", "step07_persistent:tile-n=256,stages=4,ctas=2",
                 "step07_persistent:best"]
        one = measured("square-4096", {**TIMES, **dict(zip(names, (1e6, 123456789., 4.2e10, 999999.)))})
        root, words = drawing(bench_picture.bars(record(one), "square-4096"))
        left = [each for each in root.iter(f"{SVG}text") if each.get("x") == "14" and float(each.get("y")) > 80]
        for each in left:
            self.assertLessEqual(len(each.text), bench_picture.LONGEST_NAME)
            self.assertEqual(bench_picture.ELLIPSIS in each.text, each.find(f"{SVG}title") is not None, each.text)
        told = {each.find(f"{SVG}title").text: each.text for each in left if each.find(f"{SVG}title") is not None}
        self.assertEqual(set(told), set(names[:3]))
        self.assertTrue(told[names[0]].startswith("/home") and told[names[0]].endswith(":tile-128"), told)
        self.assertTrue(told[names[1]].startswith("/") and told[names[1]].endswith("256x64"), told)
        self.assertIn(":tile-n=", told[names[2]])
        self.assertTrue(told[names[2]].endswith("ctas=2"), told)
        self.assertTrue(set(names) < set(filled(root)))  # a bar's tip has the whole name
        for text in ("1.000 s", "123.5 s", "4.2e+04 s", "999,999.0"):
            self.assertIn(text, words)
        for each in root.iter(f"{SVG}text"):
            if each.get("x") == "712":
                self.assertLessEqual(len(each.text), 9)

    def test_a_single_long_side(self):
        root, words = drawing(bench_picture.bars(record(measured("square-4096", {**TIMES, "/somewhere/in/a/folder/libtheirs.so:gemm": 9.})), "square-4096"))
        self.assertIn("/somewhere/i…libtheirs.so", words)

    def test_few_rows_that_take_long(self):
        few = record(*(measured(f"{m}x8192x8192", {"cublas:best": 2e8, "step07_persistent:best": us}) for m, us in ((1, 3e10), (64, 1e300))))
        _, words = drawing(bench_picture.time_by_m(few, "8192x8192"))
        self.assertIn("200.0 s", words)
        _, words = drawing(bench_picture.time_by_m(record(*(measured(f"{m}x8192x8192", {"cublas:best": 1e8 * m}) for m in (1, 16))), "8192x8192"))
        self.assertIn("500 s", words)

    def test_the_rung_that_a_page_is_about(self):
        for rung, own in (("step06_multicast", 2), ("step01_kloop", 1)):
            file, text, words = bench_picture.picture("bars", f"square-4096, {rung}")
            self.assertEqual(file, f"pictures/bars_{rung}.svg")
            self.assertIn(f"{rung} highlighted", words)
            strong = [name for name, (colour, _) in filled(drawing(text)[0]).items() if colour == bench_picture.RUNG]
            self.assertEqual([name.partition(":")[0] for name in strong], [rung] * own)

    def test_what_cannot_be_drawn(self):
        for kind, asked, part in (("bars", "square-4096, step99", "step99: no such rung; there are step00_single_mma"),
                                  ("bars", "square-4096, step03", "no figure of it at square-4096; it has step01_kloop"),
                                  ("bars", "decode-qkv", "decode-qkv: bench/h200.json has no figures of it; it has square-4096 of protocol burst"),
                                  ("bars", "large", "large: not a shape; write MxNxK"),
                                  ("time-by-m", "8192x8192", "fewer than two M"), ("time-by-m", "8192", "expected NxK"),
                                  ("roofline", "h900", "h900.json: no such file"), ("roofline", "../h200", "expected the name of a file")):
            with self.assertRaisesRegex(Refusal, re.escape(f"<!-- {kind}: {asked} -->: ") + ".*" + re.escape(part)):
                bench_picture.picture(kind, asked)

    def test_the_roof(self):
        chip = bench_picture.CHIPS["NVIDIA H200"]
        self.assertAlmostEqual(chip.sms * chip.flop_per_cycle * 1.83e9 / 1e12, 989.4, places=1)  # what NVIDIA publishes, dense
        one = record(measured("square-4096", TIMES), measured("decode-qkv", {"cublas:best": 60.}), measured("1x8192x8192", {"step01_kloop:plain": 9.}))
        root, words = drawing(bench_picture.roofline(one))
        self.assertIn("square-4096", words)
        self.assertIn("decode-qkv", words)
        self.assertNotIn("1x8192x8192", words)  # of neither side
        tips = [each.text for each in root.iter(f"{SVG}title")]
        self.assertIn("square-4096, step07_persistent:best: 1,718 TFLOP/s, 1,365 FLOP a byte", tips)
        self.assertEqual(len([tip for tip in tips if tip.startswith("decode-qkv")]), 1)
        with self.assertRaisesRegex(Refusal, "mine.json is of NVIDIA B999; ceilings are known here of NVIDIA H200"):
            bench_picture.roofline(record(measured("square-4096", TIMES), gpu="NVIDIA B999"), "mine.json")

    def test_labels_do_not_cover_each_other(self):
        plot = bench_picture.Plot(50, 50, 880, 500, (1, 10), (1, 10))
        for x in range(460, 400, -12):  # from the right, as the roofline has them
            plot.label(x, 100, ["a label of some length"])
        boxes = plot.taken[::2]
        for at, (left, top, right, bottom) in enumerate(boxes):
            for other in boxes[at + 1:]:
                self.assertFalse(left < other[2] and right > other[0] and top < other[3] and bottom > other[1])

    def test_every_shape_has_its_label(self):
        all_of_them = record(*(measured(shape, {"cublas:best": bench_picture.flop(measured(shape, {})) / 700e6 + 30}) for shape in bench.SHAPES))
        root, _ = drawing(bench_picture.roofline(all_of_them))
        boxes = {each.text: (float(each.get("x")), float(each.get("y"))) for each in root.iter(f"{SVG}text") if each.text in bench.SHAPES}
        self.assertEqual(set(boxes), set(bench.SHAPES))
        for name, (x, y) in boxes.items():
            self.assertLess(x + 6 * len(name), 900)
            self.assertLess(y, 520)
            for other, (left, below) in boxes.items():
                self.assertFalse(name < other and abs(y - below) < 10 and x < left + 6 * len(other) and left < x + 6 * len(name), (name, other))

    def test_few_rows(self):
        few = record(*(measured(f"{m}x8192x8192", {"cublas:best": 40., "step07_persistent:best": us}) for m, us in ((1, 44.), (64, 38.5))),
                     measured("decode-attn-out", {"cublas:best": 51.}), measured("prefill-attn-out", TIMES))
        _, words = drawing(bench_picture.time_by_m(few, "8192x8192"))
        self.assertEqual([text for text in words if text in ("1", "16", "64", "256", "8,192")], ["1", "64", "256"])
        for text in ("44.0", "38.5", "51.0"):
            self.assertIn(text, words)
        self.assertIn("28.0 us: the weights alone, 134.2 MB at 4.8 TB/s (published, NVIDIA's data sheet)", words)  # 2 * 8192^2 bytes
        _, words = drawing(bench_picture.time_by_m({**few, "gpu": "another"}, "8192x8192"))
        self.assertFalse([text for text in words if "weights alone" in text])

    def test_in_a_page(self):
        for folder in ("", "docs/"):
            pictures = pages.Pictures(folder)
            text = pages.renewed("<!-- bars: square-4096 -->\n![old](old.svg)\nAfter.\n", pictures.kinds())
            self.assertIn(f"]({folder}pictures/bars.svg)\nAfter.\n", text)
            self.assertEqual(list(pictures.pictures), [f"{folder}pictures/bars.svg"])


class Shown(OwnFiles):
    def lines(self, mine, width=140):
        return bench.text_of(self.write("mine.json", mine), width).splitlines()

    def test_beside_an_h200(self):
        lines = self.lines(record(measured("square-4096", {**TIMES, "step07_persistent:best": 100.}), date="2026-05-06 07:08"))
        self.assertEqual(lines[0], "NVIDIA H200, 2026-05-06 07:08, cuBLAS 13.1.0, f16 in, f16 out")
        self.assertIn("(NVIDIA H200, 2026-01-02)", lines[2])
        row = next(line for line in lines if line.startswith("step07_persistent:best"))
        self.assertEqual(row.split(), ["step07_persistent:best", "100.0", "(1.000)", "80.0", "(1.250)", "+25.0", "%"])

    def test_only_what_is_comparable(self):
        for mine in (record(measured("decode-qkv", TIMES)), record(measured("square-4096", TIMES, "sustained")),
                     record(measured("square-4096", TIMES, sets=1)), record(measured("square-4096", TIMES), out="f32")):
            row = next(line for line in self.lines(mine) if line.startswith("step07_persistent:best"))
            self.assertEqual(row.split(), ["step07_persistent:best", "80.0", "(1.250)"])

    def test_what_was_measured_in_another_way(self):
        self.write("h200.json", record(measured("square-4096", TIMES, idle_s=.03, rounds=20), measured("decode-qkv", TIMES, idle_s=.03),
                                       measured("square-4096", TIMES, "sustained", seconds=5.)))
        both = [measured(shape, TIMES, idle_s=.5) for shape in ("square-4096", "decode-qkv")]
        lines = self.lines(record(*both, measured("square-4096", TIMES, "sustained", seconds=5.)))
        self.assertIn("Not beside bench/h200.json: idle_s 0.5 here, 0.03 there (square-4096, decode-qkv).", lines)
        self.assertEqual(sum(line.startswith("Not beside") for line in lines), 1)
        self.assertEqual([" H200" in line for line in lines if line.strip().startswith(("us", "here"))], [False, True])
        for mine, part in ((record(measured("square-4096", TIMES, "sustained", seconds=1.)), "seconds 1 here, 5 there (square-4096)"),
                           (record(measured("square-4096", TIMES)), "idle_s not given here, 0.03 there"),
                           (record(measured("square-4096", TIMES, idle_s=.03, sets=1), out="f32"), "out f32 here, f16 there; matrices warm here, cold there")):
            text = "\n".join(self.lines(mine))
            self.assertIn(f"Not beside bench/h200.json: {part}", text)
            self.assertNotIn("Beside it", text)
        text = "\n".join(self.lines(record(measured("square-4096", TIMES, idle_s=.03, rounds=3))))  # rounds change the spread alone
        self.assertIn("Beside it", text)
        self.assertNotIn("Not beside", text)

    def test_the_spread_is_the_last_line(self):
        one = measured("square-4096", TIMES)
        one["sides"][4] |= {"p10_us": 159., "p90_us": 161.}
        lines = self.lines(record(one, measured("square-4096", TIMES, "sustained")))
        words = "in the middle 0.6 %, at most 0.6 % (step06_multicast:2x2 at square-4096)."
        self.assertEqual([at for at, line in enumerate(lines) if line.endswith(words)], [lines.index("sustained") - 2])
        self.assertEqual(sum("Spread" in line for line in lines), 1)

    def test_what_was_not_measured(self):
        one = measured("square-4096", TIMES)
        one["sides"].append({"side": "theirs.so:gemm", "error": "hung"})
        lines = self.lines(record(one, measured("decode-qkv", {"cublas:best": 60.})))
        self.assertEqual(next(line for line in lines if line.startswith("theirs.so:gemm")).split()[1:], ["-"] * 4)
        self.assertEqual(next(line for line in lines if line.startswith("step01_kloop:plain")).split()[-1], "-")
        self.assertNotIn(" 0.0", "\n".join(lines).replace("+0.0", ""))

    def test_as_many_shapes_as_there_is_room_for(self):
        mine = record(*(measured(shape, TIMES) for shape in bench.SHAPES))
        blocks = {}
        for width in (10, 100, 1000):
            lines = self.lines(mine, width)
            blocks[width] = sum(line.startswith("cublas:best") for line in lines)
            self.assertEqual(sum(line.split().count(shape) for line in lines for shape in bench.SHAPES), len(bench.SHAPES))
            if width > 10:
                self.assertLessEqual(max(map(len, lines[3:])), width)
        self.assertEqual((blocks[10], blocks[1000]), (len(bench.SHAPES), 1))
        self.assertTrue(1 < blocks[100] < len(bench.SHAPES))

    def test_by_the_front_door(self):
        done = ladder("bench", "--show", ROOT / "bench" / "h200.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("step07_persistent:best", done.stdout)
        self.assertNotIn("Beside it", done.stdout)
        done = ladder("bench", "--pictures", self.folder / "h200.json", "--out", self.folder / "drawn")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(path.name for path in (self.folder / "drawn").iterdir()), ["bars_square-4096.svg", "roofline.svg"])


class Measured(OwnFiles):
    """The run itself, with a program in gemm_bench's place."""

    def bench(self, *arguments, gpu=True, program="", exits=0):
        mine = self.folder / "mine.json"
        (self.folder / "bin").mkdir(exist_ok=True)
        fake = self.folder / "bin" / "gemm_bench"
        fake.write_text(f"#!{sys.executable}\nimport sys, pathlib\npathlib.Path({str(self.folder / 'asked')!r}).write_text('\\n'.join(sys.argv[1:]))\n"
                        f"{program}\nsys.exit({exits})\n")
        fake.chmod(0o755)
        self.put(bench, "has_gpu", lambda: gpu)
        self.put(bench.build, "FOLDER", self.folder)
        self.built = []
        self.put(bench.build, "build", lambda options, quiet, target: self.built.append((options.cublas, options.debug, target)))
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = bench.command([*arguments, "--json", str(mine)])
        return status, out.getvalue(), err.getvalue()

    def copy(self):
        return f"import shutil; shutil.copy({str(self.folder / 'h200.json')!r}, {str(self.folder / 'mine.json')!r})"

    def test_a_run(self):
        status, out, err = self.bench("--quick", "--beside", f"{self.folder / 'h200.json'}:gemm", program=self.copy())
        self.assertEqual(status, 0)
        self.assertEqual(self.built, [(True, False, "gemm_bench")])
        asked = (self.folder / "asked").read_text()
        self.assertEqual(asked.split("\n--")[0].split("\n")[1:], bench.QUICK_SHAPES)
        self.assertIn("--protocol\nburst\n--beside\n" + str(self.folder / "h200.json") + ":gemm\n", asked)
        self.assertNotIn("--warm", asked)
        self.assertRegex(err, r"^3 shapes, burst: about \d+ minutes?\.\n$")
        self.assertIn("step07_persistent:best", out)

    def test_its_end_is_the_commands(self):
        self.assertEqual(self.bench("--quick", program=self.copy(), exits=3)[0], 3)
        self.assertEqual(self.bench("--quick", program="import os; os.kill(os.getpid(), 9)")[0], 137)
        self.write("mine.json", record(measured("square-4096", TIMES)))  # of before: not looked at, as this run wrote nothing
        status, out, _ = self.bench("--quick", exits=1)
        self.assertEqual((status, out), (1, ""))

    def test_without_a_gpu(self):
        with self.assertRaisesRegex(Refusal, "no NVIDIA GPU .* `./ladder bench --show bench/h200.json`"):
            self.bench(gpu=False)
        self.assertEqual(self.built, [])
        self.assertFalse((self.folder / "asked").exists())

    def test_defaults(self):
        self.bench()
        asked = (self.folder / "asked").read_text().split("\n")
        self.assertEqual(asked[asked.index("--protocol") + 1:][:2], ["burst", "sustained"])
        for word in ("16384x16384x16384", "16x8192x8192", "decode-mlp-down", "step01", "step06:2x1", "step07:best"):
            self.assertIn(word, asked)

    def test_how_long(self):
        def seconds(*arguments):
            return bench.seconds(bench.options_of(arguments))
        one = ["--shape", "512x512x512", "--side", "step04", "--protocol"]
        # 8 proposals x 10 rounds and 3 sides x 20, 33 ms each; 8 x .5 s and 3 sides x 5 s; and what goes before.
        self.assertAlmostEqual(seconds(*one, "burst"), 140 * .033 + bench.PREPARE_S, places=2)
        self.assertAlmostEqual(seconds(*one, "sustained"), 19 + bench.PREPARE_S, places=2)
        self.assertAlmostEqual(seconds(*one, "burst", "sustained", "--seconds", "9") - seconds(*one, "burst"), 4 + 27, places=2)
        self.assertGreater(seconds(), 5 * seconds("--quick"))

    def test_the_study_is_a_side(self):
        side = "swizzle_study:arrangement=rows,part=load"
        self.assertEqual(bench.options_of(["--side", side]).side, [side])

    def test_what_is_refused(self):
        for arguments, part in ((["--shape", "12"], "--shape 12: not a shape; write MxNxK"), (["--side", "step99:best"], "step99: no such rung"),
                                (["--beside", "/no/lib.so:gemm"], "--beside /no/lib.so:gemm: no such file"), (["--rounds", "0"], "--rounds 0"),
                                (["--seconds", "nan"], "--seconds nan"), (["--json", "/no/mine.json"], "there is no folder /no"),
                                (["--json", str(self.folder)], "is there and no file"), (["--json", "/proc/mine.json"], "cannot be written"),
                                (["--json", str(ROOT / "README.md")], "README.md: is there and not what gemm_bench writes, so it is not replaced"),
                                (["--bits", "--json", str(self.folder / "h200.json")], "is there and not what `./ladder bench --bits` writes"),
                                (["--bits", "--shape", "square-4096"], "--bits has shapes and sides of its own"), (["--protocol", "slow"], "slow"),
                                (["--pictures", "mine.json"], "--out FOLDER belong together"),
                                (["--show", str(self.folder)], f"{self.folder}: a folder; name a file"),
                                (["--pictures", str(self.folder / "h200.json"), "--out", str(ROOT / "README.md")], "README.md: is there and no folder"),
                                (["--pictures", str(self.folder / "h200.json"), "--out", "/proc/drawn"], "--out /proc/drawn: "),
                                (["--show", "/no.json"], "/no.json: no such file"), (["--show", str(ROOT / "README.md")], "not what gemm_bench writes")):
            self.assert_refused_in_one_line(ladder("bench", *arguments), part)

    def test_nothing_is_ignored_where_nothing_is_measured(self):
        file = str(self.folder / "h200.json")
        for instead in (["--show", file], ["--show"], ["--pictures", file, "--out", str(self.folder)]):
            for more in (["--json", "a.json"], ["--rounds", "20"], ["--round", "0"], ["--side=step04"], ["--shape", "square-4096"], ["--warm"],
                         ["--protocol", "burst"], ["--beside", "a.so"], ["--quick"], ["--seconds", "5"]):
                with self.assertRaisesRegex(Refusal, rf"^{more[0].split('=')[0]}\S*: {instead[0]} measures nothing and would ignore that; "):
                    bench.options_of([*more, *instead])
        with self.assertRaisesRegex(Refusal, "^--warm, --rounds: --show "):
            bench.options_of(["--show", "--warm", "--rounds", "3"])
        bench.options_of(["--show", file])

    def test_where_results_go_is_left_as_it_was(self):
        mine, link = self.folder / "new.json", self.folder / "link.json"
        link.symlink_to(mine)
        (self.folder / "empty.json").touch()
        for path in (mine, link, self.folder / "empty.json", figures.FILE):
            before = path.is_file() and path.read_bytes()
            refuse_anothers(path, "--json", figures.read, "gemm_bench")
            self.assertEqual(path.is_file() and path.read_bytes(), before)
        self.assertTrue(link.is_symlink())
        with self.assertRaisesRegex(Refusal, "cannot be written: File name too long. Name another file."):
            refuse_anothers(self.folder / ("n" * 300), "--json", figures.read, "gemm_bench")

    def test_somebodys_own_results_are_not_committed(self):
        files = [str(file.relative_to(ROOT)) for file in (bench.MINE, bits.MINE)]
        done = subprocess.run(["git", "-C", str(ROOT), "check-ignore", *files], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode == 128:
            self.skipTest("no git checkout")
        self.assertEqual(done.stdout.split(), files)


# A gemm_bench that gives the recorded bits, and 0 where nothing is recorded, but for what a test says.
BITS = """#!{python}
import json, sys
def at(name): return sys.argv[sys.argv.index(name) + 1]
print(*sys.argv, file=open({folder!r} + "/asked", "a"))
shape, kind, out = at("--shape"), at("--dtype"), at("--out-dtype")
if shape == {ends!r}:
    sys.exit("gemm_bench: launches of a side did not end")
known = {{tuple(row[key] for key in ("shape", "in", "out")): row["d_hash"] for row in json.load(open({record!r}))["records"]}}
expected = known.get((shape, kind, out), "0" * 16)
sides = ["cublas:default", "cublas:best", "step01_kloop:plain", "step04_swizzle:plain"] + ["step00_single_mma:plain"] * shape.endswith("x16")
wrong = {wrong!r}
rows = [{{"side": side, "d_hash": wrong.get((side, shape), wrong.get(("", shape), expected))}} for side in sides]
report = {{"date": "2026-05-06 07:08", "gpu": "NVIDIA H100", "cublas": "13.1.0", "in": kind, "out": out}}
json.dump({{**report, "results": [{{"shape": shape, "sides": rows}}]}}, open(at("--json"), "w"))
"""


class Bits(OwnFiles):
    def bits(self, wrong=None, ends="", settings=(("scheduler", ["counter"]), ("ctas", ["2"])), gpu=True):
        self.mine = self.folder / "mine_bits.json"
        fake = self.folder / "bin" / "gemm_bench"
        fake.parent.mkdir(exist_ok=True)
        fake.write_text(BITS.format(python=sys.executable, folder=str(self.folder), record=str(bits.FILE), wrong=wrong or {}, ends=ends))
        fake.chmod(0o755)
        self.put(bench.build, "FOLDER", self.folder)
        self.put(bench.build, "build", lambda *_, **__: None)
        self.put(gpu_tool, "has_gpu", lambda: gpu)
        self.put(gpu_tool, "driver", lambda: "580.159")
        self.put(gpu_tool, "where", lambda name, on, variant="": ({"settings": dict(settings)}, ""))
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            status = bench.command(["--bits", "--json", str(self.mine)])
        return status, out.getvalue()

    def rows(self):
        return {bits.where(row): row for row in bits.read(self.mine)["records"]}

    def test_all_the_recorded_bits(self):
        status, said = self.bits()
        self.assertEqual(status, 0, said)
        self.assertIn("3 sides at 20 shapes: all the bits that an H200 gave (NVIDIA H200, 2026-12-01).", said)
        self.assertNotIn("No record", said)
        self.assertNotIn("cuBLAS", said)
        record = bits.read(self.mine)
        self.assertEqual((record["gpu"], record["date"], record["driver"]), ("NVIDIA H100", "2026-05-06", "580.159"))
        self.assertEqual(set(record["sides"]), {"step00_single_mma:plain", "step01_kloop:plain", "step04_swizzle:plain"})
        for name, row in self.rows().items():
            self.assertEqual(row.get("without"), None if "x16," in name else ["step00_single_mma:plain"])
            self.assertNotIn("other", row)
        for row in bits.read()["records"]:
            self.assertEqual(self.rows()[bits.where(row)]["d_hash"], row["d_hash"])

    def test_what_is_asked_for(self):
        self.bits()
        asked = (self.folder / "asked").read_text().splitlines()
        self.assertEqual(len(asked), 20)
        for line in asked:
            for rung in bench.build.sources():
                self.assertIn(f" {rung}:* ", line)
            self.assertIn(" step07_persistent:scheduler=counter,ctas=2 ", line)
            self.assertNotIn("accumulators", line)  # which the GPU's rung does not know here
            self.assertIn(" --warm ", line)
        self.assertTrue(sanitize.EXTRA)

    def test_a_side_that_differs(self):
        status, said = self.bits({("step04_swizzle:plain", "2048x2048x2048"): "f" * 16, ("step01_kloop:plain", "1x8x8"): "e" * 16})
        self.assertEqual(status, 1)
        self.assertIn("3 sides at 20 shapes: not all gave the bits that an H200 gave", said)
        self.assertIn("  2048x2048x2048, f16 in, f16 out: step04_swizzle:plain gave ffffffffffffffff; the record has 05115b5635526067\n",
                      said)
        self.assertIn("  1x8x8, bf16 in, f32 out: step01_kloop:plain gave eeeeeeeeeeeeeeee; the record has ", said)
        found = self.rows()["2048x2048x2048, f16 in, f16 out"]
        self.assertEqual((found["d_hash"], found["other"]), ("05115b5635526067", {"step04_swizzle:plain": "f" * 16}))

    def test_a_shape_without_a_record(self):
        read = bits.read

        def read_fewer(path=bits.FILE):
            record = read(path)
            return record | {"records": [row for row in record["records"] if path != bits.FILE or row["shape"] not in ("1x8x8", "decode-qkv")]}
        self.put(bits, "read", read_fewer)
        status, said = self.bits()
        self.assertEqual(status, 0, said)
        self.assertIn("No record of 1x8x8, decode-qkv: there the sides are compared with each other.", said)
        status, said = self.bits({("step01_kloop:plain", "1x8x8"): "e" * 16})
        self.assertEqual(status, 1)
        self.assertRegex(said, r"  1x8x8, bf16 in, f32 out: step0\d_\w+:plain gave \w{16}; most sides gave \w{16}\n")

    def test_all_sides_differ(self):
        status, said = self.bits({("", "decode-qkv"): "f" * 16})
        self.assertEqual(status, 1)
        self.assertIn("  decode-qkv, f16 in, f16 out: all 2 sides gave ffffffffffffffff; the record has 96a8041c3e2b4401\n", said)

    def test_cublas_may_differ(self):
        status, said = self.bits({("cublas:best", "decode-mlp-down"): "f" * 16})
        self.assertEqual(status, 0)
        self.assertIn("cuBLAS gave other bits at decode-mlp-down:", said)

    def test_a_shape_that_does_not_end(self):
        status, said = self.bits(ends="1x8x8")
        self.assertEqual(status, 1)
        self.assertIn("3 sides at 19 shapes: all the bits", said)
        self.assertIn("1x8x8, bf16 in, f32 out: no bits, gemm_bench did not end well:\n"
                      "    gemm_bench: launches of a side did not end\n", said)

    def test_without_a_gpu(self):
        with self.assertRaisesRegex(Refusal, "no NVIDIA GPU .*--bits needs one; `./ladder selfcheck`"):
            self.bits(gpu=False)

    def test_what_is_no_record(self):
        with self.assertRaisesRegex(Refusal, "h200.json: not what `./ladder bench --bits` writes"):
            bits.read(self.folder / "h200.json")


if __name__ == "__main__":
    unittest.main()
