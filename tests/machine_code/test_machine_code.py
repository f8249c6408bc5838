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

# Instructions of the tensor core, of tensor memory, TMA, mbarriers, clusters and their launch control, and the widest
# stores. A kernel has those of its rung, and no others.
FAMILIES = re.compile(r"UTC|UTM|LDTM|STTM|UBLK|SYNCS|STAS|UCGABAR|ELECT|UGETNEXTWORKID|STG.*256")
EVERYWHERE = {"ELECT", "UTMACCTL.PF", "UTCATOMSWS.AND", "SYNCS.EXCH.64", "SYNCS.ARRIVE.TRANS64", "SYNCS.PHASECHK.TRANS64.TRYWAIT"}
OWN_MMA = EVERYWHERE | {"UTCHMMA", "UTCATOMSWS.FIND_AND_SET.ALIGN"}
CORE_MATRICES = OWN_MMA | {"UTCBAR", "UTMALDG.3D", "LDTM.x32"}
STORES = {"UTMASTG.2D", "UTMACMDFLUSH"}
DIRECT_STORES = {"LDTM.x32", "STG.E.ENL2.256"}
CLUSTER = {"UTCBAR.MULTICAST", "UCGABAR_ARV", "UCGABAR_WAIT"}
ARRIVE_ELSEWHERE = {"SYNCS.ARRIVE.TRANS64.RED.A1T0"}
# To allocate for a pair, one CTA sends the other what it got (STAS), and each waits for the other's answer.
PAIR = EVERYWHERE | STORES | ARRIVE_ELSEWHERE | {
    "UTCHMMA.2CTA", "UTCBAR.2CTA.MULTICAST", "UTMALDG.2D.2CTA", "UTCATOMSWS.2CTA.FIND_AND_SET.ALIGN", "STAS",
    "SYNCS.ARRIVE.TRANS64.RED",
    "SYNCS.PHASECHK.TRANS64", "UCGABAR_ARV", "UCGABAR_WAIT"}
ALONE = OWN_MMA | STORES | CLUSTER | ARRIVE_ELSEWHERE | DIRECT_STORES | {"UTMALDG.2D"}
BELONGS = {
    "step00_single_mma": CORE_MATRICES,
    "step01_kloop": CORE_MATRICES,
    "step02_pipeline": CORE_MATRICES,
    "step03_warpspec": CORE_MATRICES,
    "step04_swizzle": OWN_MMA | {"UTCBAR", "UTMALDG.2D", "LDTM.x32"},
    "step05_epilogue": OWN_MMA | STORES | DIRECT_STORES | {"UTCBAR", "UTMALDG.2D", "LDTM.x64"},
    "step06_multicast": OWN_MMA | STORES | CLUSTER | {"UTCBAR", "UTMALDG.2D.MULTICAST"},
    "step07_pair": PAIR,
    "step07_persistent_grid": PAIR,
    "step07_persistent pair": PAIR | DIRECT_STORES | {"UGETNEXTWORKID.BROADCAST"},
    "step07_persistent multicast": ALONE | {"UTMALDG.2D.MULTICAST", "UGETNEXTWORKID.BROADCAST"},
    "step07_persistent alone": ALONE | {"UGETNEXTWORKID.SELFCAST"},
}
# The kernels of a rung that has others than one of its own name, as far as their types of elements.
KERNELS = {"step07_persistent": ["step07_pair<", "step07_persistent_grid<", *(
    f"step07_persistent<{operands}, {tile_n}, " for operands in ("alone", "multicast", "pair") for tile_n in (128, 224, 256))]}

MMAS_PER_STAGE = {"step01_kloop": 1, "step02_pipeline": 1, "step03_warpspec": 1}  # from step04 on: 4

NOT_BETWEEN_MMAS = [
    (re.compile(r"R2UR"), "moves a value to a uniform register"),
    (re.compile(r"BRA|BRX|JMP|JMX|CALL|RET|EXIT|BSSY|BSYNC|BREAK|WARPSYNC"), "is control flow"),
    (re.compile(r"U?(I|F|D|H|HF)?SETP|U?PLOP3|R2P|VOTE|ELECT|SYNCS"), "computes a predicate"),
]


def key(kernel):
    """In BELONGS: the kernel's name and, where it has one, its first argument before the types."""
    name, *arguments = re.findall(r"\w+", kernel.name)
    return " ".join([name, *arguments[:-2][:1]])


def belongs(kernel):
    known = BELONGS[key(kernel)]
    if not known >= STORES:
        return known
    # 128 bytes of a row of D at a time, so many accumulators; or 64 bytes, where 128 do not divide a tile's row.
    _, *arguments = re.findall(r"\w+", kernel.name)
    return known | {"LDTM.x32" if arguments[-1] == "f32" or "224" in arguments else "LDTM.x64"}


