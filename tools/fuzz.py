"""`ladder fuzz --minutes N`: random runs of all rungs and variants until the time is over or one goes wrong."""

import math
import random
import time

from tools import build
from tools.rung import Case, execute, settings, variants
from tools.terminal import Parser, Refusal, note, plural, say

LARGEST_FLOP = 4e9  # about a second of emulation
BAD_INPUT = 2  # exit status: the rung has refused its options
CHIPS = ["b200", "b200", "h200"]
SMS = [0, 0, 4, 6, 20]  # of the chip, 0 for all: a cluster of four must fit
EDGES = [1, 2, 7, 8, 15, 16, 24, 31, 32, 33, 63, 64, 65, 72, 120, 127, 128, 129, 136, 255, 256, 257, 264, 384, 512, 520]


def size(draw, largest, multiple=1):
    """A size that is small, at an edge of a tile, or anywhere up to `largest` with all magnitudes alike."""
    if draw.random() < 0.5:
        value = draw.choice(EDGES)
    else:
        value = int(largest ** draw.random())
    return min(max(1, -(-value // multiple)) * multiple, max(multiple, largest // multiple * multiple))


def draw_case(draw, rungs, largest_flop=LARGEST_FLOP):
    """A random case. Rows that TMA can address: N and K are multiples of 8 (step00: K is 16). The tensor core does whole
    tiles, so the cost that is bounded is that of the shape rounded up to them."""
    rung = draw.choice(rungs)
    tile_m, tile_n = 128, 256
    n = size(draw, 3000, 8)
    row_of_tiles = 2 * tile_m * -(-n // tile_n) * tile_n
    k = 16 if rung.startswith("step00") else size(draw, max(8, min(4096, int(largest_flop / row_of_tiles))), 8)
    m = size(draw, min(3000, tile_m * max(1, int(largest_flop / (row_of_tiles * k)))))
    dtype = draw.choice(["f16", "bf16"])
    kind = draw.choice(["random", "integer", "position"])
    out_dtype = "f32" if kind == "position" else draw.choice([dtype, "f32", "f32"])
    case = Case(rung, m, n, k, dtype, out_dtype, kind, seed=draw.randrange(1 << 31), on=draw.choice(CHIPS),
                schedule=draw_schedule(draw), threads=draw.choice([1, 2]), sms=draw.choice(SMS))
    return case.but(variant=draw_variant(draw, case))


def draw_variant(draw, case):
    """One with a name, or settings that the rung takes together. Which it does not is the rung's to say: then one is left out."""
    values = settings(case.rung, case.on)
    if not values or draw.random() < 0.2:
        return draw.choice(variants(case.rung, case.on))
    chosen = [f"{name}={draw_value(draw, values[name])}" for name in draw.sample(list(values), draw.randint(1, len(values)))]
    while execute(case.but(k=8, variant=",".join(chosen)), check=False).status == BAD_INPUT:
        chosen.remove(draw.choice(chosen))
    return ",".join(chosen)


def draw_value(draw, values):
    """One of the words, or of a range's numbers, all magnitudes alike."""
    value = draw.choice(values)
    least, dots, most = value.partition("..")
    return max(int(least), int((int(most) + 1) ** draw.random())) if dots else value


def draw_schedule(draw):
    return draw.choice(["earliest", "latest", f"random:{draw.randrange(1 << 31)}", f"random:{draw.randrange(1 << 31)}"])


def problem(case, draw):
    """Runs a case, again with other threads, and under another schedule and the hazard rules. What went wrong, or None."""
    first = execute(case, trace=True)
    if not first.clean:
        return complaint(case, first)
    threads = case.but(threads=3 - case.threads)
    second = execute(threads, trace=True)
    if not second.clean:
        return complaint(threads, second)
    for what in ("counters", "trace"):
        if getattr(first, what) != getattr(second, what):
            return f"The {what} depend on the number of host threads:\n  {case.command_line()}\n  {threads.command_line()}"
    schedule = case.but(schedule=draw_schedule(draw), rules=True)
    third = execute(schedule)
    if not third.clean:
        return complaint(schedule, third)
    for other, outcome in ((threads, second), (schedule, third)):
        if outcome.report["d_hash"] != first.report["d_hash"]:
            return f"The bits of D differ:\n  {case.command_line()}\n  {other.command_line()}"
    return None


def complaint(case, outcome):
    return f"{outcome.text.strip()}\nExit status {outcome.status}. Again:\n  {case.command_line()}"


def command(arguments):
    parser = Parser(prog="ladder fuzz", description="Random variants, shapes, types, inputs, schedules and threads, each checked.")
    parser.add_argument("--minutes", type=float, required=True, metavar="N")
    parser.add_argument("--seed", type=int, metavar="S", help="start from this seed instead of a random one")
    options = parser.parse_args(arguments)
    if not 0 < options.minutes < math.inf:
        raise Refusal(f"--minutes {options.minutes:g}: expected a number above 0.")
    build.build(quiet=True, target="rungs")
    rungs = build.rungs()
    if not rungs:
        raise Refusal("There is no rung to fuzz yet.")
    seed = random.SystemRandom().randrange(1 << 31) if options.seed is None else options.seed
    end = time.monotonic() + 60 * options.minutes
    say(f"Fuzzing {', '.join(rungs)} for {options.minutes:g} minutes; the first seed is {seed}.")
    done = 0
    while done == 0 or time.monotonic() < end:
        draw = random.Random(seed + done)
        case = draw_case(draw, rungs)
        say(f"seed {seed + done}: {case.rung} {case.variant} on {case.on}, {case.shape} {case.dtype} -> {case.out_dtype}, {case.input} inputs, "
            f"{case.schedule}, {plural(case.threads, 'thread')}{f', {case.sms} SMs' if case.sms else ''}")
        wrong = problem(case, draw)
        if wrong:
            note(f"\n{wrong}\nThis case alone: ./ladder fuzz --minutes 0.01 --seed {seed + done}")
            return 1
        done += 1
    say(f"{plural(done, 'case')}, each run three ways, all right.")
    return 0
