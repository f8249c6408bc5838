"""Tables of what step04's study measured, for the pages: `study-times` and `order` of tools/page_blocks.py."""

from dataclasses import dataclass

from tools import build, figures
from tools.bench_tables import number
from tools.page_blocks import table
from tools.terminal import Refusal

STUDY = build.ROOT / "bench" / "h200_study.json"
ORDER = build.ROOT / "bench" / "h200_order.json"
TILE_M, TILE_N = 128, 256  # of D, for each CTA: step04_swizzle/study.h
ARRANGEMENTS = ("columns", "boxes", "rows", "32B", "64B", "128B")  # where rows are as wide, the un-swizzled first


@dataclass(frozen=True)
class Configuration:
    arrangement: str
    tile_k: int
    stages: int

    def side(self, **more):
        """The name of a side of swizzle_study, as gemm_bench has it."""
        settings = {"arrangement": self.arrangement, "tile-k": self.tile_k, "stages": self.stages, **more}
        return "swizzle_study:" + ",".join(f"{name}={value}" for name, value in settings.items())

    def row_bytes(self):
        """Of K, side by side in shared memory: the width of a box."""
        return {"columns": 16, "boxes": 16, "rows": self.tile_k * 2}.get(self.arrangement) or int(self.arrangement.removesuffix("B"))

    def tile_bytes(self, k):
        """What is loaded for a tile of D."""
        return (TILE_M + TILE_N) * -(-k // self.tile_k) * self.tile_k * 2

    def loaded_bytes(self, measured):
        """Into the shared memory of all CTAs."""
        return tiles(measured) * self.tile_bytes(measured["k"])

    def box_rows(self, measured, sms):
        """That the SM with the most tiles loads."""
        return -(-tiles(measured) // sms) * self.tile_bytes(measured["k"]) // self.row_bytes()


def tiles(measured):
    return -(-measured["m"] // TILE_M) * -(-measured["n"] // TILE_N)


def settings_of(side):
    return dict(each.split("=") for each in side.partition(":")[2].split(","))


def configurations(measured):
    """Those of which something was measured: by K tile, width of a row, depth of the ring. So what differs in the swizzle alone is
    side by side."""
    found = {Configuration(settings["arrangement"], int(settings["tile-k"]), int(settings["stages"]))
             for settings in map(settings_of, (name for name in figures.names([measured]) if figures.rung_of(name) == "swizzle_study"))}
    return sorted(found, key=lambda each: (each.tile_k, each.row_bytes(), -each.stages, ARRANGEMENTS.index(each.arrangement)))


def of_shape(record, file, shape):
    measured = figures.result(record, "burst", shape)
    if not measured:
        raise Refusal(f"bench/{file.name} has nothing of {shape}: {figures.known(record, 'burst')}.")
    return measured


def us(row):
    return number(row["median_us"]) if row else ""


def cycles_of_a_row(configuration, measured, sms):
    """Cycles of the SM with the most tiles, at the clock of the run, for each row of a box; None where the loads alone have no time."""
    load = figures.side(measured, configuration.side(part="load"))
    return load and load.get("sm_mhz") and load["median_us"] * load["sm_mhz"] / configuration.box_rows(measured, sms)


def study_times(asked):
    """Shapes: the whole kernel and its parts, for each configuration. Empty where a part was not measured or cannot run."""
    if not asked:
        raise Refusal("<!-- study-times: -->: expected shapes, as in square-4096 prefill-attn-out.")
    record = figures.read(STUDY)
    rows = [("shape", "arrangement", "K tile", "stages", "bytes of a box row", "whole kernel, us", "loads alone, us",
             "TB/s into shared memory", "cycles a box row", "MMAs alone, us", "epilogue alone, us"), ("---", "---", *["---:"] * 9)]
    for shape in asked.split():
        try:
            measured = of_shape(record, STUDY, shape)
        except Refusal as refusal:
            raise Refusal(f"<!-- study-times: {asked} -->: {refusal}") from None
        for at, each in enumerate(configurations(measured)):
            full, load, mma, epilogue = (figures.side(measured, each.side(part=part)) for part in ("full", "load", "mma", "epilogue"))
            cycles = cycles_of_a_row(each, measured, record["sms"])
            rate = f"{each.loaded_bytes(measured) / load['median_us'] / 1e6:.2f}" if load else ""
            rows.append((shape if not at else "", f"`{each.arrangement}`", str(each.tile_k), str(each.stages), str(each.row_bytes()),
                         us(full), us(load), rate, f"{cycles:.2f}" if cycles else "", us(mma), us(epilogue)))
    return table(rows)


COLUMNS, BOXES, SWIZZLED = Configuration("columns", 16, 4), Configuration("boxes", 16, 4), Configuration("128B", 64, 4)


def changes():
    """(change, on what, the side before, the side behind)"""
    apart = "roles apart, not together"
    yield apart, "`step02` to `step03`", "step02_pipeline:stages-4", "step03_warpspec:stages-4"
    for each in (COLUMNS, BOXES, SWIZZLED):
        yield apart, each, each.side(roles="together"), each.side()
    for cluster in ("2x1", "1x2", "2x2"):
        for each in (BOXES, SWIZZLED):
            yield f"cluster of {cluster}, not alone", each, each.side(), each.side(cluster=cluster)


def order(asked):
    """Shapes: what a change gains on the layout before the swizzle, and on the one behind it."""
    if not asked:
        raise Refusal("<!-- order: -->: expected shapes, as in square-4096 decode-mlp-up.")
    record, shapes = figures.read(ORDER), asked.split()
    try:
        measured = [of_shape(record, ORDER, shape) for shape in shapes]
    except Refusal as refusal:
        raise Refusal(f"<!-- order: {asked} -->: {refusal}") from None
    rows, last = [("change", "on", *shapes), ("---", "---", *["---:"] * len(shapes))], ""
    for change, on, *names in changes():
        pairs = [[figures.side(each, name) for name in names] for each in measured]
        if not any(all(pair) for pair in pairs):
            continue
        name = on if isinstance(on, str) else f"`{on.arrangement}`, K tile {on.tile_k}"
        rows.append((change if change != last else "", f"with swizzle: {name}" if on is SWIZZLED else f"without: {name}",
                     *[f"{us(before)} → {us(behind)} ({before['median_us'] / behind['median_us']:.2f}x)" if before and behind else ""
                       for before, behind in pairs]))
        last = change
    if not rows[2:]:
        raise Refusal(f"<!-- order: {asked} -->: bench/{ORDER.name} has none of its sides.")
    return table(rows)
