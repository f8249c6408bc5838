"""`ladder check`: holds every access of a program to the hazard rules, under several schedules.

Without arguments: every rung with its variants. With a rung (`step06`, `step06:2x1`): that one. With a program: that
program, as `ladder emulate` runs it. Exit status 1 when an error was found, or the program failed; rules and notes are
listed, and count as failures with --strict.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from tools import build, emulate
from tools.rung import rung_and_variant, sizes_of, variants
from tools.terminal import Parser, Progress, Refusal, note, plural, say

SCHEDULES = ("earliest", "latest", "random:1")
RANKS = ("Error", "Rule", "Note")
SHAPE = "300x520x328"  # ragged in all three, tiles that no cluster divides, a ring that goes round


def merged(found):
    """One finding for the same rule at the same places, whatever schedules saw it."""
    findings = {}
    for schedule, one in found:
        key = (one["rule"], one["kernel"], tuple((side["what"], side["where"]) for side in one["sides"]))
        known = findings.setdefault(key, {**one, "schedules": [], "count": 0})
        known["count"] += one["count"]
        if schedule not in known["schedules"]:
            known["schedules"].append(schedule)
    return sorted(findings.values(), key=lambda one: RANKS.index(one["rank"]))


def text_of(finding, schedules):
    lines = [f"========= {finding['rank']}: {finding['kernel']}: {finding['title']} [{finding['rule']}]"]
    if finding["object"]:
        lines.append(f"=========     {finding['object']}")
    for side in finding["sides"]:
        lines += [f"=========     {side['what']} at {side['where']}", f"=========         by {side['who']}: {side['instruction']}"]
    if finding["explanation"]:
        lines.append(f"=========     {finding['explanation']}")
    lines += [f"=========     fix: {finding['fix']}", f"=========     rule: {finding['source']}"]
    seen = [] if len(finding["schedules"]) == len(schedules) else [f"only under {', '.join(finding['schedules'])}"]
    if finding["count"] > 1:
        seen.append(f"{finding['count']} times in all")
    if finding["consequences"]:
        seen.append("more was found at the same places that may follow from this: mend this first")
    return "\n".join(lines + ([f"=========     {'; '.join(seen)}"] if seen else []))


class Subject:
    """A program and what it is called in the list."""

    def __init__(self, name, command, environment):
        self.name, self.command, self.environment = name, command, environment

    def run(self, schedule, timeout):
        """(exit status or None where the time was over, what the rules found, what it said on stderr)."""
        with tempfile.TemporaryDirectory(prefix="ladder-check-") as folder:
            path = Path(folder, "findings.json")
            variables = {**self.environment, "LADDER_CHECK": "1", "LADDER_CHECK_FILE": str(path), "LADDER_SCHEDULE": schedule}
            variables.pop("LADDER_COUNTERS", None)
            try:
                done = subprocess.run(self.command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, errors="replace", timeout=timeout)
                status, said = done.returncode, done.stdout + done.stderr
            except subprocess.TimeoutExpired:
                status, said = None, ""
            try:
                report = json.loads(path.read_text())
            except (OSError, ValueError):  # it launched nothing, or died
                report = {"findings": [], "faults": []}
            return status, report, said


def rung_subject(name, variant, shape, options):
    k = "16" if name.startswith("step00") else shape.split("x")[2]
    m, n, _ = shape.split("x")
    command = [str(build.rung(name)), "--m", m, "--n", n, "--k", k, "--out-dtype", "f32", "--on", emulate.chip(options), "--check"]
    command += ["--variant", variant] if variant else []
    return Subject(f"{name}:{variant}" if variant else name, command, emulate.environment(options))


def program_subject(options):
    path = options.subject if os.path.sep in options.subject else shutil.which(options.subject) or options.subject
    found = emulate.refuse_unsuitable(path, emulate.chip(options))
    environment = emulate.environment(options)
    if found.rpath:
        environment["LD_PRELOAD"] = str(build.libraries() / emulate.EMULATED_RUNTIME)
    return Subject(options.subject, [path, *options.rest], environment)


def subjects(options):
    if options.subject and not options.subject.startswith("step"):
        if options.shape:
            raise Refusal("--shape is for rungs; a program takes its own options behind its name.")
        return [program_subject(options)]
    shape = options.shape or SHAPE
    sizes_of(shape)
    if options.subject:
        if options.rest:
            raise Refusal(f"{options.rest[0]}: a rung is checked by name and --shape; for its own options, name its executable.")
        name, variant = rung_and_variant(options.subject)
        return [rung_subject(name, variant, shape, options)]
    return [rung_subject(name, variant, shape, options) for name in build.rungs() for variant in variants(name)]


def command(arguments):
    parser = Parser(prog="ladder check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                    epilog="Options go before STEP or PROGRAM; all that follows is the program's own.")
    emulate.add_options(parser)
    parser.add_argument("--schedules", metavar="LIST", help=f"comma-separated (default: {','.join(SCHEDULES)})")
    parser.add_argument("--shape", metavar="MxNxK", help=f"of rungs (default: {SHAPE})")
    parser.add_argument("--json", action="store_true", help="findings as JSON, on standard output")
    parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS", help="for each run (default: 600)")
    parser.add_argument("subject", nargs="?", metavar="STEP | PROGRAM")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="ARGS", help="handed to the program")
    options = parser.parse_args(arguments)
    strict, options.strict = options.strict, False  # of the verdict, not of the emulator
    if options.schedules and (options.schedule or options.seed is not None):
        raise Refusal("--schedules lists them all; leave --schedule and --seed out.")
    schedules = options.schedules.split(",") if options.schedules else [emulate.schedule(options)]
    if schedules == [None]:
        schedules = list(SCHEDULES)
    options.schedule = options.seed = None
    for schedule in schedules:
        emulate.schedule(argparse.Namespace(schedule=schedule, seed=None))
    build.build(quiet=True, target="rungs")
    work = subjects(options)
    progress = Progress(len(work) * len(schedules), "checked")
    results, bad = [], False
    for subject in work:
        found, failures, faults, begin = [], [], [], time.monotonic()
        for schedule in schedules:
            status, report, said = subject.run(schedule, options.timeout)
            progress.step(f"{subject.name} {schedule}")
            found += [(schedule, one) for one in report["findings"]]
            faults += [fault for fault in report["faults"] if fault not in faults]
            if status != 0:
                failures.append({"schedule": schedule, "status": status, "said": said})
        progress.end()
        findings = merged(found)
        ranks = {rank: sum(one["rank"] == rank for one in findings) for rank in RANKS}
        failed = bool(ranks["Error"] or failures or (strict and ranks["Rule"]))
        bad = bad or failed
        results.append({"subject": subject.name, "schedules": schedules, "findings": findings, "faults": faults,
                        "failures": failures, "good": not failed})
        if not options.json:
            tell(subject, schedules, findings, ranks, faults, failures, time.monotonic() - begin)
    if options.json:
        say(json.dumps(results, indent=2))
    elif len(work) > 1:
        say()
        clean = sum(result["good"] and not result["findings"] for result in results)
        say(f"{clean} of {plural(len(work), 'kernel')} clean under {', '.join(schedules)}.")
    return 1 if bad else 0


def tell(subject, schedules, findings, ranks, faults, failures, seconds):
    verdict = ", ".join(plural(count, rank.lower()) for rank, count in ranks.items() if count) or "clean"
    if failures:
        verdict += f", failed under {', '.join(failure['schedule'] for failure in failures)}"
    say(f"{subject.name:<28}{verdict:<40}{seconds:>6.1f} s")
    for finding in findings:
        say(text_of(finding, schedules))
    for fault in faults:
        say(fault.rstrip())
    for failure in failures if not faults else []:
        if failure["status"] is None:
            say(f"    under {failure['schedule']} it has not ended in time; --timeout SECONDS gives it more")
        else:
            said = [line for line in failure["said"].splitlines() if not line.startswith("=========")]
            say(f"    under {failure['schedule']} it ended with status {failure['status']}: " + " | ".join(said[-3:]))
