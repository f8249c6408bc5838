"""Pictures of what was measured: the ladder as bars, the roofline, time against M."""

import math
import re
from dataclasses import dataclass

from tools import build, figures
from tools.canvas import FAINT, INK, WIDTH, Canvas, short
from tools.terminal import Refusal

RUNG, CUBLAS, PALE, GRID = "#1c4f8c", "#b3541e", "#c5d6ea", "#e2e2dc"  # PALE: rungs that a page is not about
PALE_CUBLAS = "#ecd5c7"
BOLD, END, MIDDLE = ' font-weight="600"', ' text-anchor="end"', ' text-anchor="middle"'
DASHED = ' stroke-dasharray="5 4"'
REFERENCE = "square-4096"
BEST = "step07:best"
LONGEST_NAME = 25  # letters of a rung and its variant, where they stand beside a bar
LEAST_NAME = 6     # of those of a rung, where a variant needs the others
ELLIPSIS = "…"


@dataclass(frozen=True)
class Chip:
    bytes_per_s: float        # of device memory
    memory_source: str
    flop_per_cycle: int       # of an SM's tensor cores: 16-bit inputs, fp32 accumulation, dense
    sms: int
    top_mhz: int


# H200. Memory: 4.8 TB/s, NVIDIA's data sheet. Tensor cores: the data sheet's 1,979 TFLOP/s count zeros that are skipped ("with
# sparsity"), so 989 dense. That is 132 SMs x 4,096 FLOP a cycle (4 tensor cores x 512 multiply-adds x 2; an SM of A100 has half
# of that, NVIDIA's H100 white paper) x 1,830 MHz, the boost clock that NVIDIA reckons with: 132 * 4096 * 1.83e9 = 989.4e12.
# The clock's top is above that, 1,980 MHz (nvidia-smi -q -d CLOCK): 132 * 4096 * 1.98e9 = 1070.5e12.
CHIPS = {"NVIDIA H200": Chip(bytes_per_s=4.8e12, memory_source="published, NVIDIA's data sheet", flop_per_cycle=4096, sms=132, top_mhz=1980)}


def chip_of(record):
    """The chip that a record is of; None where its ceilings are not known here."""
    return CHIPS.get(record.get("gpu"))


def flop(measured):
    m, n, k = figures.sizes_of(measured)
    return 2 * m * n * k


def matrices_bytes(measured):
    """A, B and D, each once; 16-bit elements."""
    m, n, k = figures.sizes_of(measured)
    return 2 * (m * k + n * k + m * n)


def tflops(measured, row):
    return flop(measured) / row["median_us"] / 1e6


def shortened(text, letters):
    """With its middle left out, where it has more letters than there is room for."""
    begin = letters // 2
    return text if len(text) <= letters else text[:begin] + ELLIPSIS + text[len(text) - (letters - begin - 1):]


def side_words(name, variant):
    """A side where it does not fit: its variant whole as long as that leaves something of the name."""
    if not variant:
        return shortened(name, LONGEST_NAME)
    variant = shortened(variant, LONGEST_NAME - 1 - min(len(name), LEAST_NAME))
    return f"{shortened(name, LONGEST_NAME - 1 - len(variant))}:{variant}"


def in_column(value, digits):
    """A number in no more letters than a column has."""
    return f"{value:,.{digits}f}" if value < 1e5 else f"{value:.2e}"


def time_words(us):
    """us, or s where that would take too many letters."""
    if us < 1e6:
        return f"{us:,.1f}"
    return f"{us / 1e6:,.{3 if us < 1e8 else 1}f} s" if us < 1e10 else f"{us / 1e6:.1e} s"


def time_tick(us):
    """The same for the round numbers beside an axis."""
    return f"{us:,}" if us < 1e6 else f"{us / 1e6:,g} s" if us < 1e10 else f"{us / 1e6:.0e} s"


def head(canvas, title, *lines):
    canvas.text(14, 26, title, 15, extra=BOLD)
    for number, line in enumerate(lines):
        canvas.text(14, 44 + 15 * number, line, 11, FAINT)


def missing(record, protocol, shape, file):
    return Refusal(f"{shape}: {file} has no figures of it; {figures.known(record, protocol)}.")


# ---- bars ---------------------------------------------------------------------------------------------------------------

