"""The exhibits, as data: what their sources say of them, and what the emulator shows of them.

`./ladder pages` makes docs/bug_museum.md of it (page.py), test_museum.py holds the exhibits to it.
"""

import json
import os
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("LADDER_BUILD") or ROOT / "build")
SCHEDULES = ("earliest", "latest", "random:1")
MORE_SCHEDULES = ("random:2", "random:3", "latest, strict")  # for the twins that must be right whatever comes
FIELDS = ("Symptom", "Why", "Fix", "Rule", "Theme", "Expect")
SECONDS = 60  # a run takes well under one

# In the order of the page.
THEMES = ("waits and phases", "stages and buffers", "bytes and arrivals", "proxies", "the life of a barrier", "clusters",
          "warps and lanes", "tensor core results and tensor memory", "contents and layouts")


def rules():
    """The hazard rules, id -> (rank, title), as emulator/hazards/rules.cpp has them."""
    text = (ROOT / "emulator" / "hazards" / "rules.cpp").read_text()
    found = re.findall(r'\{"([\w-]+)", Rank::(\w+),\s+((?:"[^"]*"\s*)+),', text)
    return {name: (rank, "".join(re.findall(r'"([^"]*)"', title))) for name, rank, title in found}


def faults():
    """What ends a launch, id -> title, as emulator/machine/fault_kind.cpp has it."""
    text = (ROOT / "emulator" / "machine" / "fault_kind.cpp").read_text()
    return dict(re.findall(r'\{"([\w-]+)", \w+,\s+"([^"]*)",', text))


# Of these nothing is found yet, under any schedule.
NOT_SEEN = set()


@dataclass(frozen=True)
class Outcome:
    """Of one run. `result`: what the exhibit printed behind `result: `; `findings`: of the hazard checker, as
    LADDER_CHECK_FILE has them; `said`: what the emulator wrote of it."""

    status: int
    result: str
    findings: list
    said: str

    @property
    def right(self):
        return self.status == 0 and self.result == "right"

    @property
    def names(self):
        """Of all that was found."""
        return [finding["rule"] for finding in self.findings]


@dataclass(frozen=True)
class Expected:
    """One of these names, about one of these objects."""

    names: tuple
    objects: tuple

    def __str__(self):
        return f"{' or '.join(self.names)} of {' or '.join(self.objects)}"

    def about_it(self, text):
        return any(re.search(rf"(?<!\w){re.escape(each)}(?!\w)", text) for each in self.objects)


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
            if name in (*FIELDS, "Also"):
                self.fields[name] = rest
                last = name
            elif line:
                self.fields[last] += " " + line

    @property
    def chip(self):
        return "h200" if self.name.startswith("hopper_") else "b200"

    @property
    def executable(self):
        return BUILD / "tests" / "museum" / self.name

    @property
    def environment(self):
        return {**os.environ, "LD_LIBRARY_PATH": str(BUILD / "lib"), "LADDER_CHIP": self.chip}

    @property
    def expected(self):
        """Any of these must be told, under every schedule; the first says it best. `Expect: NAME, NAME of OBJECT; NAME`."""
        groups = []
        for group in self.fields["Expect"].split("; "):
            names, _, objects = group.partition(" of ")
            groups.append(Expected(tuple(names.split(", ")), tuple(filter(None, objects.split(", ")))))
        return groups

    @property
    def names(self):
        return [name for expected in self.expected for name in expected.names]

    @property
    def also(self):
        """What may follow from the mistake, and be told besides."""
        return self.fields["Also"].split(", ") if "Also" in self.fields else []

    @property
    def reported(self):
        """Numbers of the lines that the report is to name: those with `// reported` behind them, or above them."""
        lines = self.text.splitlines()
        return {number + (line.strip() == "// reported:") for number, line in enumerate(lines, 1)
                if line.endswith("  // reported") or line.strip() == "// reported:"}

    @property
    def hangs(self):
        """Its point is a wait that never ends: only --bounded ends it."""
        return "exhibit.tries()" in self.text

    def lines_in(self, text):
        """Numbers of the exhibit's own lines that a report names."""
        return {int(number) for number in re.findall(rf"\b{self.source.name}:(\d+)", text)}

    def telling(self, outcome):
        """(name, lines) of everything that says what the matter is: expected, of the right object, at the right lines."""
        found = []
        for expected in self.expected:
            for finding in outcome.findings:
                if "report" in finding:  # it ended the launch
                    lines = self.lines_in(finding["report"]) & self.reported
                    if finding["rule"] in expected.names and expected.about_it(finding["report"]) and lines:
                        found.append((finding["rule"], lines))
                    continue
                lines = self.lines_in(" ".join(place for side in finding["sides"] for place in (side["where"], *side["also"])))
                at_home = all(self.source.name in side["where"] for side in finding["sides"])
                both = len(lines) >= min(len(finding["sides"]), 2)
                if finding["rule"] in expected.names and expected.about_it(finding["object"]) and at_home and both and \
                        lines <= self.reported:
                    found.append((finding["rule"], lines))
        return found

    def run(self, twin, schedule, *options, threads=0):
        """With the hazard checker. The same `threads`, the same report: each is about the first that comes."""
        schedule, _, strict = schedule.partition(", ")
        with tempfile.TemporaryDirectory(prefix="ladder-museum-") as folder:
            path = Path(folder, "findings.json")
            environment = {**self.environment, "LADDER_SCHEDULE": schedule, "LADDER_STRICT": "1" if strict else "0",
                           "LADDER_THREADS": str(threads), "LADDER_CHECK": "1", "LADDER_CHECK_FILE": str(path)}
            done = subprocess.run([self.executable, twin, *options], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=SECONDS, env=environment)
            found = json.loads(path.read_text())
        results = re.findall(r"^result: (.*)$", done.stdout, re.MULTILINE)
        return Outcome(done.returncode, results[-1] if results else "", found["findings"], done.stderr)

    def runs(self, twin, schedules, threads=0):
        with ThreadPoolExecutor(2) as pool:
            return dict(zip(schedules, pool.map(lambda each: self.run(twin, each, threads=threads), schedules)))


def exhibits():
    return [Exhibit(source) for source in sorted(HERE.glob("*.cu"))]
