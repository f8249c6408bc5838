"""`ladder check`: holds every access of a program to the hazard rules, under several schedules.

Without arguments: every rung with its variants, on a chip of four SMs unless LADDER_SMS says otherwise. With a rung (`step06`,
`step06:2x1`, `step07:walk=2,clusters=1`): that one. With a program: that program, as `ladder emulate` runs it. Exit status 1
when an error was found, the program failed, or no kernel ran; rules and notes are listed, and rules count as failures with
--strict.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from tools import build, emulate, program
from tools.rung import rung_and_variant, sizes_of, variants, where
from tools.terminal import Parser, Progress, Refusal, plural, say

SCHEDULES = ("earliest", "latest", "random:1")
RANKS = ("Error", "Rule", "Note")
SHAPE = "300x520x328"  # ragged in all three, tiles that no cluster divides, a ring that goes round
SMS = "4"  # fewer than it has tiles: CTAs that stay get several each, others start where one has left
UNWRITTEN = "nothing has written"
LINELESS = "(no source lines"  # as describe_location() in emulator/report/fault_report.cpp says it
BOTH_WAYS = ("read-too-early", "overwrite-too-early")
SEEN_BOTH_WAYS = "The same two were met in the other order, too: what is missing may belong before the read or behind it."


def places(side):
    return {side["where"], *side["also"]}


def same_cause(known, one):
    """The same rule at the same places; or of two places one, as the emulator takes them together under one schedule."""
    if any(known[part] != one[part] for part in ("rule", "kernel")) or ends(known) != ends(one):
        return False
    if ends(one):
        return {side["where"] for side in known["sides"]} == {side["where"] for side in one["sides"]}
    both = list(zip(known["sides"], one["sides"]))
    if len(known["sides"]) != len(one["sides"]) or any(a["what"] != b["what"] for a, b in both):
        return False
    return all(places(a) & places(b) for a, b in both) or \
        len(both) == 2 and known["rank"] == one["rank"] and any(a["where"] == b["where"] for a, b in both)


def merged(found):
    """One finding for the same rule at the same places, whatever schedules saw it. The gravest first, and what most saw; what
    ended the launch after what may have brought it about."""
    findings = []
    for schedule, one in found:
        known = next((known for known in findings if same_cause(known, one)), None)
        if not known:
            known = {**one, "sides": [{**side, "also": []} for side in one["sides"]], "schedules": [], "count": 0, "consequences": 0}
            findings.append(known)
        for side, other in () if ends(one) else zip(known["sides"], one["sides"]):
            side["also"] += [place for place in (other["where"], *other["also"]) if place not in places(side)]
        known["count"] += one["count"]
        known["consequences"] += one["consequences"]
        known["both_ways"] = known["both_ways"] or one["both_ways"]
        known["rank"] = min(known["rank"], one["rank"], key=RANKS.index)
        if schedule not in known["schedules"]:
            known["schedules"].append(schedule)
    for known in findings:
        del known["schedule"]
    # As the emulator leaves out, under one schedule, what concerns no other places than an error does.
    for one in [one for one in findings if one["rank"] != "Error" and one["sides"]]:
        for error in (error for error in findings if error["rank"] == "Error" and not ends(error) and error["kernel"] == one["kernel"]):
            if set().union(*map(places, one["sides"])) <= set().union(*map(places, error["sides"])):
                error["consequences"] += 1
                findings.remove(one)
                break
    findings.sort(key=lambda one: (RANKS.index(one["rank"]), ends(one), -len(one["schedules"])))
    # One race seen from both sides.
    for one in [one for one in findings if one["rule"] in BOTH_WAYS]:
        other = next((known for known in findings[:findings.index(one)] if turned(known, one)), None)
        if other:
            other["both_ways"] = SEEN_BOTH_WAYS
            other["count"] += one["count"]
            other["schedules"] += [schedule for schedule in one["schedules"] if schedule not in other["schedules"]]
            findings.remove(one)
    return findings


def turned(known, one):
    """A read that comes too early and an overwrite that does, of the same two."""
    return {known["rule"], one["rule"]} == set(BOTH_WAYS) and known["kernel"] == one["kernel"] and known["rank"] == one["rank"] and \
        all(places(known["sides"][i]) & places(one["sides"][1 - i]) for i in (0, 1))


def ends(finding):
    """It ended the launch, and the machine has a report of its own."""
    return "report" in finding


def first_of(texts):
    """[(text, schedules)] of (schedule, text): once what differs in numbers alone, such as cycles, blocks and warps."""
    found = {}
    for schedule, text in texts:
        known = found.setdefault(re.sub(r"0x[0-9a-f]+|(?<![\w:.])\d+", "#", text), (text, []))
        if schedule not in known[1]:
            known[1].append(schedule)
    return list(found.values())


def only_under(seen_under, schedules):
    return [] if len(seen_under) == len(schedules) else [f"only under {', '.join(seen_under)}"]


def also_text(side):
    """`line 12, 15`: those in the same file by their lines alone."""
    file = side["where"].split(":")[0] + ":"
    found = [place.split(" (")[0] for place in side["also"]]
    lines = sorted((place.removeprefix(file) for place in found if place.startswith(file)), key=lambda line: (len(line), line))
    return ", ".join([*(["line " + ", ".join(lines)] if lines else []), *(place for place in found if not place.startswith(file))])


def text_of(finding, schedules):
    """As the emulator writes it, and what the schedules make of it."""
    if ends(finding):
        return "\n".join([finding["report"].rstrip(), *(f"=========     {words}" for words in only_under(finding["schedules"], schedules))])
    lines = [f"========= {finding['rank']}: {finding['kernel']}: {finding['title']} [{finding['rule']}]"]
    if finding["object"]:
        lines.append(f"=========     {finding['object']}")
    for side in finding["sides"]:
        lines += [f"=========     {side['what']} at {side['where']}", f"=========         by {side['who']}: {side['instruction']}"]
        lines += [f"=========         also: {also_text(side)}"] if side["also"] else []
    if finding["explanation"]:
        lines.append(f"=========     {finding['explanation']}")
    if finding["both_ways"]:
        lines.append(f"=========     {finding['both_ways']}")
    lines += [f"=========     fix: {finding['fix']}", f"=========     rule: {finding['source']}"]
    seen = only_under(finding["schedules"], schedules)
    if finding["count"] > 1:
        seen.append(f"{finding['count']} times in all")
    if finding["consequences"]:
        seen.append("more was found at the same places that may follow from this: mend this first")
    return "\n".join(lines + ([f"=========     {'; '.join(seen)}"] if seen else []))


class Subject:
    """A program and what it is called in the list."""

    def __init__(self, name, command, environment):
        self.name, self.command, self.environment = name, command, environment

    def run(self, schedule, timeout, other_fill=False):
        """(how it failed or None, what was found or None where no kernel ran)."""
        with tempfile.TemporaryDirectory(prefix="ladder-check-") as folder:
            path = Path(folder, "findings.json")
            variables = {**self.environment, "LADDER_CHECK": "1", "LADDER_CHECK_FILE": str(path), "LADDER_SCHEDULE": schedule}
            variables.pop("LADDER_COUNTERS", None)
            variables["LADDER_FILL"] = "1" if other_fill else "0"
            # Its own session: what it has started ends with it.
            process = subprocess.Popen(self.command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
            try:
                said, failure = "".join(process.communicate(timeout=timeout)), None
            except subprocess.TimeoutExpired:
                said, failure = "", f"has not ended after {timeout:g} s; --timeout SECONDS gives it more"
            finally:
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.communicate()
            if process.returncode and not failure:
                failure = f"ended with status {process.returncode}"
                if process.returncode < 0:
                    failure = f"was ended by {signal.Signals(-process.returncode).name}"
                if last := [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("=========")]:
                    failure += f": {last[-1]}"
            try:
                report = json.loads(path.read_text())
            except (OSError, ValueError):  # it launched nothing, or died
                report = None
            return failure, report


def rung_subject(name, variant, shape, options):
    m, n, k = shape.split("x")
    command = [str(build.rung(name)), "--m", m, "--n", n, "--k", "16" if name.startswith("step00") else k, "--out-dtype", "f32",
               "--on", emulate.chip(options), "--check"]
    command += ["--variant", variant] if variant else []
    environment = {"LADDER_SMS": SMS, **emulate.environment(options)}
    return Subject(f"{name}:{variant}" if variant else name, command, environment)


def fitting_chip(path):
    """The first chip that the program has PTX for, where nobody names one."""
    try:
        ptx = program.inspect(path).ptx
    except (program.NotElf, OSError):
        ptx = []
    return next((chip for chip, capability in program.CHIPS.items() if any(entry.fits(capability) for entry in ptx)), None)


def program_subject(options):
    path = options.subject
    if os.path.sep not in path:
        path = shutil.which(path) or os.path.join(".", path)
    if not options.chip and not os.environ.get("LADDER_CHIP"):
        options.chip = fitting_chip(path)
    found = emulate.refuse_unsuitable(path, emulate.chip(options))
    environment = emulate.environment(options)
    if found.rpath:
        runtime = str(build.libraries() / emulate.EMULATED_RUNTIME)
        environment["LD_PRELOAD"] = " ".join(filter(None, [runtime, environment.get("LD_PRELOAD")]))
    return Subject(shlex.join([Path(path).name, *options.rest]), [path, *options.rest], environment)


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
        found, why = where(name, emulate.chip(options), variant=variant)
        if not found:
            raise Refusal(f"{why}.")
        return [rung_subject(name, variant, shape, options)]
    chip = emulate.chip(options)
    return [rung_subject(name, variant, shape, options) for name in build.rungs() for variant in variants(name, chip)]


def schedules_of(options):
    """Those to go through; what is not one is refused."""
    if options.schedules is None:
        one = emulate.schedule(options)
        return [one] if one else list(SCHEDULES)
    if options.schedule or options.seed is not None:
        raise Refusal("--schedules lists them all; leave --schedule and --seed out.")
    schedules = list(dict.fromkeys(options.schedules.split(",")))
    for schedule in schedules:
        if not re.fullmatch(r"earliest|latest|random(:\d+)?", schedule):
            raise Refusal(f"--schedules {options.schedules}: expected earliest, latest, random or random:SEED, "
                          "with commas between them.")
    return schedules


class Result:
    """What all schedules together have shown of a subject."""

    def __init__(self, subject, schedules):
        self.subject, self.schedules, self.seconds = subject, schedules, 0
        self.found, self.failures, self.remarks, self.launched = [], [], [], False
        self.outputs = None  # fingerprints of what each launch wrote, under the first schedule

    def add(self, schedule, timeout):
        begin = time.monotonic()
        failure, report = self.subject.run(schedule, timeout)
        self.seconds += time.monotonic() - begin
        self.launched |= report is not None
        if self.outputs is None:
            self.outputs = (report or {}).get("outputs", [])
        self.found += [(schedule, one) for one in (report or {}).get("findings", [])]
        self.remarks += [(schedule, remark["text"]) for remark in (report or {}).get("remarks", [])]
        self.failures += [(schedule, failure)] if failure else []

    @property
    def ended(self):
        return any(ends(one) for _, one in self.found)

    @property
    def reads_unwritten(self):
        return any(one["rule"] == "uninitialised" for _, one in self.found) or any(UNWRITTEN in text for _, text in self.remarks)

    def follow_unwritten(self, timeout):
        """Memory that nothing has written was read. Does it matter? A run with other contents there must write the same; one
        with the same contents must, or nothing can be said."""
        schedule, begin = self.schedules[0], time.monotonic()
        again, other = (self.subject.run(schedule, timeout, fill)[1] for fill in (False, True))
        self.seconds += time.monotonic() - begin
        if not again or not other or again["outputs"] != self.outputs or len(other["outputs"]) != len(self.outputs):
            return
        changed = [launch["kernel"] for launch, now in zip(self.outputs, other["outputs"]) if launch != now]
        for _, one in self.found:
            if one["rule"] == "uninitialised":
                reaches = one["kernel"] in changed
                one["rank"] = "Error" if reaches else one["rank"]
                one["explanation"] += f" What the kernel writes to global memory {'changes' if reaches else 'does not change'} with it."
        if changed and not any(one["rule"] == "uninitialised" for _, one in self.found):
            self.found.append((schedule, {
                "rule": "uninitialised", "rank": "Error", "title": "read before anything wrote it", "kernel": changed[0],
                "object": "tensor memory", "sides": [], "explanation": "What the kernel writes to global memory changes with "
                "what tensor memory held before: see the note.", "both_ways": "", "fix": "write it first", "source": "PTX ISA, tcgen05.alloc: "
                "contents are undefined", "schedule": schedule, "consequences": 0, "count": 1}))

    @property
    def counts(self):
        findings = merged(self.found)
        counts = {rank: sum(one["rank"] == rank for one in findings) for rank in RANKS}
        counts["Note"] += len(first_of(self.remarks))
        return counts

    def good(self, strict):
        counts = self.counts
        return self.launched and not (counts["Error"] or self.failures or (strict and counts["Rule"]))

    @property
    def clean(self):
        return self.launched and not (self.failures or any(self.counts.values()))

    @property
    def verdict(self):
        if self.clean:
            return "clean"
        words = [plural(count, rank.lower()) for rank, count in self.counts.items() if count]
        words += ["stopped by the emulator"] if self.ended else ["failed"] if self.failures else []
        return ", ".join(words if self.launched or words else ["no kernel ran, nothing was checked"])

    def lines(self):
        """All there is to say below the verdict."""
        yield from (text_of(finding, self.schedules) for finding in merged(self.found))
        for text, seen_under in first_of(self.remarks):
            yield f"========= Note: {text}{''.join(f'; {words}' for words in only_under(seen_under, self.schedules))}"
        if any(LINELESS in side["where"] for _, finding in self.found for side in finding["sides"]):
            yield "    the kernel has no source lines: built with -lineinfo it has, and what belongs together is told together"
        for text, seen_under in first_of(self.failures):
            yield f"    under {', '.join(seen_under)} it {text}"

    def json(self, strict):
        def listed(texts, name):
            return [{name: text, "schedules": seen_under} for text, seen_under in first_of(texts)]
        return {"subject": self.subject.name, "schedules": self.schedules, "findings": merged(self.found),
                "remarks": listed(self.remarks, "text"),
                "failures": listed(self.failures, "how"), "good": self.good(strict)}


def command(arguments):
    parser = Parser(prog="ladder check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                    epilog="Options go before STEP or PROGRAM; all that follows is the program's own.")
    emulate.add_machine_options(parser, chip="LADDER_CHIP, or the first that the program has code for",
                                schedule="those of --schedules")
    parser.add_argument("--schedules", metavar="LIST", help=f"comma-separated (default: {','.join(SCHEDULES)})")
    parser.add_argument("--shape", metavar="MxNxK", help=f"of rungs (default: {SHAPE})")
    parser.add_argument("--strict", action="store_true", help="what breaks a rule alone is a failure too")
    parser.add_argument("--json", action="store_true", help="all of it as JSON, on standard output")
    parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS", help="for each run (default: 600)")
    parser.add_argument("subject", nargs="?", metavar="STEP | PROGRAM")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="ARGS", help="handed to the program")
    options = parser.parse_args(arguments)
    schedules = schedules_of(options)
    if not options.timeout > 0:
        raise Refusal(f"--timeout {options.timeout:g}: expected seconds, more than 0.")
    strict = options.strict
    # As emulate.environment takes them: the schedule comes with each run, and strict is of the verdict.
    options.schedule = options.seed = options.strict = options.counters = None
    build.build(quiet=True, target="rungs")
    work = subjects(options)
    width = max(len(subject.name) for subject in work)
    progress = Progress(len(work) * len(schedules), "checking")
    results = []
    for subject in work:
        result = Result(subject, schedules)
        for schedule in schedules:
            if len(work) > 1 or progress.terminal:
                progress.step(f"{subject.name} under {schedule}")
            result.add(schedule, options.timeout)
        if result.reads_unwritten and not result.ended:
            result.follow_unwritten(options.timeout)
        progress.end()
        results.append(result)
        if not options.json:
            if len(work) > 1:
                say(f"{subject.name:<{width}}  {result.verdict:<24}  {result.seconds:6.1f} s")
            for text in result.lines():
                say(text)
    if options.json:
        say(json.dumps([result.json(strict) for result in results], indent=2))
    elif len(work) > 1:
        say()
        say(f"{sum(result.clean for result in results)} of {plural(len(work), 'kernel')} clean under {', '.join(schedules)}.")
    else:
        say(f"{results[0].subject.name}: {results[0].verdict} ({', '.join(schedules)}; {results[0].seconds:.1f} s)")
    return 0 if all(result.good(strict) for result in results) else 1