def bars(record, shape, rung="", file="bench/h200.json"):
    """One bar for each side of a rung and one for cuBLAS: TFLOP/s, in bursts. Where a rung is named, the others are pale."""
    measured = figures.result(record, "burst", shape)
    if not measured:
        raise missing(record, "burst", shape, file)
    rows = [figures.side(measured, name) for name in figures.names([measured]) if name not in figures.CUBLAS]
    best = figures.better_cublas(measured)
    rungs = list(dict.fromkeys(figures.rung_of(row["side"]) for row in rows))
    if rung and rung not in rungs:
        raise Refusal(f"{rung}: {file} has no figure of it at {shape}; it has {', '.join(rungs)}.")
    left, top, each = 200, 86, 25
    columns = [(650, "TFLOP/s"), (712, "us"), (784, "of cuBLAS"), (882, "SM clock, MHz")]
    canvas = Canvas()
    m, n, k = figures.sizes_of(measured)
    head(canvas, f"The ladder on Hopper, {'' if measured['shape'][0].isdigit() else measured['shape'] + ', '}{m} x {n} x {k}",
         f"Measured: {figures.where(record, 'burst')}. cuBLAS is the better of its two times in the same run.")
    for x, words in columns:
        canvas.text(x, top - 10, words, 11, FAINT, END)
    scale = (columns[0][0] - 60 - left) / max(tflops(measured, row) for row in [*rows, *([best] if best else [])])
    y = top
    for row in [*rows, *([best] if best else [])]:
        cublas = row is best
        name, _, variant = (figures.CUBLAS_NAME, "", "") if cublas else row["side"].partition(":")
        shown = not rung or name == rung
        ink, weight = (INK, BOLD) if rung and shown else (INK if shown else FAINT, "")
        several = sum(figures.rung_of(each["side"]) == name for each in rows) > 1
        fits = len(name) + len(variant) <= LONGEST_NAME
        words = side_words(name, "") if fits or not several else side_words(*figures.short(row["side"]).partition(":")[::2])
        canvas.text(14, y + 13, words, 11.5, ink, weight, row["side"] if ELLIPSIS in words else "")
        if several and fits:
            canvas.text(left - 8, y + 13, variant, 10, FAINT, END)
        share = figures.of_cublas(measured, row)
        canvas.rect(left, y, tflops(measured, row) * scale, 17,
                    (CUBLAS if shown else PALE_CUBLAS) if cublas else (RUNG if shown else PALE), f"{row['side']}: {row['median_us']:,.1f} us")
        cells = (in_column(tflops(measured, row), 1), time_words(row["median_us"]), in_column(share, 3) if share else "",
                 in_column(row["sm_mhz"], 0) if row.get("sm_mhz") else "")
        for (x, _), text in zip(columns, cells):
            canvas.text(x, y + 13, text, 11.5, ink, END + weight)
        y += each
    return canvas.svg(y + 8, f"Speed of the rungs at {measured['shape']}")


# ---- axes ---------------------------------------------------------------------------------------------------------------

