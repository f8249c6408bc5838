"""`ladder profile stepNN`: what the chip counted while one launch of a rung ran, by Nsight Compute, beside the origin's.

A fixed list of counters, each with what it means; the whole report is left for Nsight Compute's own window.
"""

import csv
import datetime
import io
import json
import re
import shlex
import shutil
import subprocess
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path

from tools import build, figures, gpu_tool
from tools.selfcheck import without_names
from tools.terminal import Parser, Refusal, note, say

FOLDER = build.ROOT / "bench" / "profiles"
ORIGIN = build.ROOT / "bench" / "origin_profiles.json"
SHAPE = "square-4096"
CUBLAS = "cublas"
MOST_REPORT_BYTES, MOST_BYTES = 1 << 20, 12 << 20  # of a committed report, of all of them
NEUTRAL = Path("/tmp/gemm-ladder")  # a folder that says nothing of whose machine it is
LIMIT_SECONDS = 600  # for a kernel: it runs once for each set of counters

SECTIONS = ("SpeedOfLight", "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables", "SchedulerStats", "WarpStateStats", "Occupancy",
            "LaunchStats")
CLOCKS = "--clock-control none: the clock is the chip's own choice, not locked to the base clock"


@dataclass(frozen=True)
class Metric:
    key: str         # in bench/origin_profiles.json
    name: str
    unit: str        # that it is shown in
    counters: tuple  # Nsight Compute's names; the first that the chip has counts
    meaning: str


