"""What the pages quote of the rungs and of the emulator is what they say now."""

import itertools
import json
import re
import tempfile
import unittest
from pathlib import Path

from support import ROOT, Refusals, ladder
from tools import instructions, pages, sass
from tools.sass import Instruction
from tools.terminal import Refusal

REPORT = "<!-- report: step01_kloop, parity never flipped, latest, 3 lines -->"
DIFF = "<!-- diff: step01_kloop step02_pipeline -->"
LOOP = "<!-- loop: step04_swizzle -->"
INSTRUCTIONS = "<!-- instructions: step04_swizzle -->"
RESOURCES = "<!-- resources: step04 step05:wide-stores step07:pair step07:cta-group=1,tile-n=224 step07:tile-n=256,stores=direct -->"
STUDY = "<!-- study: 128x256x64 -->"
LAYOUT = "<!-- layout: 128B, 128x64, 3 lines -->"
TIMELINE = "<!-- timeline: step03_warpspec, 128x256x64, random:2, stages-2 -->"
MUSEUM = "<!-- museum: proxies -->"
COUNTERS = "<!-- counters: step01_kloop step02_pipeline, 128x256x64 -->"


LONGEST = ROOT / "docs" / "step07_persistent.md"  # as much to run as half of the others: test_full_pages.py


class Pages(unittest.TestCase):
    def test_all_that_is_quoted(self):
        pages = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").glob("*.md")) if page != LONGEST)]
        done = ladder("pages", "--check", *map(str, pages))  # without a disassembler it says so, and looks at the rest
        self.assertEqual(done.returncode, 0, done.stderr)


