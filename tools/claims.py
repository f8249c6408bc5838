"""The origin's claims, one by one, beside what was measured on an H200: the table of docs/claims.md.

What is said of a claim is words; the figures are looked up. `agrees` is what the figures must satisfy for the words to be
true, so a file of other figures cannot keep an old verdict.
"""

from dataclasses import dataclass
from typing import Callable

from tools import figures, study_tables
from tools.bench_picture import CHIPS, flop, matrices_bytes
from tools.page_blocks import table
from tools.study_tables import COLUMNS, SWIZZLED, Configuration
from tools.terminal import Refusal

HOLDS, IN_PART, DOES_NOT, NOT_COMPARABLE = VERDICTS = ("holds", "holds in part", "does not hold", "not comparable")
SQUARE, PREFILL, MLP_UP, DECODE_MLP_UP = "square-4096", "prefill-attn-out", "prefill-mlp-up", "decode-mlp-up"
M_256 = "decode-attn-out"
NAMED = tuple(figures.origin()["shapes"])
FEW_ROWS = {m: f"{m}x8192x8192" for m in (1, 16, 64)}
LOOP, PIPELINE, ROLES, SWIZZLE = "step01:plain", "step02:stages-4", "step03:stages-4", "step04:plain"
EPILOGUE, CLUSTER, BEST = "step05:tma-store", "step06:2x2", "step07:best"
PLAIN_64, ROWS_64 = Configuration("columns", 64, 4), Configuration("rows", 64, 4)


class Data:
    """What was measured: the ladder, the study of step04 and that of the order."""

    def __init__(self, ladder=None, study=None, order=None):
        self.ladder = ladder or figures.read(figures.FILE)
        self.study = study or figures.read(study_tables.STUDY)
        self.order = order or figures.read(study_tables.ORDER)

    def row(self, side, shape, record=None, protocol="burst"):
        measured = figures.result(record or self.ladder, protocol, shape)
        row = measured and figures.side(measured, side)
        if not row:
            raise Refusal(f"{side} was not measured at {shape}, {protocol}: the claims need bench/h200.json, h200_study.json and "
                          "h200_order.json whole; docs/benchmarks.md says how they are made.")
        return row

    def us(self, side, shape, record=None, protocol="burst"):
        return self.row(side, shape, record, protocol)["median_us"]

    def gain(self, before, after, shape, record=None, protocol="burst"):
        """How many times as fast."""
        return self.us(before, shape, record, protocol) / self.us(after, shape, record, protocol)

    def of_cublas(self, side, shape, record=None, protocol="burst"):
        return self.gain(figures.CUBLAS_NAME, side, shape, record, protocol)

    def part(self, configuration, part, shape):
        return self.us(configuration.side(part=part), shape, self.study)

    # Of the roofline.
    def chip(self):
        return CHIPS[self.ladder["gpu"]]

    def intensity(self, shape):
        measured = figures.result(self.ladder, "burst", shape)
        return flop(measured) / matrices_bytes(measured)

    def balance(self, shape):
        """FLOP a byte at which memory and tensor cores take as long, at the clock that step07 ran at."""
        chip = self.chip()
        return chip.sms * chip.flop_per_cycle * self.row(BEST, shape)["sm_mhz"] * 1e6 / chip.bytes_per_s

    def of_roof(self, shape):
        """step07's speed as a share of what the lower of the two roofs allows."""
        measured = figures.result(self.ladder, "burst", shape)
        bound = min(self.intensity(shape), self.balance(shape)) * self.chip().bytes_per_s
        return flop(measured) / (self.us(BEST, shape) * 1e-6) / bound


def times(*gains):
    return " / ".join(f"{gain:.2f}" for gain in gains) + "x"


def spread(values, unit="x"):
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


def percent(share):
    return f"{100 * share:.1f} %"


@dataclass(frozen=True)
class Claim:
    number: int
    text: str
    origin: str                        # the author's figure, on a B200
    measured: Callable[[Data], str]
    verdict: str
    why: str
    agrees: Callable[[Data], bool]     # do the figures bear out `verdict` and `why`?


def pipeline_gains(data):
    return [data.gain(LOOP, PIPELINE, shape) for shape in (SQUARE, MLP_UP, DECODE_MLP_UP)]


def role_gains(data):
    return [data.gain(PIPELINE, ROLES, shape) for shape in NAMED]


def roles_with_swizzle(data):
    together, apart = SWIZZLED.side(roles="together"), SWIZZLED.side()
    return [data.gain(together, apart, each["shape"], data.order) for each in data.order["results"]]


def wider_k_tile(data):
    return [data.part(COLUMNS, "full", shape) / data.part(PLAIN_64, "full", shape) for shape in (SQUARE, PREFILL)]


