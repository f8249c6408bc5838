#!/usr/bin/env python3
"""The exhibits, as data: what their sources say of them, and what the emulator shows of them.

    museum.py            the table of README.md, to look at
    museum.py --write    puts it there
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("LADDER_BUILD") or HERE.parents[1] / "build")
README = HERE / "README.md"
SCHEDULES = ("earliest", "latest", "random:1", "random:2", "random:3")
STRICT = "latest, strict"
FIELDS = ("Symptom", "Why", "Fix", "Rule", "Expect")
SECONDS = 60  # a run takes well under one

# What may be expected of a checker.
FINDINGS = {
    "read-too-early": "bytes are read that another thread or an asynchronous operation still has to write",
    "overwrite-too-early": "bytes are written that another thread or an asynchronous operation still has to read",
    "proxy-fence": "ordinary and asynchronous accesses are ordered, but no fence.proxy.async stands between them",
    "warp-sync": "lanes of one warp rely on each other without having met",
    "weak-order": "the scope or the semantics of a release or acquire are too weak for where its partner is",
    "barrier-init": "an mbarrier is used before it is initialised, or before the init is visible",
    "barrier-bytes": "the bytes that an mbarrier is told do not add up to those that arrive",
    "barrier-arrivals": "more arrivals on an mbarrier than it waits for",
    "barrier-reuse": "the memory of a live mbarrier is used for something else, or initialised again",
    "late-access": "shared memory of a CTA that may have ended is used",
    "bulk-store-wait": "what a bulk store writes is handed on before the store is complete",
    "wgmma-wait": "registers of a wgmma are touched before its group has been waited for",
    "uninitialised": "memory that nobody has written reaches a result",
    "divergence": "an instruction for whole warps is executed by part of one",
    "hang": "a wait that nothing under way can end",
    "tmem-leak": "a kernel ends with tensor memory allocated",
    "tmem-freed": "tensor memory is freed while it is in use",
    "tmem-quarter": "a warp reaches for lanes of tensor memory that are not its own",
    "tcgen05-fence": "a rule that silicon does not need: no tcgen05.fence where threads hand over tensor memory",
    "descriptor": "a descriptor that does not describe the operand",
    "swizzle-alignment": "a swizzled tile that does not begin where its pattern does",
}

# Broken twins that are right on the emulator under every schedule: nothing there depends on the mistake yet.
NOT_SHOWN = {
    "blackwell_no_tcgen05_fence",
    "blackwell_operands_without_proxy_fence",
    "hopper_barrier_memory_reused",
    "hopper_init_without_fence",
    "hopper_load_of_fresh_global",
    "hopper_remote_store_cta_arrive",
    "hopper_remote_store_cta_wait",
    "hopper_store_without_proxy_fence",
    "hopper_wgmma_without_proxy_fence",
}


@dataclass(frozen=True)
class Outcome:
    """Of one run. `result`: what the exhibit printed behind `result: `; `report`: what the emulator said of it."""

    status: int
    result: str
    report: str

    @property
    def right(self):
        return self.status == 0 and self.result == "right"

    @property
    def word(self):
        """For a table: right, wrong, or report where the emulator has ended it; notes are worth a word too."""
        word = "right" if self.right else "wrong" if self.result.startswith("wrong") else "report"
        return word + (", note" if self.report and word != "report" else "")


class Exhibit:
    def __init__(self, source):
        self.source = source
        self.name = source.stem
        self.text = source.read_text()
        head = []
        for line in self.text.splitlines():
            if not line.startswith("//"):
                break
            head.append(line[2:].strip())
        self.title = head[0]
        self.fields = {}
        for line in head[1:]:
            name, _, rest = line.partition(": ")
            if name in FIELDS:
                self.fields[name] = rest
                last = name
            elif line:
                self.fields[last] += " " + line

    @property
    def chip(self):
        return "h200" if self.name.startswith("hopper_") else "b200"

    @property
    def expected(self):
        """Any of these findings is right."""
        return self.fields["Expect"].split(", ")

    @property
    def hangs(self):
        """Its point is a wait that never ends: only --bounded ends it."""
        return "exhibit.tries()" in self.text

    def run(self, twin, schedule, *options):
        schedule, _, strict = schedule.partition(", ")
        environment = {**os.environ, "LD_LIBRARY_PATH": str(BUILD / "lib"), "LADDER_CHIP": self.chip,
                       "LADDER_SCHEDULE": schedule, "LADDER_STRICT": "1" if strict else "0"}
        done = subprocess.run([BUILD / "tests" / "museum" / self.name, twin, *options], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=SECONDS, env=environment)
        results = re.findall(r"^result: (.*)$", done.stdout, re.MULTILINE)
        return Outcome(done.returncode, results[-1] if results else "", done.stderr)


def exhibits():
    return [Exhibit(source) for source in sorted(HERE.glob("*.cu"))]


def table():
    columns = (*SCHEDULES[:3], STRICT)
    lines = ["| exhibit | expected finding | " + " | ".join(columns) + " |", "| --- " * (2 + len(columns)) + "|"]
    for exhibit in exhibits():
        with ThreadPoolExecutor(2) as pool:
            words = [outcome.word for outcome in pool.map(lambda schedule: exhibit.run("broken", schedule), columns)]
        lines.append(f"| [{exhibit.name}]({exhibit.source.name}) | {exhibit.expected[0]} | {' | '.join(words)} |")
    return "\n".join(lines) + "\n"


def findings_table():
    lines = ["| finding | what it says |", "| --- | --- |", *(f"| {name} | {text} |" for name, text in FINDINGS.items())]
    return "\n".join(lines) + "\n"


def with_tables(text):
    for name, content in (("table", table()), ("findings", findings_table())):
        begin, end = f"<!-- {name}: museum.py --write -->\n", f"<!-- end of {name} -->\n"
        head, rest = text.split(begin)
        text = head + begin + content + end + rest.split(end)[1]
    return text


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        README.write_text(with_tables(README.read_text()))
    elif len(sys.argv) == 1:
        print(table(), end="")
    else:
        sys.exit(__doc__)
