"""`ladder trace stepNN`: what a rung did and when, as a trace for ui.perfetto.dev and as a picture.

Time is the emulator's virtual time, which orders its events and is no chip's time.
"""

import re
from pathlib import Path

from tools import build, trace_events, trace_picture
from tools.rung import SHOWN_SCHEDULE, Case, execute, sizes_of
from tools.terminal import Parser, Refusal, note, plural, say
from tools.timeline import VIRTUAL_TIME, one_launch

K_TILES = 10  # the ring of 4 stages two and a half times


def default_shape(name, variant=""):
    """A tile, or those of a cluster, and enough K tiles to go round the ring more than twice; where clusters stay, three
    tiles for one."""
    step = int(name[4:6])
    if step == 7:
        return "256x768x256"
    tile_k = 16 if step < 4 else 64
    cluster = re.match(r"(\d+)x(\d+)", variant or "2x2") if step == 6 else None
    down, across = map(int, cluster.groups()) if cluster else (1, 1)
    return f"{128 * down}x{256 * across}x{tile_k * (1 if step == 0 else K_TILES)}"


def default_variant(name):
    """Where clusters stay, one has all the tiles; else the rung's own."""
    return "clusters=1,tile-n=256" if name.startswith("step07") else ""


def case_of(name, shape, schedule, variant=""):
    sizes = sizes_of(shape, example=default_shape(name))
    if not re.fullmatch(r"earliest|latest|random(:\d+)?", schedule):
        raise Refusal(f"--schedule {schedule}: expected earliest, latest, random or random:SEED.")
    return Case(name, *sizes, schedule=schedule, variant=variant)


def traced(case):
    """The outcome of a run on the emulator and, when it is good, its launch."""
    outcome = execute(case, trace=True)
    return outcome, one_launch(outcome.trace.decode()) if outcome.good else None


def chosen(launch, options):
    """The CTAs of the JSON, and the one of the picture."""
    numbers = sorted({cta.cluster for cta in launch.ctas})
    if options.cluster is not None:
        if options.cluster not in numbers:
            raise Refusal(f"--cluster {options.cluster}: the launch had {plural(len(numbers), 'cluster')}, counted from 0.")
        ctas = launch.cluster(options.cluster)
        return ctas, ctas[0]
    if options.cta is not None:
        if not 0 <= options.cta < len(launch.ctas):
            raise Refusal(f"--cta {options.cta}: the launch had {plural(len(launch.ctas), 'CTA')}, counted from 0.")
        return [launch.ctas[options.cta]], launch.ctas[options.cta]
    return launch.ctas, launch.ctas[0]


def command(arguments):
    parser = Parser(prog="ladder trace", description=__doc__.split("\n")[0])
    parser.add_argument("rung", metavar="stepNN")
    parser.add_argument("--shape", metavar="MxNxK", help="default: a tile, or those of a cluster, and some K tiles")
    parser.add_argument("--variant", default="", metavar="NAME",
                        help="as the rung takes it (default: its own; of step07 clusters=1,tile-n=256)")
    parser.add_argument("--schedule", default=SHOWN_SCHEDULE, metavar="WHEN",
                        help=f"when asynchronous work is done: earliest, latest or random:SEED (default: {SHOWN_SCHEDULE})")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--cta", type=int, metavar="I", help="that CTA alone, counted cluster by cluster (default: all; the "
                       "picture shows the first)")
    which.add_argument("--cluster", type=int, metavar="I", help="the CTAs of that cluster")
    parser.add_argument("--out", type=Path, default=build.ROOT / "trace", metavar="FOLDER", help="default: trace/")
    options = parser.parse_args(arguments)
    name = build.named(options.rung)
    case = case_of(name, options.shape or default_shape(name, options.variant), options.schedule,
                   options.variant or default_variant(name))
    build.build(quiet=True, target="rungs")
    outcome, launch = traced(case)
    if launch is None:
        note(outcome.text.strip())
        note(f"{name} ended with exit status {outcome.status}. Again: {case.command_line()}")
        return outcome.status if outcome.status in (1, 2) else 1

    ctas, shown = chosen(launch, options)
    about = {"rung": name, "variant": outcome.report["variant"], "shape": case.shape, "schedule": case.schedule,
             "chip": "an emulated B200; nobody ran this on a real one"}
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        json_file, svg_file = options.out / f"{name}.json", options.out / f"{name}.svg"
        json_file.write_text(trace_events.json_text(ctas, about))
        svg_file.write_text(trace_picture.svg(case, shown))
    except OSError as error:
        raise Refusal(f"--out {options.out}: {error.strerror}.") from None
    say(f"{name} ({about['variant']}) at {case.shape}, schedule {case.schedule}: {plural(len(ctas), 'CTA')}, "
        f"{sum(len(cta.spans) for cta in ctas)} slices.")
    say(f"All times are {VIRTUAL_TIME}: they order events and measure nothing.")
    say(f"{json_file}: open it in https://ui.perfetto.dev (Open trace file); it stays in your browser. 1 us there is 1 cycle.")
    say(f"{svg_file}: CTA {launch.ctas.index(shown)} as a picture, for any browser.")
    return 0
