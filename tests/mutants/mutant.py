"""What a mutant is, and how to say what its runs must come to."""

from dataclasses import dataclass, field
from typing import Union

ROUND = ("earliest", "latest", "random:1", "random:2")
SHAPES = {"step00": "128x256x16", "step01": "128x256x64",  # and ten K tiles: two rounds and a half of a ring of four
          "step02": "128x256x160", "step03": "128x256x160", "step04": "128x256x640", "step05": "128x256x640",
          "step06": "256x512x640"}  # a cluster
SEEDS = tuple(f"random:{seed}" for seed in range(1, 9))


@dataclass(frozen=True)
class Good:
    """The run ends well: a right kernel, or a wrong one that this schedule does not show to be wrong.
    counters: some of the report's totals."""
    counters: dict = field(default_factory=dict)


GOOD = Good()


@dataclass(frozen=True)
class Says:
    """The run fails, and its report holds these parts in this order, whatever lies between them. {statement} stands for
    the place of that statement of blackwell.cu, as file:line."""
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
    """Of eight seeds at least `least` fail, each in one of these ways; the others end well."""
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


Outcome = Union[Good, Says, Seeds]
