"""What ptxas made of the Hopper twins: the wgmma that a rung is about, nothing through local memory, nothing between the MMAs
of a stage that would keep the tensor core waiting, and as many registers as when it was last looked at."""

import itertools
import json
import re
import sys
import unittest
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools import build, sass  # noqa: E402
from tools.sass import Instruction  # noqa: E402
from tools.terminal import Refusal, note  # noqa: E402

CANNOT_RUN = 77

# As in test_machine_code.py, with Hopper's names.
FAMILIES = re.compile(r"HGMMA|UTM|STSM|UBLK|SYNCS|STAS|UCGABAR|ELECT|USETMAXREG")
EVERYWHERE = {"UTMACCTL.PF", "SYNCS.EXCH.64", "SYNCS.ARRIVE.TRANS64", "SYNCS.PHASECHK.TRANS64.TRYWAIT", "ELECT"}
RING = EVERYWHERE | {"SYNCS.ARRIVE.TRANS64.A1T0"}
STORES = {"UTMASTG.2D", "UTMACMDFLUSH"}
CLUSTER = {"UCGABAR_ARV", "UCGABAR_WAIT", "SYNCS.ARRIVE.TRANS64.RED.A1T0"}
BELONGS = {
    "step00_single_mma": EVERYWHERE | {"UTMALDG.3D"},
    "step01_kloop": RING | {"UTMALDG.3D"},
    "step02_pipeline": RING | {"UTMALDG.3D"},
    "step03_warpspec": RING | {"UTMALDG.3D"},
    "step04_swizzle": RING | {"UTMALDG.2D"},
    "step05_epilogue": RING | STORES | {"UTMALDG.2D"},
    "step06_multicast": EVERYWHERE | STORES | CLUSTER | {"UTMALDG.2D.MULTICAST"},
    "step07_persistent": EVERYWHERE | STORES | CLUSTER | {"UTMALDG.2D", "UTMALDG.2D.MULTICAST", "USETMAXREG"},
}
ONE_MMA = ("step00_single_mma", "step01_kloop", "step02_pipeline", "step03_warpspec")  # of a K tile; the others four
# A wait, or what the MMAs compute on touched by others: ptxas then makes them wait for each other.
NOT_BETWEEN_MMAS = re.compile(r"BRA|BSYNC|WARPSYNC|SYNCS|WARPGROUP|R2UR|FADD|FMUL|MOV32I|STL|LDL")

TOUCHES_GLOBAL = re.compile(r"LDG|STG|ATOMG|REDG|RED$|LD$|ST$|UTMALDG|UTMASTG|UTMAREDG|UBLKCP|UBLKRED")


def parts(kernel):
    """("step07_persistent", ["256", "1", "f16", "f32"])"""
    name, *arguments = re.findall(r"\w+", kernel.name)
    return name.removesuffix("_hopper"), arguments


def belongs(kernel):
    rung, arguments = parts(kernel)
    known = set(BELONGS[rung])
    width = arguments[0] if rung == "step07_persistent" else "256"
    known.add(f"HGMMA.64x{width}x16.F32" + (".BF16" if arguments[-2] == "bf16" else ""))
    if rung == "step03_warpspec" and arguments[0] == "1":
        known.add("USETMAXREG")
    if arguments[:2] == ["128", "2"]:
        known.add("SYNCS.ARRIVE.TRANS64.A1T0")  # whose turn it is
    if known >= STORES and arguments[-1] != "f32":
        known.add("STSM.16.M88.4")
    return known


