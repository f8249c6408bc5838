"""Pictures and tables of what step07 plans for a shape: in which order tiles are computed, and how full the last wave is.

All of it is asked of the kernel's own functions, by way of build/bin/tile_plan.
"""

import json
import re
import subprocess
from itertools import groupby

from tools import build
from tools.canvas import FAINT, INK, PAPER, WIDTH, Canvas, short
from tools.terminal import Refusal

WAVES = ["#1c4f8c", "#6ea8e6", "#dbe7f5"]  # the first, the second, all others
IDLE = "#eeeeea"


def plan(shape, walk=0):
    sizes = re.fullmatch(r"(\d+)x(\d+)x(\d+)", shape)
    if not sizes:
        raise Refusal(f"{shape}: expected MxNxK.")
    done = subprocess.run([str(build.FOLDER / "bin" / "tile_plan"), *sizes.groups(), str(walk)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Refusal(f"{shape}, walk {walk}: {done.stderr.strip()}.")
    return json.loads(done.stdout)


class Sheet(Canvas):
    def grid(self, x, y, width, height, cell):
        lines = [f"M{short(x + i * cell)} {short(y)}v{short(height)}" for i in range(1, round(width / cell))]
        lines += [f"M{short(x)} {short(y + i * cell)}h{short(width)}" for i in range(1, round(height / cell))]
        self.parts.append(f'<path d="{"".join(lines)}" stroke="{PAPER}" stroke-width=".8"/>')


def walk_svg(shape, walks):
    """D in tiles, once for each walk, the tiles of the first two waves marked."""
    canvas, gap, top = Sheet(), 26, 84
    canvas.text(14, 26, f"The tiles of D that are computed at the same time: {shape}", 15, extra=' font-weight="600"')
    x = 14
    for fill, what in zip(WAVES, ("the first wave", "the second", "later ones")):
        canvas.rect(x, 36, 12, 12, fill)
        canvas.text(x + 17, 46, what, 11, FAINT)
        x += 40 + 6 * len(what)
    panel = (WIDTH - 2 * 14 - gap * (len(walks) - 1)) / len(walks)
    height = 0
    for number, walk in enumerate(walks):
        told = plan(shape, walk)
        left, cell = 14 + number * (panel + gap), panel / max(told["m_tiles"], told["n_tiles"])
        clusters = told["clusters"]
        canvas.text(left, 68, f"groups of {walk} tile row{'s' if walk > 1 else ''}", 12, extra=' font-weight="600"')
        canvas.text(left, 80, f"a wave of {clusters} pairs needs {told['rows_of_wave']:,} rows of A and B", 10, FAINT)
        waves = {(n, m): min(tile // clusters, 2) for tile, (m, n) in enumerate(told["order"])}
        for (n, wave), column in groupby(sorted(waves), lambda place: (place[0], waves[place])):
            rows = [m for _, m in column]  # of one wave, one below the other
            canvas.rect(left + n * cell, top + rows[0] * cell, cell, len(rows) * cell, WAVES[wave])
        across, down = told["n_tiles"] * cell, told["m_tiles"] * cell
        canvas.grid(left, top, across, down, cell)
        height = max(height, down)
    return canvas.svg(round(top + height + 14), f"Tile walks at {shape}")


def waves_svg(shapes):
    """For each shape and tile width a strip: time to the right, the chip's pairs from top to bottom."""
    canvas, left, strip, top = Canvas(), 150, 34, 62
    canvas.text(14, 26, "Waves: what the pairs of a B200 are busy with, by tile width", 15, extra=' font-weight="600"')
    canvas.text(14, 44, "Modelled: cycles for each K tile. From top to bottom the 74 pairs; pale: no tile is left for them.", 11, FAINT)
    y = top
    for shape in shapes:
        told = plan(shape)
        longest = max(width["waves"] * width["k_tile_cycles"] for width in told["widths"])
        scale = (WIDTH - left - 110) / longest
        canvas.text(14, y + 12, shape, 12, extra=' font-weight="600"')
        y += 20
        for width in told["widths"]:
            chosen = width["tile_n"] == told["tile_n"]
            canvas.text(left - 8, y + strip / 2 + 4, f"256 x {width['tile_n']}{', chosen' if chosen else ''}", 11, INK if chosen else FAINT,
                        ' text-anchor="end"' + (' font-weight="600"' if chosen else ""))
            each, left_over = width["k_tile_cycles"] * scale, width["tiles"]
            for wave in range(width["waves"]):
                busy = min(left_over, told["clusters"])
                left_over -= busy
                x, gap = left + wave * each, 1 if each > 4 else 0
                canvas.rect(x, y, each - gap, strip, IDLE)
                canvas.rect(x, y, each - gap, strip * busy / told["clusters"], WAVES[0] if chosen else WAVES[1], f"wave {wave}: {busy} tiles")
            total = width["waves"] * width["k_tile_cycles"]
            canvas.text(left + width["waves"] * each + 6, y + strip / 2 - 2, f"{total:,} cycles", 10, INK if chosen else FAINT)
            canvas.text(left + width["waves"] * each + 6, y + strip / 2 + 10, f"{width['tiles'] / told['clusters']:.2f} waves", 10, FAINT)
            y += strip + 6
        y += 12
    return canvas.svg(y, "Waves by tile width")


def picture(kind, asked):
    """(file, text, alternative text) of a page's picture: `walk`: shape and walks; `waves`: shapes."""
    if kind == "walk":
        words = re.fullmatch(r"(\S+),((?: \d+)+)", asked)
        if not words:
            raise Refusal(f"<!-- walk: {asked} -->: expected MxNxK and tile rows to a group, as in 8192x8192x8192, 1 8 32.")
        walks = [int(each) for each in words[2].split()]
        return "pictures/tile_walk.svg", walk_svg(words[1], walks), f"Which tiles of D are computed at the same time, {asked} tile rows to a group"
    return "pictures/waves.svg", waves_svg(asked.split()), f"Waves of tiles of three widths at {asked}; modelled"
