"""`ladder selfcheck`: every rung and variant against known answers, the smallest first, each run in a process of its own.

For somebody with a GPU that nobody here has: takes minutes, survives what hangs, ends with a verdict, and leaves one file to
send back. Without such a GPU it checks the emulator.
"""

import contextlib
import datetime
import itertools
import json
import math
import os
import platform
import re
import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tools import build, known_answers
from tools.rung import Case, execute, sizes_of, where
from tools.terminal import Parser, Progress, Refusal, output_of, plural, say

TIME_LIMIT = 20.0    # seconds for a kernel; the guard builds give up after some seconds, and say which wait it was
AROUND_KERNEL = 100  # seconds that a process may take beside its kernel: starting a driver, making inputs, checking D
LINES, SHOWN_LINES = 40, 6  # of what a failed run said: in the file, on the screen

RIGHT, ROUNDING, WRONG, UNLISTED, HUNG, FAILED, SKIPPED = "right", "rounding", "wrong", "unlisted", "hung", "failed", "skipped"
VERDICTS = {
    RIGHT: "the predicted bits",
    ROUNDING: "other bits, each number right to rounding",
    WRONG: "wrong numbers, or stray stores",
    UNLISTED: "not the known answer, though it passes every check",
    HUNG: "hung",
    FAILED: "ended without a result",
    SKIPPED: "not tried",
}
# How a run says that something waited for ever: the harness, the emulator, a guard build, and whoever waits for the process.
ENDLESS = ("did not end within", "cudaErrorLaunchTimeout", "the phase this line waits for never ended", "it has not ended after")
THREAD = re.compile(r"block: \[[\d,]+\], thread: \[[\d,]+\] ")


@dataclass(frozen=True)
class Run:
    answer: known_answers.Answer
    case: Case

    @property
    def name(self):
        return f"{self.answer.name}, {self.case.shape}{'' if self.case.guard else ', unguarded'}"


@dataclass
class Result:
    run: Run
    verdict: str
    why: str = ""           # in one line, where it is not right
    outcome: object = None  # None: not tried

    @property
    def d_hash(self):
        return self.outcome.report.get("d_hash") if self.outcome else None


@dataclass
class Place:
    """Where all of it runs."""
    on: str        # as the rungs take it
    rungs: dict    # name -> what it says of itself there
    absent: dict   # name -> why it has nothing for this
    emulated: bool
    note: str      # why it is emulated although nobody asked for that


def place(names, on):
    """A GPU, if any rung runs on one; then the rungs that do not are left out. Else the emulated chip."""
    found, absent = {}, {}
    for name in names:
        report, why = where(name, on)
        if not report and "has not ended" in why:
            raise Refusal(f"{name} --where: {why}. The GPU's driver does not answer; restart the machine, or take --on b200.")
        (found if report else absent)[name] = report or why
    if not found:
        raise Refusal(f"No rung runs there, so there is nothing to check. {next(iter(absent.values()))}.")
    real = {name: report for name, report in found.items() if not report["device"]["emulated"]}
    if real:
        absent |= {name: report["note"] for name, report in found.items() if name not in real}
        return Place("gpu", real, absent, False, "")
    first = next(iter(found.values()))
    return Place(first["device"]["chip"], found, absent, True, first.get("note", ""))


def planned(at, answers, time_limit):
    """For each rung and variant, in the order of the ladder, its runs. Guarded first; a build without guards only behind it."""
    groups = []
    for name, report in at.rungs.items():
        for variant in report["variants"]:
            runs = []
            for answer in answers:
                if not answer.fits(report["fixed_k"]) or (answer.variants == "first" and variant != report["variants"][0]):
                    continue
                for guard in (True, False) if answer.builds == "both" else (True,):
                    case = Case(name, *sizes_of(answer.shape), answer.dtype, "f32", answer.input, answer.seed, variant, at.on,
                                guard=guard, time_limit=time_limit)
                    runs.append(Run(answer, case))
            groups.append(runs)
    return groups