def faults(kernel, recorded=None):
    there = {opcode for opcode in {each.opcode.split(".DEALLOC")[0].split(".TRY_ALLOC")[0] for each in kernel.instructions}
             if FAMILIES.match(opcode)}
    known = belongs(kernel)
    found = [f"no {opcode}" for opcode in sorted(known - there)]
    found += [f"{opcode}, which is not of this rung" for opcode in sorted(there - known)]
    found += [f"local memory: {each}" for each in kernel.instructions if each.base in ("LDL", "STL")]
    if kernel.stack_bytes or kernel.local_bytes:
        found.append(f"{kernel.stack_bytes} bytes of stack and {kernel.local_bytes} of local memory")
    rung, arguments = parts(kernel)
    loop = sass.steady_loop(kernel)
    if (rung == "step00_single_mma") == bool(loop):
        found.append("a loop around the MMA" if loop else "no loop around an MMA")
    wanted = 1 if rung in ONE_MMA else 8 if arguments[:2] == ["128", "2"] else 4
    for stage in sass.stages(loop) if loop else []:
        mmas = [each for each in stage if each.is_mma]
        if len(mmas) != wanted:
            found.append(f"{len(mmas)} MMAs before a commit, not {wanted}")
        found += [f"between the MMAs of a stage: {each.text}" for each in sass.between_mmas(stage)
                  if NOT_BETWEEN_MMAS.match(each.base)]
    if rung == "step07_persistent":  # its launches overlap, which the emulator does not try
        early = list(itertools.takewhile(lambda each: each.base != "ACQBULK", kernel.instructions))
        if len(early) == len(kernel.instructions):
            found.append("no griddepcontrol.wait")
        else:
            found += [f"before griddepcontrol.wait: {each.text}" for each in early if TOUCHES_GLOBAL.match(each.base)]
    if recorded is not None:
        now = sass.numbers(kernel)
        found += [f"{name}: {now[name]}, recorded {recorded.get(name)}" for name in now if now[name] != recorded.get(name)]
    return found


class Twins(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.record = json.loads(sass.RECORD.read_text())
        cls.kernels = [kernel for name in build.rungs() for kernel in sass.twin_kernels(build.rung(name))]

    def test_every_kernel(self):
        versions = {sass.compiler(build.rung(name)) for name in build.rungs()}
        same = versions == {self.record["compiler"]}
        if not same:
            note(f"compiled by {', '.join(map(str, versions))}: the numbers recorded are of {self.record['compiler']} and "
                 "not compared")
        for kernel in self.kernels:
            with self.subTest(kernel.name):
                self.assertEqual([], faults(kernel, self.record["kernels"].get(kernel.name, {}) if same else None))

    def test_all_of_them(self):
        self.assertEqual({parts(kernel)[0] for kernel in self.kernels}, set(BELONGS))
        self.assertEqual(len(self.kernels), 7 * 4 + 4 + 7 * 4)  # step03 with and without setmaxnreg; step07 in seven forms

    def kernel(self, name):
        return next(each for each in self.kernels if each.name.startswith(name))

    def test_noticed(self):
        kernel = self.kernel("step04_swizzle_hopper<f16, f16>")
        code = list(kernel.instructions)
        at = [i for i, each in enumerate(code) if each.is_mma]

        def edited(place, text, instead=False):
            changed = list(code)
            changed[at[place]:at[place] + instead] = [Instruction(code[at[place]].address - 8, "", text)]
            return "\n".join(faults(kernel.with_instructions(changed)))
        self.assertIn("between the MMAs of a stage: WARPGROUP.DEPBAR.LE gsb0, 0x0", edited(1, "WARPGROUP.DEPBAR.LE gsb0, 0x0"))
        self.assertIn("3 MMAs before a commit, not 4", edited(1, "NOP", instead=True))
        self.assertIn("local memory", edited(0, "STL [R1], R2"))
        self.assertIn("UTMASTG.2D, which is not of this rung", edited(0, "UTMASTG.2D [UR4], [UR6]"))
        self.assertIn("no UTMALDG.2D", "\n".join(faults(kernel.with_instructions(
            each for each in code if each.opcode != "UTMALDG.2D"))))
        self.assertIn("stack", "\n".join(faults(replace(kernel, stack_bytes=8))))
        self.assertIn("registers", "\n".join(faults(kernel, {"registers": 1})))

    def test_launches_that_overlap(self):
        kernel = self.kernel("step07_persistent_hopper<128, 1, f16, f16>")
        code = list(kernel.instructions)
        at = next(i for i, each in enumerate(code) if each.base == "ACQBULK")
        moved = [*code[:at], *code[at + 1:], code[at]]
        self.assertIn("before griddepcontrol.wait: UTMALDG", "\n".join(faults(kernel.with_instructions(moved))))
        self.assertIn("no griddepcontrol.wait", faults(kernel.with_instructions(code[:at] + code[at + 1:])))


if __name__ == "__main__":
    try:
        from tools import toolkit
        toolkit.disassembler()
    except Refusal as refusal:
        note(f"{refusal}")
        sys.exit(CANNOT_RUN)
    unittest.main()
