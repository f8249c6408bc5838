"""`ladder sass stepNN`: the machine code of a rung's main loop, from one stage's first MMA to the next stage's.

The loop is shown in the order in which it runs: the MMAs, the branch back, then what leads to the MMAs again. Code that
only a failed wait reaches lies elsewhere and is left out.
"""

import functools
import json
import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from tools import build, toolkit
from tools.terminal import Parser, Refusal, note, say

RECORD = build.ROOT / "tests" / "machine_code" / "recorded.json"
ENUMERATORS = {"DType": ["f16", "bf16", "f32"],             # common/harness/dtype.h
               "Operands": ["alone", "multicast", "pair"]}  # step07_persistent/plan.h
DTYPES = ENUMERATORS["DType"]
SHOWN = {"step07_persistent": "step07_persistent<pair, 256"}  # of a rung's several kernels, the one to show
TWIN_SHOWN = {"step03_warpspec": "hopper<0", "step07_persistent": "hopper<256, 1"}

LINE = re.compile(r"^\s+/\*([0-9a-f]+)\*/\s+(?:(@!?U?P\w+)\s+)?(\S.*?)\s*;")
MMA, COMMIT = "UTCHMMA", "UTCBAR"
TWIN_MMA, TWIN_COMMIT = "HGMMA", "gsb0"  # the last MMA of a group names the group


@dataclass(frozen=True)
class Instruction:
    address: int
    predicate: str  # "@!P0", or nothing
    text: str       # "BRA.U !UP0, 0x3c0"

    @property
    def opcode(self):
        return self.text.split()[0]

    @property
    def base(self):
        """The opcode without its modifiers."""
        return self.opcode.split(".")[0]

    @property
    def is_mma(self):
        return self.base in (MMA, TWIN_MMA)

    @property
    def commits(self):
        return self.base == COMMIT or (self.base == TWIN_MMA and TWIN_COMMIT in self.text)

    @property
    def target(self):
        """Where a branch goes."""
        found = re.search(r"0x([0-9a-f]+)$", self.text)
        return int(found[1], 16) if self.base == "BRA" and found else None

    def __str__(self):
        return f"{self.address:04x}  {self.predicate:>5} {self.text}".rstrip()


@dataclass(frozen=True)
class Kernel:
    name: str             # "step04_swizzle<f16, f32>"
    instructions: tuple
    registers: int        # of a thread
    stack_bytes: int
    local_bytes: int
    shared_bytes: int     # static: what a launch adds is not in the machine code

    def with_instructions(self, instructions):
        return replace(self, instructions=tuple(instructions))


def kernels(executable):
    """The kernels for Blackwell in the executable's machine code."""
    return _kernels(executable, "sm_100f")


def twin_kernels(executable):
    """Those for Hopper."""
    return _kernels(executable, "sm_90a")


@functools.lru_cache(maxsize=None)
def _kernels(executable, chip):
    tools = toolkit.disassembler()
    code = _output([tools / "cuobjdump", "-sass", "-arch", chip, executable], tools)
    usage = _output([tools / "cuobjdump", "-res-usage", "-arch", chip, executable], tools)
    return parsed(code, usage)


