"""Edits the PTX inside an executable: a broken kernel without a compiler.

The executables hold their PTX as plain text (-no-compress). An edit names a statement of the kernel's file and a regular
expression for a line of PTX that comes from it: which lines those are, the .loc directives say, as they do for the
emulator's reports. The text keeps its length, so that nothing else in the file moves. An edit that does not match
exactly as often as it says is an error, not a mutant that happens to be right.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Callable, Union

ROOT = Path(__file__).resolve().parents[2]

LOC = re.compile(r"\.loc\s+(\d+) (\d+) (\d+)(?:,.*inlined_at (\d+) (\d+) (\d+))?")
LABEL = re.compile(r"\$\w+:")
FILE = re.compile(r'^\.file\s+(\d+) "([^"]+)"', re.MULTILINE)


class SurgeryError(Exception):
    """The executable, or its source, does not look as an edit wants it."""


@dataclass(frozen=True)
class Kernel:
    """Which function is edited.

    name: "": that of the rung.
    arguments: of its template before the types, as the compiler mangles them.
    """
    rung: str
    file: str = "blackwell.cu"
    name: str = ""
    arguments: str = ""

    def __post_init__(self):
        object.__setattr__(self, "name", self.name or self.rung)


@dataclass(frozen=True)
class Edit:
    """Replaces what `find` matches in the lines of PTX of one statement.

    at: a piece of the statement, unique in the kernel's file; blanks and line ends count as one blank. None: the whole kernel.
    find: a regular expression, searched for inside single lines of PTX.
    put: as re.sub takes it; may hold line ends.
    """
    at: Union[str, None]
    find: str
    put: Union[str, Callable[[re.Match], str]]
    times: int = 1


@dataclass(frozen=True)
class Move:
    """Moves all PTX of a statement in front of that of another."""
    at: str
    before: str


class Source:
    """The kernel's file, to turn statements into line numbers."""

    def __init__(self, kernel):
        self.name = f"{kernel.rung}/{kernel.file}"
        self.text = (ROOT / self.name).read_text()

    def line(self, statement):
        pattern = r"\s+".join(re.escape(word) for word in statement.split())
        found = list(re.finditer(pattern, self.text))
        if len(found) != 1:
            raise SurgeryError(f"{self.name}: {len(found)} places with {statement!r}, not one")
        return self.text.count("\n", 0, found[0].start()) + 1

    def place(self, statement):
        """As reports name it."""
        return f"{self.name}:{self.line(statement)}"


class Executable:
    """A rung's executable and the PTX of one of its kernels."""

    def __init__(self, path, kernel):
        self.kernel = kernel
        self.source = Source(kernel)
        self.data = Path(path).read_bytes()
        texts = [(match.start(), self.data.index(b"\0", match.start())) for match in re.finditer(rb"\.version \d", self.data)]
        entry = f".entry _Z{len(kernel.name)}{kernel.name}".encode()
        texts = [(begin, end) for begin, end in texts if entry in self.data[begin:end]]
        if len(texts) != 1:
            raise SurgeryError(f"{path}: {len(texts)} PTX texts with the kernel {kernel.name}, not one; is it built with "
                               "-no-compress?")
        self.begin, self.end = texts[0]

    @cached_property
    def ptx(self):
        return self.data[self.begin:self.end].decode()

    def mutated(self, edits, types=(0, 2)):
        """The file with edits in the kernel for these types (of ladder::DType: in, out)."""
        ptx = self.ptx
        begin, end = self._function(ptx, types)
        kernel = ptx[begin:end]
        for edit in edits:
            kernel = self._moved(kernel, edit) if isinstance(edit, Move) else self._edited(kernel, edit)
        text = ptx[:begin] + kernel + ptx[end:]
        if len(text) > len(ptx):
            text = re.sub(r"\n{2,}", "\n", text)
        if len(text) > len(ptx):
            raise SurgeryError(f"{self.kernel.name}: the edited PTX is {len(text) - len(ptx)} bytes too long")
        text = text.encode() + b"\n" * (len(ptx) - len(text))
        return self.data[:self.begin] + text + self.data[self.end:]

    def _function(self, ptx, types):
        name = rf"_Z{len(self.kernel.name)}{self.kernel.name}I{self.kernel.arguments}LN6ladder5DTypeE{types[0]}ELS\d_{types[1]}EE"
        found = list(re.finditer(rf"^\.visible \.entry {name}.*?^\}}$", ptx, re.MULTILINE | re.DOTALL))
        if len(found) != 1:
            raise SurgeryError(f"{self.kernel.name}: {len(found)} functions {name}, not one")
        return found[0].span()

    def _located(self, kernel):
        """The kernel's lines of PTX, each with the line of its file that it comes from (0: no line)."""
        index = next((int(number) for number, path in FILE.findall(self.ptx) if path.endswith("/" + self.source.name)), None)
        if index is None:
            raise SurgeryError(f"{self.kernel.name}: the PTX has no source lines; is it built with -lineinfo?")
        outer, line, located = {}, 0, []
        for text in kernel.split("\n"):
            found = LOC.match(text)
            if found:
                place = tuple(map(int, found.group(1, 2, 3)))
                if found.group(4):
                    at = outer[place] = tuple(map(int, found.group(4, 5, 6)))
                    while at[0] != index and at in outer:
                        at = outer[at]
                else:
                    at = place
                line = at[1] if at[0] == index else 0
            located.append((0 if LABEL.match(text) else line, text))  # a label belongs to nobody: it must not move
        return located

    def _edited(self, kernel, edit):
        line = edit.at and self.source.line(edit.at)
        lines, times = [], 0
        for at, text in self._located(kernel):
            if not edit.at or at == line:
                text, count = re.subn(edit.find, edit.put, text)
                times += count
            lines.append(text)
        if times != edit.times:
            where = f"{self.source.name}:{line}" if edit.at else f"all of {self.kernel.name}"
            raise SurgeryError(f"{edit.find!r} matches {times} times in the PTX of {where}, not {edit.times}")
        return "\n".join(lines)

    def _moved(self, kernel, move):
        line, before = self.source.line(move.at), self.source.line(move.before)
        lines = self._located(kernel)
        taken = [i for i, (at, _) in enumerate(lines) if at == line]
        targets = [i for i, (at, _) in enumerate(lines) if at == before]
        if not taken or not targets or taken != list(range(taken[0], taken[-1] + 1)):
            raise SurgeryError(f"the PTX of {self.source.name}:{line} is not in one piece, or that of line {before} is missing")
        moved = [lines[i] for i in taken]
        rest = lines[:taken[0]] + lines[taken[-1] + 1:]
        target = targets[0] if targets[0] < taken[0] else targets[0] - len(taken)
        return "\n".join(text for _, text in rest[:target] + moved + rest[target:])
