"""What ptxas made of the rungs: the instructions that a rung is about, nothing through local memory, nothing between the
MMAs of a stage, and as many registers as when it was last looked at. `./ladder sass --record` renews those numbers."""

import json
import re
import subprocess
import sys
import unittest
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools import build, sass  # noqa: E402
from tools.sass import Instruction  # noqa: E402
from tools.terminal import Refusal, note  # noqa: E402

CANNOT_RUN = 77

# Instructions of the tensor core, of tensor memory, TMA, mbarriers and clusters. A kernel has those of its rung, and no
# others.
FAMILIES = re.compile(r"UTC|UTM|LDTM|STTM|UBLK|SYNCS|UCGABAR|ELECT")
EVERYWHERE = {"ELECT", "UTCHMMA", "UTCBAR", "UTMACCTL.PF", "UTCATOMSWS.FIND_AND_SET.ALIGN", "UTCATOMSWS.AND", "SYNCS.EXCH.64",
              "SYNCS.ARRIVE.TRANS64", "SYNCS.PHASECHK.TRANS64.TRYWAIT"}
CORE_MATRICES = EVERYWHERE | {"UTMALDG.3D"}
STORES = {"UTMASTG.2D", "UTMACMDFLUSH"}
CLUSTER = {"UTMALDG.2D.MULTICAST", "UTCBAR.MULTICAST", "UCGABAR_ARV", "UCGABAR_WAIT"}
BELONGS = {
    "step00_single_mma": CORE_MATRICES | {"LDTM.x32"},
    "step01_kloop": CORE_MATRICES | {"LDTM.x32"},
    "step02_pipeline": CORE_MATRICES | {"LDTM.x32"},
    "step03_warpspec": CORE_MATRICES | {"LDTM.x32"},
    "step04_swizzle": EVERYWHERE | {"UTMALDG.2D", "LDTM.x32"},
    "step05_epilogue": EVERYWHERE | STORES | {"UTMALDG.2D", "LDTM.x32", "LDTM.x64"},
    "step06_multicast": EVERYWHERE | STORES | CLUSTER,
}
# 128 bytes of a row of D at a time: so many accumulators.
LOADS_OF_A_STRIPE = {"f16": {"LDTM.x64"}, "bf16": {"LDTM.x64"}, "f32": {"LDTM.x32"}}

MMAS_PER_STAGE = {"step01_kloop": 1, "step02_pipeline": 1, "step03_warpspec": 1}  # from step04 on: 4

NOT_BETWEEN_MMAS = [
    (re.compile(r"R2UR"), "moves a value to a uniform register"),
    (re.compile(r"BRA|BRX|JMP|JMX|CALL|RET|EXIT|BSSY|BSYNC|BREAK|WARPSYNC"), "is control flow"),
    (re.compile(r"U?(I|F|D|H|HF)?SETP|U?PLOP3|R2P|VOTE|ELECT|SYNCS"), "computes a predicate"),
]


def belongs(kernel):
    rung, dtypes = kernel.name.rstrip(">").split("<")
    return BELONGS[rung] | (LOADS_OF_A_STRIPE[dtypes.split(", ")[1]] if rung == "step06_multicast" else set())


def faults(kernel, recorded=None):
    """Sentences on what is wrong with a kernel. `recorded`: its numbers, if they are to be compared."""
    found = []
    opcodes = {each.opcode for each in kernel.instructions}
    there = {opcode for opcode in opcodes if FAMILIES.match(opcode)}
    found += [f"no {opcode}" for opcode in sorted(belongs(kernel) - there)]
    found += [f"{opcode}, which is not of this rung" for opcode in sorted(there - belongs(kernel))]
    found += [f"local memory: {each}" for each in kernel.instructions if each.base in ("LDL", "STL")]
    if kernel.stack_bytes or kernel.local_bytes:
        found.append(f"{kernel.stack_bytes} bytes of stack and {kernel.local_bytes} of local memory")
    loop = sass.steady_loop(kernel)
    found += faults_of_loop(kernel, loop)
    if recorded is not None:
        now = sass.numbers(kernel)
        found += [f"{name}: {now[name]}, recorded {recorded.get(name)}" for name in now if now[name] != recorded.get(name)]
    return found


