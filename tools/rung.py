"""One run of a rung's executable: the command, its environment, and what its JSON says afterwards."""

import contextlib
import functools
import json
import os
import re
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from tools import build
from tools.terminal import Refusal

# For what is shown of a run. Under the default schedule everything is done when it is issued: nothing is ever in flight, and
# hardly anybody waits. Under `latest` work is done only when every warp waits, in waves that no chip has.
SHOWN_SCHEDULE = "random:1"

KILL_SECONDS = 10  # a killed process that has not gone by then waits for hardware that does not answer


@dataclass(frozen=True)
class Case:
    """Everything that decides a run. The same case gives the same bits of D, whatever schedule and threads."""
    rung: str
    m: int
    n: int
    k: int
    dtype: str = "f16"
    out_dtype: str = "f32"
    input: str = "random"
    seed: int = 1
    variant: str = ""
    on: str = "b200"
    guard: bool = False    # the build whose waits are bounded
    time_limit: float = 0  # most seconds a kernel may take; 0: the rung's own limit
    schedule: str = ""     # "": the emulator's default
    threads: int = 0       # 0: one a core
    rules: bool = False    # held to the hazard rules: what they find is said on stderr, and kept
    strict: bool = False   # registers of a tcgen05.ld hold poison until tcgen05.wait::ld
    sms: int = 0           # of the emulated chip; 0: all

    @property
    def shape(self):
        return f"{self.m}x{self.n}x{self.k}"

    def options(self):
        options = ["--shape", self.shape, "--dtype", self.dtype, "--out-dtype", self.out_dtype, "--input", self.input,
                   "--seed", str(self.seed), "--on", self.on]
        options += ["--variant", self.variant] if self.variant else []
        options += ["--guard"] if self.guard else []
        return options + (["--time-limit", f"{self.time_limit:g}"] if self.time_limit else [])

    def variables(self):
        variables = {"LADDER_SCHEDULE": self.schedule} if self.schedule else {}
        variables |= {"LADDER_THREADS": str(self.threads)} if self.threads else {}
        variables |= {"LADDER_SMS": str(self.sms)} if self.sms else {}
        variables |= {"LADDER_CHECK": "1"} if self.rules else {}
        return variables | ({"LADDER_STRICT": "1"} if self.strict else {})

    def command_line(self):
        """What to type to see this run again."""
        variables = [f"{name}={value}" for name, value in self.variables().items()]
        return " ".join([*variables, "./ladder", "run", self.rung, *map(shlex.quote, self.options()), "--check"])

    def but(self, **changes):
        return replace(self, **changes)


def sizes_of(shape, example="512x512x512"):
    """M, N and K of an option --shape."""
    sizes = re.fullmatch(r"(\d+)x(\d+)x(\d+)", shape)
    if not sizes:
        raise Refusal(f"--shape {shape}: expected MxNxK, for example {example}.")
    return tuple(map(int, sizes.groups()))


def rung_and_variant(text):
    """`step06` or `step06:2x1`: the rung's whole name, and the variant or ""."""
    name, _, variant = text.partition(":")
    return build.named(name), variant


def where(name, on, timeout=60, variant=""):
    """What the rung says of running on `on`, as common/harness/device_choice.h describes it; or None and why it cannot."""
    with tempfile.TemporaryDirectory(prefix="ladder-") as folder:
        said, complaint = Path(folder, "said"), Path(folder, "complaint")
        with open(said, "wb") as out, open(complaint, "wb") as text:
            asked = ["--variant", variant] if variant else []
            end = _run([str(build.rung(name)), "--where", "--on", on, *asked], dict(os.environ), out, text, timeout)
        report = _json(said)
        return (report, "") if end.status == 0 and report else (None, complaint.read_text(errors="replace").strip() or end.why)


@functools.lru_cache(maxsize=None)
def _on_chip(name, on):
    found, why = where(name, on)
    if not found:
        raise Refusal(why)
    return found


