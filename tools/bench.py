"""`ladder bench`: times the rungs and cuBLAS on this machine's GPU, and shows what came out beside what an H200 gave."""

import argparse
import math
import os
import shutil
import subprocess
from pathlib import Path

from tools import bench_picture, bits, build, figures, gpu_tool
from tools.record import has_gpu
from tools.selfcheck import refuse_anothers
from tools.terminal import Parser, Refusal, note, plural, say

MINE = build.ROOT / "bench" / "mine.json"
SHAPES = figures.SHAPES
QUICK_SHAPES = ["square-4096", "prefill-attn-out", "decode-attn-out"]
SIDES = ["step01", "step02", "step03", "step04", "step05", "step06", "step06:2x1", "step07:best"]
PROTOCOLS = ["burst", "sustained"]
STUDY = "swizzle_study:"  # step04's, a side as well

# gemm_bench's protocols (common/bench/main.cpp), to say beforehand how long it will take.
ROUNDS, SECONDS, SUSTAINED_ROUNDS = 20, 5.0, 1
IDLE_S, SAMPLE_S = .03, 3e-3
PROPOSALS, ROUNDS_TO_CHOOSE, SECONDS_TO_CHOOSE = 8, 10, .5  # of cuBLAS, from which its best is chosen in a pass of its own
FLOP_PER_S = 200e12    # about a slow rung's on an H200: where a launch takes longer than a sample should
PREPARE_S = 2          # matrices of a shape, and D once of each side
ALL_VARIANTS = 12      # of `step07:*`


def options_of(arguments):
    parser = Parser(prog="ladder bench", description=__doc__.split(": ", 1)[1])
    many = {"action": "extend", "nargs": "+", "default": []}
    parser.add_argument("--shape", **many, metavar="SHAPE", help="MxNxK or a name (default: the origin's seven, two squares, few rows)")
    parser.add_argument("--side", **many, metavar="SIDE", help="step04, step07:walk=4, step07:* for all variants (default: every rung)")
    parser.add_argument("--protocol", **many, choices=PROTOCOLS, help="default: both; docs/benchmarks.md says what they are")
    parser.add_argument("--beside", action="append", default=[], metavar="LIB.so[:SYMBOL]", help="somebody else's kernel as a side; several")
    parser.add_argument("--quick", action="store_true", help=f"{', '.join(QUICK_SHAPES)}, in bursts")
    parser.add_argument("--warm", action="store_true", help="one set of matrices: small ones stay in L2")
    parser.add_argument("--rounds", type=int, help=f"samples of each side in bursts (default: {ROUNDS})")
    parser.add_argument("--seconds", type=float, help=f"of each side when sustained (default: {SECONDS:g})")
    parser.add_argument("--json", type=Path, metavar="FILE",
                        help="where the results go (default: bench/mine.json; of --bits, bench/mine_bits.json)")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--bits", action="store_true", help="time nothing: the bits of every rung and variant beside those an H200 gave")
    instead.add_argument("--show", nargs="?", type=Path, const=MINE, metavar="FILE", help="measure nothing: the table of a file that is there")
    instead.add_argument("--pictures", type=Path, metavar="FILE", help="measure nothing: draw what a file has, into --out")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where --pictures go")
    options = parser.parse_args(arguments)
    if bool(options.pictures) != bool(options.out):
        raise Refusal("--pictures FILE and --out FOLDER belong together.")
    given = [f"--{name}" for name, value in vars(options).items() if value is not None and value is not False and value != []]
    if options.bits and set(given) - {"--bits", "--json"}:
        raise Refusal("--bits has shapes and sides of its own: beside it there may be --json FILE, and nothing else.")
    for only, ignored in (("--show", set(given) - {"--show"}), ("--pictures", set(given) - {"--pictures", "--out"})):
        if only in given and ignored:
            raise Refusal(f"{', '.join(each for each in given if each in ignored)}: {only} measures nothing and would ignore that; leave out "
                          "the one or the other.")
    options.rounds = ROUNDS if options.rounds is None else options.rounds
    options.seconds = SECONDS if options.seconds is None else options.seconds
    options.json = options.json or (bits.MINE if options.bits else MINE)
    if options.rounds < 1:
        raise Refusal(f"--rounds {options.rounds}: expected 1 or more.")
    if not (options.seconds > 0 and math.isfinite(options.seconds)):
        raise Refusal(f"--seconds {options.seconds:g}: expected more than 0.")
    for shape in options.shape:
        try:
            figures.sizes(shape)
        except Refusal as refusal:
            raise Refusal(f"--shape {refusal}") from None
    for side in options.side:
        if not side.startswith(STUDY):
            build.named(side.partition(":")[0])
    for library in options.beside:
        if not any(Path(path).is_file() for path in (library, library.rpartition(":")[0])):
            raise Refusal(f"--beside {library}: no such file; expected a shared library, and perhaps :SYMBOL behind it.")
    options.shape = options.shape or (QUICK_SHAPES if options.quick else SHAPES)
    options.side = options.side or SIDES
    options.protocol = list(dict.fromkeys(options.protocol)) or (["burst"] if options.quick else PROTOCOLS)
    return options


