"""What step04's study and the ladder measured, as the pages tell it: tables, and the claims that the figures must bear out."""

import copy
import re
import unittest

from support import ROOT
from test_bench import OwnFiles, cells, measured, record
from tools import claims, figures, pages, study_tables
from tools.study_tables import Configuration
from tools.terminal import Refusal


def study(arrangement, tile_k, stages, **more):
    return Configuration(arrangement, tile_k, stages).side(**more)


class Study(OwnFiles):
    def setUp(self):
        super().setUp()
        self.times = {"cublas:best": 100.,
                      **{study("128B", 64, 4, part=part): us
                         for part, us in {"full": 200., "load": 100., "mma": 150., "epilogue": 40.}.items()},
                      study("rows", 64, 4, part="load"): 100., study("128B", 64, 1, part="load"): 90.,
                      study("columns", 64, 4, part="load"): 800., study("columns", 16, 4, part="full"): 1000.}
        self.put_study(measured("square-4096", self.times))

    def put_study(self, *results):
        self.put(study_tables, "STUDY", self.write("h200_study.json", record(*results, sms=132)))

    def test_the_constants_are_the_studys(self):
        text = (ROOT / "step04_swizzle" / "study.h").read_text()
        tile_m, tile_n = map(int, re.search(r"kStudyTileM = (\d+), kStudyTileN = (\d+);", text).groups())
        self.assertEqual((study_tables.TILE_M, study_tables.TILE_N), (tile_m, tile_n))

    def test_parts_beside_each_other(self):
        rows = cells(study_tables.study_times("square-4096"))
        self.assertEqual([row[1:5] for row in rows[2:]], [
            ["`columns`", "16", "4", "16"], ["`columns`", "64", "4", "16"], ["`rows`", "64", "4", "128"], ["`128B`", "64", "4", "128"],
            ["`128B`", "64", "1", "128"]])
        # 512 tiles x 64 K tiles x 48 KiB in 100 us. Four tiles on an SM: 4 x 64 x 384 rows in 100 us at 1,500 MHz.
        self.assertEqual(rows[5], ["", "`128B`", "64", "4", "128", "200.0", "100.0", "16.11", "1.53", "150.0", "40.0"])
        self.assertEqual(rows[4][5:], ["", "100.0", "16.11", "1.53", "", ""])
        self.assertEqual(rows[2], ["square-4096", "`columns`", "16", "4", "16", "1,000", "", "", "", "", ""])  # its loads were not timed

    def test_a_ragged_shape(self):
        # 2 tiles of 3 K tiles of 64, the last a few wide: boxes are as large as ever.
        self.put_study(measured("100x300x136", {study("64B", 64, 4, part="load"): 1.}))
        row = cells(study_tables.study_times("100x300x136"))[2]
        self.assertEqual(row[7:9], [f"{2 * 3 * 48 * 1024 / 1e6:.2f}", f"{1500 / (3 * 384 * 2):.2f}"])

    def test_without_a_clock_there_are_no_cycles(self):
        one = measured("square-4096", self.times)
        for side in one["sides"]:
            side.pop("sm_mhz")
        self.put_study(one)
        self.assertEqual({row[8] for row in cells(study_tables.study_times("square-4096"))[2:]}, {""})

    def test_order(self):
        boxes, swizzled = study("boxes", 16, 4), study("128B", 64, 4)
        self.put(study_tables, "ORDER", self.write("h200_order.json", record(
            measured("square-4096", {boxes: 800., f"{boxes},cluster=2x2": 500., swizzled: 200., f"{swizzled},cluster=2x2": 250.,
                                     f"{swizzled},cluster=1x2": 200., f"{swizzled},roles=together": 220.}),
            measured("decode-qkv", {swizzled: 80., study("128B", 64, 4, cluster="2x2"): 64.}))))
        self.assertEqual(cells(study_tables.order("square-4096 decode-qkv"))[2:], [
            ["roles apart, not together", "with swizzle: `128B`, K tile 64", "220.0 → 200.0 (1.10x)", ""],
            ["cluster of 1x2, not alone", "with swizzle: `128B`, K tile 64", "200.0 → 200.0 (1.00x)", ""],
            ["cluster of 2x2, not alone", "without: `boxes`, K tile 16", "800.0 → 500.0 (1.60x)", ""],
            ["", "with swizzle: `128B`, K tile 64", "200.0 → 250.0 (0.80x)", "80.0 → 64.0 (1.25x)"]])

    def test_what_is_refused(self):
        self.put(study_tables, "ORDER", self.write("h200_order.json", record(measured("square-4096", self.times))))
        there = "bench/h200_{}.json has nothing of decode-qkv: it has square-4096"
        for block, asked, part in (
                (study_tables.study_times, "", "expected shapes"), (study_tables.order, "", "expected shapes"),
                (study_tables.study_times, "decode-qkv", f"<!-- study-times: decode-qkv -->: {there.format('study')}"),
                (study_tables.order, "decode-qkv", f"<!-- order: decode-qkv -->: {there.format('order')}"),
                (study_tables.order, "square-4096", "has none of its sides"), (claims.claims, "1", "<!-- claims: 1 -->: expected all")):
            with self.assertRaisesRegex(Refusal, re.escape(part)):
                block(asked)

    def test_in_a_page(self):
        kinds = {kind: lambda asked, kind=kind: f"| {kind} |\n" for kind in ("study", "order", "orders")}
        text = pages.renewed("<!-- study-times: square-4096 -->\n| old |\nA.\n<!-- study: 1x1x1 -->\n| old |\n<!-- order: a -->\n| old |\n",
                             kinds | {"study-times": study_tables.study_times})
        self.assertEqual(text.split("A.\n"), [f"<!-- study-times: square-4096 -->\n{study_tables.study_times('square-4096')}",
                                              "<!-- study: 1x1x1 -->\n| study |\n<!-- order: a -->\n| order |\n"])


