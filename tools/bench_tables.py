"""Tables of what was measured, for the pages: `bench`, `sides` and `ladder` of tools/page_blocks.py."""

import re

from tools import build, figures
from tools.page_blocks import table
from tools.terminal import Refusal


def of_shapes(record, file, protocol, wanted):
    """What was measured of shapes, in their order; of all that have a name where none is asked for."""
    if not wanted:
        return [each for each in figures.results(record, protocol) if not re.match(r"\d", each["shape"])]
    found = [figures.result(record, protocol, shape) for shape in wanted]
    missing = [shape for shape, each in zip(wanted, found) if not each]
    if missing:
        raise Refusal(f"{file} has nothing of {', '.join(missing)}: {figures.known(record, protocol)}.")
    return found


def times(measured, sides, base):
    """Sides by shapes: us, and what that is of the base's time in the same run. Empty where a side was not measured."""
    rows = [("", *[each["shape"] for each in measured]), ("---", *["---:"] * len(measured))]
    for name in sides:
        cells = []
        for each in measured:
            row, beside = figures.side(each, name), figures.side(each, base)
            ratio = f" ({beside['median_us'] / row['median_us']:.3f})" if row and beside else ""
            cells.append(f"{row['median_us']:,.1f}{ratio}" if row else "")
        rows.append((f"`{name}`", *cells))
    return table(rows)


def bench(asked):
    """A protocol, and perhaps shapes: every side's time and what that is of the better cuBLAS figure of the same run."""
    protocol, _, wanted = asked.partition(", ")
    measured = of_shapes(figures.read(figures.FILE), f"<!-- bench: {asked} -->: bench/h200.json", protocol, wanted.split())
    if not measured:
        raise Refusal(f"<!-- bench: {asked} -->: bench/h200.json has nothing of that.")
    spread = figures.spread_in_words(measured)
    return times(measured, figures.names(measured), figures.CUBLAS_NAME) + (f"\n{spread}\n" if spread else "")


def sides(asked):
    """[a file of bench/, ]a protocol, the side that the ratios are to, shapes[, sides]: those, or all that the file has of the shapes."""
    file, *rest = asked.split(", ") if re.match(r"\S+\.json, ", asked) else ["h200.json", *asked.split(", ")]
    if len(rest) not in (3, 4) or not re.fullmatch(r"[\w.-]+", file):
        raise Refusal(f"<!-- sides: {asked} -->: expected perhaps a file of bench/, a protocol, a side, shapes and perhaps sides, as in "
                      "h200.json, burst, step07:best, square-4096 decode-qkv, step06:2x2 step07:best.")
    protocol, base, shapes, wanted = *rest[:3], rest[3].split() if len(rest) == 4 else []
    here = f"<!-- sides: {asked} -->: bench/{file}"
    measured = of_shapes(figures.read(build.ROOT / "bench" / file), here, protocol, shapes.split())
    there = figures.names(measured)
    for name in (base, *wanted):
        if not any(figures.side(each, name) for each in measured):
            raise Refusal(f"{here} has no side {name} of that; it has {', '.join(there)}.")
    return times(measured, wanted or there, base)


def number(us):
    return f"{us:,.1f}" if us < 1000 else f"{us:,.0f}"


def bracketed(text, *parts):
    parts = "; ".join(filter(None, parts))
    return f"{text} ({parts})" if text and parts else text or parts


def origin_cell(steps, at, shape):
    """A step's time at a shape, how many times as fast as the step before that has one, and of cuBLAS. As the origin says it."""
    time = steps[at]["times"].get(shape, {})
    before = next((step for step in reversed(steps[:at]) if "us" in step["times"].get(shape, {})), None)
    gain = time.get("gain") or (before and "us" in time and before["times"][shape]["us"] / time["us"])
    times_as_fast = gain and f"{gain:.2f}x" + (f" step {before['step']}" if before and before is not steps[at - 1] else "")
    return bracketed(f"{time['us']:,}" if "us" in time else "", times_as_fast, "of_cublas" in time and f"{time['of_cublas']:.2f}")


def of_origin(shape):
    """The origin's name of a shape, or the shape."""
    return next((name for name, sizes in figures.origin()["shapes"].items() if tuple(sizes) == figures.sizes(shape)), shape)


def ladder(asked, record=None):
    """A rung: each of its sides beside the rung before and cuBLAS, over all shapes, and the origin's steps. Measured ratios are to the
    same run. Of the rung before it is the side that was measured first: its default."""
    rung, rungs = build.named(asked), build.sources()
    before = rungs[rungs.index(rung) - 1] if rungs.index(rung) else ""
    record = record or figures.read(figures.FILE)
    steps = figures.origin()["steps"]
    own = [at for at, step in enumerate(steps) if step["rung"] == rung]

    measured = [each for each in record["results"] if any(figures.rung_of(name) == rung for name in figures.names([each]))]
    shapes = list(dict.fromkeys([shape for shape in figures.origin()["shapes"] if any(shape in steps[at]["times"] for at in own)]
                                + [of_origin(each["shape"]) for each in measured]))
    sides = [name for name in figures.names(measured) if figures.rung_of(name) == rung]
    if not shapes:
        raise Refusal(f"<!-- ladder: {asked} -->: neither bench/h200.json nor bench/origin.json has anything of {rung}.")
    where = figures.where(record).replace("NVIDIA ", "")
    rows = [("shape", "side", *[f"*origin* B200, step {steps[at]['step']}: us" for at in own], f"*measured* {where}, burst: us",
             f"*measured* {where}, sustained: us", "SM clock, burst: MHz"), ("---", "---", *["---:"] * (len(own) + 3))]
    for shape in order(shapes):
        burst, sustained = (figures.result(record, protocol, shape) for protocol in ("burst", "sustained"))
        there = [name for name in sides if any(each and figures.side(each, name) for each in (burst, sustained))]
        for name in there or [""]:  # the origin's figure alone
            first = name in ("", there[0] if there else "")
            rows.append((shape if first else "", f"`{name.partition(':')[2]}`" if name else "",
                         *[origin_cell(steps, at, shape) if first else "" for at in own],
                         measured_cell(burst, name, before), measured_cell(sustained, name, before), clock(burst, name)))
    return table(rows)


def order(shapes):
    """The origin's first and as it has them."""
    known = list(figures.origin()["shapes"])
    return sorted(shapes, key=lambda shape: known.index(shape) if shape in known else len(known))


def measured_cell(measured, name, before):
    row = measured and figures.side(measured, name)
    if not row:
        return ""
    lower = next((each for each in measured["sides"] if before and figures.rung_of(each["side"]) == before and each.get("median_us")), None)
    share = figures.of_cublas(measured, row)
    return bracketed(number(row["median_us"]), lower and f"{lower['median_us'] / row['median_us']:.2f}x", share and f"{share:.3f}")


def clock(measured, name):
    row = measured and figures.side(measured, name)
    return f"{row['sm_mhz']:,.0f}" if row and row.get("sm_mhz") else ""