def faults_of_loop(kernel, loop):
    rung = kernel.name.split("<")[0]
    if rung == "step00_single_mma":
        return ["a loop around the MMA"] if loop else []
    if not loop:
        return ["no loop around an MMA"]
    found = []
    targets = {each.target for each in kernel.instructions}
    for stage in sass.stages(loop):
        mmas = [each for each in stage if each.base == sass.MMA]
        wanted = MMAS_PER_STAGE.get(rung, 4)
        if len(mmas) != wanted:
            found.append(f"{len(mmas)} MMAs before a commit, not {wanted}")
        found += [f"a branch to {each.address:04x}, between the MMAs of a stage" for each in mmas[1:] if each.address in targets]
        for each in sass.between_mmas(stage):
            found += [f"between the MMAs of a stage, {each.text} {what}" for kind, what in NOT_BETWEEN_MMAS
                      if kind.fullmatch(each.base)]
            found += [f"a branch to {each.address:04x}, between the MMAs of a stage"] if each.address in targets else []
    return found


class MachineCode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.record = json.loads(sass.RECORD.read_text())
        cls.kernels = [kernel for name in build.rungs() for kernel in sass.kernels(build.rung(name))]

    def test_every_kernel(self):
        versions = {sass.compiler(build.rung(name)) for name in build.rungs()}
        same = versions == {self.record["compiler"]}
        if not same:
            note(f"compiled by {', '.join(map(str, versions))}: the numbers recorded are of {self.record['compiler']} and "
                 "not compared")
        for kernel in self.kernels:
            with self.subTest(kernel.name):
                self.assertEqual([], faults(kernel, self.record["kernels"].get(kernel.name, {}) if same else None))

    def test_all_types(self):
        types = ["<bf16, bf16>", "<bf16, f32>", "<f16, f16>", "<f16, f32>"]
        self.assertEqual([kernel.name for kernel in self.kernels], [rung + each for rung in build.rungs() for each in types])
        self.assertEqual(sorted(BELONGS), build.rungs())

    def test_record_names_what_there_is(self):
        self.assertEqual(sorted(self.record["kernels"]), sorted(kernel.name for kernel in self.kernels))

    def test_study(self):
        """step04's study measures its loads, its MMAs and its epilogue, not local memory."""
        kernels = sass.kernels(build.FOLDER / "bin" / "swizzle_study")
        self.assertEqual(len(kernels), 8)
        for kernel in kernels:
            self.assertEqual((0, 0), (kernel.stack_bytes, kernel.local_bytes), kernel.name)
            self.assertFalse([each for each in kernel.instructions if each.base in ("LDL", "STL")], kernel.name)

    def kernel(self, name):
        return next(each for each in self.kernels if each.name == name)

    def assert_found(self, kernel, *parts, recorded=None):
        found = faults(kernel, recorded)
        for part in parts:
            self.assertTrue([each for each in found if part in each], f"{part!r} is not in {found}")

    def edited(self, name, place, *texts, instead=False):
        """The kernel with instructions before its MMA number `place`, or instead of it."""
        kernel = self.kernel(name)
        code = list(kernel.instructions)
        at = [i for i, each in enumerate(code) if each.base == sass.MMA][place]
        code[at:at + instead] = [Instruction(code[at].address - 8, "", text) for text in texts]
        return kernel.with_instructions(code)

    def test_between_mmas(self):
        for name in ("step04_swizzle<f16, f16>", "step05_epilogue<bf16, f32>", "step06_multicast<f16, f32>"):
            for text, what in [("R2UR UR5, R6", "R2UR UR5, R6 moves a value to a uniform register"),
                               ("R2UR.OR UR5, R6", "moves a value to a uniform register"),
                               ("BRA 0x20", "BRA 0x20 is control flow"), ("BSSY B1, 0x20", "is control flow"),
                               ("ISETP.NE.AND P0, PT, R4, 0x4, PT", "computes a predicate"),
                               ("UISETP.NE.AND UP0, UPT, UR7, URZ, UPT", "computes a predicate"),
                               ("PLOP3.LUT P0, PT, PT, PT, UP0, 0x80, 0x8", "computes a predicate"),
                               ("ELECT P0, URZ, PT", "computes a predicate"),
                               ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R9+URZ], R8", "computes a predicate")]:
                for place in (1, 3):
                    self.assert_found(self.edited(name, place, text), what)
        # What leads to the first MMA may do all of this.
        self.assertEqual([], faults(self.edited("step04_swizzle<f16, f16>", 0, "R2UR UR5, R6", "UISETP.NE.AND UP0, UPT, UR7, URZ, UPT")))

    def test_branch_into_the_mmas(self):
        kernel = self.kernel("step04_swizzle<f16, f16>")
        second = [each for each in kernel.instructions if each.base == sass.MMA][1]
        jump = Instruction(8, "@P0", f"BRA {second.address:#x}")
        self.assert_found(kernel.with_instructions([jump, *kernel.instructions]), f"a branch to {second.address:04x}")

    def test_stages(self):
        self.assert_found(self.edited("step04_swizzle<f16, f16>", 2, "NOP", instead=True), "3 MMAs before a commit, not 4")
        self.assert_found(self.edited("step04_swizzle<f16, f16>", 2, "UTCBAR [UR4], URZ"), "2 MMAs before a commit, not 4")
        self.assert_found(self.edited("step03_warpspec<f16, f16>", 0, "UTCHMMA gdesc[UR4]"), "2 MMAs before a commit, not 1")
        kernel = self.kernel("step01_kloop<f16, f16>")
        unrolled = kernel.with_instructions(each for each in kernel.instructions if not each.text.startswith("BRA") and
                                            not each.predicate)
        self.assert_found(unrolled, "no loop around an MMA")
        renamed = replace(kernel, name="step00_single_mma<f16, f16>")
        self.assert_found(renamed, "a loop around the MMA")

    def test_unrolled_by_two(self):
        """Two stages in one turn of the loop are two stages."""
        kernel = self.kernel("step04_swizzle<f16, f16>")
        loop = sass.steady_loop(kernel)
        mmas = [each for each in loop if each.base == sass.MMA]
        commit = next(each for each in loop if each.base == sass.COMMIT)
        cut = sass.stages((*mmas, commit, loop[-1], *mmas, commit, loop[-1]))
        self.assertEqual([6, 6], [len(stage) for stage in cut])

    def test_local_memory(self):
        kernel = self.kernel("step02_pipeline<f16, f32>")
        for text in ("LDL R4, [R1]", "STL.64 [R1+0x8], R4"):
            self.assert_found(kernel.with_instructions([Instruction(8, "", text), *kernel.instructions]), "local memory", text)
        self.assert_found(replace(kernel, stack_bytes=16), "16 bytes of stack")
        self.assert_found(replace(kernel, local_bytes=8), "8 of local memory")

    def test_numbers(self):
        kernel = self.kernel("step06_multicast<f16, f16>")
        numbers = sass.numbers(kernel)
        self.assertEqual([], faults(kernel, numbers))
        for name in ("registers", "static_shared_bytes", "loop_instructions"):
            changed = {**numbers, name: numbers[name] + 1}
            self.assert_found(kernel, f"{name}: {numbers[name]}, recorded {numbers[name] + 1}", recorded=changed)
        self.assert_found(kernel, "recorded None", recorded={})

    def test_what_belongs(self):
        """Each instruction of a rung is missed when it is not there, and one of another rung is noticed."""
        for kernel in self.kernels:
            for opcode in belongs(kernel):
                rest = [each for each in kernel.instructions if each.opcode != opcode]
                self.assertIn(f"no {opcode}", faults(kernel.with_instructions(rest)))
        for name, opcode in [("step03_warpspec<f16, f16>", "UTMALDG.2D"), ("step05_epilogue<f16, f16>", "UTMALDG.2D.MULTICAST"),
                             ("step04_swizzle<f16, f16>", "UTMASTG.2D"), ("step06_multicast<f16, f32>", "LDTM.x64"),
                             ("step06_multicast<f16, f16>", "UTCHMMA.2CTA")]:
            kernel = self.kernel(name)
            more = [Instruction(8, "", f"{opcode} [UR4]"), *kernel.instructions]
            self.assertIn(f"{opcode}, which is not of this rung", faults(kernel.with_instructions(more)))