def judged(run, outcome):
    """What a run's end means, and why in one line."""
    report, check = outcome.report, outcome.report.get("check") or {}
    if not report:
        said = outcome.text.strip().splitlines() or ["it said nothing"]
        endless = [line for line in said if any(words in line for words in ENDLESS)]
        return (HUNG if endless else FAILED), f"exit status {outcome.status}: {(endless or said)[-1].strip('= ')}"
    if report.get("faults"):
        return WRONG, report["faults"][0]
    if not outcome.good or not check.get("passed"):
        return (ROUNDING if check.get("rounding_only") else WRONG), check.get("summary") or f"exit status {outcome.status}"
    if run.answer.d_hash and report.get("d_hash") != run.answer.d_hash:
        return UNLISTED, f"bits of D {report.get('d_hash')}, known {run.answer.d_hash}; --check finds nothing wrong with them"
    return RIGHT, ""


def attempts(groups, before, time_limit):
    """Runs what is planned, one process after the other; a Result for each. `before(run)` is called before a process starts.
    What hangs, or cannot do one tile, is not tried any further."""
    def start(run):
        return execute(run.case, timeout=time_limit + AROUND_KERNEL)
    known_good, lost = None, ""
    for runs in groups:
        blocked = ""
        for run in runs:
            if lost or blocked:
                yield Result(run, SKIPPED, lost or blocked)
                continue
            before(run)
            outcome = start(run)
            verdict, why = judged(run, outcome)
            if verdict == RIGHT:
                known_good = known_good or run
            elif verdict == HUNG:
                blocked = f"it hung before ({run.name})"
            elif verdict in (WRONG, FAILED) and run.case.shape == runs[0].case.shape:
                blocked = f"it cannot do one tile ({run.name})"
            culprit = f"{run.case.rung} {run.case.variant}"
            if outcome.stuck:
                lost = f"{culprit} cannot be killed; restart the machine"
            elif verdict in (HUNG, FAILED) and known_good and not start(known_good).good:
                lost = f"since {culprit}, {known_good.case.rung} fails where it was right before; restart the machine"
            yield Result(run, verdict, why, outcome)


def origin():
    """What was built, and from what, as far as it can be told."""
    git = ["git", "-C", str(build.ROOT)]
    top, _, commit = (output_of([*git, "rev-parse", "--show-toplevel", "HEAD"]) or "").strip().partition("\n")
    if not commit or Path(top).resolve() != build.ROOT.resolve():  # no checkout, or one in somebody else's
        commit = "unknown"
    changed = None if commit == "unknown" else bool(output_of([*git, "status", "--porcelain", "--untracked-files=no"]))
    executable = build.rung(build.rungs()[0]).read_bytes()
    compilers = set(re.findall(rb"(?:GCC: \(|clang version |Cuda compilation tools, release )[ -~]+", executable))
    return {"commit": commit, "changed_since": changed, "compilers": sorted(text.decode() for text in compilers)}


def driver():
    """What the kernel says of its NVIDIA driver; nvidia-smi may wait for a GPU that is lost."""
    try:
        return Path("/proc/driver/nvidia/version").read_text().splitlines()[0].strip()
    except (OSError, IndexError):
        return "unknown"


def without_names(text):
    """Without folders that say whose machine this is."""
    for path, name in ((build.FOLDER, "build"), (build.ROOT, "."), (Path.home(), "~")):
        text = text.replace(str(path), name) if str(path) != "/" else text
    return text


def condensed(text):
    """What a run said at last; the lines of a guard build first, once for all threads that waited in one place."""
    lines = text.strip().splitlines()
    waits = Counter(THREAD.sub("", line) for line in lines if THREAD.search(line))
    others = [line for line in lines if not THREAD.search(line)]
    return [f"{line} ({plural(count, 'thread')})" for line, count in waits.items()] + others[-LINES:]


