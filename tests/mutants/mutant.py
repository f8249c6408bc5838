"""What a mutant is, and how to say what its runs must come to."""

import re
from dataclasses import dataclass, field
from typing import Union

from surgery import Kernel, SurgeryError

ROUND = ("earliest", "latest", "random:1", "random:2")
SHAPES = {"step00": "128x256x16", "step01": "128x256x64",  # and ten K tiles: two rounds and a half of a ring of four
          "step02": "128x256x160", "step03": "128x256x160", "step04": "128x256x640", "step05": "128x256x640",
          "step06": "256x512x640",  # a cluster
          "step07": "256x256x640"}  # a pair
SEEDS = tuple(f"random:{seed}" for seed in range(1, 9))


# Of step07: its first two kernels by their variants, its last one by the ways to get operands, as in step07_persistent/plan.h.
KERNELS = {"pair": "step07_pair", "persistent": "step07_persistent_grid"}
ALONE, MULTICAST, PAIR = range(3)


def kernel_of(rung, variant):
    """The function that runs. step07 has three, and of its last one an instance for each way to get operands and each width."""
    if not rung.startswith("step07"):
        return Kernel(rung)
    if variant in KERNELS:
        return Kernel(rung, f"{variant}.cu", KERNELS[variant])
    width = re.search(r"\btile-n=(\d+)", variant)
    if not width:
        raise SurgeryError(f"{rung}, variant '{variant}': the rung would choose among kernels for 128, 224 and 256 columns; name "
                           "one with tile-n=")
    operands = MULTICAST if "multicast=on" in variant else ALONE if "cta-group=1" in variant else PAIR
    return Kernel(rung, arguments=f"L8Operands{operands}ELi{width[1]}E")


@dataclass(frozen=True)
class Good:
    """The run ends well: a right kernel, or a wrong one that this schedule does not show to be wrong.
    counters: some of the report's totals."""
    counters: dict = field(default_factory=dict)


GOOD = Good()


@dataclass(frozen=True)
class Says:
    """The run fails, and its report holds these parts in this order, whatever lies between them. {statement} stands for
    the place of that statement of the kernel's file, as file:line."""
    parts: tuple
    status: int = 1


def says(*parts):
    return Says(parts)


def stops(message, at, *more):
    """A fault: what was wrong, and at which statement."""
    return says("stopped", message, f"at {{{at}}}", *more)


def notes(message, at):
    """It ends well, with a note on what the chip lets pass."""
    return Says((f"at {{{at}}}", message), status=0)


def hangs(*parts, who="block"):
    return says(f"hangs: no thread of the {who} can go on", *parts)


def waits(who, at, what):
    """One entry of a hang report, as parts of `hangs`."""
    return f"{who} at {{{at}}}", what


def mismatch(*parts):
    return says("MISMATCH", *parts)


@dataclass(frozen=True)
class Seeds:
    """Of the seeds at least `least` fail, each in one of these ways; the others end well."""
    ways: tuple
    least: int


def seeds(*ways, least):
    return Seeds(ways, least)


def always(outcome):
    """Whatever the schedule."""
    return dict.fromkeys(ROUND, outcome)


def race(earliest, latest, random):
    """Depends on when things happen. `random` is for eight seeds: Seeds, or one outcome for all of them."""
    return {"earliest": earliest, "latest": latest, SEEDS: random}


@dataclass(frozen=True)
class Mutant:
    name: str
    rung: str
    edits: tuple
    under: dict                # schedule, or tuple of schedules: outcome
    shape: str = ""
    input: str = "random"
    strict: bool = False
    variant: str = ""          # of the rung; "": its default
    found: str = ""            # rules that `./ladder check` names, all its schedules together, in its order: "NAME, NAME"

    def __post_init__(self):
        if not self.shape:
            object.__setattr__(self, "shape", SHAPES[self.rung[:6]])

    @property
    def kernel(self):
        return kernel_of(self.rung, self.variant)

    @property
    def file(self):
        return f"{self.rung}/{self.kernel.file}"


Outcome = Union[Good, Says, Seeds]