def anchors(page):
    """As GitHub makes them of a page's headings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


class Links(unittest.TestCase):
    def test_they_lead_somewhere(self):
        for page in [ROOT / "README.md", *sorted((ROOT / "tests").glob("*/README.md")), *sorted((ROOT / "docs").glob("*.md"))]:
            for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
                if "://" in link:
                    continue
                path, _, anchor = link.partition("#")
                target = page.parent / path if path else page
                self.assertTrue(target.exists(), f"{page.name}: {link}")
                if anchor:
                    self.assertIn(anchor, anchors(target), f"{page.name}: {link}")

    def test_the_reading_order_has_every_page(self):
        listed = set(re.findall(r"\]\((\w+\.md)\)", (ROOT / "docs" / "README.md").read_text()))
        self.assertEqual(listed, {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"})

    def test_every_rung_has_its_page_and_its_line_in_the_readme(self):
        readme = (ROOT / "README.md").read_text()
        for main in ROOT.glob("step[0-9][0-9]_*/main.cpp"):
            rung = main.parent.name
            self.assertTrue((ROOT / "docs" / f"{rung}.md").exists(), rung)
            self.assertIn(f"({rung}/blackwell.cu)", readme)


class Blocks(Refusals):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ladder-pages-")
        self.addCleanup(folder.cleanup)
        self.page = Path(folder.name, "page.md")

    def renewed(self, comment, block):
        """The block that takes the place of a stale one. What surrounds it stays, and a second time nothing changes."""
        before, after = f"Before.\n{comment}\n", "\nAfter.\n```\n<!-- no block -->\n```\n"
        stale = f"{before}{block}{after}"
        self.page.write_text(stale)
        done = ladder("pages", "--check", self.page)
        self.assertEqual((done.returncode, done.stderr), (1, "page.md is out of date: ./ladder pages\n"))
        self.assertEqual(self.page.read_text(), stale)
        done = ladder("pages", self.page)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "page.md renewed\n", ""))
        text = self.page.read_text()
        self.assertTrue(text.startswith(before) and text.endswith(after), text)
        self.assertEqual(ladder("pages", "--check", self.page).returncode, 0)
        return text[len(before):-len(after)].split("\n")

    def test_a_report(self):
        lines = self.renewed(REPORT, "```\nold\n```\n")
        self.assertEqual((lines[0], lines[4:]), ("```", ["```", ""]))
        self.assertEqual(lines[1], "========= Emulated B200: step01_kloop stopped")

    def test_a_report_of_a_wrong_result(self):
        lines = self.renewed("<!-- report: step05_epilogue, chunks not permuted, earliest -->", "```\nold\n```\n")
        self.assertRegex(lines[1], "^  check     MISMATCH: 28672 of 32768 outputs")
        self.assertRegex(lines[-3], r"^            D\[\d+\]\[\d+\] is .* should be ")

    def test_cells_of_what_is_found(self):
        rows = [("no wait for tile_empty", "`overwrite-too-early`: TMA load at 86, 87 before tcgen05.mma at 91 is done"),
                ("16 bytes too many expected", "`hang` at 88"), ("A loaded one K tile late", "nothing"),
                ("twice A's bytes expected", "`barrier-bytes` at 87 (`random:1`); `read-too-early`: tcgen05.mma at 91 before TMA load at "
                 "86, 87 is done (`random:1`); `hang` at 88 (`earliest`, `latest`)")]
        page = ["| edit | `./ladder check` |", "| --- | --- |",
                *(f"| {name} | <!-- check: step01_kloop, {name} --> old words |" for name, _ in rows)]
        self.page.write_text("\n".join(page) + "\n")
        done = ladder("pages", "--check", self.page)
        self.assertEqual((done.returncode, done.stderr), (1, "page.md is out of date: ./ladder pages\n"))
        self.assertEqual(ladder("pages", self.page).returncode, 0)
        # As they are in blackwell.cu.
        lines = (ROOT / "step01_kloop" / "blackwell.cu").read_text().split("\n")
        for number, words in ((86, "a_map"), (87, "b_map"), (88, "tile_full"), (91, "tcgen05_mma_f16")):
            self.assertIn(words, lines[number - 1])
        self.assertEqual(self.page.read_text().split("\n")[2:-1],
                         [f"| {name} | <!-- check: step01_kloop, {name} --> {found} |" for name, found in rows])
        self.assertEqual(ladder("pages", "--check", self.page).returncode, 0)
        self.page.write_text("\n".join(page[:3]).replace("tile_empty", "tile_huge") + "\n")
        self.assert_refused(ladder("pages", self.page), "no mutant 'no wait for tile_huge' of step01_kloop")

    def test_a_diff(self):
        lines = self.renewed(DIFF, "```diff\n```\n")
        self.assertEqual((lines[0], lines[-2:]), ("```diff", ["```", ""]))
        self.assertEqual(lines[1:3], ["--- step01_kloop/blackwell.cu", "+++ step02_pipeline/blackwell.cu"])
        self.assertIn("+constexpr int kMaxStages = 8;      // buffers of the ring", lines)
        self.assertIn("-  __shared__ uint64_t tile_full;", lines)
        # The kernel's head has another name and its parameters another indentation: no change.
        self.assertIn("     step02_pipeline(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap "
                      "b_map, void* d,", lines)

    def test_a_diff_of_a_rung_with_itself(self):
        self.assertEqual(self.renewed("<!-- diff: step01_kloop step01_kloop -->", "```diff\nold\n```\n"),
                         ["```diff", "--- step01_kloop/blackwell.cu", "+++ step01_kloop/blackwell.cu", "```", ""])

    def test_diffs_along_a_rung_of_several_steps(self):
        lines = self.renewed("<!-- diff: step06 step07:pair -->", "```diff\n```\n")
        self.assertEqual(lines[1:3], ["--- step06_multicast/blackwell.cu", "+++ step07_persistent/pair.cu"])
        self.assertIn("+    tcgen05_dealloc<2>(accumulator, kTmemColumns);", lines)
        lines = self.renewed("<!-- diff: step07:pair step07:persistent -->", "```diff\n```\n")
        self.assertEqual(lines[1:3], ["--- step07_persistent/pair.cu", "+++ step07_persistent/persistent.cu"])
        # Within a loop more, the same line of the kernel; under another name, the same kernel.
        moved = "mbarrier_wait_parity(shared_address(tile_full[stage]), parity);"
        for file, indent in (("pair", 6), ("persistent", 8)):
            self.assertIn(f"\n{' ' * indent}{moved}\n", (ROOT / "step07_persistent" / f"{file}.cu").read_text())
        self.assertFalse([line for line in lines if line[:1] in "+-" and (moved in line or line.endswith("_grid<kIn, kOut>,"))])
        lines = self.renewed("<!-- diff: step07:persistent step07 -->", "```diff\n```\n")
        self.assertEqual(lines[1:3], ["--- step07_persistent/persistent.cu", "+++ step07_persistent/blackwell.cu"])

    def test_counters(self):
        lines = self.renewed(COUNTERS, "| old |\n| --- |\n")
        self.assertEqual(lines[0], "| 128x256x64, schedule random:1 | step01_kloop | step02_pipeline |")
        self.assertIn("| MMAs | 4 | 4 |", lines)
        self.assertIn("| rows of their boxes | 3,072 | 3,072 |", lines)
        self.assertFalse([line for line in lines if line.startswith("| TMA stores")])  # none here

    def test_counters_of_variants(self):
        lines = self.renewed("<!-- counters: step04 step06:1x2 step06_multicast:2x2-alone, 256x512x64 -->", "| old |\n| --- |\n")
        self.assertEqual(lines[0], "| 256x512x64, schedule random:1 | step04_swizzle | step06_multicast 1x2 | "
                                   "step06_multicast 2x2-alone |")
        self.assertIn("| bytes read from global memory | 196,608 | 163,840 | 196,608 |", lines)  # A once for two CTAs
        self.assertIn("| TMA stores | 0 | 128 | 128 |", lines)

    def test_counters_of_settings(self):
        lines = self.renewed("<!-- counters: step07:cta-group=1,tile-n=256 step07:tile-n=256, 256x256x64 -->", "| old |\n| --- |\n")
        self.assertEqual(lines[0], "| 256x256x64, schedule random:1 | step07_persistent cta-group=1,tile-n=256 | step07_persistent tile-n=256 |")
        self.assertIn("| bytes read from global memory | 98,304 | 65,536 |", lines)  # B once for each CTA, or for both

    def test_a_study(self):
        lines = self.renewed(STUDY, "| old |\n")
        self.assertEqual(len(lines), 2 + 24 + 1)
        self.assertIn("| rows | 64 | 4 | 128 | 2 | 384 | 49,152 | load |", lines)
        self.assertIn("| 128B | 64 | 4 | 128 | 2 | 384 | 49,152 | full, load, mma, epilogue |", lines)

    def test_a_layout(self):
        lines = self.renewed(LAYOUT, "```\nold\n```\n")
        self.assertEqual((lines[0], lines[5:]), ("```", ["```", ""]))
        self.assertEqual([line.split() for line in lines[1:5]], [
            ["banks", "0-3", "4-7", "8-11", "12-15", "16-19", "20-23", "24-27", "28-31"],
            ["+0", "0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7"],
            ["+128", "1.1", "1.0", "1.3", "1.2", "1.5", "1.4", "1.7", "1.6"],
            ["+256", "2.2", "2.3", "2.0", "2.1", "2.6", "2.7", "2.4", "2.5"]])

    def test_orders_of_summing(self):
        lines = self.renewed("<!-- orders: bf16, 32 -->", "| old |\n| --- |\n")
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")]
        self.assertEqual(rows[0][0], "32 products, bf16")
        same = {row[0]: row[1] for row in rows[2:]}
        self.assertEqual(same["the same, each block's 16 products backwards"], "100.0 %")
        self.assertNotEqual(same["one fp32 fused multiply-add after the other"], "100.0 %")
        self.assertEqual({row[5] for row in rows[2:]}, {"100.0 %"})  # integers: every way is exact
        self.page.write_text("<!-- orders: f32, 32 -->\n| old |\n| --- |\n")
        self.assert_refused_in_one_line(ladder("pages", self.page), "page.md", "expected f16 or bf16")

    def test_exhibits(self):
        lines = self.renewed(MUSEUM, "### Old\n\n```\nreport\n```\n<!-- end -->\n")
        self.assertEqual((lines[0], lines[-3:]), ("", ["", "<!-- end -->", ""]))
        begin = lines.index("### hopper_store_without_proxy_fence")
        self.assertEqual(lines[begin + 2], "**A tile written by threads is handed to TMA without a fence between the proxies.**")
        self.assertIn("+ fence_proxy_async_shared_cta();", lines[begin:])
        self.assertIn("What `./ladder check` says of the broken twin, under `earliest`:", lines[begin:])
        # Their table runs every exhibit, which test_all_that_is_quoted does for the page; here, what it has of one.
        table = (ROOT / "docs" / "bug_museum.md").read_text().partition("<!-- museum: table -->\n")[2].splitlines()
        self.assertEqual(table[:2], ["| exhibit | what is wrong | `./ladder check` says | right all the same, on a real chip |", "| --- | --- | --- | --- |"])
        self.assertIn("error: `proxy-fence`", next(line for line in table if line.startswith("| [hopper_store_without_proxy_fence]")))

    def test_exhibits_without_an_end(self):
        self.page.write_text(f"{MUSEUM}\nText.\n{DIFF}\n<!-- end -->\n")
        self.assert_refused(ladder("pages", self.page), MUSEUM, "no <!-- end --> follows")

    def test_a_layout_without_swizzle(self):
        lines = self.renewed("<!-- layout: none, 8x16, 2 lines -->", "```\n```\n")
        self.assertEqual([line.split() for line in lines[2:4]], [
            ["+0", "0.0", "1.0", "2.0", "3.0", "4.0", "5.0", "6.0", "7.0"],
            ["+128", "0.1", "1.1", "2.1", "3.1", "4.1", "5.1", "6.1", "7.1"]])

    def test_a_timeline(self):
        picture = self.page.parent / "pictures" / "step03_warpspec_stages-2.svg"
        self.page.write_text(f"{TIMELINE}\n![old](old.svg)\nAfter.\n")
        done = ladder("pages", "--check", self.page)
        self.assertEqual((done.returncode, done.stderr), (1, "page.md is out of date: ./ladder pages\n"
                                                             "pictures/step03_warpspec_stages-2.svg is out of date: ./ladder pages\n"))
        self.assertFalse(picture.exists())
        self.assertEqual(ladder("pages", self.page).returncode, 0)
        lines = self.page.read_text().split("\n")
        self.assertEqual((lines[0], lines[2:]), (TIMELINE, ["After.", ""]))
        self.assertRegex(lines[1], r"^!\[Timeline of step03_warpspec, 128x256x64, schedule random:2; virtual time .*no chip's\)\]"
                                   r"\(pictures/step03_warpspec_stages-2.svg\)$")
        self.assertIn("through 2 stages", picture.read_text())
        self.assertEqual(ladder("pages", "--check", self.page).returncode, 0)
        # A picture of other times.
        picture.write_text(picture.read_text().replace("2 stages", "3 stages"))
        done = ladder("pages", "--check", self.page)
        self.assertEqual((done.returncode, done.stderr),
                         (1, "pictures/step03_warpspec_stages-2.svg is out of date: ./ladder pages\n"))

    def test_a_layout_from_a_line(self):
        lines = self.renewed("<!-- layout: 128B, 128x64, 2 lines from 126 -->", "```\n```\n")
        self.assertEqual([line.split()[:3] for line in lines[2:5]],
                         [["+16128", "126.6", "126.7"], ["+16256", "127.7", "127.6"], ["```"]])

    def test_what_is_refused(self):
        blocks = itertools.cycle(["```\nold\n```\n", "| old |\n", "![old](old.svg)\n"])
        for comment, part in (
                (REPORT.replace("never flipped", "often flipped"), "no mutant 'parity often flipped' of step01_kloop"),
                (REPORT.replace("latest", "later"), "expected a rung, a mutant's name, a schedule"),
                (DIFF.replace("step02_pipeline", "step02_pipe"), "step02_pipe: no such rung; there are step00_single_mma, "),
                (DIFF.replace("step02_pipeline ", ""), "expected two rungs"),
                (DIFF.replace("step02_pipeline", "step07:trio"), "step07:trio: no such step; step07_persistent has pair, persistent, blackwell."),
                (DIFF.replace("step02_pipeline", "step02:pair"), "step02:pair: no such step; step02_pipeline has blackwell."),
                (RESOURCES.replace("step04", "step99"), "step99: no such rung"),
                ("<!-- resources:  -->", "expected rungs, each perhaps with a variant"),
                (COUNTERS.replace("step01_kloop", "step99"), "step99: no such rung"),
                (COUNTERS.replace("x64", ""), "expected two rungs or more and a shape"),
                (COUNTERS.replace("step01_kloop ", ""), "expected two rungs or more and a shape"),
                (COUNTERS.replace("pipeline", "pipeline:stages-9"), "step02_pipeline:stages-9 ended with exit status 2"),
                (REPORT.replace("parity never flipped", "unedited"), "nothing is wrong"),
                (LOOP.replace("swizzle", "swirl"), "step04_swirl: no such rung"),
                (STUDY.replace("x64", ""), "expected a shape"), (STUDY.replace("x64", "x63"), "63"),
                (COUNTERS.replace("256", "100"), "step01_kloop ended with exit status 2"),
                (TIMELINE.replace("random:2", "soon"), "expected a rung, MxNxK, a schedule and perhaps a variant"),
                (TIMELINE.replace("stages-2", "stages-9"), "step03_warpspec ended with exit status 2"),
                (MUSEUM.replace("proxies", "dinosaurs"), "expected table or a theme: waits and phases, "),
                (LAYOUT.replace(", 3 lines", ""), "expected a swizzle, ROWSxK and `N lines`"),
                (LAYOUT.replace("128B", "256B"), "expected a swizzle (none, 32B, 64B or 128B)"),
                (LAYOUT.replace("x64", "x48"), "a tile of 128 rows x 48 of K: expected multiples of 8 and 64"),
                (LAYOUT.replace("3 lines", "129 lines"), "129 lines: expected 1 to 128, which is all of the tile"),
                (LAYOUT.replace("3 lines", "3 lines from 126"), "3 lines: expected 1 to 2, which is all that is left")):
            page = f"{comment}\n{next(blocks)}"
            self.page.write_text(page)
            self.assert_refused(ladder("pages", self.page), "page.md: ", part)
            self.assertEqual(self.page.read_text(), page)

    def test_a_comment_without_its_block(self):
        self.page.write_text(f"{DIFF}\nText.\n```\nold\n```\n")
        self.assert_refused(ladder("pages", self.page), DIFF, "no fenced block, no table, no image and no <!-- end --> follows")

    def test_a_page_that_is_not_there(self):
        self.assert_refused_in_one_line(ladder("pages", self.page), "page.md: no such file")


class MachineCode(unittest.TestCase):
    """Blocks that need the disassembler."""

    def setUp(self):
        self.machine_code = pages.MachineCode()

    def kinds(self):
        return {"loop": self.machine_code.loop, "instructions": self.machine_code.instructions, "resources": self.machine_code.resources}

    def possible(self):
        why_not = self.machine_code.obstacle("step04_swizzle")
        if why_not:
            self.skipTest(why_not)

    def test_a_listing_and_its_words(self):
        self.possible()
        lines = pages.renewed(f"{LOOP}\n```\nold\n```\n", self.kinds()).split("\n")
        self.assertEqual((lines[1], lines[-2:]), ("```", ["```", ""]))
        code = [line[4:].split() for line in lines[2:-2]]
        opcodes = [words[words[0].startswith("@")] for words in code]
        self.assertEqual(opcodes[:5], ["UTCHMMA"] * 4 + ["UTCBAR"])
        table = pages.renewed(f"{INSTRUCTIONS}\n| old |\n", self.kinds()).split("\n")[1:-1]
        self.assertEqual(table[2].split(" | ")[:2], ["| `UTCHMMA`", "4"])
        self.assertEqual(sum(int(row.split(" | ")[1]) for row in table[2:]), len(code))
        for opcode in opcodes:
            self.assertTrue([row for row in table if opcode.startswith(re.match(r"\| `(.*?)`|", row)[1] or "-")], opcode)

    def test_a_listing_of_one_of_several_kernels(self):
        self.possible()
        texts = [pages.renewed(f"<!-- {kind}: step07_persistent{part} -->\n| old |\n", self.kinds())
                 for part in ("", ", step07_pair", ", alone, 128") for kind in ("loop", "instructions")]
        self.assertEqual([re.findall(r"UTC\w+[.\w]*", text)[:5] for text in texts[::2]],
                         [["UTCHMMA.2CTA"] * 4 + ["UTCBAR.2CTA.MULTICAST"]] * 2 + [["UTCHMMA"] * 4 + ["UTCBAR.MULTICAST"]])
        self.assertNotEqual(texts[0].split("\n")[1:], texts[2].split("\n")[1:])
        self.assertEqual([re.findall(r"^\| `(UTC\S+)` \| 4 \|", text, re.MULTILINE) for text in texts[1::2]],
                         [["UTCHMMA.2CTA"]] * 2 + [["UTCHMMA"]])
        with self.assertRaisesRegex(Refusal, "'octet' is in the name of no kernel of step07_persistent"):
            pages.renewed("<!-- loop: step07_persistent, octet -->\n| old |\n", self.kinds())

    def test_what_rungs_need(self):
        self.possible()
        lines = pages.renewed(f"{RESOURCES}\n| old |\n", self.kinds()).split("\n")
        recorded = json.loads(sass.RECORD.read_text())["kernels"]
        self.assertEqual(lines[1], "| kernel | registers, 16-bit D | registers, f32 D | static shared bytes | dynamic shared bytes | "
                                   "bytes a stage | stages | columns of tensor memory | instructions per K tile | MMAs per K tile |")
        for line, label, kernel, dynamic, stage, stages, columns in zip(
                lines[3:], ("step04_swizzle", "step05_epilogue wide-stores", "step07_persistent pair", "step07_persistent cta-group=1,tile-n=224",
                            "step07_persistent tile-n=256,stores=direct"),
                ("step04_swizzle<", "step05_epilogue<", "step07_pair<", "step07_persistent<alone, 224, ", "step07_persistent<pair, 256, "),
                ("196,608", "196,608", "196,608", "212,992", "229,376"),
                ("49,152", "49,152", "32,768", "45,056", "32,768"), (4, 4, 6, 4, 7), (256, 256, 256, 512, 512)):
            f16, f32 = recorded[f"{kernel}f16, f16>"], recorded[f"{kernel}f16, f32>"]
            self.assertEqual(line, f"| {label} | {f16['registers']} | {f32['registers']} | {f16['static_shared_bytes']:,} | {dynamic} | "
                                   f"{stage} | {stages} | {columns} | {f16['loop_instructions']} | 4 |")
        self.assertEqual(lines[8:], [""])
        for rung, part in (("step00", "step00_single_mma<f16, f16> has no loop with an MMA in it"),
                           ("step02:stages-9", "step02_pipeline stages-9: ended with exit status 2")):
            with self.assertRaisesRegex(Refusal, part):
                pages.renewed(f"<!-- resources: {rung} -->\n| old |\n", self.kinds())

    def test_without_a_disassembler(self):
        self.machine_code.why_not = "there is none."
        text = f"{LOOP}\n```\nold\n```\n{INSTRUCTIONS}\n| old |\n{RESOURCES}\n| old |\n"
        self.assertEqual(pages.renewed(text, self.kinds()), text)

    def test_another_compiler(self):
        compiler = sass.compiler
        self.addCleanup(setattr, sass, "compiler", compiler)
        sass.compiler = lambda executable: "13.9.1"
        if "disassembler" not in (why_not := self.machine_code.obstacle("step04_swizzle")):
            self.assertRegex(why_not, r"they are by the compiler 13\.\d.*, and the one here is 13\.9\.1\.")

    def test_the_longest_name_explains(self):
        found = instructions.explained([Instruction(16 * i, "", text) for i, text in enumerate(
            ("UTCBAR.MULTICAST [UR4], URZ, UR5", "IMAD.MOV.U32 R1, RZ, RZ, R2", "IMAD R1, R2, R3, R4", "IMAD.MOV.U32 R5, RZ, RZ, R6"))])
        self.assertEqual([(name, count) for name, count, _ in found], [("UTCBAR.MULTICAST", 1), ("IMAD.MOV", 2), ("IMAD", 1)])

    def test_no_words(self):
        with self.assertRaisesRegex(Refusal, "UTCQMMA: tools/instructions.py has no words for it"):
            instructions.explained([Instruction(0, "", "UTCQMMA gdesc[UR4]")])


if __name__ == "__main__":
    unittest.main()