class Command(unittest.TestCase):
    def ladder(self, *arguments):
        return subprocess.run([sys.executable, str(build.ROOT / "ladder"), "sass", *arguments], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_main_loop(self):
        done = self.ladder("step04", "--dtype", "bf16", "--out-dtype", "f32")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(["UTCHMMA"] * 4 + ["UTCBAR"], [line.split()[1] for line in lines[:5]])
        self.assertEqual(1, sum("SYNCS.PHASECHK" in line for line in lines), done.stdout)
        # From the branch back on, the addresses run up to the first MMA's.
        branch = next(i for i, line in enumerate(lines) if "BRA 0x" + lines[i + 1].split()[0].lstrip("0") in line)
        addresses = [int(line.split()[0], 16) for line in lines]
        self.assertEqual(addresses[branch + 1:], list(range(addresses[branch + 1], addresses[0], 16)))

    def test_whole(self):
        done = self.ladder("step00", "--whole")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("UTMALDG.3D", done.stdout)
        self.assertIn("LDTM.x32", done.stdout)

    def test_refusals(self):
        for arguments, words in [((), "Name a rung"), (("step04", "--record"), "Name a rung"),
                                 (("step00",), "no loop with an MMA in it; --whole"),
                                 (("step04", "--dtype", "f16", "--out-dtype", "bf16"), "no kernel for <f16, bf16>"),
                                 (("step99",), "no such rung")]:
            done = self.ladder(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(words, done.stderr)


class Reading(unittest.TestCase):
    """cuobjdump's words."""

    CODE = """
\t\tFunction : _Z6doubleIN6ladder5DTypeELi0EEvPf
\t\tFunction : _Z5plainPf
\t.headerflags\t@"EF_CUDA_SM100"
        /*0000*/                   LDC R1, c[0x0][0x37c] ;     /* 0x0000df00ff017b82 */
                                                               /* 0x000fe20000000800 */
        /*0010*/              @!P0 BRA 0x5c0 ;                 /* 0x0000000000007947 */
        /*0020*/             @UPT UTCBAR.MULTICAST [UR16], URZ, UR17 ;  /* 0x0 */
"""
    USAGE = """Resource usage:
 Common:
  GLOBAL:0
 Function _Z6doubleIN6ladder5DTypeELi0EEvPf:
  REG:1 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:1 TEXTURE:0
 Function _Z5plainPf:
  REG:46 STACK:8 SHARED:2048 LOCAL:16 CONSTANT[0]:1180 TEXTURE:0 SURFACE:0 SAMPLER:0
"""

    def test_listing(self):
        kernel = next(each for each in sass.parsed(self.CODE, self.USAGE) if each.name == "plain")
        self.assertEqual((kernel.registers, kernel.stack_bytes, kernel.shared_bytes, kernel.local_bytes), (46, 8, 2048, 16))
        self.assertEqual([str(each) for each in kernel.instructions],
                         ["0000        LDC R1, c[0x0][0x37c]", "0010   @!P0 BRA 0x5c0", "0020   @UPT UTCBAR.MULTICAST [UR16], URZ, UR17"])
        self.assertEqual([each.target for each in kernel.instructions], [None, 0x5c0, None])
        self.assertEqual([each.base for each in kernel.instructions], ["LDC", "BRA", "UTCBAR"])

    def test_no_registers(self):
        with self.assertRaisesRegex(Refusal, "lists the code of _Z5plainPf and no registers"):
            sass.parsed(self.CODE, self.USAGE.replace("plain", "other"))

    def test_names(self):
        for mangled, name in [("_Z14step04_swizzleILN6ladder5DTypeE1ELS1_2EEv14CUtensorMap_stS2_Pvlli", "step04_swizzle<bf16, f32>"),
                              ("_Z5studyIL4Part3ELi64ELb1ELN6ladder5DTypeE0EEvPv", "study<3, 64, 1, f16>"), ("_Z5plainPf", "plain")]:
            self.assertEqual(sass.readable(mangled), name)


if __name__ == "__main__":
    if not (build.FOLDER / "bin" / "swizzle_study").exists():
        sys.exit(CANNOT_RUN)
    try:
        sass.toolkit.disassembler()
    except Refusal as refusal:
        note(f"Skipped: {refusal}")
        sys.exit(CANNOT_RUN)
    unittest.main()
