"""Runs mutants and judges what they said."""

import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from mutant import Good, Seeds, kernel_of  # noqa: E402
from surgery import Executable  # noqa: E402
from tools import build, check  # noqa: E402
from tools.rung import Case, execute  # noqa: E402

SECONDS = 60  # a run takes well under one


@lru_cache(maxsize=None)
def executable_with(kernel):
    return Executable(build.rung(kernel.rung), kernel)


def executable(rung, variant=""):
    return executable_with(kernel_of(rung, variant))


def plain(text):
    """A report as one line: without its margin, every run of blanks one blank."""
    return " ".join(text.replace("=========", " ").split())


class Bench:
    """A folder laid out as the build folder is: bin/ with the edited copies, lib/ with the emulator."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="ladder-mutants-"))
        (self.folder / "bin").mkdir()
        (self.folder / "lib").symlink_to(build.libraries())

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, mutant, schedules, rules=False):
        """Outcome by schedule. `rules`: held to the hazard rules as well."""
        program = self.folder / "bin" / mutant.rung
        program.write_bytes(executable(mutant.rung, mutant.variant).mutated(mutant.edits))
        program.chmod(0o755)
        m, n, k = map(int, mutant.shape.split("x"))
        cases = [Case(mutant.rung, m, n, k, input=mutant.input, variant=mutant.variant, schedule=schedule,
                      rules=rules, strict=mutant.strict) for schedule in schedules]
        try:
            with ThreadPoolExecutor(2) as pool:
                return dict(zip(schedules, pool.map(lambda case: execute(case, program=program, timeout=SECONDS), cases)))
        finally:
            program.unlink()

    def found(self, mutant, schedules):
        """What the hazard rules find under all of these together, as `./ladder check` lists it: never strict."""
        outcomes = self.run(replace(mutant, strict=False), schedules, rules=True)
        return check.merged((schedule, finding) for schedule, outcome in outcomes.items() for finding in outcome.findings)


def complaint(wanted, outcome, source):
    """What an outcome lacks of Good or Says; None when it lacks nothing."""
    if isinstance(wanted, Good):
        if not outcome.good or outcome.text:
            return "it should have ended well"
        total = outcome.counters["total"]
        wrong = {name: total[name] for name, value in wanted.counters.items() if total[name] != value}
        return f"of {wanted.counters} it counted {wrong}" if wrong else None
    if outcome.status != wanted.status or (outcome.good and wanted.status):
        return f"exit status {outcome.status}, not {wanted.status}"
    said, at = plain(outcome.text), 0
    for part in wanted.parts:
        part = re.sub(r"\{([^{}]+)\}", lambda match: source.place(match[1]), part)
        found = re.compile(re.escape(part) + r"(?!\d)").search(said, at)
        if not found:
            return f"it does not say: {part}" + (", or not where it belongs" if part in said else "")
        at = found.end()
    return None


def judge(mutant, bench, seeds=True):
    """What is wrong with a mutant's runs: (schedule, complaint, what it said). `seeds`: of a race, those too that are left to
    chance; they are most of all runs."""
    wrong, source = [], executable(mutant.rung, mutant.variant).source
    for schedules, wanted in mutant.under.items():
        schedules = schedules if isinstance(schedules, tuple) else (schedules,)
        if not seeds and all(schedule.startswith("random:") for schedule in schedules):
            continue
        outcomes = bench.run(mutant, schedules)
        if isinstance(wanted, Seeds):
            failed = [schedule for schedule in schedules if not outcomes[schedule].good]
            if len(failed) < wanted.least:
                wrong.append((", ".join(schedules), f"{len(failed)} seeds noticed, not {wanted.least} or more", ""))
            for schedule in failed:
                complaints = [complaint(way, outcomes[schedule], source) for way in wanted.ways]
                if None not in complaints:
                    wrong.append((schedule, "; ".join(complaints), outcomes[schedule].text))
            continue
        for schedule, outcome in outcomes.items():
            lacks = complaint(wanted, outcome, source)
            if lacks:
                wrong.append((schedule, lacks, outcome.text))
    return wrong
