"""`ladder isa`: writes docs/emulator_isa.md, every instruction of PTX ISA 9.0 and whether the emulator executes it.

The spellings come from isa_forms.py; those that ptxas refuses are left out."""

import collections
import os
import re
import shutil
import subprocess
import tempfile

from tools import build, isa_forms
from tools.terminal import Parser, Refusal, note, say

PAGE = build.ROOT / "docs" / "emulator_isa.md"

MODULE = """.version 9.0
.target sm_100a
.address_size 64
.global .align 32 .b8 in_global[256];
.const .align 16 .b8 in_const[256] = {1};
.shared .align 128 .b8 in_shared[4096];
.func (.param .b32 back) function (.param .b32 given) { st.param.b32 [back], 1; ret; }
.visible .entry listing (.param .u64 p0)
{
.reg .pred %p<4>; .reg .b8 %b<4>; .reg .b16 %h<20>; .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .b128 %q<20>;
.param .b32 given; .param .b32 back;
targets: .branchtargets behind;
prototype: .callprototype (.param .b32 _) _ (.param .b32 _);
functions: .calltargets function;
%%%
behind: ret;
}
"""


def ptxas_accepts(forms, ptxas):
    """The spellings that ptxas takes. It lists all its complaints at once, by line, before it makes any code: a line
    that is wrong on purpose keeps it from that."""
    before, after = MODULE.split("%%%\n")
    first = before.count("\n") + 1
    text = before + "".join(f + ";\n" for f in forms) + "no.such.instruction;\n" + after
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([ptxas, "-arch=sm_100a", file.name, "-o", "/dev/null"], capture_output=True, text=True)
    wrong = {int(n) - first for n in re.findall(r"line (\d+); (?:error|fatal)", done.stdout + done.stderr)}
    if len(forms) not in wrong:
        raise RuntimeError("ptxas did not complain of the line that is wrong on purpose:\n" + done.stderr[:2000])
    return [f for i, f in enumerate(forms) if i not in wrong]


def ask(listing, forms, chip="b200"):
    """{spelling: None, or why it is refused}"""
    done = subprocess.run([str(listing), chip], input=MODULE + "===\n" + "\n".join(forms) + "\n", capture_output=True,
                          text=True, check=True)
    answers = done.stdout.splitlines()
    if len(answers) != len(forms):
        raise RuntimeError(f"{listing} answered {len(answers)} of {len(forms)} questions")
    return {f: None if a == "yes" else a[3:] for f, a in zip(forms, answers)}


TYPES = re.compile(r"\.((?:[busf](?:8|16|32|64|128)(?:x[24])?|f16x2|f32x2|bf16(?:x2)?|tf32|pred|"
                   r"e[2345]m[0123](?:x[24])?|ue8m0x2)|b8x16|b1024|kind::\w+)(?=[.\s]|$)")


def opcode_of(form):
    text = re.sub(r"^@!?%p\d+ ", "", form)
    head = text.split(" ")[0]
    parts = head.split(".")
    families = {"tcgen05", "mbarrier", "cp", "barrier", "bar", "fence", "clusterlaunchcontrol", "wmma", "mma",
                "multimem", "tensormap", "griddepcontrol", "redux", "vote", "match", "shfl"}
    if parts[0] not in families or len(parts) == 1:
        return parts[0]
    if parts[0] == "cp":
        keep = []
        for part in parts:
            if part in ("cp", "reduce", "async", "bulk", "tensor", "prefetch", "commit_group", "wait_group", "wait_all",
                        "mbarrier", "arrive"):
                keep.append(part)
            elif re.fullmatch(r"\dd", part):
                continue
            else:
                break
        return ".".join(keep)
    if parts[0] == "mbarrier" and len(parts) > 2 and parts[2] in ("expect_tx", "noComplete", "parity"):
        return ".".join(parts[:3])
    if parts[0] in ("bar", "barrier"):
        keep = [p for p in parts if p not in ("aligned", "release", "relaxed", "acquire", "u32", "pred")]
        return ".".join(keep[:4])
    if parts[0] == "tcgen05" and parts[1] in ("mma",) and parts[2] in ("ws", "sp"):
        return ".".join(parts[:3])
    if parts[0] == "tcgen05" and parts[1] == "ld" and parts[2] == "red":
        return "tcgen05.ld.red"
    if parts[0] == "mma" and parts[1].startswith("sp"):
        return "mma.sp"
    return ".".join(parts[:2])