def _output(command, tools):
    # cuobjdump looks for nvdisasm in the PATH.
    done = subprocess.run([str(each) for each in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env={"PATH": f"{tools}:/usr/bin:/bin"})
    if done.returncode:
        raise Refusal(f"{command[0].name} {command[1]} of {command[-1]} failed: {done.stderr.strip() or done.returncode}")
    return done.stdout


def parsed(code, usage):
    """Kernels from what cuobjdump says of code and of resource usage."""
    resources = {}
    for mangled, numbers in re.findall(r"^ *Function (\S+):\n(.*)$", usage, re.M):
        resources[mangled] = {key: int(value) for key, value in re.findall(r"(\w+)(?:\[\d+\])?:(\d+)", numbers)}
    found = []
    for part in code.split("Function : ")[1:]:
        mangled = part.split()[0]
        if mangled not in resources:
            raise Refusal(f"cuobjdump lists the code of {mangled} and no registers.")
        matches = filter(None, map(LINE.match, part.splitlines()))
        instructions = tuple(Instruction(int(each[1], 16), each[2] or "", each[3]) for each in matches)
        numbers = resources[mangled]
        found.append(Kernel(readable(mangled), instructions, numbers["REG"], numbers["STACK"], numbers["LOCAL"],
                            numbers["SHARED"]))
    return sorted(found, key=lambda kernel: kernel.name)


def readable(mangled):
    """The name in the source, with its template arguments: enumerators by their names, others as numbers."""
    # An Itanium name: _Z, length and name, I, the arguments, E. A literal is L, its type, its value, E; a type that was
    # there before, always that of elements, is S1_ and the like.
    found = re.match(r"_Z(\d+)", mangled)
    begin = found.end()
    end = begin + int(found[1])
    name, rest = mangled[begin:end], mangled[end:]
    if not rest.startswith("I"):
        return name
    literals = re.findall(r"L(N6ladder5DTypeE|S\d*_|[ijb]|\d+[A-Za-z_]+)(\d+)E", rest.split("EEv")[0] + "E")
    types = ["DType" if type[0] in "NS" else type.lstrip("0123456789") for type, _ in literals]
    words = [ENUMERATORS[type][int(value)] if type in ENUMERATORS else value for type, (_, value) in zip(types, literals)]
    return f"{name}<{', '.join(words)}>"


def compiler(executable):
    """The compiler's version, as it left it in the machine code."""
    found = re.search(rb"Cuda compilation tools, release [\d.]+, V([\d.]+)", Path(executable).read_bytes())
    return found[1].decode() if found else None


def steady_loop(kernel):
    """The instructions of the main loop in the order in which they run, from a stage's first MMA on; empty when no loop
    holds an MMA. The loop is the shortest that does."""
    # A loop is a branch back over nothing but straight code: the branch of a wait's second try, which lies behind the end
    # of the kernel, is none.
    code = kernel.instructions
    mmas = [i for i, each in enumerate(code) if each.is_mma]
    places = {each.address: i for i, each in enumerate(code)}
    loops = [(places[each.target], i) for i, each in enumerate(code) if each.target in places and each.target <= each.address]
    loops = [(top, bottom) for top, bottom in loops if any(top <= mma <= bottom for mma in mmas)
             and not any(each.base == "EXIT" and not each.predicate for each in code[top:bottom])]
    if not loops:
        return ()
    top, bottom = min(loops, key=lambda loop: loop[1] - loop[0])
    first = next(mma for mma in mmas if mma >= top)
    return code[first:bottom + 1] + code[top:first]


def stages(loop):
    """The loop cut into stages, each from its first MMA to what comes before the next one's: a commit ends its MMAs."""
    cut, committed = [], True
    for each in loop:
        if each.is_mma and committed:
            cut.append([])
            committed = False
        committed |= each.commits
        cut[-1].append(each)
    return cut


def between_mmas(stage):
    """What stands between a stage's first and its last MMA, the MMAs themselves left out."""
    last = max(i for i, each in enumerate(stage) if each.is_mma)
    return [each for each in stage[:last] if not each.is_mma]


def chosen(rung, dtypes="f16, f16", part="", twin=False):
    """The kernel of a rung for these types, the only one with `part` in its name. `twin`: for Hopper."""
    executable = build.rung(rung)
    part = part or (TWIN_SHOWN if twin else SHOWN).get(executable.name, "")
    there = [each for each in (twin_kernels if twin else kernels)(executable) if each.name.endswith((f"<{dtypes}>", f" {dtypes}>"))]
    if not there:
        raise Refusal(f"{rung} has no kernel for <{dtypes}>: f16 or bf16 in, and out the same or f32.")
    found = [each for each in there if part in each.name]
    if len(found) != 1:
        names = ", ".join(each.name.replace(f"<{dtypes}>", "").replace(f", {dtypes}>", ">") for each in found or there)
        raise Refusal(f"'{part}' is in the names of {len(found)} kernels of {rung}; say more of one: {names}." if found else
                      f"'{part}' is in the name of no kernel of {rung}; there are {names}.")
    return found[0]


def main_loop(kernel):
    """The instructions that a page shows: from a stage's first MMA to the next stage's."""
    loop = steady_loop(kernel)
    if not loop:
        raise Refusal(f"{kernel.name} has no loop with an MMA in it; --whole shows all of it.")
    return stages(loop)[0]


def numbers(kernel):
    """What is recorded of a kernel."""
    cut = stages(steady_loop(kernel))
    return {"registers": kernel.registers, "static_shared_bytes": kernel.shared_bytes,
            "loop_instructions": len(cut[0]) if cut else 0}


def record():
    """The numbers of every kernel of every rung, and the compiler that made them."""
    executables = [build.rung(name) for name in build.rungs()]
    return {"compiler": compiler(executables[0]),
            "kernels": {kernel.name: numbers(kernel) for each in executables for kernel in kernels(each) + twin_kernels(each)}}


def written(record):
    """A kernel a line."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(values)}" for name, values in record["kernels"].items())
    return f'{{\n "compiler": {json.dumps(record["compiler"])},\n "kernels": {{\n{lines}\n }}\n}}\n'


def command(arguments):
    parser = Parser(prog="ladder sass", description=__doc__.split("\n")[0])
    parser.add_argument("rung", nargs="?", metavar="stepNN")
    parser.add_argument("--dtype", default="f16", choices=DTYPES[:2])
    parser.add_argument("--out-dtype", choices=DTYPES)
    parser.add_argument("--kernel", default="", metavar="PART",
                        help="of its name, where a rung has several: step07_pair; 'alone, 128' for step07_persistent<alone, 128>")
    parser.add_argument("--hopper", action="store_true", help="the twin's, for sm_90a")
    parser.add_argument("--whole", action="store_true", help="the whole kernel, in the order in which it lies in memory")
    parser.add_argument("--record", action="store_true",
                        help="of all rungs: write registers, shared memory and length of the loop to "
                             f"{RECORD.relative_to(build.ROOT)}, for the tests to compare with")
    options = parser.parse_args(arguments)
    if bool(options.rung) == options.record:
        raise Refusal("Name a rung (sass step04), or say --record for all of them.")
    build.build(quiet=True, target="rungs")
    if options.record:
        RECORD.write_text(written(record()))
        note(f"Wrote {RECORD.relative_to(build.ROOT)}.")
        return 0
    dtypes = f"{options.dtype}, {options.out_dtype or options.dtype}"
    kernel = chosen(options.rung, dtypes, options.kernel, options.hopper)
    say("\n".join(map(str, kernel.instructions if options.whole else main_loop(kernel))))
    return 0