def variants(name, on="b200"):
    """The rung's variants on an emulated chip, its default first."""
    return _on_chip(name, on)["variants"]


def settings(name, on="b200"):
    """Name -> values of the settings that make further variants, as NAME=VALUE with commas between them; "1..32" is a range."""
    return _on_chip(name, on)["settings"]


@dataclass
class Outcome:
    status: int                        # of the process; negative: the signal that ended it
    report: dict                       # its JSON; empty when it did not get that far
    text: str                          # what it said on stderr
    seconds: float = 0.0               # the whole process, wall clock
    peak_bytes: int = 0                # of memory
    trace: bytes = b""
    findings: list = field(default_factory=list)  # of the hazard rules, as LADDER_CHECK_FILE has them
    late: bool = False                 # it had not ended in time
    stuck: bool = False                # and could not be killed either

    @property
    def counters(self):
        return self.report.get("counters") or {}

    @property
    def good(self):
        """Ended well, and everything that was looked at was right."""
        return self.status == 0 and self.report.get("good") is True

    @property
    def clean(self):
        """Good, and the emulator has nothing to remark."""
        return self.good and not self.text


def execute(case, check=True, out=None, trace=False, timeout=600, program=None, bench=False):
    """Runs a case and waits for it. `out`: where to write D as .npy. `program`: the executable, if not the rung's own.
    `bench`: several launches, which must leave the same D."""
    with tempfile.TemporaryDirectory(prefix="ladder-") as folder:
        files = {name: Path(folder, name) for name in ("report.json", "trace", "text", "findings.json")}
        command = [str(program or build.rung(case.rung)), *case.options(), "--json"]
        command += ["--check"] if check else []
        command += ["--bench"] if bench else []
        command += ["--out", str(out)] if out else []
        environment = {**os.environ, **case.variables()}
        environment.pop("LADDER_COUNTERS", None)  # the report brings them
        if trace:
            environment["LADDER_TRACE"] = str(files["trace"])
        if case.rules:
            environment["LADDER_CHECK_FILE"] = str(files["findings.json"])
        begin = time.monotonic()
        with open(files["report.json"], "wb") as report, open(files["text"], "wb") as text:
            end = _run(command, environment, report, text, timeout)
        said = files["text"].read_text(errors="replace") + (f"{case.rung}: {end.why}\n" if end.why else "")
        outcome = Outcome(end.status, _json(files["report.json"]), said, time.monotonic() - begin, end.peak_bytes, late=end.late,
                          stuck=end.stuck)
        if trace and files["trace"].exists():
            outcome.trace = files["trace"].read_bytes()
        if case.rules:
            outcome.findings = _json(files["findings.json"]).get("findings", [])
        return outcome


@dataclass
class _End:
    status: int = -signal.SIGKILL
    peak_bytes: int = 0
    why: str = ""        # where it did not end by itself
    late: bool = False
    stuck: bool = False


def _run(command, environment, stdout, stderr, timeout):
    """Runs a process to its end, or kills it. One that waits for a driver which does not answer cannot be killed; then it is
    left behind, for whoever waits for it would be stuck, too."""
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
    ended = []

    def kill():  # not process.kill(), which would look for the end first and take it from the waiter
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    waiter = threading.Thread(target=lambda: ended.append(os.wait4(process.pid, 0)), daemon=True)
    waiter.start()
    try:
        waiter.join(timeout)
    except BaseException:  # Ctrl-C
        kill()
        raise
    end = _End(late=waiter.is_alive())
    if end.late:
        kill()
        waiter.join(KILL_SECONDS)
        end.stuck = waiter.is_alive()
        end.why = f"it has not ended after {timeout:g} s{' and cannot be killed' if end.stuck else ''}"
    if ended:
        _, status, usage = ended[0]
        end.status, end.peak_bytes = os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024
        if end.status < 0 and not end.late:
            end.why = f"ended by {_signal_name(-end.status)}"
    process.returncode = end.status
    return end


def _signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _json(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