METRICS = (
    Metric("time", "kernel time", "us", ("gpu__time_duration.sum",),
           "How long the launch took on the chip: with cold caches, which may make it longer than in a benchmark, and alone, at a higher clock, "
           "which may make it shorter."),
    Metric("clock", "SM clock", "GHz", ("sm__cycles_elapsed.avg.per_second", "smsp__cycles_elapsed.avg.per_second"),
           "Cycles of the SMs in a second of the launch. Times of two runs compare only where this is the same."),
    Metric("tensor", "tensor pipe busy", "%",
           ("sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_active", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"),
           "Share of an SM's cycles in which its tensor cores multiply. It is the goal: at 100 % nothing else can matter. Blackwell's "
           "tcgen05 has a pipe of its own (tc)."),
    Metric("l1tex", "L1/TEX busy", "%", ("l1tex__throughput.avg.pct_of_peak_sustained_active",),
           "The busiest part of the unit that holds shared memory, of what it could do at most. Near 100 % the way into or out of "
           "shared memory is the limit."),
    Metric("bank_writes", "shared memory's banks, writing", "%", ("l1tex__data_bank_writes.avg.pct_of_peak_sustained_elapsed",),
           "Share of what the memory's banks could take that was written, TMA's boxes too: no counter has their conflicts."),
    Metric("bank_conflicts", "bank conflicts of threads", "", ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
                                                               "l1tex__data_bank_conflicts_pipe_lsu.sum"),
           "Extra turns because threads of a warp wanted different words of one bank. Only loads and stores of threads, as an "
           "epilogue has them; TMA and tensor cores are not in it."),
    Metric("l2", "L2 busy", "%", ("lts__throughput.avg.pct_of_peak_sustained_elapsed",),
           "The busiest part of the second-level cache, of what it could do at most."),
    Metric("l2_hits", "L2 hit rate", "%", ("lts__t_sector_hit_rate.pct",),
           "Of the 32-byte sectors that were asked of L2, how many were there. The others came from DRAM."),
    Metric("l2_reads", "sectors read from L2", "", ("lts__t_sectors_op_read.sum",),
           "In sectors of 32 bytes. Fewer than TMA brings into the SMs where CTAs of a cluster share, or where SMs want the same lines at "
           "about the same time."),
    Metric("dram", "DRAM busy", "%", ("dram__throughput.avg.pct_of_peak_sustained_elapsed",
                                      "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
           "The chip's memory, of its peak. A large product reuses what it reads, so this should be low."),
    Metric("dram_read", "read from DRAM", "MB", ("dram__bytes_read.sum",), "At least A and B once each: what is more was read again."),
    Metric("dram_written", "written to DRAM", "MB", ("dram__bytes_write.sum",), "D, as far as it did not stay in L2."),
    Metric("issue", "between instructions of a warp", "cycles", ("smsp__average_warp_latency_per_inst_issued.ratio",),
           "Cycles from one issued instruction of a warp to its next. Much is waiting; warps that wait while others work are harmless."),
    Metric("waves", "waves", "", ("launch__waves_per_multiprocessor",),
           "CTAs of the grid over CTAs that the chip holds at once. Just above a whole number, the last wave leaves SMs idle."),
    Metric("occupancy", "occupancy", "%", ("sm__warps_active.avg.pct_of_peak_sustained_active",),
           "Warps on an SM, of the most it can hold. Low is right here: one CTA fills shared memory, and asynchronous copies do "
           "what many warps do elsewhere."),
    Metric("registers", "registers a thread", "", ("launch__registers_per_thread",), "What the compiler gave each thread at launch."),
    Metric("shared", "shared memory a CTA", "KB", ("launch__shared_mem_per_block", "launch__shared_mem_per_block_allocated"),
           "The ring of stages is most of it."),
    Metric("instructions", "instructions", "", ("smsp__inst_executed.sum",),
           "Of all warps. Polls of a barrier are among them, so it may differ from run to run."),
)

STALLS = {  # in a warp's time between two of its instructions
    "barrier": "at the CTA's barrier, __syncthreads",
    "long_scoreboard": "for a result from L1/TEX: loads of global memory; as the origin reads it, polls of an mbarrier, too",
    "short_scoreboard": "for a result from shared memory's queue",
    "gmma": "for a warpgroup's MMAs",
    "warpgroup_arrive": "for the other warps of its warpgroup",
    "wait": "for a fixed latency of the instruction before",
    "membar": "for a memory fence",
    "sleeping": "all its threads sleep or have yielded, as a suspended try_wait",
    "branch_resolving": "for a branch's target",
    "math_pipe_throttle": "its arithmetic pipe was busy",
    "mio_throttle": "the queue to shared memory was full",
    "lg_throttle": "the queue to global memory was full",
    "tex_throttle": "the queue to the texture unit was full",
    "no_instructions": "for instructions to arrive",
    "imc_miss": "for a constant to arrive",
    "dispatch_stall": "the dispatcher held it back",
    "drain": "for its stores, after its last instruction",
    "misc": "for something else",
}
SHOWN_STALLS = 3  # the longest of a run


def stall(reason):
    return Metric(f"stall_{reason}", f"  of which {reason.replace('_', ' ')}", "cycles",
                  (f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio",), f"Waiting {STALLS[reason]}."
                  if STALLS[reason].startswith(("at", "for")) else f"{STALLS[reason][0].upper()}{STALLS[reason][1:]}.")


REASONS = tuple(map(stall, STALLS))
ALL = tuple(each for metric in METRICS for each in ((metric, *REASONS) if metric.key == "issue" else (metric,)))
COUNTERS = tuple(counter for metric in ALL for counter in metric.counters)

# Nsight Compute's units in ours; which ones it takes depends on its version.
UNITS = {
    "us": {"ns": 1e-3, "nsecond": 1e-3, "us": 1, "usecond": 1, "ms": 1e3, "msecond": 1e3, "s": 1e6, "second": 1e6},
    "GHz": {"hz": 1e-9, "cycle/second": 1e-9, "cycle/s": 1e-9, "Mhz": 1e-3, "Ghz": 1, "cycle/nsecond": 1, "cycle/ns": 1},
    "MB": {"byte": 1e-6, "Kbyte": 1e-3, "Mbyte": 1, "Gbyte": 1e3},
    "KB": {"byte/block": 1e-3, "byte": 1e-3, "Kbyte/block": 1, "Kbyte": 1},
}


@dataclass
class Profile:
    """Counters of one launch."""
    values: dict  # counter -> (unit, value): only those that the chip has
    about: dict   # where they come from

    def value(self, metric):
        """In the metric's unit, or in words if it came in one that UNITS lacks; None where the chip has no such counter."""
        for unit, value in (self.values[counter] for counter in metric.counters if counter in self.values):
            scales = UNITS.get(metric.unit)
            if not scales:
                return value
            return value * scales[unit] if unit in scales else f"{value:g} {unit}"
        return None


def number(text):
    """Of a cell of Nsight Compute's, with commas between thousands; None where it has no number."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None  # no NaN either


def parsed(text):
    """Nsight Compute's page `raw` as CSV: names, units, then a row for each launch, of which there must be one."""
    begin = re.search(r'^"?ID"?,', text, re.MULTILINE)
    rows = list(csv.reader(io.StringIO(text[begin.start():]))) if begin else []
    if len(rows) != 3 or len({len(row) for row in rows}) != 1:
        raise Refusal(f"ncu's table has {max(len(rows) - 2, 0)} launches, expected 1: {' '.join(text.split())[:200] or 'it is empty'}")
    cells = {name: (unit, value) for name, unit, value in zip(*rows)}
    values = {name: (cells[name][0], number(cells[name][1])) for name in COUNTERS
              if name in cells and number(cells[name][1]) is not None}
    about = {key: cells[name][1] for key, name in (("kernel", "Kernel Name"), ("block", "Block Size"), ("grid", "Grid Size"))
             if name in cells}
    return Profile(values, about)


HEADER = ["metric", "unit", "value"]


def write(path, profile):
    """One row for each counter; what the chip does not have, has no value. Where it comes from, in the .json beside it."""
    with open(path, "w", newline="") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(HEADER)
        for counter in COUNTERS:
            unit, value = profile.values.get(counter, ("", None))
            rows.writerow([counter, unit, "" if value is None else f"{value:.15g}"])
    path.with_suffix(".json").write_text(json.dumps(profile.about, indent=1) + "\n")


def read(path):
    """A committed profile; None where there is none."""
    beside = path.with_suffix(".json")
    try:
        rows = csv.DictReader(io.StringIO(path.read_text()))
        if rows.fieldnames != HEADER:
            raise ValueError(f"its first line is not {','.join(HEADER)}")
        values = {row["metric"]: (row["unit"], float(row["value"])) for row in rows if row["value"]}
        if not beside.is_file():
            raise Refusal(f"{path}: incomplete: there is no {beside}, which says where it comes from; record it again, or take both from git.")
        about = json.loads(beside.read_text())
        if not isinstance(about, dict):
            raise ValueError(f"{beside.name} is no object")
        return Profile(values, about)
    except FileNotFoundError:
        return None
    except (OSError, csv.Error, TypeError, ValueError) as error:
        raise Refusal(f"{path}: no profile as ./ladder profile --record writes it ({error}); record it again, or take "
                      "it from git.") from None


def stem(name, variant="", shape=SHAPE):
    """What a profile's files are called: step04, step07.tile-n-128."""
    parts = [name.split("_")[0], variant, "" if shape == SHAPE else shape]
    return ".".join(re.sub(r"[^\w-]+", "-", part) for part in parts if part)


def committed(name, variant="", shape=SHAPE):
    """Chip -> profile."""
    found = {folder.name: read(folder / f"{stem(name, variant, shape)}.csv") for folder in sorted(FOLDER.glob("*")) if folder.is_dir()}
    return {chip: profile for chip, profile in found.items() if profile}


def origin(name, variant="", shape=SHAPE):
    """What the write-up says of its own kernel: a metric's key -> a number, or words that say more."""
    if shape != SHAPE:
        return {}
    known = json.loads(ORIGIN.read_text())["profiles"]
    return known.get(f"{name}:{variant}" if variant else name, {})


def figure(value):
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value >= 1000 else f"{value:.{1 if value >= 10 else 2}f}".rstrip("0").rstrip(".")


def rows(columns):
    """(metric, a cell for each column), for columns that are profiles, an origin's figures, or None. Of the reasons to wait
    only the longest ones of each column."""
    def value(column, metric):
        return None if column is None else column.value(metric) if isinstance(column, Profile) else column.get(metric.key)
    longest = set()
    for column in columns:
        reasons = [metric for metric in REASONS if value(column, metric)]
        if isinstance(column, Profile):
            reasons = sorted(reasons, key=column.value, reverse=True)[:SHOWN_STALLS]
        longest |= {metric.key for metric in reasons}
    for metric in ALL:
        if metric not in REASONS or metric.key in longest:
            yield metric, [figure(value(column, metric)) for column in columns]


def named_with_unit(metric):
    return f"{metric.name}, {metric.unit}" if metric.unit else metric.name


def show(name, variant, shape, here=None, chip=""):
    """The table for a terminal: this run, what is committed for its chip, the origin's."""
    known = committed(name, variant, shape)
    again = " ".join(["./ladder profile", name.split("_")[0], *(["--variant", variant] if variant else []),
                      *(["--shape", shape] if shape != SHAPE else []), "--record"])
    if here is None and not known and not origin(name, variant, shape):
        say(f"Nothing is committed of that, and the origin gives nothing of it. On a GPU: {again}")
        return
    chips = [chip] if chip else list(known)
    heads = (["this run"] if here else []) + [f"committed, {each}" for each in chips] + ["origin, B200"]
    columns = ([here] if here else []) + [known.get(each) for each in chips] + [origin(name, variant, shape)]
    table = [["", *heads]] + [[named_with_unit(metric), *cells] for metric, cells in rows(columns)]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    meanings = ["what it means"] + [metric.meaning for metric, _ in rows(columns)]
    left = sum(widths) + 2 * len(widths)
    room = max(40, min(shutil.get_terminal_size((160, 24)).columns, 200) - left)
    for cells, meaning in zip(table, meanings):
        line = "  ".join([cells[0].ljust(widths[0]), *[cell.rjust(width) for cell, width in zip(cells[1:], widths[1:])]])
        for part in textwrap.wrap(meaning, room):
            say(f"{line}  {part}")
            line = " " * (left - 2)
    if here is None:
        if not known:
            say(f"\nNothing is committed of that. On a GPU: {again}")
        for each, profile in known.items():
            say(f"\n{each}: {', '.join(f'{key} {text}' for key, text in profile.about.items() if key not in ('what', 'label'))}")
    say("\nThe origin's figures are KyrieBlunders', of the author's kernels on a B200: another kernel on another chip. '-': not given, "
        "not recorded, no such counter on this chip, or one that Nsight Compute could not compute.")


@dataclass(frozen=True)
class Target:
    """What is launched under Nsight Compute."""
    name: str
    shape: str        # as it is named
    variant: str      # "": the default
    program: tuple
    kernel: str       # a regular expression
    device: dict      # as --where has it


INSTEAD = "`./ladder profile --show STEP` prints what is committed"


def target(name, shape, variant):
    if name == CUBLAS:
        device = gpu_tool.on_gpu(build.rungs()[1], "a profile", INSTEAD)["device"]
        # A bench of one round and no side but cuBLAS's; its own kernels, which read clocks, have other names.
        program = (build.FOLDER / "bin" / "gemm_bench", "--shape", shape, "--proposals", "1", "--rounds", "1", "--idle", "0",
                   "--sample", "1e-6")
        return Target(name, shape, "", program, "nvjet|gemm|cutlass", device)
    found = gpu_tool.on_gpu(name, "a profile", INSTEAD, variant)
    size = f"4096x4096x{found['fixed_k']}" if found["fixed_k"] and shape == SHAPE else shape
    # --bench, for a launch behind the first: that one warms up.
    program = (build.rung(name), "--shape", size, "--on", "gpu", "--bench", "--time-limit", LIMIT_SECONDS)
    program += ("--variant", variant) if variant else ()
    return Target(name, shape, variant, program, name.split("_")[0], found["device"])


def not_permitted(ncu):
    return Refusal(f"{ncu} may not read the GPU's counters (ERR_NVGPUCTRPERM): the driver gives them to root only. Run as root; in a "
                   "container also with --privileged or --cap-add SYS_ADMIN; or let everybody read them, with the line `options nvidia "
                   "NVreg_RestrictProfilingToAdminUsers=0` in /etc/modprobe.d/ and a restart: "
                   "https://developer.nvidia.com/ERR_NVGPUCTRPERM. `./ladder bench` needs no counters.")


def options_of(goal, report, counters):
    options = ["--target-processes", "all", "--clock-control", "none", "--import-source", "no", "--kernel-name", f"regex:{goal.kernel}",
               "--launch-skip", "1", "--launch-count", "1"]
    for section in SECTIONS:
        options += ["--section", section]
    return options + ["--metrics", ",".join(counters), "--force-overwrite", "--export", str(report)]


def run(ncu, goal, report):
    """Leaves a report, or refuses. A counter that this ncu will not even look for is left out."""
    report.unlink(missing_ok=True)
    counters = COUNTERS
    while True:
        options = options_of(goal, report, counters)
        done = subprocess.run([str(each) for each in (ncu, *options, *goal.program)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        if "ERR_NVGPUCTRPERM" in done.stdout:
            raise not_permitted(ncu)
        unknown = {each.rstrip(".") for each in re.findall(r"Failed to find metric (?:regex:)?\^?([\w.]+)", done.stdout)} & set(counters)
        if report.is_file() or not unknown:
            break
        counters = tuple(each for each in counters if each not in unknown)
    if done.returncode or not report.is_file():
        said = "\n    ".join(done.stdout.strip().splitlines()[-12:])
        raise Refusal(f"{goal.name}: ncu ended with exit status {done.returncode} and {'a' if report.is_file() else 'no'} report of "
                      f"{shlex.join(map(str, goal.program))}; its last lines:\n    {said}")
    return options


def measured(ncu, goal, report):
    """The goal's profile, its report left in `report`."""
    options = run(ncu, goal, report)
    done = subprocess.run([str(ncu), "--import", str(report), "--csv", "--page", "raw", "--print-units", "base"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode:
        raise Refusal(f"{ncu} --import {report}: exit status {done.returncode}. {done.stderr.strip() or done.stdout.strip()}")
    profile = parsed(done.stdout)
    variant = f" --variant {goal.variant}" if goal.variant else ""
    kept = options[:options.index("--metrics")]
    profile.about = {"label": "measured", "what": "counters of one launch, the second of its process; caches emptied before each pass",
                     "date": datetime.date.today().isoformat(), "gpu": goal.device["name"], "driver": gpu_tool.driver(),
                     "tool": f"Nsight Compute {gpu_tool.version_of(ncu)}", "clock": CLOCKS, "shape": goal.shape,
                     "variant": goal.variant or "the default", **profile.about,
                     "command": f"./ladder profile {goal.name.split('_')[0]} --shape {goal.shape}{variant}",
                     "ncu": without_names(shlex.join([*kept, *map(str, goal.program)]))}
    write(report.with_suffix(".csv"), profile)
    return profile


def kernel_of(ncu, report):
    """The mangled name of the report's kernel."""
    done = subprocess.run([str(ncu), "--import", str(report), "--csv", "--page", "raw", "--print-kernel-base", "mangled"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace")
    return parsed(done.stdout).about.get("kernel", "")


def with_few_kernels(goal, kernel, folder):
    """The goal with an executable whose GPU code for a Hopper is this kernel's, for all sizes that it is compiled for, and has no
    line numbers: a report carries all of the module that its kernel comes from, and some rungs have dozens in one."""
    sizes = re.sub(r"Li\d+E", r"Li\\d+E", kernel)  # a plan may ask about another size's
    kernels = sorted({each.decode() for each in re.findall(sizes.encode() + rb"(?![A-Za-z0-9_])", build.rung(goal.name).read_bytes())})
    options = [f"-Xptxas=--entry={each}" for each in kernels] + ["-Xptxas=--suppress-debug-info"]
    program = build.rebuilt(goal.name, {f"{goal.name}/hopper.cu": (None, options)}, folder / "few_kernels")
    return replace(goal, program=(program, *goal.program[1:]))


def refuse_too_large(report, folder):
    """What git would carry for ever."""
    size = report.stat().st_size
    if size > MOST_REPORT_BYTES:
        raise Refusal(f"{report}: {size:,} bytes, and a committed report has at most {MOST_REPORT_BYTES:,}. Nothing is recorded; the "
                      "report and its .csv stay there. Take sections out of SECTIONS in tools/profile.py, or leave --record out.")
    others = sum(path.stat().st_size for path in FOLDER.rglob("*.ncu-rep") if path != folder / report.name)
    if size + others > MOST_BYTES:
        raise Refusal(f"{FOLDER}: {size + others:,} bytes of reports with {report.name}, and there may be {MOST_BYTES:,}. Nothing is "
                      "recorded; remove some that no page needs.")


def refuse_paths(report):
    """What would tell everybody whose machine this is. A report holds the paths of the program and of its sources."""
    text = report.read_bytes()
    for path in (build.ROOT, build.FOLDER):
        if str(path) != "/" and not path.is_relative_to(NEUTRAL) and str(path).encode() in text:
            raise Refusal(f"{report}: has {path} in it, a folder of this machine, which would be in git for ever. Nothing is recorded; the "
                          f"report and its .csv stay there. Record from a copy of the checkout in {NEUTRAL}: a report holds the paths of "
                          "program and sources.")


def keep(report, chip):
    folder = FOLDER / chip
    refuse_paths(report)
    refuse_too_large(report, folder)
    folder.mkdir(parents=True, exist_ok=True)
    for suffix in (".ncu-rep", ".csv", ".json"):
        shutil.copyfile(report.with_suffix(suffix), folder / report.with_suffix(suffix).name)
    say(f"recorded in {folder / report.stem}.csv, .json and .ncu-rep")


def profile_one(ncu, name, options):
    goal = target(name, options.shape, options.variant)
    folder = options.out or build.FOLDER / "profiles"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refusal(f"--out {folder}: cannot be made ({error.strerror}); name another folder.") from None
    report = folder / f"{stem(name, options.variant, options.shape)}.ncu-rep"
    note(f"{name}: one launch, again and again for each set of counters ...")
    profile, chip = measured(ncu, goal, report), gpu_tool.chip_of(goal.device["name"])
    if options.record and report.stat().st_size > MOST_REPORT_BYTES and name != CUBLAS:
        note(f"{name}: a report of {report.stat().st_size:,} bytes; once more without the code of other kernels ...")
        profile = measured(ncu, with_few_kernels(goal, kernel_of(ncu, report), folder), report)
    say(f"{name} {options.variant}".strip() + f" at {options.shape}, {goal.device['name']}: {profile.about.get('kernel', '')}\n")
    show(name, options.variant, options.shape, profile, chip)
    say(f"\nAll of it: ncu-ui {report} ({report.stat().st_size:,} bytes)")
    if options.record:
        keep(report, chip)


def command(arguments):
    parser = Parser(prog="ladder profile", description=__doc__.split("\n\n")[0])
    parser.add_argument("rung", metavar="STEP", help=f"a rung, all (and {CUBLAS}), or {CUBLAS}: the kernel that cuBLAS proposes first")
    parser.add_argument("--variant", default="", metavar="NAME", help="as the rung takes it")
    parser.add_argument("--shape", default=SHAPE, metavar="MxNxK", help=f"or a shape's name (default: {SHAPE}; step00 at its own K)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the report goes (default: profiles/ in the build folder)")
    parser.add_argument("--record", action="store_true", help="keep report and counters in bench/profiles/CHIP/, for git")
    parser.add_argument("--show", action="store_true", help="run nothing: what is committed, beside the origin's")
    options = parser.parse_args(arguments)
    names = {"all": [*build.sources(), CUBLAS], CUBLAS: [CUBLAS]}.get(options.rung) or [build.named(options.rung)]
    if options.variant and options.rung in ("all", CUBLAS):
        raise Refusal(f"--variant {options.variant}: {options.rung} has none; name one rung, or leave it out.")
    try:
        figures.sizes(options.shape)
    except Refusal as refusal:
        raise Refusal(f"--shape {refusal}") from None
    if options.show:
        for name in names:
            say(f"{name} {options.variant}".strip() + f" at {options.shape}\n")
            show(name, options.variant, options.shape)
        return 0
    ncu = gpu_tool.find("ncu", "Nsight Compute")
    gpu_tool.require_gpu("a profile", INSTEAD)
    build.build(quiet=True, target="rungs")
    if CUBLAS in names:
        build.build(quiet=True, target="gemm_bench")
    refused = []
    for name in names:
        try:
            profile_one(ncu, name, options)
        except Refusal as refusal:
            if len(names) == 1:
                raise
            note(f"{refusal}\n")  # the others are worth having
            refused.append(name)
    if refused:
        note(f"Not profiled, for the reasons above: {', '.join(refused)}.")
    return 1 if refused else 0