def both(data):
    return [data.gain(ROLES, SWIZZLE, shape) for shape in (SQUARE, PREFILL, DECODE_MLP_UP)]


def load_gains(data, configuration=SWIZZLED):
    return [data.part(COLUMNS, "load", shape) / data.part(configuration, "load", shape) for shape in (SQUARE, PREFILL)]


def plain_mma_of_cublas(data, configuration):
    return data.us(figures.CUBLAS_NAME, SQUARE, data.study) / data.part(configuration, "mma", SQUARE)


def epilogue_share(data, shape):
    return data.part(SWIZZLED, "epilogue", shape) / data.part(SWIZZLED, "full", shape)


def cluster_gains(data, protocol="burst"):
    return [data.gain(EPILOGUE, CLUSTER, shape, protocol=protocol) for shape in (SQUARE, PREFILL, MLP_UP)]


def of_few_rows(data, side):
    """Times of cuBLAS'."""
    return [1 / data.of_cublas(side, shape) for shape in FEW_ROWS.values()]


CLAIMS = (
    Claim(1, "The first correct loop over K reaches about 11 % of cuBLAS at 4096^3", "11 %",
          lambda data: percent(data.of_cublas(LOOP, SQUARE)),
          IN_PART, "slow by far, but not by as much: the loop takes 1.2 times the origin's time, cuBLAS 1.9 times",
          lambda data: .125 < data.of_cublas(LOOP, SQUARE) < .25
          and 1.15 < data.us(LOOP, SQUARE) / figures.origin()["steps"][0]["times"][SQUARE]["us"] < 1.25
          and 1.85 < data.us(figures.CUBLAS_NAME, SQUARE) / figures.origin()["cublas_us"][SQUARE] < 1.95),
    Claim(2, "A pipeline of 4 stages gains 1.87x at 4096^3, 1.95x at prefill MLP up, 1.93x at decode MLP up", "1.87 / 1.95 / 1.93x",
          lambda data: times(*pipeline_gains(data)),
          IN_PART, "a gain everywhere, but less: what loads take alone is reached sooner",
          lambda data: all(1.4 < gain < 1.85 for gain in pipeline_gains(data))
          and data.part(COLUMNS, "load", SQUARE) > .85 * data.us(PIPELINE, SQUARE)),
    Claim(3, "Warp specialisation alone: within 2 %", "1.00x at 4096^3",
          lambda data: f"{spread(role_gains(data))} over {len(NAMED)} shapes",
          HOLDS, "loads are the limit. With the swizzle the same change gains 8 to 11 %",
          lambda data: all(abs(gain - 1) < .02 for gain in role_gains(data))
          and all(1.075 < gain < 1.115 for gain in roles_with_swizzle(data))),
    Claim(4, "K tile of 64 alone: within 2 %. Swizzle alone: refused. Both: 4.1x at 4096^3, 3.55x at 8192^3, 3.56x at decode MLP up",
          "1.00x; -; 4.1 / 3.55 / 3.56x",
          lambda data: f"{wider_k_tile(data)[0]:.2f}x; refused; {times(*both(data))}",
          IN_PART, "only both together gain, as there; but less, and the K tile alone costs",
          lambda data: all(.85 < gain < .98 for gain in wider_k_tile(data)) and all(2.8 < gain < 3.5 for gain in both(data))),
    Claim(5, "Loads alone: the swizzle fills shared memory 4 to 5 times as fast", "3.85 to 18.5 TB/s: 4.8x",
          lambda data: f"{times(*load_gains(data))} at 4096^3 / 8192^3; rows as wide without swizzle: {times(*load_gains(data, ROWS_64))}",
          IN_PART, "the gain is there, but is that of wide rows: without the swizzle it is the same",
          lambda data: all(4 < gain < 5.5 for gain in load_gains(data))
          and all(abs(a / b - 1) < .01 for a, b in zip(load_gains(data), load_gains(data, ROWS_64)))),
    Claim(6, "MMAs alone on the plain layout run at full speed: reads are not the problem", "96.4 us, cuBLAS 94.9",
          lambda data: f"{data.part(COLUMNS, 'mma', SQUARE):,.1f} us, with a K tile of 64 {data.part(PLAIN_64, 'mma', SQUARE):,.1f}, "
                       f"swizzled {data.part(SWIZZLED, 'mma', SQUARE):,.1f}; "
                       f"cuBLAS {data.us(figures.CUBLAS_NAME, SQUARE, data.study):,.1f}",
          IN_PART, "reads are not the problem, since loads take twice as long; but they are not at full speed either",
          lambda data: plain_mma_of_cublas(data, COLUMNS) < .8 and plain_mma_of_cublas(data, PLAIN_64) < .95
          and data.part(COLUMNS, "load", SQUARE) > 2 * data.part(COLUMNS, "mma", SQUARE)
          and all(1.04 < data.part(PLAIN_64, "mma", shape) / data.part(SWIZZLED, "mma", shape) < 1.2 for shape in (SQUARE, PREFILL))),
    Claim(7, "A register double buffer in the epilogue: within 2 %; the whole epilogue is at most 12 %", "1.00x; 13 of 109 us",
          lambda data: f"another change, TMA stores: {data.gain(SWIZZLE, EPILOGUE, SQUARE):.2f}x; epilogue alone "
                       f"{percent(epilogue_share(data, SQUARE))} at 4096^3, {percent(epilogue_share(data, PREFILL))} at 8192^3",
          NOT_COMPARABLE, "Hopper's accumulators are in registers from the start: there is nothing to double-buffer",
          lambda data: data.gain(SWIZZLE, EPILOGUE, SQUARE) > 1.05
          and epilogue_share(data, SQUARE) > .12 > epilogue_share(data, PREFILL)),
    Claim(8, "Multicast in 2x2 clusters: no gain at 4096^3, a loss at 8192", "1.01x; 0.96x at prefill MLP up",
          lambda data: f"{times(*cluster_gains(data))} at 4096^3 / 8192^3 / prefill MLP up; "
                       f"sustained {times(*cluster_gains(data, 'sustained'))}",
          IN_PART, "a loss at the squares; at prefill MLP up a gain of 3 % in bursts, and a loss where the chip is at its power limit",
          lambda data: cluster_gains(data)[0] < .9 and cluster_gains(data)[1] < .99 and 1.02 < cluster_gains(data)[2] < 1.04
          and max(cluster_gains(data, "sustained")) < .98),
    Claim(9, "The final kernel has 97 % of cuBLAS at 4096^3", "97 %",
          lambda data: f"{percent(data.of_cublas(BEST, SQUARE))}; sustained {percent(data.of_cublas(BEST, SQUARE, protocol='sustained'))}",
          HOLDS, "and at the other six shapes, too, where the origin's has 67 to 98 %",
          lambda data: all(data.of_cublas(BEST, SQUARE, protocol=protocol) >= .97 for protocol in ("burst", "sustained"))
          and all(data.of_cublas(BEST, shape) >= .97 for shape in NAMED)),
    Claim(10, "Padding few rows to the tile costs about 2x over cuBLAS at M = 1 to 64", "48 us, cuBLAS 23 to 24",
          lambda data: f"step05: {spread(of_few_rows(data, EPILOGUE))} the time of cuBLAS; step07: {spread(of_few_rows(data, BEST))}",
          HOLDS, "for rungs that pad, step04 and step05; step07 has narrower tiles and lower boxes",
          lambda data: all(1.9 < each < 2.4 for side in (SWIZZLE, EPILOGUE) for each in of_few_rows(data, side))
          and max(of_few_rows(data, BEST)) < 1.15),
    Claim(11, "Roofline: M = 256 is near the balance point, M >= 4096 bound by compute, M <= 64 by memory", "balance near 200 FLOP/B",
          lambda data: f"balance {data.balance(SQUARE):,.0f} FLOP/B at the clock of 4096^3, {data.balance(M_256):,.0f} at that of M = 256; "
                       f"M = 64: {data.intensity(FEW_ROWS[64]):,.0f}, M = 256: {data.intensity(M_256):,.0f}, "
                       f"4096^3: {data.intensity(SQUARE):,.0f}",
          HOLDS, "and of what the lower of the two roofs allows 78 to 95 % is reached at M = 1 to 64 and the seven shapes",
          lambda data: 1 < data.intensity(M_256) / data.balance(M_256) < 2 and data.intensity(SQUARE) > 4 * data.balance(SQUARE)
          and data.intensity(FEW_ROWS[64]) < data.balance(FEW_ROWS[64]) / 2
          and all(.775 < data.of_roof(shape) < .955 for shape in (*FEW_ROWS.values(), *NAMED))),
)


def claims(asked, data=None):
    """All of them. Refused where the figures do not bear out what is said of one."""
    if asked != "all":
        raise Refusal(f"<!-- claims: {asked} -->: expected all.")
    data = data or Data()
    rows = [("", "claim", "*origin*, B200", "*measured*, H200", "verdict", "why"), ("---:", *["---"] * 5)]
    for each in CLAIMS:
        if not each.agrees(data):
            raise Refusal(f"claim {each.number}: the figures no longer say '{each.verdict}: {each.why}'; they are {each.measured(data)}. "
                          "Write its verdict in tools/claims.py and its words in docs/claims.md anew.")
        rows.append((str(each.number), each.text, each.origin, each.measured(data), f"**{each.verdict}**", each.why))
    return table(rows)