def row_of(result):
    """A run as the file has it: all there is to know of one that is not right."""
    run, outcome = result.run, result.outcome
    row = {"rung": run.case.rung, "variant": run.case.variant, "answer": run.name, "verdict": result.verdict,
           "command": run.case.command_line()}
    if result.verdict != RIGHT:
        row["why"] = without_names(result.why)
    if outcome:
        report = outcome.report
        row |= {"exit_status": outcome.status, "seconds": round(outcome.seconds, 2), "known": run.answer.d_hash,
                "d_hash": result.d_hash, "plan": report.get("plan")}
        if result.verdict != RIGHT:
            row |= {"check": report.get("check"), "faults": report.get("faults")}
        if outcome.text:
            row["stderr"] = [without_names(line) for line in condensed(outcome.text)]
    return row


class Report:
    """The file to send back. Written before every run, so that it tells of the one that took the machine with it."""

    def __init__(self, path, **head):
        self.path, self.head, self.rows = path, head, []

    def write(self, **now):
        self.head |= now
        head = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in self.head.items()]
        rows = ",\n".join("  " + json.dumps(row) for row in self.rows)
        part = self.path.with_name(self.path.name + ".part")
        try:
            with open(part, "w") as stream:
                stream.write("{\n" + "\n".join(head) + f'\n "runs": [\n{rows}\n ]\n}}\n')
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(part, self.path)
        except OSError as error:
            with contextlib.suppress(OSError):
                part.unlink()
            raise Refusal(f"{self.path} cannot be written: {error.strerror}. Name another file: --out FILE.") from None


def by_rung(results):
    """One line a rung: how many runs ended how."""
    rungs = {}
    for result in results:
        rungs.setdefault(result.run.case.rung, Counter())[result.verdict] += 1
    return {name: {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]} for name, counts in rungs.items()}


def conclusion(results, emulated):
    """Whether all is as predicted, and what to make of it, in sentences."""
    counts = Counter(result.verdict for result in results)
    good, broken = set(counts) == {RIGHT}, counts[WRONG] + counts[HUNG] + counts[FAILED]
    lines = [f"{counts[RIGHT]} of {plural(len(results), 'run')} gave the predicted bits."]
    if not good:
        rungs = by_rung(results)
        lines.append(f"As predicted throughout: {', '.join(name for name in rungs if set(rungs[name]) == {RIGHT}) or 'no rung'}.")
        lines += [f"{name}: {', '.join(f'{count} {verdict}' for verdict, count in found.items())}."
                  for name, found in rungs.items() if set(found) != {RIGHT}]
    for first in [result for result in results if result.verdict not in (RIGHT, SKIPPED)][:1]:
        at = first.run.case
        lines.append(f"First in the ladder that did not: {at.rung} {at.variant} ({first.run.name}): {VERDICTS[first.verdict]}.")
    if counts[ROUNDING]:
        hashes = {}
        for result in results:
            if result.verdict in (RIGHT, ROUNDING):
                hashes.setdefault(result.run.answer.name, set()).add(result.d_hash)
        agree = all(len(found) == 1 for found in hashes.values())
        lines.append(f"Bits that are other ones, but right to rounding: rungs {'agree' if agree else 'do not agree'} on them.")
        if not broken and any(result.verdict == RIGHT and result.run.answer.input != "random" for result in results):
            lines.append("Products that no rounding can change are exact: the kernels move and multiply what they should, and "
                         f"{'the emulator' if emulated else 'this chip'} sums by another rule than docs/numerics.md predicts.")
    if broken:
        lines.append("Wrong numbers, hangs and crashes are no matter of rounding: a kernel is wrong, or " +
                     ("the emulator is." if emulated else "does what this chip does not allow."))
    if counts[UNLISTED]:
        lines.append("Bits that pass every check and are not the known ones: the known answers do not belong to this build.")
    if emulated and good:
        lines.append("No GPU was used: this has tested the emulator, which made the known answers. It says nothing about a chip.")
    return good, lines


