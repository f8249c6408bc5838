"""`ladder sanitize`: every rung and variant on this machine's GPU under the four tools of NVIDIA's compute-sanitizer.

At a shape that is ragged in M, N and K. What a tool is known to report though it is right, is in LIMITS, each with a minimal
program that shows it; anything else that a tool finds is a failure.
"""

import datetime
import itertools
import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools import build, gpu_tool
from tools.rung import Case
from tools.selfcheck import read_rows, refuse_anothers, without_names
from tools.terminal import Parser, Progress, Refusal, cores, plural, say

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
SHAPE, FIXED_K_SHAPE = (300, 520, 328), (300, 520)
KERNEL_SECONDS, SECONDS = 300, 900  # for a kernel, which is many times slower here; for a process
FOUND_STATUS = 99                   # of a process with findings: the rungs end with 0 to 2
MBARRIERS = 64                      # of a CTA, at most: the tools that follow them count them wrongly in large programs
SHOWN_FINDINGS, SHOWN_LINES = 2, 4

# Settings that no named variant has, where a rung's chip knows them.
EXTRA = {"step07_persistent": ("share=a", "scheduler=counter,ctas=2", "accumulators=2,ctas=2", "scheduler=counter,accumulators=2")}


@dataclass(frozen=True)
class Limit:
    """What a tool reports of code that is right."""
    tool: str
    rung: str
    settings: frozenset  # that a variant must have, all of them
    words: tuple         # all of them in every such finding
    program: str         # that shows it: tests/sanitizer/PROGRAM.cu
    why: str

    def is_of(self, finding):
        return all(words in " ".join(finding) for words in self.words)

    def explains(self, tool, rung, variant, finding):
        return (tool, rung) == (self.tool, self.rung) and self.settings <= set(variant.split(",")) and self.is_of(finding)


LIMITS = (
    # On an H200 there were as many as clusters. The only store in cluster.cuh is st_shared_cluster_u32; the tool names the function
    # inlined beside it, mapa_shared_cluster.
    Limit("racecheck", "step07_persistent", frozenset({"scheduler=counter"}),
          ("Potential invalid __shared__ write of size 4 bytes", "in cluster.cuh:", "in a block that might have already exited"),
          "hopper_exited_cta", "the CTA stored to waits at an mbarrier for that store before it leaves, which is not taken for an order"),
)


@dataclass(frozen=True)
class Run:
    rung: str
    variant: str
    tool: str
    shape: str

    @property
    def name(self):
        return f"{self.rung} {self.variant} {self.tool}"


@dataclass
class Result:
    run: Run
    errors: int = 0       # by the tool's own count
    findings: tuple = ()  # each a tuple of lines
    why: str = ""         # where no verdict can be had
    limit: Limit = None   # that explains all of it

    @property
    def failed(self):
        return bool(self.why) or (self.errors > 0 and not self.limit)

    @property
    def verdict(self):
        if self.why:
            return "no verdict"
        if not self.errors:
            return "clean"
        told = plural(self.errors, "error")
        return f"{told}; the tool's limit: see tests/sanitizer/{self.limit.program}.cu" if self.limit else told


SUMMARY = re.compile(r"^=+ (?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?\s*$|hazards? displayed.*$)", re.MULTILINE)
MORE = re.compile(r"^=+ ERROR SUMMARY: (\d+) errors? were not printed", re.MULTILINE)
NO_FINDING = re.compile(r"=+ (?:COMPUTE-SANITIZER|(?:ERROR|RACECHECK|LEAK) SUMMARY|Target application returned an error)")
HOST = "Saved host backtrace"  # what follows says where the kernel was launched
BROKEN = re.compile(r"=+ .*(?:Internal Sanitizer Error|No attachable process found|terminated before first instrumented|"
                    r"didn't terminate successfully|Device not supported|overflow of tracked cuda::barrier).*")


def findings_of(text):
    """The tool's findings: a line after its signs, and what is indented below. The program writes between them as it likes."""
    found = []
    for line in text.splitlines():
        if re.match(r"=+ \S", line) and not NO_FINDING.match(line):
            found.append([])
        if re.match(r"=+ +\S", line) and found and not NO_FINDING.match(line):
            found[-1].append(line.lstrip("=").strip())
    return tuple(map(tuple, found))


