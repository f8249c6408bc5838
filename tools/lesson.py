"""The lesson of a step as blocks of lines: what the step before has already, and what the reader is to write.

A step is a rung; or where a rung's change comes in several files, one of these. An exercise is the step before, under this
step's name, with a TODO in front of each place that changes. What says only what is wanted is given: comments that stand on
lines of their own, includes, lines whose comment alone changes, and lines that do nothing but hand on the parameter that the
launch takes anew.
"""

import difflib
import re
import textwrap
from dataclasses import dataclass, replace

from tools import build
from tools.terminal import Refusal

CHAINS = {"step07_persistent": ("pair", "persistent", "blackwell")}  # rungs of several steps: their files, in order

WIDTH = 120
WORD = re.compile(r"\b[A-Za-z_]\w*")
STRING = re.compile(r'"[^"]*"')
LANGUAGE = {"alignas", "auto", "bool", "const", "constexpr", "else", "extern", "false", "float", "for", "if", "int", "int64_t",
            "pragma", "return", "size_t", "static", "static_cast", "true", "uint16_t", "uint32_t", "uint64_t", "unsigned",
            "unroll", "void", "__device__", "__forceinline__", "__global__", "__shared__"}  # no names of the lesson


@dataclass(frozen=True)
class Step:
    rung: str
    file: str = "blackwell"

    @property
    def path(self):
        """Of its kernel, in the repository."""
        return f"{self.rung}/{self.file}.cu"

    @property
    def short(self):
        """What to type: `step02`, `step07:pair`."""
        return self.rung[:6] + (f":{self.file}" if self.rung in CHAINS else "")

    @property
    def kernel(self):
        """Its name, which also is in that of the launch: the rung's, but for a chain's first steps."""
        return next(found[1] for found in map(re.compile(r"void launch_(\w+)\(").match, self.lines()) if found)

    def lines(self):
        return (build.ROOT / self.path).read_text().split("\n")


def steps():
    """All of the ladder, from the ground up."""
    rungs = build.sources()
    return [Step(rung, file) for rung in rungs for file in CHAINS.get(rung, ("blackwell",))]


def named(text):
    """The step called `step02`, or `step07:pair`; of a rung with several, its own name is that of the last."""
    name, _, file = text.partition(":")
    step = Step(build.named(name), file or "blackwell")
    if step not in steps():
        files = [each.file for each in steps() if each.rung == step.rung]
        raise Refusal(f"{text}: no such step; {step.rung} has {', '.join(files)}.")
    return step


def predecessor(step):
    """The step before, or None."""
    there = steps()
    at = there.index(step)
    return there[at - 1] if at else None


@dataclass(frozen=True)
class Block:
    given: tuple        # lines that stand there already
    old: tuple = ()     # lines of the step before that are to go
    new: tuple = ()     # lines to be written
    number: int = 0     # of the TODO; 0: nothing to do
    moved: tuple = ()   # of its old lines, those that come again elsewhere: (how many, at which TODO)

    def exercise(self, known):
        """The lines of the exercise. `known`: the words of the step before."""
        return [*self.given, *self.task(known), *self.old]

    def task(self, known):
        if not self.number:
            return []
        comments = [line.split("//", 1)[1].strip() for line in self.new if "//" in line]
        names = dict.fromkeys(word for line in self.new for word in WORD.findall(STRING.sub("", line.split("//")[0]))
                              if word not in known)
        text = f"TODO {self.number}: {self.wanted()}"
        text += "".join(f" Of the old ones, {count} come again at TODO {number}." for count, number in self.moved)
        text += f" New here: {', '.join(names)}." if names else ""
        text += "".join(f' "{comment}"' for comment in comments)
        line = (self.old or self.new)[0]
        margin = " " * (len(line) - len(line.lstrip())) + "// "
        return textwrap.wrap(text, WIDTH, initial_indent=margin, subsequent_indent=margin + "    ", break_long_words=False,
                             break_on_hyphens=False)

    def wanted(self):
        old, new = len(self.old), len(self.new)
        if not old and not "".join(self.new).strip(" };"):
            return "the end of what begins further up."
        if not old:
            return f"{new} lines are missing here." if new > 1 else "a line is missing here."
        goes = f"the next {old} lines go" if old > 1 else "the next line goes"
        if not new:
            return f"{goes}."
        changes = f"the next {old} lines change" if old > 1 else "the next line changes"
        return f"{changes}, into {new}." if new != old else f"{changes}."


def blocks(step):
    """The whole of the step's kernel file, in order."""
    before = predecessor(step)
    old = [line.replace(before.kernel, step.kernel) for line in before.lines()]
    new = step.lines()
    handed_on = parameter(old, step.kernel) | parameter(new, step.kernel)
    out, count = [], 0
    matcher = difflib.SequenceMatcher(None, *(["".join(line.split()) for line in lines] for lines in (old, new)), autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        gone, come = [line for line in old[a:b] if not is_given(line)], new[c:d]
        if tag == "equal" or only_hands_on(gone, come, handed_on) or code_of(gone) == code_of(come):
            out.append(Block(tuple(come)))
            continue
        while gone or come:
            # What is given stands above what is to be written.
            code = next((i for i, line in enumerate(come) if not is_given(line)), len(come))
            end = next((i for i in range(code, len(come)) if is_given(come[i])), len(come))
            to_do = bool(gone) or code < end
            count += to_do
            out.append(Block(tuple(come[:code]), tuple(gone), tuple(come[code:end]), count if to_do else 0))
            gone, come = [], come[end:]
    return [replace(block, moved=moved(block, out)) for block in out]


def moved(block, others):
    """Where lines of a block that are to go come again: (how many, at which TODO)."""
    count = {other.number: sum(code_of([line])[0] in code_of(other.new) for line in block.old if len(code_of([line])[0]) > 1)
             for other in others if other.number not in (0, block.number)}
    return tuple((lines, number) for number, lines in count.items() if lines > 1)


def is_given(line):
    return not line.strip() or line.lstrip().startswith(("//", "#include"))


def code_of(lines):
    """Lines without comments and blanks. Where these are equal, a comment has changed, and there is nothing to do."""
    return ["".join(line.split("//")[0].split()) for line in lines if not is_given(line)]


def parameter(lines, kernel):
    """The words of what the kernel's launch takes beside the Gemm: {"int", "stages"}."""
    head = next(line for line in lines if line.startswith(f"void launch_{kernel}("))
    return set(WORD.findall(head)) - {"void", f"launch_{kernel}", "const", "Gemm", "gemm"}


def only_hands_on(old, new, handed_on):
    """Whether lines change in nothing but the parameter of the launch; the kernel's own lines mention neither."""
    words = [[word for line in lines for word in WORD.findall(line)] for lines in (old, new)]
    if "launch_typed" not in words[1] and not any(word.startswith("launch_step") for word in words[1]):
        return False
    return [word for word in words[0] if word not in handed_on] == [word for word in words[1] if word not in handed_on]


def exercise(step):
    """The text of the exercise."""
    known = words_of(step)
    return "\n".join(line for block in blocks(step) for line in block.exercise(known))


def words_of(step):
    """Words that are nothing new."""
    before = {word for line in predecessor(step).lines() for word in WORD.findall(line)}
    return LANGUAGE | {step.kernel, f"launch_{step.kernel}"} | before
