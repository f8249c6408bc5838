"""`ladder speed`: measures what the emulator, the build and the tests cost, and writes bench/emulator_speed.json."""

import datetime
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools import build
from tools.rung import Case, execute
from tools.terminal import Parser, note, output_of, say

FILE = build.ROOT / "bench" / "emulator_speed.json"
CORES = 2
# (rung, size of a cubic product, runs, limit in seconds); from SWIZZLED on, every rung
RUNS = [("step01_kloop", 1024, 5, 1.5), ("step01_kloop", 4096, 3, 12.0)]
SWIZZLED, SWIZZLED_RUN = "step04_swizzle", (4096, 3)
LIMITS = {"step07_persistent": 6.0}  # of these; 7 for the others
ALL_SHAPE, ALL_RUNS, ALL_LIMIT_S = "512x512x512", 3, 5.0
THRUST_KEYS, THRUST_RUNS, THRUST_LIMIT_S = 1 << 20, 3, 5.0
BUILD_LIMIT_S, TEST_LIMIT_S = 240.0, 300.0

CHECKED, CHECKED_SIZE, CHECKED_RUNS, CHECKED_LIMIT = ("step04_swizzle", "step05_epilogue", "step06_multicast"), 2048, 5, 4.0

PARTS = ["rung", "all", "thrust", "check", "build", "test"]


def machine():
    cpu = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())
    return {
        "cpu": cpu.group(1) if cpu else platform.machine(),
        "cores_used": len(os.sched_getaffinity(0)),
        "cores_present": os.cpu_count(),
        "memory_gib": round(int(memory.group(1)) / 2**20, 1),
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", platform.platform()),
        "compiler": (output_of([json.loads(build.STAMP.read_text())["cxx"], "--version"]) or "").split("\n")[0],
    }


def spread(values):
    return {"median": round(statistics.median(values), 3), "least": round(min(values), 3), "most": round(max(values), 3),
            "runs": len(values)}


def matrices_bytes(case):
    element = {"f16": 2, "bf16": 2, "f32": 4}
    return (case.m + case.n) * case.k * element[case.dtype] + case.m * case.n * element[case.out_dtype]


def measure_rung(rung, size, runs, limit):
    case = Case(rung, size, size, size, "f16", "f16")
    outcomes = []
    for number in range(runs + 1):  # the first warms the file cache and does not count
        outcome = execute(case)
        if not outcome.good:
            note(outcome.text)
            raise SystemExit(f"{rung} failed: {case.command_line()}")
        note(f"{rung} {case.shape}: {outcome.seconds:.2f} s{' (warm-up)' if number == 0 else ''}")
        outcomes.append(outcome)
    counted = outcomes[1:]
    matrices = matrices_bytes(case)
    return {
        "what": f"{rung} at {case.shape}, f16 in and out, whole process with --check",
        "seconds": spread([outcome.seconds for outcome in counted]),
        "limit_seconds": limit,
        "peak_memory_mb": round(max(outcome.peak_bytes for outcome in counted) / 1e6, 1),
        "matrices_mb": round(matrices / 1e6, 1),
        "limit_memory_mb": round((3 * matrices + 200e6) / 1e6, 1),
    }


def timed(command, environment):
    begin = time.monotonic()
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode:
        note(done.stdout)
        raise SystemExit(f"{' '.join(command)} failed.")
    return time.monotonic() - begin


def measured(name, what, command, environment, runs, limit):
    """A command's figure; its first run warms the file cache and does not count."""
    seconds = [timed(command, environment) for _ in range(runs + 1)][1:]
    note(f"{name}: {' '.join(f'{each:.2f}' for each in seconds)} s")
    return [{"what": what, "seconds": spread(seconds), "limit_seconds": limit}]


def measure_all():
    command = [sys.executable, str(build.ROOT / "ladder"), "run", "--shape", ALL_SHAPE]
    return measured(f"all rungs at {ALL_SHAPE}", f"./ladder run of all rungs at {ALL_SHAPE} (step00 at K = 16), each checked",
                    command, dict(os.environ), ALL_RUNS, ALL_LIMIT_S)


def measure_thrust():
    build.build(quiet=True, target="thrust_benchmark")
    environment = {**os.environ, "LADDER_CHIP": "b200", "LD_LIBRARY_PATH": str(build.FOLDER / "lib")}
    command = [str(build.FOLDER / "tests" / "benchmarks" / "thrust_benchmark"), str(THRUST_KEYS)]
    return measured("thrust", f"thrust::reduce and thrust::sort of {THRUST_KEYS} random 32-bit keys, whole process, both checked",
                    command, environment, THRUST_RUNS, THRUST_LIMIT_S)