def slower(data, side, factor, shape=None):
    """The same figures, but for a side: in all shapes or one, under both protocols."""
    records = []
    for each in (data.ladder, data.study, data.order):
        changed = copy.deepcopy(each)
        for result in changed["results"]:
            for row in result["sides"]:
                if side in (row["side"], figures.short(row["side"])) and shape in (None, result["shape"]):
                    row["median_us"] *= factor
        records.append(changed)
    return claims.Data(*records)


class Claims(unittest.TestCase):
    def setUp(self):
        self.data = claims.Data()

    def test_the_figures_bear_out_every_verdict(self):
        self.assertEqual([each.number for each in claims.CLAIMS], list(range(1, 12)))
        for each in claims.CLAIMS:
            self.assertIn(each.verdict, claims.VERDICTS)
            self.assertTrue(each.agrees(self.data), f"{each.number}: {each.verdict}: {each.measured(self.data)}")

    def test_other_figures_contradict_them(self):
        plain, swizzled, rows = claims.COLUMNS, claims.SWIZZLED, claims.ROWS_64
        for number, side, factor, *shape in (
                (1, claims.LOOP, 1.6), (2, claims.PIPELINE, .8), (3, claims.ROLES, 1.03, "decode-qkv"), (3, swizzled.side(), 1.1),
                (4, claims.PLAIN_64.side(part="full"), .89), (4, claims.SWIZZLE, .8), (5, rows.side(part="load"), 4),
                (5, swizzled.side(part="load"), 1.5), (6, plain.side(part="mma"), .67), (7, swizzled.side(part="epilogue"), .5),
                (8, claims.CLUSTER, .8), (9, claims.BEST, 1.04, "square-4096"), (10, claims.EPILOGUE, .8), (10, claims.BEST, 1.2),
                (11, claims.BEST, 1.5)):
            data = slower(self.data, side, factor, *shape)
            claim = claims.CLAIMS[number - 1]
            self.assertFalse(claim.agrees(data), (number, side))
            with self.assertRaisesRegex(Refusal, r"^claim \d+: the figures no longer say '.* its words in docs/claims.md anew\.$"):
                claims.claims("all", data)

    def test_the_table(self):
        rows = cells(claims.claims("all"))
        self.assertEqual([row[0] for row in rows[2:]], [str(number) for number in range(1, 12)])
        self.assertEqual({len(row) for row in rows}, {6})
        self.assertIn(f"{100 * self.data.of_cublas(claims.LOOP, claims.SQUARE):.1f} %", rows[2][3])

    def test_the_origins_figures_are_those_of_its_file(self):
        steps = {each["step"]: each["times"] for each in figures.origin()["steps"]}
        square, mlp_up = ({step: times[shape] for step, times in steps.items() if shape in times}
                          for shape in ("square-4096", "prefill-mlp-up"))
        said = {each.number: each.origin for each in claims.CLAIMS}
        for number, figure in ((1, f"{100 * square[1]['of_cublas']:.0f} %"), (9, f"{100 * square[8]['of_cublas']:.0f} %"),
                               (2, f"{square[2]['gain']} / {mlp_up[2]['gain']} / {steps[2]['decode-mlp-up']['gain']}x"),
                               (8, f"{square[5]['us'] / square[6]['us']:.2f}x"), (8, f"{mlp_up[4]['us'] / mlp_up[6]['us']:.2f}x")):
            self.assertIn(figure, said[number])

    def test_a_figure_that_is_missing(self):
        ladder = copy.deepcopy(self.data.ladder)
        ladder["results"] = [each for each in ladder["results"] if each["shape"] != "decode-mlp-up"]
        with self.assertRaisesRegex(Refusal, "step01:plain was not measured at decode-mlp-up, burst: .* docs/benchmarks.md says how"):
            claims.claims("all", claims.Data(ladder))

    def test_the_page_has_a_section_for_each(self):
        text = (ROOT / "docs" / "claims.md").read_text()
        sections = re.findall(r"^## (\d+)\. .*\n\n\*\*(.*?)[.:]\*\*", text, re.MULTILINE)
        self.assertEqual(sections, [(str(each.number), each.verdict.capitalize()) for each in claims.CLAIMS])

    def test_the_pages_have_the_tables_as_they_are(self):
        kinds = {"study-times": study_tables.study_times, "order": study_tables.order, "claims": claims.claims}
        for page, kind in (("step04_swizzle", "study-times"), ("step06_multicast", "order"), ("claims", "claims")):
            text = (ROOT / "docs" / f"{page}.md").read_text()
            asked = re.search(rf"^<!-- {kind}: (.*?) -->\n((?:\|[^\n]*\n)+)", text, re.MULTILINE)
            self.assertEqual(asked[2], kinds[kind](asked[1]))


if __name__ == "__main__":
    unittest.main()