def seconds(options):
    """About how long it will take."""
    sides = len(figures.CUBLAS) + sum(ALL_VARIANTS if side.endswith(":*") else 1 for side in options.side) + len(options.beside)
    total = 0.
    for shape in options.shape:
        total += PREPARE_S
        if "burst" in options.protocol:
            launch = 2 * math.prod(figures.sizes(shape)) / FLOP_PER_S
            total += (PROPOSALS * ROUNDS_TO_CHOOSE + sides * options.rounds) * (IDLE_S + max(SAMPLE_S, launch))
        if "sustained" in options.protocol:
            total += PROPOSALS * SECONDS_TO_CHOOSE + sides * SUSTAINED_ROUNDS * options.seconds
    return total


def arguments_of(options):
    return ["--shape", *options.shape, "--side", *options.side, "--protocol", *options.protocol,
            *(word for library in options.beside for word in ("--beside", library)), "--rounds", str(options.rounds),
            "--seconds", f"{options.seconds:g}", "--sustained-rounds", str(SUSTAINED_ROUNDS), "--idle", f"{IDLE_S:g}",
            "--sample", f"{SAMPLE_S:g}", *(["--warm"] if options.warm else []), "--json", str(options.json)]


def changed(path):
    return path.stat().st_mtime_ns if path.is_file() else None


def build_gemm_bench():
    # Optimised, and with cuBLAS, whatever the build folder was made for.
    build.build(argparse.Namespace(debug=False, cublas=True, jobs=None), quiet=True, target="gemm_bench")


def gemm_bench(arguments, **options):
    """Its exit status, as a shell has it, and what it said on stderr where that was asked for."""
    done = subprocess.run([str(build.FOLDER / "bin" / "gemm_bench"), *arguments], stdin=subprocess.DEVNULL, **options)
    return done.returncode if done.returncode >= 0 else 128 - done.returncode, done.stderr


def measure(options):
    if not has_gpu():
        raise Refusal("this machine has no NVIDIA GPU or no driver for it, and times are a real GPU's or nobody's. `./ladder bench --show "
                      "bench/h200.json` prints what an H200 gave; `./ladder run` runs the rungs on an emulated chip.")
    build_gemm_bench()
    note(f"{plural(len(options.shape), 'shape')}, {' and '.join(options.protocol)}: about {plural(math.ceil(seconds(options) / 60), 'minute')}.")
    before = changed(options.json)
    status, _ = gemm_bench(arguments_of(options))
    if changed(options.json) != before:  # what there is of it, where it did not end well
        say(text_of(options.json))
        say(f"All of it is in {os.path.relpath(options.json)}.")
    return status


# ---- the table ----------------------------------------------------------------------------------------------------------

def cell(measured, row):
    share = row and figures.of_cublas(measured, row)
    return f"{row['median_us']:,.1f}" + (f" ({share:.3f})" if share else "") if row else "-"


def comparable(record, measured, recorded):
    """What was recorded of the same shape by the same protocol, where types and all that a time depends on are the same (the number of
    rounds is not among it); and where they are not, what differs, in words."""
    found = figures.result(recorded, measured["protocol"], f"{measured['m']}x{measured['n']}x{measured['k']}") if recorded else None
    if not found:
        return None, []
    pairs = [(key, one.get(key), other.get(key)) for one, other, keys in ((record, recorded, ("in", "out")), (measured, found, ("idle_s", "seconds")))
             for key in keys]
    pairs.append(("matrices", *("warm" if each.get("sets") == 1 else "cold" for each in (measured, found))))
    differing = [f"{key} {given(mine)} here, {given(theirs)} there" for key, mine, theirs in pairs if mine != theirs]
    return (None if differing else found), differing


def given(value):
    return "not given" if value is None else value if isinstance(value, str) else f"{value:g}"


def not_beside(record, recorded, protocol):
    """Lines on what bench/h200.json has of the same shapes, measured in another way."""
    shapes = {}
    for each in figures.results(record, protocol):
        _, differing = comparable(record, each, recorded)
        if differing:
            shapes.setdefault("; ".join(differing), []).append(each["shape"])
    return [f"Not beside bench/h200.json: {why} ({', '.join(there)})." for why, there in shapes.items()]