class Plot(Canvas):
    """Axes that map numbers to places. `across` and `up` are (least, most); `x_of` and `y_of` bend them, as log does."""

    def __init__(self, left, top, right, bottom, across, up, x_of=float, y_of=float):
        super().__init__()
        self.left, self.top, self.right, self.bottom = left, top, right, bottom
        self.across, self.up, self.x_of, self.y_of = across, up, x_of, y_of
        self.taken = []  # boxes that no label may cover: left, top, right, bottom

    def x(self, value):
        low, high = map(self.x_of, self.across)
        return self.left + (self.x_of(value) - low) / (high - low) * (self.right - self.left)

    def y(self, value):
        low, high = map(self.y_of, self.up)
        return self.bottom - (self.y_of(value) - low) / (high - low) * (self.bottom - self.top)

    def axes(self, x_ticks, y_ticks, x_words, y_words, y_tick="{:,}".format):
        for value in x_ticks:
            self.line(self.x(value), self.top, self.x(value), self.bottom, GRID)
            self.text(self.x(value), self.bottom + 15, f"{value:,}", 10, FAINT, MIDDLE)
        for value in y_ticks:
            self.line(self.left, self.y(value), self.right, self.y(value), GRID)
            self.text(self.left - 6, self.y(value) + 3.5, y_tick(value), 10, FAINT, END)
        self.text((self.left + self.right) / 2, self.bottom + 33, x_words, 11, FAINT, MIDDLE)
        self.text(self.left, self.top - 8, y_words, 11, FAINT)

    def dot(self, x, y, tip):
        self.circle(x, y, 4, RUNG, tip=tip)

    def ring(self, x, y, tip):
        self.circle(x, y, 6.5, "none", f' stroke="{CUBLAS}" stroke-width="2"', tip)

    def legend(self, x, y):
        """Names of the two marks."""
        self.ring(x, y - 4, "")
        self.text(x + 12, y, figures.CUBLAS_NAME, 11)
        self.dot(x + 76, y - 4, "")
        self.text(x + 86, y, BEST, 11)

    def free(self, box):
        left, top, right, bottom = box
        return (left >= self.left and right <= WIDTH - 8 and top >= self.top and bottom <= self.bottom
                and not any(left < b_right and right > b_left and top < b_bottom and bottom > b_top for b_left, b_top, b_right, b_bottom in self.taken))

    def label(self, x, y, lines, size=10):
        """Words at a point: beside it where there is room, else below it at the end of a line."""
        width, height = max(map(len, lines)) * size * .65, (size + 3) * len(lines)  # in a wide font
        places = [(x + 11, y - height / 2, False)]
        places += [(x + shift, y + down, True) for shift in (5, -width - 5) for down in range(14, int(self.bottom - y - height), 4)]
        for left, top, tied in places:
            box = left, top, left + width, top + height
            line = (x - 2, y + 8, x + 2, top + height) if tied else box
            if self.free(box) and self.free(line):
                break  # and where nothing is free, the last place
        self.taken += [box, line]
        if tied:
            self.line(x, y + 8, x, top + height, "#999", ' stroke-width=".8"')
        for number, words in enumerate(lines):
            self.text(left, top + (size + 3) * (number + 1) - 3.5, words, size)


def pairs(measured):
    """(result, cuBLAS' row or None, step07's or None) of those that have one."""
    found = [(each, figures.better_cublas(each), figures.side(each, BEST)) for each in measured]
    return [each for each in found if each[1] or each[2]]


def groups(points, near):
    """Points that lie on one another, together."""
    found = []
    for point in points:
        for group in found:
            if all(abs(a - b) < near for a, b in zip(point[:2], group[0][:2])):
                group.append(point)
                break
        else:
            found.append([point])
    return found


# ---- roofline -----------------------------------------------------------------------------------------------------------