def judged(run, status, text):
    """What the tool's text and exit status mean."""
    summaries = SUMMARY.findall(text)
    broken = BROKEN.search(text)
    if broken or not summaries:
        last = text.strip().splitlines()[-1:] or ["it said nothing"]
        return Result(run, why=(broken[0] if broken else f"no summary; exit status {status}: {last[0]}").strip("= "))
    errors = sum(map(int, summaries))
    if not errors:
        # A rung says by its own status that D is wrong.
        return Result(run) if status == 0 else Result(run, why=f"no errors, and exit status {status}: {' '.join(text.split())[-300:]}")
    findings = findings_of(text)
    result = Result(run, errors, findings)
    if findings and not MORE.search(text) and status in (0, FOUND_STATUS):  # D is right, and nothing is left that was not shown
        fitting = [limit for limit in LIMITS if all(limit.explains(run.tool, run.rung, run.variant, each) for each in findings)]
        result.limit = fitting[0] if fitting else None
    return result


def sanitizer_command(sanitizer, tool, program):
    barriers = ("--num-cuda-barriers", MBARRIERS) if tool in ("racecheck", "synccheck") else ()
    return [str(each) for each in (sanitizer, "--tool", tool, "--target-processes", "all", "--error-exitcode", FOUND_STATUS,
                                   "--print-limit", 100, *barriers, *program)]


def output_of(command):
    """Status and everything it said; None and why, where it does not end."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None, f"it has not ended after {SECONDS} s"
    return done.returncode, done.stdout


def attempt(sanitizer, run):
    case = Case(run.rung, *map(int, run.shape.split("x")), out_dtype="f16", variant=run.variant, on="gpu", time_limit=KERNEL_SECONDS)
    status, text = output_of(sanitizer_command(sanitizer, run.tool, (build.rung(run.rung), *case.options())))
    return Result(run, why=text) if status is None else judged(run, status, text)


def extra(rung, settings):
    """What EXTRA has for a rung, where the chip knows those settings (see rung.settings)."""
    return [each for each in EXTRA.get(rung, ())
            if all(value in settings.get(name, ()) for name, value in (setting.split("=") for setting in each.split(",")))]


def planned(places, tools):
    """Every variant of each rung by name, and what is in EXTRA, under every tool."""
    for rung, place in places.items():
        shape = "x".join(map(str, (*FIXED_K_SHAPE, place["fixed_k"]) if place["fixed_k"] else SHAPE))
        for variant in [*place["variants"], *extra(rung, place["settings"])]:
            for tool in tools:
                yield Run(rung, variant, tool, shape)


def reproduced(sanitizer, limit):
    """Whether the limit's own program, which is right, still gets the same finding; and a line that says so."""
    program = build.FOLDER / "tests" / "sanitizer" / limit.program
    source = f"tests/sanitizer/{limit.program}.cu"
    if not os.access(program, os.X_OK):
        return None, f"{source}: not built: there is no {program}"
    status, text = output_of([str(program)])
    if status != 0:
        return None, f"{source}: goes wrong by itself: {text.strip()}"
    status, text = output_of(sanitizer_command(sanitizer, limit.tool, (program,)))
    found = findings_of(text) if status is not None else ()
    if any(map(limit.is_of, found)):
        return True, f"{source}: reproduced: {limit.tool} says \"{limit.words[-1]}\" of it, too"
    summary = SUMMARY.search(text)
    return False, (f"{source}: not reproduced: the tool may have been mended. {limit.tool} said: "
                   f"{summary[0].strip('= ') if summary else ' '.join(text.split())[-200:]}")


def show(result):
    run = result.run
    say(f"{run.rung:<20}{run.variant:<34}{run.tool:<11}{result.verdict}")
    if not result.failed:
        return
    if result.why:
        say(f"    {result.why}")
    for finding in result.findings[:SHOWN_FINDINGS]:
        for line in finding[:SHOWN_LINES]:
            say(f"    {line}")
    if len(result.findings) > SHOWN_FINDINGS:
        say(f"    and {len(result.findings) - SHOWN_FINDINGS} more")