def measure_check(rung):
    """Plain runs and runs that are held to the hazard rules, one after the other."""
    plain, checked = [], []
    case = Case(rung, CHECKED_SIZE, CHECKED_SIZE, CHECKED_SIZE, "f16", "f16")
    for _ in range(CHECKED_RUNS + 1):
        for held, times in ((False, plain), (True, checked)):
            outcome = execute(case.but(rules=held), check=False)
            if outcome.status:
                note(outcome.text)
                raise SystemExit(f"{rung} failed: {case.command_line()}")
            times.append(outcome.seconds)
    of_plain = statistics.median(checked[1:]) / statistics.median(plain[1:])
    note(f"{rung} {case.shape} held to the rules: {of_plain:.2f} times a plain run")
    return {"what": f"{rung} at {case.shape} held to the hazard rules, whole process", "seconds": spread(checked[1:]),
            "plain_seconds": spread(plain[1:]), "times_a_plain_run": round(of_plain, 2),
            "limit_seconds": round(CHECKED_LIMIT * statistics.median(plain[1:]), 3)}


def measure_build():
    """A clean build of everything, without a compiler cache, then a second one with nothing to do."""
    folder = tempfile.mkdtemp(prefix="ladder-build-")
    environment = {**os.environ, "LADDER_BUILD": folder, "CCACHE_DISABLE": "1"}
    ladder = [sys.executable, str(build.ROOT / "ladder"), "build"]
    try:
        clean, again = timed(ladder, environment), timed(ladder, environment)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    note(f"clean build: {clean:.0f} s, again {again:.2f} s")
    return [{"what": "clean ./ladder build of everything", "seconds": spread([clean]), "limit_seconds": BUILD_LIMIT_S},
            {"what": "./ladder build with nothing to do", "seconds": spread([again]), "limit_seconds": 1.5}]


def measure_test():
    seconds = timed([sys.executable, str(build.ROOT / "ladder"), "test"], dict(os.environ))
    note(f"tests: {seconds:.0f} s")
    return [{"what": "./ladder test on a finished build", "seconds": spread([seconds]), "limit_seconds": TEST_LIMIT_S}]


def renewed(before, record):
    """The record with the figures of an earlier one that it lacks, if they are of such a machine, too."""
    if before.get("machine") not in (None, record["machine"]):
        raise SystemExit(f"{FILE.name} is of another machine; without --only all of it is measured here")
    new = {figure["what"]: figure for figure in record["figures"]}
    figures = [new.pop(figure["what"], figure) for figure in before.get("figures", [])]
    return record | {"figures": figures + list(new.values())}


def command(arguments):
    parser = Parser(prog="ladder speed", description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append", help="part of it; the other figures stay as they are")
    options = parser.parse_args(arguments)
    build.build(quiet=True, target="rungs")
    # Two cores, as the figures say, also on a machine that has more; children inherit this.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    parts = options.only or PARTS
    figures = []
    if "rung" in parts:
        rungs = [name for name in build.rungs() if name >= SWIZZLED]
        figures += [measure_rung(*each) for each in RUNS + [(rung, *SWIZZLED_RUN, LIMITS.get(rung, 7.0)) for rung in rungs]]
    if "all" in parts:
        figures += measure_all()
    if "thrust" in parts:
        figures += measure_thrust()
    if "check" in parts:
        figures += [measure_check(rung) for rung in CHECKED]
    if "build" in parts:
        figures += measure_build()
    if "test" in parts:
        figures += measure_test()
    of_today = {"date": datetime.date.today().isoformat(),
                "commit": (output_of(["git", "-C", str(build.ROOT), "rev-parse", "--short", "HEAD"]) or "").strip()}
    record = {
        "label": "measured",
        "what": "what emulation, build and tests cost on an ordinary machine",
        "machine": machine(),
        "protocol": "wall clock of whole processes on two cores, one warm-up that does not count, median of the runs with the "
                    "least and the most; memory is the largest resident set of the process; nothing else was started meanwhile",
        "figures": [figure | of_today for figure in figures],
    }
    over = 0
    for figure in figures:
        late = figure["seconds"]["median"] > figure["limit_seconds"]
        big = figure.get("peak_memory_mb", 0) > figure.get("limit_memory_mb", 0)
        over += late or big
        memory = f", {figure['peak_memory_mb']:.0f} MB (limit {figure['limit_memory_mb']:.0f})" if "peak_memory_mb" in figure else ""
        say(f"{figure['what']}: {figure['seconds']['median']:.2f} s (limit {figure['limit_seconds']:g}){memory}"
            f"{'   OVER' if late or big else ''}")
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(renewed(json.loads(FILE.read_text()) if options.only else {}, record), indent=2) + "\n")
    say(f"Written to {FILE.relative_to(build.ROOT)}.")
    return 1 if over else 0
