"""`ladder compare stepA stepB`: two rungs, or variants as step06:2x1, on the same inputs; whether D has the same bits, and what
each did for it."""

import os
import re
import struct
import tempfile
from pathlib import Path

from tools import build
from tools.rung import SHOWN_SCHEDULE, Case, execute, rung_and_variant, sizes_of
from tools.terminal import Parser, note, say

def read_f32(path):
    """(rows, columns, the elements' bits) of a two-dimensional float32 .npy file."""
    data = Path(path).read_bytes()
    if data[:6] != b"\x93NUMPY":
        raise ValueError(f"{path} is not an .npy file")
    size_format, at = ("<H", 8) if data[6] == 1 else ("<I", 8)
    length, = struct.unpack_from(size_format, data, at)
    start = at + struct.calcsize(size_format)
    header = data[start:start + length].decode("latin-1")
    rows, columns = map(int, re.search(r"'shape':\s*\((\d+),\s*(\d+)\)", header).groups())
    if "'<f4'" not in header:
        raise ValueError(f"{path} holds no float32: {header.strip()}")
    return rows, columns, memoryview(data)[start + length:].cast("I")


def difference(first, second):
    """A sentence on where two matrices differ, or None."""
    rows, columns, a = first
    if (rows, columns) != second[:2]:
        return f"the shapes differ: {rows}x{columns} and {second[0]}x{second[1]}"
    b = second[2]
    if a == b:
        return None
    wrong_rows = [row for row in range(rows) if a[row * columns:(row + 1) * columns] != b[row * columns:(row + 1) * columns]]
    count = sum(x != y for row in wrong_rows for x, y in zip(a[row * columns:(row + 1) * columns],
                                                             b[row * columns:(row + 1) * columns]))
    row = wrong_rows[0]
    column = next(c for c in range(columns) if a[row * columns + c] != b[row * columns + c])
    values = [struct.unpack("f", struct.pack("I", m[row * columns + column]))[0] for m in (a, b)]
    return (f"{count} of {rows * columns} elements differ, in {len(wrong_rows)} of {rows} rows; the first is D[{row}][{column}]: "
            f"{values[0]!r} and {values[1]!r}")


def flatten(value, name=""):
    """Every number in the counters, by its path."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return {}
    if isinstance(value, (int, float)):
        return {name: value}
    children = value.items() if isinstance(value, dict) else enumerate(value)
    flat = {}
    for key, child in children:
        if isinstance(child, dict) and isinstance(child.get("name"), str):
            key = child["name"]
        flat.update(flatten(child, f"{name}.{key}" if name else str(key)))
    return flat


def side_by_side(names, counters):
    flat = [flatten(each) for each in counters]
    rows = [row for row in dict.fromkeys([*flat[0], *flat[1]]) if flat[0].get(row) or flat[1].get(row)]
    if not rows:
        return
    width = max(map(len, rows)) + 2
    say("\nWhat each did (* where they differ). Cycles order the emulator's events; they are no chip's time.")
    column = max(22, *(len(name) + 2 for name in names))
    say("".ljust(width) + "".join(name.rjust(column) for name in names))
    for row in rows:
        values = ["-" if f.get(row) is None else f"{f[row]:,}" for f in flat]
        say(row.ljust(width) + "".join(value.rjust(column) for value in values) + ("" if values[0] == values[1] else "   *"))


def command(arguments):
    parser = Parser(prog="ladder compare", description=__doc__)
    parser.add_argument("first", metavar="stepA")
    parser.add_argument("second", metavar="stepB")
    parser.add_argument("--shape", metavar="MxNxK", help="default: 512x512x512, or K = 16 where step00 is one of the two")
    parser.add_argument("--dtype", default="f16", choices=["f16", "bf16"])
    parser.add_argument("--input", default="random", choices=["random", "integer", "position"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--on", default="b200", help="as the rungs take it (default: b200)")
    options = parser.parse_args(arguments)
    asked = [rung_and_variant(each) for each in (options.first, options.second)]
    names = [":".join(filter(None, each)) for each in asked]
    shape = options.shape or ("512x512x16" if any(name.startswith("step00") for name in names) else "512x512x512")
    sizes = sizes_of(shape)
    build.build(quiet=True, target="rungs")

    schedule = os.environ.get("LADDER_SCHEDULE") or SHOWN_SCHEDULE
    outcomes, matrices = [], []
    with tempfile.TemporaryDirectory(prefix="ladder-") as folder:
        for index, (name, (rung, variant)) in enumerate(zip(names, asked)):
            case = Case(rung, *sizes, options.dtype, input=options.input, seed=options.seed, on=options.on,
                        variant=variant, schedule=schedule)
            out = Path(folder, f"{index}.npy")
            outcome = execute(case, out=out)
            if not outcome.good:
                note(outcome.text.strip())
                note(f"{name} ended with exit status {outcome.status}. Again: {case.command_line()}")
                return outcome.status if outcome.status in (1, 2) else 1
            outcomes.append(outcome)
            matrices.append(read_f32(out))

    where = difference(*matrices)
    hashes = [outcome.report["d_hash"] for outcome in outcomes]
    if (where is None) != (hashes[0] == hashes[1]):
        note(f"The hashes ({hashes[0]}, {hashes[1]}) and the files disagree on whether D is the same; that is a bug here.")
        return 1
    say(f"{names[0]} and {names[1]} at {shape}, {options.dtype} in, f32 out, {options.input} inputs, seed {options.seed}, schedule "
        f"{schedule}:")
    say(f"D has the same bits ({hashes[0]})." if where is None else f"D differs: {where}.")
    side_by_side(names, [outcome.counters for outcome in outcomes])
    return 0 if where is None else 1