def types_of(form):
    return ".".join(TYPES.findall(form.split(" ")[0] if not form.startswith("@") else form)) or "-"


def spelled(form):
    return re.sub(r"^@!?%p\d+ ", "", form).split(" ")[0]


def shorten(names, most=12):
    names = list(dict.fromkeys(names))
    if len(names) <= most:
        return ", ".join(names)
    return ", ".join(names[:most]) + f", and {len(names) - most} more"


def render(verdicts):
    valid = set(verdicts)
    done = sum(v is None for v in verdicts.values())
    out = ["# PTX that the emulator executes", "",
           "<!-- Written by ./ladder isa from what the emulator answers; a test holds it to that. -->", "",
           f"Every opcode of PTX ISA 9.0 for sm_100a, in {len(verdicts)} spellings that ptxas 13.0 accepts: {done} are "
           f"executed, {len(verdicts) - done} are refused by name when a program reaches them. Types are as the "
           "spelling has them, result first. What an instruction does is checked by `tests/probes`; this page says only "
           "that it is there.", ""]
    for section, forms in isa_forms.SECTIONS:
        by_opcode = collections.OrderedDict()
        for form in dict.fromkeys(forms()):
            if form in valid:
                by_opcode.setdefault(opcode_of(form), []).append(form)
        if not by_opcode:
            continue
        out += [f"## {section}", "", "| opcode | spellings | executed on types | refused |", "| --- | --- | --- | --- |"]
        for opcode, spellings in by_opcode.items():
            fine = [f for f in spellings if verdicts[f] is None]
            refused = [f for f in spellings if verdicts[f] is not None]
            types = shorten([types_of(f) for f in fine if types_of(f) != "-"], 40) or ("all" if fine else "none")
            if not refused:
                no = ""
            elif not fine:
                no = "all of it"
            else:
                no = shorten([f"`{spelled(f)}`" for f in refused], 6)
            out.append(f"| `{opcode}` | {len(fine)} of {len(spellings)} | {types} | {no} |")
        out.append("")
    return "\n".join(out)


def find_ptxas():
    for root in (os.environ.get("CUDA_HOME"), build.ROOT / ".toolkit" / "cuda", "/usr/local/cuda"):
        if root and os.access(os.path.join(root, "bin", "ptxas"), os.X_OK):
            return os.path.join(root, "bin", "ptxas")
    found = shutil.which("ptxas")
    if not found:
        raise Refusal("ptxas was not found. CUDA_HOME may name the toolkit that has it.")
    return found


def check_version(ptxas):
    said = subprocess.run([ptxas, "--version"], capture_output=True, text=True).stdout
    if "release 13.0" not in said:
        raise Refusal(f"{ptxas} is not of CUDA 13.0, by which the page says what PTX is. CUDA_HOME may name that toolkit.")


def command(arguments):
    parser = Parser(prog="ladder isa", description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; exit status 1 when the page is out of date")
    options = parser.parse_args(arguments)
    build.build(quiet=True, target="isa_listing")
    ptxas = find_ptxas()
    check_version(ptxas)
    forms = ptxas_accepts([form for _, form in isa_forms.all_forms()], ptxas)
    text = render(ask(build.FOLDER / "bin" / "isa_listing", forms))
    current = PAGE.exists() and PAGE.read_text() == text
    if options.check:
        if not current:
            note(f"docs/{PAGE.name} is out of date: ./ladder isa")
        return 0 if current else 1
    if not current:
        PAGE.write_text(text)
    say(f"docs/{PAGE.name} {'is as it was' if current else 'renewed'}")
    return 0