def row_of(result):
    run = result.run
    row = {"rung": run.rung, "variant": run.variant, "tool": run.tool, "shape": run.shape, "errors": result.errors,
           "verdict": result.verdict}
    if result.why:
        row["why"] = without_names(result.why)
    if result.findings:
        on_the_gpu = itertools.takewhile(lambda line: not line.startswith(HOST), result.findings[0])
        row["first_finding"] = [without_names(line) for line in on_the_gpu]
    return row


def read(path):
    """What `record` wrote."""
    return read_rows(path, "`./ladder sanitize`", "runs", ("rung", "variant", "tool", "verdict"))


def record(path, sanitizer, device, results, shown):
    rows = ",\n".join("  " + json.dumps(row_of(result)) for result in results)
    head = {"label": "measured", "what": "./ladder sanitize: every twin and variant under compute-sanitizer", "date":
            datetime.date.today().isoformat(), "gpu": device["name"], "driver": gpu_tool.driver(),
            "tool": f"compute-sanitizer {gpu_tool.version_of(sanitizer)}", "limits": [line for _, line in shown]}
    lines = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    try:
        path.write_text("{\n" + "\n".join(lines) + f'\n "runs": [\n{rows}\n ]\n}}\n')
    except OSError as error:
        raise Refusal(f"--json {path}: cannot be written: {error.strerror}. Name another file.") from None


def command(arguments):
    parser = Parser(prog="ladder sanitize", description=__doc__.split("\n\n")[0])
    parser.add_argument("rungs", nargs="*", metavar="STEP", help="only these rungs")
    parser.add_argument("--tool", action="append", choices=TOOLS, help="only this one; several times for several")
    parser.add_argument("--jobs", type=int, default=min(4, cores()), metavar="N",
                        help="processes at a time (default: a core each, at most 4)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write down what each run gave")
    options = parser.parse_args(arguments)
    names = [build.named(each) for each in options.rungs] or build.sources()
    if options.jobs < 1:
        raise Refusal(f"--jobs {options.jobs}: expected 1 or more processes at a time.")
    if options.json:
        refuse_anothers(options.json, "--json", read, "./ladder sanitize")
    sanitizer = gpu_tool.find("compute-sanitizer", "compute-sanitizer")
    purpose, instead = "compute-sanitizer", "`./ladder check` needs none and sees more, on the emulator"
    gpu_tool.require_gpu(purpose, instead)
    build.build(quiet=True, target="rungs")
    build.build(quiet=True, target="sanitizer_limits")
    places = {name: gpu_tool.on_gpu(name, purpose, instead) for name in names}
    device = places[names[0]]["device"]
    runs = list(planned(places, [tool for tool in TOOLS if tool in (options.tool or TOOLS)]))
    say(f"compute-sanitizer {gpu_tool.version_of(sanitizer)} on {device['name']}: {plural(len(runs), 'run')}.\n")
    progress, results = Progress(len(runs), "under compute-sanitizer"), []
    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            for result in pool.map(lambda run: attempt(sanitizer, run), runs):
                progress.step(result.run.name)
                progress.end()
                results.append(result)
                show(result)
        except BaseException:  # Ctrl-C: what has not begun does not
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    say()
    shown = [reproduced(sanitizer, limit) for limit in LIMITS if limit.tool in {run.tool for run in runs}]
    for _, line in shown:
        say(line)
    return summarised(results, shown, options.json, sanitizer, device)


def summarised(results, shown, path, sanitizer, device):
    failed = sum(result.failed for result in results)
    known = sum(result.limit is not None for result in results)
    clean = len(results) - failed - known
    say(f"{clean} of {plural(len(results), 'run')} clean" + (f", {known} with no more than a limit of the tool's" if known else "") +
        (f", {failed} failed." if failed else "."))
    if path:
        record(path, sanitizer, device, results, shown)
        say(f"Written to {path}.")
    # A program that could not be run leaves the limit without a proof.
    return 1 if failed or any(found is None for found, _ in shown) else 0
