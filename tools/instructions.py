"""What stands in the main loops of the rungs, in words: machine code's instructions, and why a loop needs them.

An instruction goes by the longest beginning of its name that is here."""

from collections import Counter

from tools.terminal import Refusal

WORDS = {
    "UTCHMMA": "`tcgen05.mma` of 16-bit inputs: the descriptors of A and B (`gdesc`, two uniform registers each), the "
               "accumulator (the first `tmem`), the instruction descriptor (`idesc`, 0x8400010). The predicate at the end is "
               "*accumulate*: `UP0` was computed, `UPT` is always true",
    "UTCHMMA.2CTA": "`tcgen05.mma` of 16-bit inputs for a pair: the descriptors of A and B (`gdesc`, two uniform registers "
                    "each), by which each CTA reads its own shared memory, the accumulator (the first `tmem`), whose columns "
                    "are the same in both, the instruction descriptor (`idesc`). The predicate at the end is *accumulate*: `UP0` "
                    "was computed, `UPT` is always true",
    "UTCBAR": "`tcgen05.commit`: arrives at an mbarrier when the MMAs before it are complete",
    "UTCBAR.MULTICAST": "`tcgen05.commit` to several CTAs: arrives at the same mbarrier in each CTA of a mask, the last register",
    "UTCBAR.2CTA.MULTICAST": "`tcgen05.commit` of a pair's MMAs: arrives at the same mbarrier in each CTA of a mask, the last "
                             "register",
    "UTMALDG": "a TMA load. Its first register begins a row of uniform ones, shared address, mbarrier and coordinates; the "
               "second holds the address of the tensor map",
    "SYNCS.ARRIVE": "`mbarrier.arrive.expect_tx`, of the bytes in the last register",
    "SYNCS.PHASECHK": "`mbarrier.try_wait.parity`: the predicate says whether the phase is over. The parity is bit 31 of the "
                      "last register",
    "BRA": "a branch: back to the top of the loop, past what is not to be done, or where a wait has failed to code behind the "
           "kernel's end, which waits again and comes back",
    "R2UR": "moves a value to a uniform register, one for the whole warp: MMA, commit and TMA take their operands from these "
            "only",
    "S2UR": "reads the CTA's rank in its cluster, the upper 8 bits of a shared address that other CTAs can use",
    "UMOV": "a constant, or a copy, in a uniform register: upper words of descriptors, the instruction descriptor",
    "ULEA": "shifts and adds: rank << 24 (0x18) plus an offset, plus stage << 3: the address of a barrier",
    "ULEA.HI": "shifts and adds: bytes to descriptor units of 16 (>> 4), and the step along K",
    "LEA": "shifts and adds: rank << 24 (0x18) plus an offset: the address of a barrier",
    "UIADD3": "adds: steps along K, addresses of tiles and maps",
    "UIADD3.64": "adds 64 bits: the step to this stage, and to this K, to a descriptor",
    "UIADD3.X": "adds with a carry: the upper half of an address of 64 bits",
    "UIMAD": "stage times bytes of a stage",
    "IMAD": "multiplies and adds: stage times 8 plus the address of the barriers, stage times bytes of a stage",
    "IMAD.MOV": "a copy, made by the multiplier",
    "IMAD.U32": "a copy, made by the multiplier",
    "IMAD.IADD": "an addition, made by the multiplier",
    "VIADD": "adds: one more K tile, the next stage, addresses of barriers",
    "SHF": "shifts: the parity to bit 31, bytes to descriptor units of 16 (>> 4), the sign for an upper half",
    "USHF": "shifts: bytes to descriptor units of 16 (>> 4), the sign for an upper half",
    "USHF.L": "shifts to the left: K tiles to columns of 8, the number of a stage to its bytes or to descriptor units of 16",
    "LOP3": "XOR: turns the parity over",
    "ULOP3": "AND: the 16 bits of the mask",
    "SEL": "chooses: does the stage go back to 0, and does the parity turn over",
    "ISETP": "compares: the last stage? the last K tile?",
    "UISETP": "compares: the first K tile? Then the MMA overwrites",
    "LDC": "loads a parameter of the kernel: how many stages",
    "LDCU": "loads a parameter of the kernel to a uniform register: the number of K tiles, or where tensor maps lie",
    "YIELD": "tells the scheduler that another warp may go first: it stands before waits",
    "NOP": "does nothing. One follows the wait for `tile_full`, where the source has `tcgen05.fence::after_thread_sync`",
}


def explained(instructions):
    """Of each kind, the first to stand there first: its name, how often it stands there, and what for."""
    kinds = Counter()
    for each in instructions:
        found = [name for name in WORDS if (each.opcode + ".").startswith(name + ".")]
        if not found:
            raise Refusal(f"{each.opcode}: tools/instructions.py has no words for it.")
        kinds[max(found, key=len)] += 1
    return [(name, count, WORDS[name]) for name, count in kinds.items()]