def show_variant(name, variant, results):
    """One line, and below it what is to be said of runs that are not right."""
    seconds = sum(result.outcome.seconds for result in results if result.outcome)
    right = sum(result.verdict == RIGHT for result in results)
    say(f"{name:<20}{variant:<26}{right:>3} of {len(results):<3} as predicted{seconds:>8.1f} s")
    for result in results:
        if result.verdict in (RIGHT, SKIPPED):
            continue
        say(f"    {result.run.name}: {VERDICTS[result.verdict]}")
        report = result.outcome.report
        details = (report.get("check") or {}).get("pattern") or [] if report else condensed(result.outcome.text)
        for line in [result.why, *details[:SHOWN_LINES]]:
            say(f"        {line}")
        say(f"        Again: {result.run.case.command_line()}")
    skipped = [result for result in results if result.verdict == SKIPPED]
    if skipped:
        say(f"    {plural(len(skipped), 'run')} not tried: {skipped[0].why}.")


def device_name(at):
    if at.emulated:
        return f"emulated {at.on.upper()}"
    device = next(iter(at.rungs.values()))["device"]
    return device["name"]


def started(at):
    """What can be said before anything is run."""
    where_to = at.note or f"on {'an ' if at.emulated else ''}{device_name(at)}"
    say(f"{where_to[0].upper()}{where_to[1:]}.")
    for name, why in at.absent.items():
        say(f"{name} is left out: {why}.")


def collect(groups, time_limit, report=None):
    """All results, shown and written down as they come; and whether somebody had enough before the end."""
    results, progress = [], Progress(sum(map(len, groups)), "checking")

    def before(run):
        progress.done = len(results)
        progress.step(f"{run.case.rung} {run.case.variant}: {run.name}")
        if report:
            report.write(running=run.case.command_line())

    def key(result):
        return result.run.case.rung, result.run.case.variant

    try:
        for name, of_variant in itertools.groupby(attempts(groups, before, time_limit), key):
            first = len(results)
            for result in of_variant:
                results.append(result)
                if report:
                    report.rows.append(row_of(result))
                    if result.outcome and result.outcome.report:
                        report.head["device"] = result.outcome.report["device"]
            progress.end()
            show_variant(*name, results[first:])
    except KeyboardInterrupt:
        progress.end()
        return results, True
    return results, False


def refuse_to_replace(path, option="--out"):
    """What is there and no file of ours to replace: a folder, a device."""
    if not path.name:
        raise Refusal(f"{option}: needs the name of a file.")
    if path.exists() and not path.is_file():
        raise Refusal(f"{option} {path}: is there and no file. Name another: {option} FILE.")


def refuse_unwritable(path, option):
    """Before anything runs: what cannot be written behind it. What is there stays as it is."""
    try:
        refuse_to_replace(path, option)
        if not path.absolute().parent.is_dir():
            raise Refusal(f"{option} {path}: there is no folder {path.absolute().parent}. Make it, or name another file.")
        there = path.exists()
        with open(path, "ab"):
            pass
        if not there:
            path.resolve().unlink()  # of a link to nothing, what it names
    except OSError as error:
        raise Refusal(f"{option} {path}: cannot be written: {error.strerror}. Name another file.") from None


def read_rows(path, writer, rows, of_row, head=()):
    """The JSON that `writer` left: an object with the keys of `head` and a list named `rows`, of objects with the keys `of_row`."""
    try:
        record = json.loads(Path(path).read_text())
        for row in record[rows]:
            for key in of_row:
                row[key]
        for key in head:
            record[key]
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError):
        raise Refusal(f"{path}: not what {writer} writes.") from None
    return record


def refuse_anothers(path, option, read, writer):
    """As refuse_unwritable; and a file that `read` refuses, for it is not the writer's own, to be replaced as before."""
    refuse_unwritable(path, option)
    if path.exists() and path.stat().st_size:
        try:
            read(path)
        except Refusal:
            raise Refusal(f"{option} {path}: is there and not what {writer} writes, so it is not replaced. Name another file, or remove "
                          "this one.") from None