def faults(kernel, recorded=None):
    """Sentences on what is wrong with a kernel. `recorded`: its numbers, if they are to be compared."""
    found = faults_of_opcodes(kernel)
    found += [f"local memory: {each}" for each in kernel.instructions if each.base in ("LDL", "STL")]
    if kernel.stack_bytes or kernel.local_bytes:
        found.append(f"{kernel.stack_bytes} bytes of stack and {kernel.local_bytes} of local memory")
    loop = sass.steady_loop(kernel)
    found += faults_of_loop(kernel, loop)
    if recorded is not None:
        now = sass.numbers(kernel)
        found += [f"{name}: {now[name]}, recorded {recorded.get(name)}" for name in now if now[name] != recorded.get(name)]
    return found


def faults_of_opcodes(kernel):
    there, known = {opcode for opcode in {each.opcode for each in kernel.instructions} if FAMILIES.match(opcode)}, belongs(kernel)
    return [f"no {opcode}" for opcode in sorted(known - there)] + \
           [f"{opcode}, which is not of this rung" for opcode in sorted(there - known)]


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
        types = ["bf16, bf16>", "bf16, f32>", "f16, f16>", "f16, f32>"]
        self.assertEqual([kernel.name for kernel in self.kernels],
                         [name for rung in build.rungs()
                          for name in sorted(head + each for head in KERNELS.get(rung, [f"{rung}<"]) for each in types)])
        self.assertEqual(set(BELONGS), {key(kernel) for kernel in self.kernels})

    def test_record_names_what_there_is(self):
        twins = [kernel for name in build.rungs() for kernel in sass.twin_kernels(build.rung(name))]
        self.assertEqual(sorted(self.record["kernels"]), sorted(kernel.name for kernel in self.kernels + twins))

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
        for name in ("step04_swizzle<f16, f16>", "step05_epilogue<bf16, f32>", "step06_multicast<f16, f32>", "step07_pair<f16, f16>",
                     "step07_persistent<pair, 256, bf16, f32>"):
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
                self.assertEqual([f"no {opcode}"], faults_of_opcodes(kernel.with_instructions(rest)))
        for name, opcode in [("step03_warpspec<f16, f16>", "UTMALDG.2D"), ("step05_epilogue<f16, f16>", "UTMALDG.2D.MULTICAST"),
                             ("step04_swizzle<f16, f16>", "UTMASTG.2D"), ("step06_multicast<f16, f32>", "LDTM.x64"),
                             ("step06_multicast<f16, f16>", "UTCHMMA.2CTA"), ("step07_pair<f16, f16>", "UTCHMMA"),
                             ("step07_pair<f16, f16>", "UGETNEXTWORKID.BROADCAST"), ("step07_pair<f16, f32>", "LDTM.x64"),
                             ("step07_persistent_grid<f16, f32>", "STG.E.ENL2.256"),
                             ("step07_persistent<alone, 256, f16, f32>", "UTMALDG.2D.MULTICAST"),
                             ("step07_persistent<multicast, 128, f16, f32>", "UTCBAR.2CTA.MULTICAST"),
                             ("step07_persistent<alone, 128, f16, f32>", "STAS"),
                             ("step07_persistent<pair, 224, f16, f16>", "LDTM.x64")]:
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

    def test_one_of_several_kernels(self):
        """Where nothing is said, the pair's with the widest tile."""
        known = {kernel.name: kernel for kernel in sass.kernels(build.rung("step07"))}
        loop = sass.stages(sass.steady_loop(known["step07_persistent<pair, 256, f16, f16>"]))[0]
        done = self.ladder("step07")
        self.assertEqual((done.returncode, done.stdout.splitlines()), (0, [str(each) for each in loop]), done.stderr)
        done = self.ladder("step07", "--kernel", "alone, 128", "--dtype", "bf16", "--whole")
        whole = known["step07_persistent<alone, 128, bf16, bf16>"].instructions
        self.assertEqual((done.returncode, done.stdout.splitlines()), (0, [str(each) for each in whole]), done.stderr)
        self.assertEqual(sass.chosen("step07", "f16, f32", "grid").name, "step07_persistent_grid<f16, f32>")

    def test_whole(self):
        done = self.ladder("step00", "--whole")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("UTMALDG.3D", done.stdout)
        self.assertIn("LDTM.x32", done.stdout)

    def test_refusals(self):
        for arguments, words in [((), "Name a rung"), (("step04", "--record"), "Name a rung"),
                                 (("step00",), "no loop with an MMA in it; --whole"),
                                 (("step04", "--dtype", "f16", "--out-dtype", "bf16"), "no kernel for <f16, bf16>"),
                                 (("step07", "--kernel", "octet"), "'octet' is in the name of no kernel of step07; there are step07_pair, "),
                                 (("step07", "--kernel", "pair, "), "'pair, ' is in the names of 3 kernels of step07; say more of "
                                                                    "one: step07_persistent<pair, 128>, "),
                                 (("step04", "--kernel", "step03"), "there are step04_swizzle."),
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
                              ("_Z5studyIL4Part3ELi64ELb1ELN6ladder5DTypeE0EEvPv", "study<3, 64, 1, f16>"), ("_Z5plainPf", "plain"),
                              ("_Z17step07_persistentIL8Operands2ELi128ELN6ladder5DTypeE0ELS2_1EEv14CUtensorMap_stS3_S3_Pvlli4Plan",
                               "step07_persistent<pair, 128, f16, bf16>")]:
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
