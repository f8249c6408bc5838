"""step04's study: every configuration exact under every schedule, what each moves, what is refused, and a study that goes
wrong, which its checks must notice."""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools import build  # noqa: E402

STUDY = build.FOLDER / "bin" / "swizzle_study"
RING_BYTES = 192 * 1024
PARTS = ["full", "load", "mma", "epilogue"]
# Arrangement -> width of a row of shared memory for a K tile. What no MMA can read is only loaded.
ARRANGEMENTS = {"columns": {16: 16, 32: 16, 64: 16}, "boxes": {16: 16, 32: 16, 64: 16}, "rows": {16: 32, 32: 64, 64: 128},
                "32B": {16: 32, 32: 32, 64: 32}, "64B": {32: 64, 64: 64}, "128B": {64: 128}}


def run(*arguments, program=STUDY, schedule="latest", strict=True, on="b200"):
    environment = {**os.environ, "LADDER_SCHEDULE": schedule, **({"LADDER_STRICT": "1"} if strict else {})}
    where = [] if "--on" in arguments else ["--on", on]
    return subprocess.run([str(program), *where, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env=environment, timeout=300)


def stage_bytes(tile_k):
    return (128 + 256) * tile_k * 2


def key(record):
    return record["arrangement"], record["tile_k"], record["stages"], record["part"]


class OnEitherChip:
    CHIP = None

    def records(self, shape, *arguments, schedule="latest"):
        done = run("--shape", shape, "--json", *arguments, schedule=schedule, on=self.CHIP)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout[-2000:] + done.stderr)
        records = json.loads(done.stdout)
        self.assertTrue(all(record["good"] for record in records))
        return {key(record): record for record in records}

    def test_exact(self):
        """Ragged in every direction; K longer than any ring, then shorter than a tile of it."""
        wanted = {(name, tile_k, stages, part)
                  for name, rows in ARRANGEMENTS.items() for tile_k in rows for stages in {4, RING_BYTES // stage_bytes(tile_k)}
                  for part in (PARTS if name != "rows" else ["load"])}
        self.assertEqual(len(wanted), 81)
        for schedule in ["earliest", "latest", "random:1"]:
            self.assertEqual(set(self.records("200x264x520", "--out-dtype", "f32", schedule=schedule)), wanted)
        self.assertEqual(set(self.records("1x8x8", schedule="random:2")), wanted)
        self.records("129x512x136", "--seed", "7")

    def test_ring_sizes(self):
        for stages in (1, 2, 3, 5, 7, 8, 9, 15, 16):
            records = self.records("128x256x328", "--stages", str(stages), schedule=f"random:{stages}")
            self.assertEqual({tile_k for _, tile_k, _, _ in records},
                             {tile_k for tile_k in (16, 32, 64) if stages * stage_bytes(tile_k) <= RING_BYTES})

    def test_what_each_moves(self):
        m_tiles, n_tiles, k = 2, 2, 512
        records = self.records(f"{128 * m_tiles}x{256 * n_tiles}x{k}")
        for (name, tile_k, stages, part), record in records.items():
            with self.subTest(f"{name}, {tile_k} of K, {stages} stages, {part}"):
                width = ARRANGEMENTS[name][tile_k]
                ring = stages * stage_bytes(tile_k)
                self.assertEqual((record["row_bytes"], record["ring_bytes"]), (width, ring))
                k_tiles = {"epilogue": 0, "mma": min(stages, k // tile_k)}.get(part, k // tile_k) * m_tiles * n_tiles
                total = record["counters"]["total"]
                mmas = self.MMAS * k // 16  # of a CTA
                self.assertEqual(total["bytes_into_shared"], k_tiles * stage_bytes(tile_k))
                self.assertEqual(total["tma_box_rows"], k_tiles * stage_bytes(tile_k) // width)
                boxes = 1 if name in ("columns", "rows") else tile_k * 2 // width
                self.assertEqual(total["tma_loads"], k_tiles * 2 * boxes)
                self.assertEqual(total["mmas"], m_tiles * n_tiles * mmas if part in ("full", "mma") else 0)
                # Nothing but the ring holds the loads back.
                self.assertEqual(record["counters"]["most_bytes_in_flight"], 0 if part == "epilogue" else ring)

    def test_one_load_in_flight(self):
        """A schedule that finishes each load at once never has two of them."""
        record, = self.records("128x256x128", "--arrangement", "boxes", "--tile-k", "32", "--stages", "4", "--part", "load",
                               schedule="earliest").values()
        self.assertEqual(record["counters"]["most_bytes_in_flight"], 256 * 16)  # a column of B


class OnB200(OnEitherChip, unittest.TestCase):
    CHIP, MMAS = "b200", 1

    def test_table(self):
        done = run("--arrangement", "128B", "--part", "load", "--shape", "128x256x64")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        header, row = done.stdout.splitlines()[-2:]
        self.assertEqual(row.split(), ["128B", "64", "4", "load", "128", "196608", "2", "384", "49152", "0", row.split()[-3],
                                       "-", "exact"])
        for name in ("boxes", "box rows", "in flight"):
            self.assertIn(name, header)

    def test_refusals(self):
        for arguments, words in [
                ("--arrangement 64B --tile-k 16", "--tile-k 16 with 64B: 16 of K are 32 bytes, and a row of this swizzle is 64"),
                ("--arrangement 128B --tile-k 32", "take --tile-k 64, or a narrower swizzle"),
                ("--arrangement rows --tile-k 64 --part mma", "no MMA reads un-swizzled rows of 128 bytes"),
                ("--arrangement rows --part full", "take --part load"),
                ("--tile-k 48", "--tile-k 48: must be 16, 32 or 64"), ("--tile-k 0", "--tile-k 0: must be 16, 32 or 64"),
                ("--tile-k 64 --stages 5", "--stages 5 of 49152 bytes are 245760: the ring has 196608 bytes; take 4 stages or fewer"),
                ("--stages 17", "--stages 17: must be 1 to 16"), ("--stages 0", "--stages 0: must be 1 to 16"),
                ("--arrangement diagonal", "--arrangement diagonal: must be one of columns, boxes, rows, 32B, 64B, 128B"),
                ("--part half", "--part half: must be one of full, load, mma, epilogue"),
                ("--out-dtype bf16", "--out-dtype bf16: must be f16 or f32"), ("--shape 128x256x12", "12"),
                ("--bench", "an emulated chip has no times"), ("--tile-k many", "--help lists the options"),
                ("--on a100", "--on a100: must be auto, gpu, b200 or h200"),
                ("--roles together", "are for the kernel with wgmma; take --on h200"),
                ("--cluster 2x1", "are for the kernel with wgmma; take --on h200"),
                ("--roles together --part load --on h200", "no --part but full"),
                ("--roles together --cluster 2x1 --on h200", "no --cluster"),
                ("--cluster 2x1 --arrangement columns --on h200", "take boxes for the same bytes in the same places"),
                ("--cluster 2x2 --part mma --on h200", "and --part full or load"),
                ("--cluster 4x1 --on h200", "--cluster 4x1: must be one of 1x1, 2x1, 1x2, 2x2"),
                ("--roles alone", "--roles alone: must be one of apart, together")]:
            with self.subTest(arguments):
                done = run(*arguments.split())
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertIn(words, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_what_does_not_fit_is_left_out(self):
        self.assertEqual({(name, stages) for name, _, stages, _ in self.records("128x256x64", "--tile-k", "16", "--part", "mma")},
                         {(name, stages) for name in ("columns", "boxes", "32B") for stages in (4, 16)})


class OnH200(OnEitherChip, unittest.TestCase):
    """The same configurations for wgmma, and what the rungs before and behind step04 change."""

    CHIP, MMAS = "h200", 8  # each of eight warps multiplies its 16 rows

    def test_roles_together(self):
        for schedule in ["earliest", "latest", "random:1"]:
            records = self.records("200x264x520", "--roles", "together", "--out-dtype", "f32", schedule=schedule)
            self.assertEqual({(record["part"], record["roles"]) for record in records.values()}, {("full", "together")})
            self.assertEqual({name for name, *_ in records}, set(ARRANGEMENTS) - {"rows"})

    def test_clusters(self):
        """A CTA whose tile lies outside of D loads for the others all the same."""
        shape, cta_bytes = "300x520x328", {}
        for cluster, ctas in [("1x1", 9), ("2x1", 12), ("1x2", 12), ("2x2", 16)]:
            for schedule in ["earliest", "latest", "random:1"]:
                records = self.records(shape, "--cluster", cluster, "--tile-k", "64", schedule=schedule)
            for (name, _, _, part), record in records.items():
                if part in ("full", "load") and (name, part) != ("rows", "full"):
                    total = record["counters"]["total"]
                    cta_bytes[cluster, name, part] = total["bytes_from_global"] / ctas, total["bytes_into_shared"] / ctas
        # As much arrives; what is read for it is less by what is shared.
        for (cluster, name, part), (read, written) in cta_bytes.items():
            with self.subTest(cluster=cluster, name=name, part=part):
                self.assertEqual(written, 6 * stage_bytes(64))
                if cluster != "1x1" and name != "columns":
                    self.assertLess(read, cta_bytes["1x1", name, part][0])


# A load without its swizzle, the second K of an MMA from the wrong place, an epilogue that is a column off.
DOCTORED = {
    "study_walk.cpp": [("static_cast<CUtensorMapSwizzle>(configuration.swizzle())", "CU_TENSOR_MAP_SWIZZLE_NONE"),
                       ("a.plain_offset(0, mma * kMmaK)", "a.plain_offset(0, mma * kMmaK / 2)")],
    "study.cu": [("epilogue_pattern(row, first_column + column + i)", "epilogue_pattern(row, first_column + column + i + 1)"),
                 ("sum += words[i] * (2 * i + 1)", "sum += words[i ^ (walk.tile_k == 32)] * (2 * i + 1)")],
    "hopper_study.cu": [("first_column + 8 * (i / 4) + 2 * (lane % 4) + i % 2)", "first_column + 8 * (i / 4) + 2 * (lane % 4))"),
                        ("sum += words[i] * (2 * i + 1)", "sum += words[i ^ (walk.tile_k == 32)] * (2 * i + 1)")],
}


class Doctored(unittest.TestCase):
    """The study with mistakes that each spoil some of what it does."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="ladder-study-")
        cls.addClassCleanup(cls.folder.cleanup)
        changes = {}
        for name, replaced in DOCTORED.items():
            text = (build.ROOT / "step04_swizzle" / name).read_text()
            for old, new in replaced:
                assert text.count(old) == 1, old
                text = text.replace(old, new)
            changes[f"step04_swizzle/{name}"] = text, []
        cls.program = build.rebuilt("swizzle_study", changes, Path(cls.folder.name))

    def test_wrong(self):
        for chip, (wrong, words) in itertools.product(["b200", "h200"], [(("128B", 64, "load"), "CTA 0 sums up 0x"), (("32B", 16, "full"), "outputs compared differ"),
                             (("columns", 64, "mma"), "outputs compared differ"), (("columns", 16, "epilogue"), "] has bits 0x"),
                             (("rows", 32, "load"), "CTA 0 sums up 0x")]):
            with self.subTest(chip=chip, wrong=wrong):
                done = self.run_doctored(chip, *wrong)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertIn(words, done.stdout)
                self.assertNotIn("exact", done.stdout)

    def test_still_right(self):
        for chip, right in itertools.product(["b200", "h200"], [("columns", 16, "full"), ("columns", 16, "mma"),
                                                                ("columns", 64, "load"), ("rows", 64, "load")]):
            with self.subTest(chip=chip, right=right):
                done = self.run_doctored(chip, *right)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def run_doctored(self, chip, arrangement, tile_k, part):
        return run("--arrangement", arrangement, "--tile-k", str(tile_k), "--part", part, "--stages", "4",
                   "--shape", "130x264x256", program=self.program, strict=False, on=chip)


if __name__ == "__main__":
    if not STUDY.exists():
        sys.exit(77)
    unittest.main()