def roofline(record, file="bench/h200.json"):
    """FLOP a byte against TFLOP/s: what memory and tensor cores allow, and what cuBLAS and step07 reach."""
    chip, measured = chip_of(record), pairs(figures.results(record, "burst"))
    if not chip:
        raise Refusal(f"{file} is of {record.get('gpu', 'a GPU without a name')}; ceilings are known here of {', '.join(CHIPS)} only "
                      "(CHIPS in tools/bench_picture.py).")
    if not measured:
        raise Refusal(f"{file} has nothing of protocol burst.")

    def ceiling(mhz):
        return chip.sms * chip.flop_per_cycle * mhz * 1e6 / 1e12

    intensity = {id(each): flop(each) / matrices_bytes(each) for each, _, _ in measured}
    speeds = [tflops(each, row) for each, *rows in measured for row in rows if row]
    least = min(*intensity.values(), 1)
    # To the right there is room for the last label: all others go below, each deeper than the one to its right.
    plot = Plot(52, 84, 884, 520, (least * .75, max(*intensity.values(), 2000) * 6),
                (min(*speeds, least * chip.bytes_per_s / 1e12) * .6, ceiling(chip.top_mhz) * 1.5), math.log, math.log)
    ridge = ceiling(chip.top_mhz) * 1e12 / chip.bytes_per_s
    head(plot, f"Roofline of an {record['gpu'].replace('NVIDIA ', '')}, and what is reached in bursts",
         f"Measured: {figures.where(record, 'burst')}. Intensity counts A, B and D once each.")
    plot.legend(700, 26)
    plot.axes([each for each in (4 ** power for power in range(10)) if plot.across[0] <= each <= plot.across[1]],
              [each for each in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if plot.up[0] <= each <= plot.up[1]],
              "FLOP a byte of device memory", "TFLOP/s")

    # The tensor cores at the clocks that were measured where they are what limits.
    clocks = [row["sm_mhz"] for each, *rows in measured for row in rows if row and row.get("sm_mhz") and intensity[id(each)] > ridge]
    if clocks:
        low, high = ceiling(min(clocks)), ceiling(max(clocks))
        begin = min(clocks) * ridge / chip.top_mhz
        plot.rect(plot.x(begin), plot.y(high), plot.right - plot.x(begin), max(plot.y(low) - plot.y(high), 1.5), "#dcd3ea",
                  f"{low:,.0f} to {high:,.0f} TFLOP/s")
    first = plot.across[0]
    plot.line(plot.x(first), plot.y(first * chip.bytes_per_s / 1e12), plot.x(ridge), plot.y(ceiling(chip.top_mhz)), INK, ' stroke-width="1.5"')
    plot.line(plot.x(ridge), plot.y(ceiling(chip.top_mhz)), plot.right, plot.y(ceiling(chip.top_mhz)), INK, ' stroke-width="1.5"')
    x = first * 1.5
    plot.text(plot.x(x), plot.y(x * chip.bytes_per_s / 1e12) - 12, f"memory: {chip.bytes_per_s / 1e12:g} TB/s ({chip.memory_source})", 10.5, INK,
              f' transform="rotate({short(slope(plot))} {short(plot.x(x))} {short(plot.y(x * chip.bytes_per_s / 1e12) - 12)})"')
    plot.text(plot.right, plot.y(ceiling(chip.top_mhz)) - 6,
              f"tensor cores: {chip.sms} SMs x {chip.flop_per_cycle:,} FLOP x {chip.top_mhz:,} MHz = {ceiling(chip.top_mhz):,.0f} TFLOP/s", 10.5, INK, END)
    if clocks:
        words = f"violet: the same at the clocks measured here, {min(clocks):,.0f} to {max(clocks):,.0f} MHz"
        plot.text(plot.right, plot.bottom - 10, words, 10.5, "#6a4f9a", END)
        plot.taken.append((plot.right - len(words) * 6, plot.bottom - 22, plot.right, plot.bottom))

    points = []
    for each, cublas, best in measured:
        x, words = plot.x(intensity[id(each)]), each["shape"]
        ys = [plot.y(tflops(each, row)) for row in (cublas, best) if row]
        for row, mark in ((cublas, plot.ring), (best, plot.dot)):
            if row:
                y = plot.y(tflops(each, row))
                mark(x, y, f"{words}, {row['side']}: {tflops(each, row):,.0f} TFLOP/s, {intensity[id(each)]:,.0f} FLOP a byte")
                plot.taken.append((x - 7, y - 7, x + 7, y + 7))
        points.append((x, max(ys), words))
    for group in sorted(groups(sorted(points), 9), key=lambda group: -group[0][0]):
        plot.label(sum(point[0] for point in group) / len(group), max(point[1] for point in group), [point[2] for point in group])
    return plot.svg(566, "Roofline")


def slope(plot):
    """Degrees that a line of constant bytes a second has in the picture."""
    return -math.degrees(math.atan2(plot.y(1) - plot.y(2), plot.x(2) - plot.x(1)))


# ---- time against M -----------------------------------------------------------------------------------------------------