def check(at, answers, out, time_limit):
    groups = planned(at, answers, time_limit)
    path = out or Path(f"selfcheck-{re.sub(r'[^a-z0-9]+', '-', device_name(at).lower())}.json")
    now = datetime.datetime.now(datetime.timezone.utc)
    report = Report(path, what="./ladder selfcheck: the bits of D = A B^T by every rung, against docs/known_answers.json",
                    state="running", verdict=[], by_rung={}, device=next(iter(at.rungs.values()))["device"],
                    driver=None if at.emulated else driver(), system=platform.platform(), date=now.isoformat(timespec="seconds"),
                    **origin(), left_out=at.absent, running=None)
    report.write()
    started(at)
    say(f"{plural(sum(map(len, groups)), 'run')}, each in a process of its own; what they give is kept in {path}.\n")
    results, interrupted = collect(groups, time_limit, report)
    good, sentences = conclusion(results, at.emulated)
    if interrupted:
        sentences.append("Interrupted: the rest was not run.")
    say("\n" + "\n".join(sentences))
    report.write(state="interrupted" if interrupted else "finished", verdict=sentences, by_rung=by_rung(results), running=None)
    if not at.emulated:
        say(f"\nPlease send {path}, whatever it says: attach it to a new issue on the page where you got this repository. It "
            "tells of the GPU, its driver, the system, the compiler and of each run; not of you or of your folders.")
    return 130 if interrupted else 0 if good else 1


def record(path, time_limit):
    """Makes the known answers anew, where there is no doubt about them."""
    at = place(build.rungs(), "b200")
    started(at)
    results, interrupted = collect(planned(at, known_answers.ASKED, time_limit), time_limit)
    if interrupted:
        return 130
    hashes = {}
    for result in results:
        hashes.setdefault(result.run.answer.name, set()).add(result.d_hash)
    different = [name for name, found in hashes.items() if len(found) > 1]
    bad = [result for result in results if result.verdict != RIGHT]
    if bad or different:
        for result in bad:
            say(f"{result.run.case.rung} {result.run.case.variant}, {result.run.name}: {VERDICTS[result.verdict]}")
        for name in different:
            say(f"{name}: the bits of D differ: {', '.join(sorted(map(str, hashes[name])))}")
        say(f"{path} is left as it was: it holds only what all rungs agree on.")
        return 1
    known_answers.write(path, known_answers.recorded({name: found.pop() for name, found in hashes.items()}))
    say(f"\n{plural(len(results), 'run')} agree: {plural(len(hashes), 'answer')} in {path}.")
    return 0


def command(arguments):
    parser = Parser(prog="ladder selfcheck", description=__doc__.split("\n\n")[0])
    parser.add_argument("rungs", nargs="*", metavar="STEP", help="only these rungs")
    parser.add_argument("--on", default="auto", choices=["auto", "gpu", "b200", "h200"],
                        help="as the rungs take it (default: auto, a GPU that can run them, else an emulated B200)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="what was found (default: selfcheck-CHIP.json in this folder)")
    parser.add_argument("--answers", type=Path, metavar="FILE", default=known_answers.FILE,
                        help="what is known (default: docs/known_answers.json)")
    parser.add_argument("--time-limit", type=float, default=TIME_LIMIT, metavar="SECONDS",
                        help=f"most time for a kernel (default: {TIME_LIMIT:g})")
    parser.add_argument("--record", action="store_true", help="make the answers anew, on the emulator and by all rungs")
    options = parser.parse_args(arguments)
    names = [build.named(each) for each in options.rungs]
    if not 0 < options.time_limit < math.inf:
        raise Refusal(f"--time-limit {options.time_limit:g}: expected a number of seconds above 0.")
    if options.record and (names or options.out or options.on not in ("auto", "b200")):
        raise Refusal("--record: answers are what all rungs agree on, on the emulated B200; leave STEP, --on and --out out.")
    answers = None if options.record else known_answers.read(options.answers)
    if options.out:
        refuse_to_replace(options.out)
    # Ended from outside, it leaves as after Ctrl-C: no run behind it, and a file that says so.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    build.build(quiet=True, target="rungs")
    if options.record:
        return record(options.answers, options.time_limit)
    return check(place(names or build.rungs(), options.on), answers, options.out, options.time_limit)
