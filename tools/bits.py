"""What `ladder bench --bits` gives: the bits of D of every rung and variant on a GPU, beside those that an H200 gave.

bench/h200_bits.json has the H200's. A shape and its types have one hash, which all sides gave that the record does not name.
"""

import json
import tempfile
from collections import Counter
from pathlib import Path

from tools import build, figures, gpu_tool, sanitize
from tools.selfcheck import read_rows
from tools.terminal import Progress, Refusal, note, plural, say

FILE = build.ROOT / "bench" / "h200_bits.json"
MINE = build.ROOT / "bench" / "mine_bits.json"
WHAT = ("./ladder bench --bits: hashes of D, as the rungs' own --json has them. Every side that takes the shape gave d_hash, but those "
        "under `without`, which did not run, and under `other`, which gave other bits.")
PURPOSE, INSTEAD = "./ladder bench --bits", "`./ladder selfcheck` compares bits on the emulator"
INPUTS = "normal random, seed 1, as `--input random --seed 1` makes them"

# In and out: where tiles and K tiles end outside D, at the K of step00, too; then what is timed.
ASKED = {("f16", "f32"): ["1000x1032x16", "300x520x16"],
         ("bf16", "f32"): ["300x520x328", "1000x1032x2056", "1x8x8", "136x264x1352", "2570x3592x72"],
         ("f16", "f16"): figures.SHAPES}

# The least that gemm_bench measures. One set of matrices: 1x8x8 would have a million, to be larger than L2.
LEAST = ["--protocol", "burst", "--rounds", "1", "--idle", "0", "--sample", "1e-5", "--proposals", "1", "--warm"]


def where(row):
    return f"{row['shape']}, {row['in']} in, {row['out']} out"


def read(path=FILE):
    """The record, by shape, in and out."""
    return read_rows(path, "`./ladder bench --bits`", "records", ("shape", "in", "out", "d_hash", "cublas"), ("gpu", "date", "sides"))


def write(path, head, sides, rows):
    """One shape a line, for people."""
    lines = [f" {json.dumps(name)}: {json.dumps(text)}," for name, text in head.items()]
    by_rung = [[side for side in sides if figures.rung_of(side) == rung] for rung in dict.fromkeys(map(figures.rung_of, sides))]
    there = ",\n".join("  " + ", ".join(map(json.dumps, each)) for each in by_rung)
    records = ",\n".join("  " + json.dumps(row) for row in rows)
    try:
        path.write_text("{\n" + "\n".join(lines) + f'\n "sides": [\n{there}\n ],\n "records": [\n{records}\n ]\n}}\n')
    except OSError as error:
        raise Refusal(f"--json {path}: cannot be written: {error.strerror}. Name another file.") from None


def hashes_of(result):
    return {each["side"]: each["d_hash"] for each in result["sides"]}


def rows_of(reports):
    """A row for each shape, and all sides that there are."""
    results = [(report, result) for report in reports for result in report["results"]]
    sides = list(dict.fromkeys(side for _, result in results for side in hashes_of(result) if side not in figures.CUBLAS))
    rows = []
    for report, result in results:
        hashes = hashes_of(result)
        cublas = {name.partition(":")[2]: hashes.pop(name) for name in figures.CUBLAS if name in hashes}
        most = Counter(hashes.values()).most_common(1)[0][0]
        row = {"shape": result["shape"], "in": report["in"], "out": report["out"], "d_hash": most, "cublas": cublas}
        without = [side for side in sides if side not in hashes]
        other = {side: found for side, found in hashes.items() if found != most}
        rows.append({**row, **({"without": without} if without else {}), **({"other": other} if other else {})})
    return rows, sides


def compared(sides, rows, recorded):
    """What to say of them beside the record, in lines, and whether no side differs."""
    known = {where(row): row["d_hash"] for row in recorded["records"]}
    lines, fresh, cublas = [], [], []
    for row in rows:
        expected = known.get(where(row), row["d_hash"])
        if where(row) not in known:
            fresh.append(row["shape"])
        if set(row["cublas"].values()) - {row["d_hash"]}:
            cublas.append(row["shape"])
        hashes = {side: row["d_hash"] for side in sides if side not in row.get("without", [])} | row.get("other", {})
        wrong = {side: found for side, found in hashes.items() if found != expected}
        if len(wrong) == len(hashes) and len(set(wrong.values())) == 1:
            lines.append(f"{where(row)}: all {plural(len(wrong), 'side')} gave {row['d_hash']}; the record has {expected}")
        else:
            beside = "the record has" if where(row) in known else "most sides gave"
            lines += [f"{where(row)}: {side} gave {found}; {beside} {expected}" for side, found in wrong.items()]
    beside = f"that an H200 gave ({figures.where(recorded)})"
    counted = f"{plural(len(sides), 'side')} at {plural(len(rows), 'shape')}"
    said = [f"{counted}: not all gave the bits {beside}:", *(f"  {line}" for line in lines)] if lines else \
        [f"{counted}: all the bits {beside}."]
    if fresh:
        said.append(f"No record of {', '.join(fresh)}: there the sides are compared with each other.")
    if cublas:
        said.append(f"cuBLAS gave other bits at {', '.join(cublas)}: it may split K (docs/numerics.md).")
    return said, not lines


def sides_to_ask():
    """Every variant by name, and the settings that none has and this GPU's rungs know."""
    extra = []
    for rung in sanitize.EXTRA:
        build.build(quiet=True, target=rung)
        place = gpu_tool.on_gpu(rung, PURPOSE, INSTEAD)
        extra += [f"{rung}:{variant}" for variant in sanitize.extra(rung, place["settings"])]
    return [*(f"{rung}:*" for rung in build.sources()), *extra]


def measure(path, gemm_bench):
    """`gemm_bench`: runs it with arguments; its exit status, and what it said on stderr."""
    recorded, sides = read(), sides_to_ask()
    asked = [(shape, *types) for types, shapes in ASKED.items() for shape in shapes]
    note(f"{plural(len(asked), 'shape')}, each rung and variant once at each: some minutes.")
    progress, reports, failed = Progress(len(asked), "the bits of D:"), [], []
    with tempfile.TemporaryDirectory(prefix="ladder-bits-") as folder:
        for number, (shape, dtype, out) in enumerate(asked):  # a process each: where a side ends one, the other shapes stay
            progress.step(shape)
            report = Path(folder, f"{number}.json")
            status, said = gemm_bench(["--shape", shape, "--side", *sides, "--dtype", dtype, "--out-dtype", out, *LEAST,
                                       "--json", str(report)])
            if status == 0 and report.is_file():
                reports.append(json.loads(report.read_text()))
            else:
                last = said.strip().splitlines()[-3:] or [f"exit status {status}"]
                failed.append((f"{shape}, {dtype} in, {out} out", last))
        progress.end()
    same = False
    if reports:
        rows, there = rows_of(reports)
        head = {"label": "measured", "what": WHAT, "date": reports[0]["date"].split(" ")[0], "gpu": reports[0]["gpu"],
                "driver": gpu_tool.driver(), "cublas": reports[0]["cublas"], "inputs": INPUTS}
        write(path, head, there, rows)
        lines, same = compared(there, rows, recorded)
        for line in lines:
            say(line)
        say(f"Written to {path}.")
    for name, last in failed:
        say(f"{name}: no bits, gemm_bench did not end well:")
        for line in last:
            say(f"    {line}")
    return 0 if same and not failed else 1