def time_by_m(record, weights, file="bench/h200.json"):
    """Few rows of A on one weight matrix, NxK: us, and what it takes to read the weights once."""
    if not re.fullmatch(r"\d+x\d+", weights):
        raise Refusal(f"{weights}: expected NxK, as in 8192x8192.")
    n, k = map(int, weights.split("x"))
    measured = sorted(pairs(each for each in figures.results(record, "burst") if (each["n"], each["k"]) == (n, k) and each["m"] <= 256),
                      key=lambda each: each[0]["m"])
    if len(measured) < 2:
        raise Refusal(f"{weights}: {file} has fewer than two M up to 256 of it; {figures.known(record, 'burst')}.")
    chip = chip_of(record)
    floor = chip and 2 * n * k / chip.bytes_per_s * 1e6
    times = [row["median_us"] for _, *rows in measured for row in rows if row]
    most = max(times) * 1.12
    step = next(each for each in (lead * 10 ** power for power in range(400) for lead in (1, 2, 5)) if most <= 8 * each)
    rows = [each["m"] for each, _, _ in measured]
    plot = Plot(52, 84, 850, 400, (rows[0] * .8, rows[-1] * 1.25), (0, most), math.log2)
    head(plot, f"Few rows: M x {n} x {k}, time in bursts", f"Measured: {figures.where(record, 'burst')}.")
    plot.legend(700, 26)
    plot.axes(rows, range(0, int(most) + 1, step), "M, rows of A", "us", time_tick)
    if floor:
        plot.line(plot.left, plot.y(floor), plot.right, plot.y(floor), INK, DASHED)
        plot.text(plot.left + 8, plot.y(floor) + 15,
                  f"{floor:.1f} us: the weights alone, {2 * n * k / 1e6:,.1f} MB at {chip.bytes_per_s / 1e12:g} TB/s ({chip.memory_source})", 10.5)
    for which, colour in ((1, CUBLAS), (2, RUNG)):
        places = [(plot.x(each[0]["m"]), plot.y(each[which]["median_us"])) for each in measured if each[which]]
        for one, other in zip(places, places[1:]):
            plot.line(*one, *other, colour, ' stroke-width="1.5"')
    for each, cublas, best in measured:
        x, slower = plot.x(each["m"]), max((row for row in (cublas, best) if row), key=lambda row: row["median_us"])
        for row, mark, colour in ((cublas, plot.ring, CUBLAS), (best, plot.dot, RUNG)):
            if row:
                y = plot.y(row["median_us"])
                mark(x, y, f"M = {each['m']}, {row['side']}: {row['median_us']:,.1f} us")
                plot.text(x, y - 12 if row is slower else y + 20, time_words(row["median_us"]), 10.5, colour, MIDDLE)
    return plot.svg(446, f"Time against M, N x K = {weights}")


# ---- for a page ---------------------------------------------------------------------------------------------------------

def file_of(kind, *parts):
    return "pictures/" + "_".join([kind.replace("-", "_"), *filter(None, parts)]) + ".svg"


def picture(kind, asked):
    """(file, text, alternative text) of a page's picture. `bars`: a shape and perhaps a rung; `roofline`: a file of bench/;
    `time-by-m`: NxK."""
    try:
        if kind == "roofline":
            if not re.fullmatch(r"[\w-]+", asked):
                raise Refusal("expected the name of a file in bench/, as in h200.")
            file = f"bench/{asked}.json"
            record = figures.read(build.ROOT / file)
            return file_of(kind, asked), roofline(record, file), f"Roofline, {figures.where(record, 'burst')}: cuBLAS and {BEST}"
        record = figures.read(figures.FILE)
        if kind == "time-by-m":
            return file_of(kind, asked), time_by_m(record, asked), f"Time against M, weights {asked}, {figures.where(record, 'burst')}"
        shape, _, rung = asked.partition(", ")
        rung = build.named(rung) if rung else ""
        words = f"Speed of the rungs at {shape}, {figures.where(record, 'burst')}" + (f"; {rung} highlighted" if rung else "")
        return file_of(kind, shape if shape != REFERENCE else "", rung), bars(record, shape, rung), words
    except Refusal as refusal:
        raise Refusal(f"<!-- {kind}: {asked} -->: {refusal}") from None


def of_file(path):
    """File name -> picture, of all that can be drawn from a file; and sentences that say why others cannot."""
    record, drawn, why_not = figures.read(path), {}, []
    shapes = [each["shape"] for each in figures.results(record, "burst") if len(figures.names([each])) > 1]
    weights = dict.fromkeys(f"{each['n']}x{each['k']}" for each in figures.results(record, "burst") if each["m"] < 256)
    for file, draw in [*((file_of("bars", shape), lambda shape=shape: bars(record, shape, file=path)) for shape in shapes),
                       (file_of("roofline"), lambda: roofline(record, path)),
                       *((file_of("time-by-m", each), lambda each=each: time_by_m(record, each, path)) for each in weights)]:
        try:
            drawn[file.rpartition("/")[2]] = draw()
        except Refusal as refusal:
            why_not.append(str(refusal))
    return drawn, why_not