def columns_of(record, recorded, measured, there):
    """A shape's columns: each a list of a heading and a cell for each side."""
    beside, _ = comparable(record, measured, recorded)
    rows = [figures.side(measured, name) for name in there]
    columns = [["here" if beside else "us", *(cell(measured, row) for row in rows)]]
    if beside:
        others = [figures.side(beside, name) for name in there]
        columns.append(["H200", *(cell(beside, row) for row in others)])
        columns.append(["time", *(f"{100 * (row['median_us'] / other['median_us'] - 1):+.1f} %" if row and other else "-"
                                  for row, other in zip(rows, others))])
    return columns


def blocks(record, recorded, protocol, width):
    """Lines: sides down, shapes across, as many beside each other as there is room for."""
    measured = figures.results(record, protocol)
    there = list(dict.fromkeys(side["side"] for each in measured for side in each["sides"]))
    first = ["", "", *there]
    wide = max(map(len, first))
    shapes = []
    for each in measured:
        columns = columns_of(record, recorded, each, there)
        lines = ["  ".join(text.rjust(max(map(len, column))) for text, column in zip(line, columns)) for line in zip(*columns)]
        each_wide = max(len(lines[0]), len(each["shape"]))
        shapes.append((each, [each["shape"].rjust(each_wide), *(line.rjust(each_wide) for line in lines)]))
    while shapes:
        count = 1
        while count < len(shapes) and wide + sum(3 + len(lines[0]) for _, lines in shapes[:count + 1]) <= width:
            count += 1
        beside, shapes = shapes[:count], shapes[count:]
        shown = {"", *(side["side"] for each, _ in beside for side in each["sides"])}
        yield from ("   ".join([name.ljust(wide), *cells]).rstrip()
                    for name, *cells in zip(first, *(lines for _, lines in beside)) if name in shown)
        yield ""


def text_of(path, width=None):
    """Sides over shapes, by protocol: us and what it is of the better cuBLAS, beside what bench/h200.json has of the same."""
    record = figures.read(path)
    same = path.resolve() == figures.FILE.resolve()
    recorded = None if same else figures.read(figures.FILE)
    about = [record.get("gpu", "a GPU"), record.get("date", ""),
             *(f"{name} {record[key]}" for key, name in (("driver", "driver for CUDA"), ("cublas", "cuBLAS")) if key in record),
             f"{record.get('in')} in, {record.get('out')} out"]
    lines = [", ".join(filter(None, about)),
             "Times in us; in brackets speed as a share of cuBLAS, the better of its two times in the same run."]
    if any(comparable(record, each, recorded)[0] for each in record["results"]):
        lines.append(f"Beside it what bench/h200.json has of the same ({figures.where(recorded)}), and how much more or less time it took here.")
    for protocol in dict.fromkeys(each["protocol"] for each in record["results"]):
        lines += ["", protocol, *not_beside(record, recorded, protocol),
                  *blocks(record, recorded, protocol, width or shutil.get_terminal_size((140, 40)).columns),
                  *filter(None, [figures.spread_in_words(figures.results(record, protocol))])]
    return "\n".join(lines).rstrip()


def draw(path, folder):
    drawn, why_not = bench_picture.of_file(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, picture in drawn.items():
            (folder / name).write_text(picture)
            say(str(folder / name))
    except FileExistsError:
        raise Refusal(f"--out {folder}: is there and no folder. Name another: --out FOLDER.") from None
    except OSError as error:
        raise Refusal(f"--out {folder}: cannot be written to: {error.strerror}. Name another folder.") from None
    for why in why_not:
        note(f"Left out: {why}")
    return 0 if drawn else 1


def command(arguments):
    options = options_of(arguments)
    if options.pictures:
        return draw(options.pictures, options.out)
    if options.show:
        if options.show == MINE and not MINE.is_file():
            raise Refusal("bench/mine.json: no such file. `./ladder bench` writes it; `./ladder bench --show bench/h200.json` shows what an "
                          "H200 gave.")
        say(text_of(options.show))
        return 0
    reader, writer = (bits.read, "`./ladder bench --bits`") if options.bits else (figures.read, "gemm_bench")
    refuse_anothers(options.json, "--json", reader, writer)
    if options.bits:
        gpu_tool.require_gpu(bits.PURPOSE, bits.INSTEAD)
        build_gemm_bench()
        return bits.measure(options.json, lambda asked: gemm_bench(asked, stderr=subprocess.PIPE, text=True, errors="replace"))
    return measure(options)
