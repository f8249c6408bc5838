"""The mutants, as data: the rung, the edit, what must be said under which schedule, and what `./ladder check` finds.

Statements of blackwell.cu are named by a piece of them. Where a rung is wrong only when things happen in an unlucky
order, the schedules that must notice are the ones named in `race`; that `earliest` says GOOD there is a fact about the
emulator's kindest schedule, worth knowing, and not a wish."""

from edits import (ACCUMULATES, ACCUMULATES_BUT_IN_STAGE_0, ALLOC, A_TO_OWN_CTA, CHUNKS_NOT_PERMUTED, CLOSE_GROUP,
                   CLUSTER_COMMIT, CLUSTER_LOAD_A, CLUSTER_LOAD_B, CLUSTER_WAIT_EMPTY, COLUMN_AND_ROW_OF_STORE_SWAPPED,
                   COMMIT_ACCUMULATOR, COMMIT_EMPTY, COMMIT_TO_ALL, COMMIT_TO_OWN_CTA, COMMIT_TO_SHARERS_OF_A, CONSUMER,
                   CONSUMER_FLIP, CONSUMER_IN_WARP_0, CONSUMER_LOOP, COPY, CTA_BARRIER_AFTER_SETUP, DEALLOC,
                   DESCRIPTORS_STAY, DESCRIPTOR_A, DESCRIPTOR_B, ELECT, EXPECT, FENCE_STORE, FLIP, IF_REFILL, IF_STORE,
                   INIT_ACCUMULATOR, INIT_EMPTY, INIT_FULL, K_AND_ROW_OF_A_SWAPPED, K_STEP_IN_ELEMENTS, K_TILES_16_WIDE,
                   LAST_WAIT_EMPTY, LOAD_A, LOAD_B, LOAD_TMEM, LOWER_CTAS_DO_NOT_LOAD, LOWER_CTAS_LEAVE,
                   MASKS_OF_LOADS_SWAPPED, MMA, NOT_WARP_3, NO_K_STEP, NO_WAIT_FOR_COLUMNS_READ,
                   ONE_BUFFER_NOT_INITIALISED, ONE_STORE_BUFFER, OVERWRITES_IN_EVERY_K_TILE,
                   OVERWRITES_THROUGHOUT_K_TILE_0, PRODUCER, PRODUCER_FLIP, PRODUCER_LOOP, PROLOGUE,
                   PROLOGUE_LOADS_ONE_MORE, RANKS_OF_TILE_SWAPPED, REFILL, RING_COMMIT_EMPTY, RING_DESCRIPTOR_A,
                   RING_INIT_EMPTY, RING_WAIT_EMPTY, RING_WAIT_FULL, ROWS_AND_COLUMNS_SWAPPED,
                   ROW_AND_FIRST_COLUMN_SWAPPED, S0, S1, S2, S3, S4, S5, S6, STORE, STORES_TO_THE_ROWS_OF_WARP_0,
                   STORE_ROWS, SYNC_BEFORE_STORE, SYNC_END, SYNC_SETUP, TILE_INDICES_SWAPPED, WAIT_ACCUMULATOR,
                   WAIT_BUFFER, WAIT_BUFFERS, WAIT_EMPTY, WAIT_FULL, WAIT_TMEM, all_lanes, allocates, always_flips,
                   both_descriptors, counts, deallocates, descriptor, expects, instruction_descriptor, k_columns_at_most,
                   k_columns_off, k_tiles, never_flips, no_wait, offsets, other_parity, refill_off, rows_off,
                   slice_in_place_of, slice_put_first, start_off, stores_bytes_off, stores_columns_off, swapped_offsets,
                   swizzle_named, tensor_load, waits_for_buffers_but, with_offsets, without)
from mutant import GOOD, Good, Mutant, always, hangs, mismatch, notes, race, says, seeds, stops, waits
from surgery import Edit, Move

# ---- what is said ----------------------------------------------------------------------------------------------------

LANE = "warp 0, lane 0"
EVERYBODY = "warps 0-3, all lanes"
NEVER_WRITTEN = "columns 0 to 31 of tensor memory, which nothing has written since they were allocated: wait first for " \
                "the mbarrier that the MMAs' tcgen05.commit signals"
READS_TOO_EARLY = stops(NEVER_WRITTEN, LOAD_TMEM)
UNWRITTEN_SHARED = mismatch("outputs NaN", "inside it: rows all 128; columns all 256")
WRONG_EVERYWHERE = mismatch("32768 of 32768 outputs compared differ", "inside it: rows all 128; columns all 256")


def uninitialised(barrier, at, *more):
    return says("stopped", "is no mbarrier: mbarrier.init has not been seen by now", f"{barrier}: nobody has initialised it",
                f"at {{{at}}}", *more)


def missing(barrier, text, parity=0, phase=0):
    """barrier: its name. text: what the running phase lacks."""
    return f"waits for {barrier}: the phase of parity {parity} to end; phase {phase} is running, of parity {phase % 2}, {text}"


def barrier_0_without(warp):
    return f"waits at barrier 0: 96 of 128 threads have arrived; warps not waiting there: {warp}"


def arrives_too_often(phase, *more):
    return says("stopped", "mbarrier arrive beyond its count by 1", "(now 1)",
                f"tile_full: phase {phase} is running, of parity {phase % 2}, 0 of 1 arrival missing, 12288 bytes missing",
                f"initialised: {{{INIT_FULL}}}", f"signalled so far: arrive.expect_tx, warp 0, {{{EXPECT}}}",
                f"at {{{EXPECT}}}", *more)


ARRIVES_TOO_OFTEN = stops("mbarrier arrive beyond its count by 1", EXPECT)  # in whatever phase
REFILLS_TOO_EARLY = stops("mbarrier arrive beyond its count by 1", REFILL)  # of step02, whatever buffer


def fills_too_early(stage, phase, at=EXPECT, who=LANE):
    """A buffer of a ring, while the bytes of the K tile before are still missing."""
    return says("stopped", "mbarrier arrive beyond its count by 1", f"tile_full[{stage}]: phase {phase} is running, of parity "
                f"{phase % 2}, 0 of 1 arrival missing, 12288 bytes missing", f"at {{{at}}}",
                f"by block (0,0,0), {who}: mbarrier.arrive.expect_tx")


def follows(who, at, what, helper="", by=""):
    """One that waits for others that wait, as parts of `hangs`: for whom, and with which statement that one would end it."""
    ends = (f"{helper} would signal it at {{{by}}}, and waits itself",) if helper else ()
    return (f"{who} at {{{at}}}", f"waits for {what}", *ends)


def starves(parts, *more):
    """In step03 the producer waits for a buffer, and everybody but the two roles for the end."""
    return hangs(*waits(LANE, RING_WAIT_EMPTY, parts), *more,
                 *follows("warp 1, lane 0", RING_WAIT_FULL, "tile_full[0]", LANE, EXPECT),
                 *follows("warps 0-1, lanes 0xfffffffe; warps 2-3, all lanes", WAIT_ACCUMULATOR, "accumulator_full, phase 0",
                          "warp 1, lane 0", COMMIT_ACCUMULATOR))


def columns_later(columns="", *more):
    """Of step05: a store reads a buffer that holds later columns by then."""
    fits = f" {columns} (fits 16 of 16" if columns else ""
    return mismatch(*more, f"what arrived: column i holds what belongs to column i +{fits}")


def cluster_hangs(*parts):
    return hangs(*parts, who="cluster")


WRONG = mismatch("compared differ")
EMPTY_0 = "tile_empty[0] of CTA 0 in the cluster"
TOO_MANY_BYTES = hangs(f"{LANE} at {{{WAIT_FULL}}}", "waits for tile_full", "bytes more than were expected")

MUTANTS = (
    # The clean, unedited copy: the machinery alone breaks nothing.
    Mutant("unedited", S0, (), race(GOOD, GOOD, GOOD)),
    Mutant("unedited", S1, (), race(GOOD, GOOD, GOOD)),
    Mutant("unedited, position codes", S1, (), always(GOOD), shape="300x264x56", input="position"),
    Mutant("unedited, strict", S1, (), always(GOOD), strict=True),

    # ---- shared-memory descriptors -----------------------------------------------------------------------------------
    Mutant("descriptor without its version bit", S1, (descriptor(DESCRIPTOR_A, lambda word: word & ~(1 << 46)),),
           always(notes("the descriptor of A has zeros in bits 46-48", MMA))),
    Mutant("descriptor without its version bit, strict", S1, (descriptor(DESCRIPTOR_A, lambda word: word & ~(1 << 46)),),
           always(stops("the shared-memory descriptor of A is 0x0000000800800040: bits 46-48 are 0b000, tcgen05 wants 0b001. "
                        "Set bit 46", MMA, f"by block (0,0,0), {LANE}: tcgen05.mma",
                        "rule: PTX ISA, tcgen05 shared memory descriptor")), strict=True),
    Mutant("descriptor with layout 3", S1, (descriptor(DESCRIPTOR_B, lambda word: word | 3 << 61),),
           always(stops("the shared-memory descriptor of B is 0x6000400801000140: layout 3 (bits 61-63) does not exist. 0 is "
                        "no swizzle", MMA, "rule: PTX ISA, tcgen05 shared memory descriptor")), found="descriptor"),
    Mutant("offsets of A swapped", S0, (descriptor(DESCRIPTOR_A, swapped_offsets),),
           always(stops("A (128 rows of f16, K-major, no swizzle; descriptor: start 0x400, leading offset 128, stride "
                        "offset 2048 bytes) is read from shared address 0x400 to 0x7cff, but this CTA has 0x400 to", MMA,
                        "rule: PTX ISA, tcgen05 canonical layouts")), found="descriptor"),
    Mutant("offsets of B swapped", S1, (descriptor(DESCRIPTOR_B, swapped_offsets),),
           always(stops("B (256 rows of f16, K-major, no swizzle; descriptor: start 0x1400, leading offset 128, stride "
                        "offset 4096 bytes) is read from shared address 0x1400 to 0x204ff, but this CTA has 0x400 to", MMA)),
           found="descriptor"),
    Mutant("leading offset of A as its stride", S1,
           (descriptor(DESCRIPTOR_A, lambda word: with_offsets(word, offsets(word)[1], offsets(word)[1])),),
           always(WRONG_EVERYWHERE)),
    Mutant("A starts 16 bytes late", S1, (start_off(DESCRIPTOR_A, 16),),
           always(mismatch("what arrived: rows arrived shifted: row i holds what belongs to row i + 1")), input="position"),
    Mutant("B starts 16 bytes late, and ends in the barriers", S1, (start_off(DESCRIPTOR_B, 16),),
           always(mismatch("128 of 32768 outputs NaN",
                           "what arrived: columns arrived shifted: column i holds what belongs to column i + 1")),
           input="position", found="proxy-fence"),
    Mutant("B starts 4096 bytes late, and ends beyond shared memory", S1, (start_off(DESCRIPTOR_B, 4096),),
           always(stops("B (256 rows of f16, K-major, no swizzle; descriptor: start 0x2400, leading offset 4096, stride "
                        "offset 128 bytes) is read from shared address 0x2400 to 0x43ff, but this CTA has 0x400 to", MMA)),
           found="descriptor"),

    # ---- instruction descriptor --------------------------------------------------------------------------------------
    Mutant("instruction descriptor with a reserved bit", S1, (instruction_descriptor(lambda word: word | 1 << 6),),
           always(stops("the instruction descriptor is 0x08400050: bit 6 is reserved and must be 0", MMA,
                        "rule: PTX ISA, tcgen05 instruction descriptor")), found="descriptor"),
    Mutant("instruction descriptor with a type of another kind", S1, (instruction_descriptor(lambda word: word | 2 << 7),),
           always(stops("the instruction descriptor is 0x08400110: type 2 of A (bits 7-9); kind::f16 takes 0 (f16) or 1 "
                        "(bf16)", MMA)), found="descriptor"),
    Mutant("instruction descriptor with N = 264", S1,
           (instruction_descriptor(lambda word: word & ~(63 << 17) | 264 // 8 << 17),),
           always(stops("the instruction descriptor is 0x08420010: N is 264 (bits 17-22); kind::f16 with cta_group::1 "
                        "takes 8 to 256 in steps of 8", MMA, "rule: PTX ISA, tcgen05 matrix shape")), found="descriptor"),
    Mutant("N larger than the allocation", S1, (allocates(128), deallocates(128)),
           always(stops("tcgen05.mma writes D to columns 0 to 255: column 128 is not allocated", MMA)),
           found="tensor-memory-unallocated"),
    Mutant("bf16 named for fp16 data", S0, (instruction_descriptor(lambda word: word | 1 << 7 | 1 << 10),),
           always(WRONG_EVERYWHERE)),

    # ---- bytes that tile_full expects --------------------------------------------------------------------------------
    Mutant("16 bytes too many expected", S0, (expects(12288 + 16),),
           always(hangs(*waits(LANE, WAIT_FULL, missing("tile_full", "0 of 1 arrival missing, 16 bytes missing")),
                        "bytes of this phase: 12304 expected", "12288 delivered by 2 copies",
                        f"initialised: {{{INIT_FULL}}}", f"signalled so far: arrive.expect_tx, warp 0, {{{EXPECT}}}",
                        "likely: expect_tx announces 16 bytes more than the copies bring",
                        *follows("warp 0, lanes 0xfffffffe; warps 1-3, all lanes", WAIT_ACCUMULATOR,
                                 "accumulator_full, phase 0", LANE, COMMIT_ACCUMULATOR))), found="hang"),
    Mutant("16 bytes too many expected", S1, (expects(12288 + 16),),
           always(hangs(*waits(LANE, WAIT_FULL, missing("tile_full", "0 of 1 arrival missing, 16 bytes missing")))),
           found="hang"),
    Mutant("A's bytes expected only", S0, (expects(4096),),
           race(GOOD, UNWRITTEN_SHARED,
                seeds(UNWRITTEN_SHARED, hangs(*waits(LANE, WAIT_FULL, missing(
                    "tile_full", "0 of 1 arrival missing, 8192 bytes more than were expected"))), least=4)),
           found="read-too-early, barrier-bytes, hang"),
    Mutant("A's bytes expected only", S1, (expects(4096),),
           race(TOO_MANY_BYTES, TOO_MANY_BYTES, seeds(TOO_MANY_BYTES, UNWRITTEN_SHARED, least=6)),
           found="read-too-early, barrier-bytes, hang"),
    Mutant("twice A's bytes expected", S1, (expects(8192),),
           race(*2 * [hangs(*waits(LANE, WAIT_FULL, missing(
                    "tile_full", "0 of 1 arrival missing, 4096 bytes more than were expected")))],
                seeds(TOO_MANY_BYTES, UNWRITTEN_SHARED, least=6)), found="barrier-bytes, read-too-early, hang"),

    # ---- parities ----------------------------------------------------------------------------------------------------
    Mutant("tile_full waited for with the other parity", S0, (other_parity(WAIT_FULL),),
           race(hangs(*waits(LANE, WAIT_FULL, missing("tile_full", "1 of 1 arrival missing", parity=1, phase=1))),
                UNWRITTEN_SHARED, seeds(UNWRITTEN_SHARED, least=4)), found="read-too-early, hang"),
    Mutant("tile_full waited for with the other parity", S1, (other_parity(WAIT_FULL),),
           race(hangs(*waits(LANE, WAIT_FULL, missing("tile_full", "1 of 1 arrival missing", parity=1, phase=1))),
                arrives_too_often(0), seeds(ARRIVES_TOO_OFTEN, WRONG_EVERYWHERE, least=6)),
           found="read-too-early, hang, barrier-overflow"),
    Mutant("tile_empty waited for with the other parity", S1, (other_parity(WAIT_EMPTY),),
           race(hangs(*waits(LANE, WAIT_EMPTY, missing("tile_empty", "1 of 1 arrival missing", parity=1, phase=1)),
                      f"signalled so far: tcgen05.commit, warp 0, {{{COMMIT_EMPTY}}}"),
                WRONG_EVERYWHERE, seeds(WRONG_EVERYWHERE, hangs("waits for tile_empty"), least=3)),
           found="overwrite-too-early, hang"),
    Mutant("accumulator_full waited for with the other parity, strict", S0, (other_parity(WAIT_ACCUMULATOR),),
           race(hangs(*waits(EVERYBODY, WAIT_ACCUMULATOR,
                             missing("accumulator_full", "1 of 1 arrival missing", parity=1, phase=1)),
                      f"signalled so far: tcgen05.commit, warp 0, {{{COMMIT_ACCUMULATOR}}}"),
                READS_TOO_EARLY, READS_TOO_EARLY), strict=True),
    Mutant("accumulator_full waited for with the other parity, strict", S1, (other_parity(WAIT_ACCUMULATOR),),
           race(hangs(*waits("warp 0, all lanes", WAIT_ACCUMULATOR,
                             missing("accumulator_full", "1 of 1 arrival missing", parity=1, phase=1)),
                      *waits("warps 1-3, all lanes", SYNC_END, barrier_0_without(0))),
                READS_TOO_EARLY, READS_TOO_EARLY), strict=True),
    Mutant("both parities start at 1", S1, (other_parity(WAIT_FULL), other_parity(WAIT_EMPTY)),
           race(hangs(*waits(LANE, WAIT_FULL, missing("tile_full", "1 of 1 arrival missing", parity=1, phase=1))),
                arrives_too_often(0), seeds(ARRIVES_TOO_OFTEN, WRONG_EVERYWHERE, hangs("waits for tile"), least=6)),
           found="read-too-early, barrier-overflow, hang"),
    Mutant("parity never flipped", S1, (Edit(FLIP, r"xor\.b32 (%r\d+), (%r\d+), 1;", r"mov.b32 \1, \2;"),),
           race(hangs(*waits(LANE, WAIT_FULL, missing("tile_full", "1 of 1 arrival missing", parity=0, phase=2)),
                      f"signalled so far: arrive.expect_tx, warp 0, {{{EXPECT}}}", "(2 times"),
                arrives_too_often(1), seeds(ARRIVES_TOO_OFTEN, hangs("waits for tile_full"), WRONG_EVERYWHERE, least=8)),
           found="barrier-overflow, hang"),
    Mutant("parity never flipped, one K tile", S1, (Edit(FLIP, r"xor\.b32 (%r\d+), (%r\d+), 1;", r"mov.b32 \1, \2;"),),
           always(GOOD), shape="128x256x16"),

    # ---- waits that are missing --------------------------------------------------------------------------------------
    Mutant("no wait for tile_full", S0, (no_wait(WAIT_FULL),),
           race(GOOD, UNWRITTEN_SHARED, seeds(UNWRITTEN_SHARED, least=4)), found="read-too-early"),
    Mutant("no wait for tile_full", S1, (no_wait(WAIT_FULL),),
           race(GOOD, arrives_too_often(0), seeds(ARRIVES_TOO_OFTEN, WRONG_EVERYWHERE, least=6)),
           found="read-too-early, barrier-overflow"),
    Mutant("no wait for tile_empty", S1, (no_wait(WAIT_EMPTY),),
           race(GOOD, mismatch("what arrived: K tile 3 (k = 48..63) was summed 4 times, and no other (fits 16 of 16"),
                seeds(WRONG_EVERYWHERE, least=3)), found="overwrite-too-early"),
    Mutant("no wait for tile_empty", S1, (no_wait(WAIT_EMPTY),),
           {"latest": mismatch("what arrived: K slice 3 (k = 48..63) arrived 4 times, and no other")}, input="position",
           found="overwrite-too-early"),
    Mutant("no wait for accumulator_full", S0, (no_wait(WAIT_ACCUMULATOR),),
           {"latest": stops("tcgen05.mma that was still under way writes D to columns 0 to 255: column 0 is not allocated",
                            MMA)}, found="read-too-early, tensor-memory-unallocated"),
    Mutant("no wait for accumulator_full, strict", S0, (no_wait(WAIT_ACCUMULATOR),),
           race(GOOD, READS_TOO_EARLY, READS_TOO_EARLY), strict=True),
    Mutant("no wait for accumulator_full, strict", S1, (no_wait(WAIT_ACCUMULATOR),),
           race(mismatch("columns 0-63", "what arrived: only K tile 0 (k = 0..15) was summed"),
                READS_TOO_EARLY, READS_TOO_EARLY), strict=True,
           found="read-too-early"),
    Mutant("no wait for the registers", S1, (without(WAIT_TMEM, r"tcgen05\.wait::ld"),), always(GOOD)),
    Mutant("no wait for the registers, strict", S1, (without(WAIT_TMEM, r"tcgen05\.wait::ld"),),
           always(mismatch("32768 of 32768 outputs NaN", "0xffffdead")), strict=True),

    # ---- commits -----------------------------------------------------------------------------------------------------
    Mutant("no commit to accumulator_full", S0, (without(COMMIT_ACCUMULATOR, r"tcgen05\.commit"),),
           always(hangs(*waits(EVERYBODY, WAIT_ACCUMULATOR, missing("accumulator_full", "1 of 1 arrival missing")),
                        f"nobody has signalled it since its mbarrier.init, {{{INIT_ACCUMULATOR}}}")), found="hang"),
    Mutant("no commit to accumulator_full", S1, (without(COMMIT_ACCUMULATOR, r"tcgen05\.commit"),),
           always(hangs(*waits(EVERYBODY, WAIT_ACCUMULATOR, missing("accumulator_full", "1 of 1 arrival missing")),
                        f"nobody has signalled it since its mbarrier.init, {{{INIT_ACCUMULATOR}}}",
                        f"likely: tcgen05.commit of warp 0 at {{{COMMIT_EMPTY}}} signals tile_empty and never this one")),
           found="hang"),
    Mutant("no commit to tile_empty", S1, (without(COMMIT_EMPTY, r"tcgen05\.commit"),),
           always(hangs(*waits(LANE, WAIT_EMPTY, missing("tile_empty", "1 of 1 arrival missing")),
                        f"nobody has signalled it since its mbarrier.init, {{{INIT_EMPTY}}}",
                        f"likely: warp 0, lane 0 has issued 1 tcgen05.mma, the last at {{{MMA}}}, and no tcgen05.commit since")),
           found="hang"),
    Mutant("commit to tile_empty before the MMA", S1, (Move(COMMIT_EMPTY, MMA),),
           race(GOOD, mismatch("what arrived: K tile 3 (k = 48..63) was summed twice, K tile 0 not at all (fits 16 of 16"),
                seeds(WRONG_EVERYWHERE, least=3)), found="overwrite-too-early, commit-thread"),
    Mutant("commit to accumulator_full before the MMA, strict", S0, (Move(COMMIT_ACCUMULATOR, MMA),),
           race(GOOD, READS_TOO_EARLY, seeds(READS_TOO_EARLY, least=2)), strict=True,
           found="read-too-early, tensor-memory-unallocated, commit-thread"),

    # ---- mbarrier.init -----------------------------------------------------------------------------------------------
    Mutant("tile_full counts two arrivals", S0, (counts(INIT_FULL, 2),),
           always(hangs(*waits(LANE, WAIT_FULL, missing("tile_full", "1 of 2 arrivals missing")),
                        f"initialised: {{{INIT_FULL}}}")), found="hang"),
    Mutant("tile_empty counts two arrivals", S1, (counts(INIT_EMPTY, 2),),
           always(hangs(*waits(LANE, WAIT_EMPTY, missing("tile_empty", "1 of 2 arrivals missing")),
                        f"initialised: {{{INIT_EMPTY}}}",
                        f"signalled so far: tcgen05.commit, warp 0, {{{COMMIT_EMPTY}}}", "(1 time,")), found="hang"),
    Mutant("accumulator_full counts two arrivals", S1, (counts(INIT_ACCUMULATOR, 2),),
           always(hangs(*waits(EVERYBODY, WAIT_ACCUMULATOR, missing("accumulator_full", "1 of 2 arrivals missing")),
                        f"signalled so far: tcgen05.commit, warp 0, {{{COMMIT_ACCUMULATOR}}}")), found="hang"),
    Mutant("tile_full not initialised", S1, (without(INIT_FULL, r"mbarrier\.init"),),
           always(uninitialised("tile_full", EXPECT, f"by block (0,0,0), {LANE}: mbarrier.arrive.expect_tx")),
           found="barrier-invalid"),
    Mutant("tile_empty not initialised", S1, (without(INIT_EMPTY, r"mbarrier\.init"),),
           race(uninitialised("tile_empty", COMMIT_EMPTY), uninitialised("tile_empty", WAIT_EMPTY),
                seeds(uninitialised("tile_empty", COMMIT_EMPTY), uninitialised("tile_empty", WAIT_EMPTY), least=8)),
           found="barrier-invalid"),
    Mutant("accumulator_full not initialised", S1, (without(INIT_ACCUMULATOR, r"mbarrier\.init"),),
           always(uninitialised("accumulator_full", WAIT_ACCUMULATOR)), found="barrier-invalid"),

    # ---- accumulator and tensor memory -------------------------------------------------------------------------------
    Mutant("first MMA accumulates", S0, (ACCUMULATES,),
           always(stops("tcgen05.mma adds to columns 0 to 255 of tensor memory, which nothing has written since they were "
                        "allocated: the first MMA of a tile must run with enable-input-d false", MMA)),
           found="tensor-memory-unwritten"),
    Mutant("first MMA accumulates", S1, (ACCUMULATES,),
           always(stops("tcgen05.mma adds to columns 0 to 255 of tensor memory, which nothing has written", MMA)),
           found="tensor-memory-unwritten"),
    Mutant("loop starts at K tile 1", S1, (ACCUMULATES, k_columns_off(LOAD_A, 2), k_columns_off(LOAD_B, 2), k_tiles(-1)),
           always(stops("tcgen05.mma adds to columns 0 to 255 of tensor memory, which nothing has written", MMA)),
           found="tensor-memory-unwritten"),
    Mutant("no dealloc", S0, (without(DEALLOC, r"tcgen05\.dealloc"),),
           always(says("stopped",
                       "the CTA ends with 256 columns of tensor memory still allocated: tcgen05.dealloc them before the kernel "
                       "ends", "rule: PTX ISA, tcgen05.dealloc")), found="tensor-memory-leak"),
    Mutant("dealloc of half the columns", S1, (deallocates(128),),
           always(stops("tcgen05.dealloc of 128 columns at 0x00000000: this CTA has no such allocation (it holds 256 "
                        "columns now)", DEALLOC)), found="tensor-memory-free"),
    Mutant("alloc of 200 columns", S1, (allocates(200),),
           always(stops("tcgen05.alloc of 200 columns: it must be a power of two from 32 to 512", ALLOC)),
           found="tensor-memory-alloc"),
    Mutant("alloc of 512 columns twice", S1,
           (Edit(ALLOC, r"(tcgen05\.alloc\S+ \[%r\d+\]), %r\d+;", r"\1, 512; \1, 512;"),),
           always(hangs(*waits("warp 0, all lanes", ALLOC,
                               "waits in tcgen05.alloc for 512 columns of tensor memory: 512 of 512 are in use on this SM, 512 "
                               "by this CTA"),
                        *waits("warps 1-3, all lanes", SYNC_SETUP, barrier_0_without(0)))), found="hang"),
    Mutant("tcgen05.ld of warp 0's lanes by all warps", S0, (tensor_load("and.b32 q, q, 65535"),),
           always(notes("names lanes 0 to 31, which are warp 0's of four", LOAD_TMEM))),
    Mutant("tcgen05.ld of warp 0's lanes by all warps, strict", S0, (tensor_load("and.b32 q, q, 65535"),),
           always(stops("tcgen05.ld of lane 0 by warp", LOAD_TMEM, "rule: PTX ISA, tcgen05.ld: access restrictions")),
           strict=True),
    Mutant("tcgen05.ld one step too far to the right", S1, (tensor_load("add.s32 q, q, 32"),),
           always(stops("tcgen05.ld reads columns 256 to 287: column 256 is not allocated", LOAD_TMEM)),
           found="tensor-memory-unallocated"),

    # ---- TMA ---------------------------------------------------------------------------------------------------------
    Mutant("A loaded one tile too far down", S1, (rows_off(LOAD_A, 128),),
           always(mismatch("wrong in 8 of 8", "what arrived: rows arrived shifted: row i holds what belongs to row i + 128")),
           shape="1024x32x64", input="position"),
    Mutant("A and B loaded one K tile late", S1, (k_columns_off(LOAD_A, 2), k_columns_off(LOAD_B, 2)),
           always(mismatch("what arrived: K tile 0 (k = 0..15) was lost: the accumulator started afresh at K tile 1")),
           input="position"),
    Mutant("A loaded one K tile late", S1, (k_columns_off(LOAD_A, 2),),
           always(mismatch("what arrived: K tile i + 1 of A met K tile i of B (fits 16 of 16"))),
    Mutant("last K tile replaced by the one before it", S1, (k_columns_at_most(LOAD_A, 4), k_columns_at_most(LOAD_B, 4)),
           always(mismatch("what arrived: K slice 2 (k = 32..47) arrived twice, slice 3 not at all")), input="position"),
    Mutant("box to a misaligned shared address", S1,
           (Edit(LOAD_A, COPY, r"\1 [\2+16], [\3, {\4, \5, \6}], [\7];"),),
           always(stops("TMA load: shared address 0x410 must be a multiple of 128 bytes; it is 16 past one", LOAD_A)),
           found="misaligned"),
    Mutant("tensor map at a misaligned address", S1, (Edit(LOAD_B, COPY, r"\1 [\2], [\3+8, {\4, \5, \6}], [\7];"),),
           always(stops("a map must be aligned to 64 bytes; pass it as a `const __grid_constant__ CUtensorMap` "
                        "parameter", LOAD_B)), found="misaligned"),
    Mutant("tensor map that is none", S1, (Edit(LOAD_A, COPY, r"\1 [\2], [\3+64, {\4, \5, \6}], [\7];"),),
           always(stops("were not made by cuTensorMapEncodeTiled; is the operand the map's address", LOAD_A)),
           found="tensor-map"),
    Mutant("tensor map at no address", S1,
           (Edit(LOAD_A, COPY, r"{ .reg .b64 q; mov.u64 q, 64; \1 [\2], [q, {\4, \5, \6}], [\7]; }"),),
           always(stops("read of 128 bytes at global address 0x40: a null pointer", LOAD_A)), found="out-of-bounds"),

    # ---- who does it -------------------------------------------------------------------------------------------------
    Mutant("all lanes of warp 0 load and multiply", S1,
           (all_lanes(ELECT),),
           always(arrives_too_often(0, "by block (0,0,0), warp 0, lane 1: mbarrier.arrive.expect_tx")),
           found="barrier-overflow"),
    Mutant("no CTA barrier after the setup", S1, (Edit(SYNC_SETUP, r"bar\.sync 0;", ""),),
           race(uninitialised("tile_full", EXPECT), uninitialised("tile_full", EXPECT),
                seeds(uninitialised("tile_full", EXPECT), uninitialised("accumulator_full", WAIT_ACCUMULATOR),
                      stops("tcgen05.ld of lane", LOAD_TMEM), stops("tcgen05.ld starts at lane", LOAD_TMEM), least=6)),
           found="read-too-early, barrier-init, barrier-invalid"),
    Mutant("warp 3 passes the CTA barrier after the setup by", S1, (Edit(SYNC_SETUP, r"bar\.sync 0;", NOT_WARP_3),),
           race(*2 * [hangs(*waits("warps 0-2, all lanes", SYNC_SETUP, barrier_0_without(3)),
                            *waits("warp 3, all lanes", WAIT_ACCUMULATOR, "waits for accumulator_full"))],
                seeds(hangs(*waits("warps 0-2, all lanes", SYNC_SETUP, barrier_0_without(3))),
                      uninitialised("accumulator_full", WAIT_ACCUMULATOR, "by block (0,0,0), warp 3"), least=8)),
           found="read-too-early, barrier-init, hang, barrier-invalid"),
    Mutant("no CTA barrier before the dealloc", S1, (Edit(SYNC_END, r"bar\.sync 0;", ""),),
           race(stops("tcgen05.ld reads columns", LOAD_TMEM), GOOD,
                seeds(stops("tcgen05.ld reads columns", LOAD_TMEM), least=2)),
           found="overwrite-too-early, tensor-memory-unallocated"),
    Mutant("CTA barrier where one lane runs", S1, (Edit(EXPECT, r"(mbarrier\.arrive.*)", r"bar.sync 0; \1"),),
           always(hangs(*waits(LANE, EXPECT,
                               "waits at an .aligned instruction for lanes 0xfffffffe of its warp, which are elsewhere: all "
                               "lanes must execute it together"))), found="hang"),

    # ---- loop and store ----------------------------------------------------------------------------------------------
    Mutant("one K tile too few", S1, (k_tiles(-1),),
           always(mismatch("what arrived: only K tiles 0 to 2 arrived")), input="position"),
    Mutant("one K tile too few", S1, (k_tiles(-1),),
           always(mismatch("what arrived: K tile 3 (k = 48..63) is missing (fits 16 of 16 outputs looked at)"))),
    Mutant("one K tile too many", S1, (k_tiles(1),),  # beyond K TMA brings zeros: right, and only the counters tell
           always(Good({"mmas": 5, "tma_loads": 10})), input="position"),
    Mutant("rows and columns of the store swapped", S1, ROWS_AND_COLUMNS_SWAPPED,
           always(mismatch("what arrived: D[i][j] holds what belongs to D[j][i]: rows and columns are swapped")),
           shape="128x128x64", input="position"),
    Mutant("row and first column of the tile swapped", S1, ROW_AND_FIRST_COLUMN_SWAPPED,
           always(says("FAULT something wrote past the end of D", "MISMATCH", "outputs never written")), shape="256x512x64", found="write-write"),
    Mutant("row and first column of the tile swapped, far outside", S1, ROW_AND_FIRST_COLUMN_SWAPPED,
           always(stops("it belongs to no allocation", STORE)), shape="128x8200x16", found="write-write, out-of-bounds"),
    Mutant("tile indices swapped", S1, TILE_INDICES_SWAPPED,
           always(mismatch("outputs never written", "wrong in 2 of 3")), shape="384x256x64"),

    # ---- a ring of buffers (step02) ----------------------------------------------------------------------------------
    Mutant("unedited", S2, (), race(GOOD, GOOD, GOOD)),
    Mutant("no wait for tile_full", S2, (no_wait(RING_WAIT_FULL),),
           race(GOOD, fills_too_early(0, 0, at=REFILL), seeds(REFILLS_TOO_EARLY, WRONG_EVERYWHERE, least=6)),
           found="read-too-early, barrier-overflow"),
    Mutant("no wait for tile_empty", S2, (no_wait(RING_WAIT_EMPTY),),
           race(GOOD, WRONG_EVERYWHERE, seeds(WRONG_EVERYWHERE, least=6)), found="overwrite-too-early"),
    Mutant("tile_empty waited for with the other parity", S2, (other_parity(RING_WAIT_EMPTY),),
           race(hangs(*waits(LANE, RING_WAIT_EMPTY, missing("tile_empty[0]", "1 of 1 arrival missing", parity=1, phase=1))),
                WRONG_EVERYWHERE, seeds(WRONG_EVERYWHERE, hangs("waits for tile_empty"), least=6)),
           found="overwrite-too-early, hang"),
    Mutant("parity never flipped", S2, (never_flips(FLIP),),
           race(hangs(*waits(LANE, RING_WAIT_FULL, missing("tile_full[0]", "1 of 1 arrival missing", parity=0, phase=2))),
                fills_too_early(0, 1, at=REFILL),
                seeds(hangs("waits for tile_full"), REFILLS_TOO_EARLY, WRONG_EVERYWHERE, least=8)),
           found="hang, barrier-overflow"),
    Mutant("parity never flipped, one round", S2, (never_flips(FLIP),), always(GOOD), shape="128x256x64"),
    Mutant("parity flipped every K tile", S2, (always_flips(FLIP),),
           race(hangs(*waits(LANE, RING_WAIT_FULL, missing("tile_full[1]", "1 of 1 arrival missing", parity=1, phase=1))),
                fills_too_early(1, 0, at=REFILL), seeds(hangs("waits for tile_full"), REFILLS_TOO_EARLY, least=8)),
           found="hang, barrier-overflow"),
    Mutant("prologue loads one K tile more than there are buffers", S2, (PROLOGUE_LOADS_ONE_MORE,),
           always(uninitialised("tile_full[4]", PROLOGUE, f"by block (0,0,0), {LANE}: mbarrier.arrive.expect_tx")),
           found="barrier-invalid"),
    Mutant("barriers of the last buffer not initialised", S2, ONE_BUFFER_NOT_INITIALISED,
           always(uninitialised("tile_full[3]", PROLOGUE)), found="barrier-invalid"),
    Mutant("refill loads the K tile before the right one", S2, (refill_off(-1),),
           always(mismatch("what arrived: K tile 3 (k = 48..63) was summed twice, K tile 9 not at all (fits 16 of 16"))),
    Mutant("refill to the end and beyond", S2, (without(IF_REFILL, r"@%p\d+ bra"),),  # beyond K: zeros that nobody reads
           always(Good({"mmas": 10, "tma_loads": 28})), found="bulk-load-wait"),
    Mutant("no commit to tile_empty", S2, (without(RING_COMMIT_EMPTY, r"tcgen05\.commit"),),
           always(hangs(*waits(LANE, RING_WAIT_EMPTY, missing("tile_empty[0]", "1 of 1 arrival missing")),
                        "nobody has signalled it since its mbarrier.init")), found="hang"),
    Mutant("no commit to tile_empty, one round", S2, (without(RING_COMMIT_EMPTY, r"tcgen05\.commit"),),
           always(GOOD), shape="128x256x64"),
    Mutant("commit to tile_empty before the MMA", S2, (Move(RING_COMMIT_EMPTY, MMA),),
           race(GOOD, mismatch("what arrived: K tile 9 (k = 144..159) was summed twice, K tile 5 not at all (fits 16 of 16"),
                seeds(WRONG_EVERYWHERE, least=5)), found="overwrite-too-early, commit-thread"),
    Mutant("descriptors stay at the first buffer", S2, (DESCRIPTORS_STAY,), always(WRONG_EVERYWHERE), found="read-too-early"),
    Mutant("the sum starts afresh with every round", S2, (ACCUMULATES_BUT_IN_STAGE_0,),
           always(mismatch("what arrived: K tiles 0 to 7 were lost: the sum started afresh at K tile 8 (fits 16 of 16"))),
    Mutant("one K tile too many", S2, (k_tiles(1, CONSUMER_LOOP),),  # not as in step01: nobody loads it
           always(hangs(*waits(LANE, RING_WAIT_FULL, missing("tile_full[2]", "1 of 1 arrival missing", parity=0, phase=2)))),
           found="hang"),

    # ---- two roles (step03) ------------------------------------------------------------------------------------------
    Mutant("unedited", S3, (), race(GOOD, GOOD, GOOD)),
    Mutant("producer waits with the consumer's parity", S3,
           (Edit(RING_WAIT_EMPTY, r"xor\.b32 (%r\d+), (%r\d+), 1;", r"mov.b32 \1, \2;"),),
           always(starves(missing("tile_empty[0]", "1 of 1 arrival missing"), "likely: it loads next")), found="hang"),
    Mutant("no wait for tile_empty", S3, (no_wait(RING_WAIT_EMPTY),),
           race(GOOD, fills_too_early(0, 0), seeds(ARRIVES_TOO_OFTEN, least=8)), found="overwrite-too-early, barrier-overflow"),
    Mutant("no wait for tile_full", S3, (no_wait(RING_WAIT_FULL),),
           race(GOOD, fills_too_early(0, 0), seeds(ARRIVES_TOO_OFTEN, least=8)),
           found="read-too-early, barrier-overflow"),
    Mutant("producer's parity never flipped", S3, (never_flips(PRODUCER_FLIP),),
           race(starves(missing("tile_empty[0]", "1 of 1 arrival missing", parity=1, phase=1),
                        "likely: it passed here when the barrier was fresh, so phase 0 is next, of parity 0; it asks for parity 1"),
                fills_too_early(0, 0), seeds(ARRIVES_TOO_OFTEN, least=8)), found="barrier-overflow, hang"),
    Mutant("consumer's parity never flipped", S3, (never_flips(CONSUMER_FLIP),),
           race(hangs(*waits("warp 1, lane 0", RING_WAIT_FULL,
                             missing("tile_full[0]", "1 of 1 arrival missing", parity=0, phase=2)),
                      "likely: it has seen phase 0 end, so phase 1 is next, of parity 1; it asks for parity 0",
                      *follows(LANE, RING_WAIT_EMPTY, "tile_empty[0], phase 1")),
                fills_too_early(0, 1),
                seeds(hangs("waits for tile_empty"), ARRIVES_TOO_OFTEN, WRONG_EVERYWHERE, least=8)),
           found="hang, barrier-overflow"),
    Mutant("both roles in warp 0", S3, (CONSUMER_IN_WARP_0,),
           always(hangs(*waits(LANE, RING_WAIT_EMPTY, missing("tile_empty[0]", "1 of 1 arrival missing")),
                        "nobody has signalled it since its mbarrier.init",
                        f"it would signal it itself, at {{{RING_COMMIT_EMPTY}}}, behind this wait; nobody else would",
                        *waits("warp 0, lanes 0xfffffffe; warps 1-3, all lanes", WAIT_ACCUMULATOR,
                               "waits for accumulator_full"))), found="hang"),
    Mutant("no commit to tile_empty", S3, (without(RING_COMMIT_EMPTY, r"tcgen05\.commit"),),
           always(starves(missing("tile_empty[0]", "1 of 1 arrival missing"),
                          f"likely: warp 1, lane 0 has issued 4 tcgen05.mma, the last at {{{MMA}}}, and no tcgen05.commit since")),
           found="hang"),
    Mutant("no commit to tile_empty, one round", S3, (without(RING_COMMIT_EMPTY, r"tcgen05\.commit"),),
           always(GOOD), shape="128x256x64"),
    Mutant("commit to tile_empty before the MMA", S3, (Move(RING_COMMIT_EMPTY, MMA),),
           race(GOOD, WRONG_EVERYWHERE, seeds(WRONG_EVERYWHERE, least=2)), found="read-too-early, commit-thread"),
    Mutant("tile_empty counts two arrivals", S3, (counts(RING_INIT_EMPTY, 2, times=5),),
           always(starves(missing("tile_empty[0]", "1 of 2 arrivals missing"))), found="hang"),
    Mutant("all lanes of the producer's warp load", S3, (all_lanes(PRODUCER),),
           always(fills_too_early(0, 0, who="warp 0, lane 1")), found="barrier-overflow"),
    Mutant("all lanes of the consumer's warp multiply", S3, (all_lanes(CONSUMER),),
           race(hangs(*waits(LANE, RING_WAIT_EMPTY, missing("tile_empty[0]", "1 of 1 arrival missing", phase=32)),
                      f"signalled so far: tcgen05.commit, warp 1, {{{RING_COMMIT_EMPTY}}}", "(32 times"),
                fills_too_early(0, 1),
                seeds(hangs("waits for tile_empty"), ARRIVES_TOO_OFTEN, WRONG_EVERYWHERE,
                      stops("tcgen05.mma that was still under way", MMA), least=8)),
           found="write-write, overwrite-too-early, read-too-early, hang, barrier-overflow"),
    Mutant("producer loads one K tile too many", S3, (k_tiles(1, PRODUCER_LOOP),),  # zeros that nobody reads
           always(Good({"mmas": 10, "tma_loads": 22})), found="bulk-load-wait"),
    Mutant("producer loads one K tile too few", S3, (k_tiles(-1, PRODUCER_LOOP),),
           always(hangs(*waits("warp 1, lane 0", RING_WAIT_FULL,
                               missing("tile_full[1]", "1 of 1 arrival missing", parity=0, phase=2)),
                        "likely: arrive.expect_tx of warp 0 took part in phase 1 and not in this one; it waits for "
                        "accumulator_full")), found="hang"),

    # ---- swizzled rows, four MMAs a stage (step04) -------------------------------------------------------------------
    Mutant("unedited", S4, (), race(GOOD, GOOD, GOOD)),
    Mutant("descriptors without swizzle", S4, swizzle_named(0), always(mismatch("rows all 128; columns all 256"))),
    Mutant("descriptors of the 64-byte swizzle", S4, swizzle_named(4), always(mismatch("rows all 128; columns all 256"))),
    Mutant("A starts a row late", S4, (start_off(RING_DESCRIPTOR_A, 128),),
           always(mismatch("what arrived: row i holds what belongs to row i + 1 (fits 16 of 16"))),
    Mutant("groups of 8 rows 128 bytes apart", S4,
           both_descriptors(lambda word: with_offsets(word, offsets(word)[0], 128 >> 4)),
           always(mismatch("rows all 128; columns all 256"))),
    Mutant("no step along K", S4, (NO_K_STEP,), always(WRONG_EVERYWHERE)),
    Mutant("step along K in elements", S4, (K_STEP_IN_ELEMENTS,),
           always(mismatch("what arrived: K slice 1 (k = 16..31) arrived twice")), input="position"),
    Mutant("K tiles 16 apart", S4, (K_TILES_16_WIDE,),
           always(mismatch("what arrived: K slice 1 (k = 16..31) arrived twice")), input="position"),
    Mutant("K and row of A swapped", S4, (K_AND_ROW_OF_A_SWAPPED,), always(WRONG_EVERYWHERE)),
    Mutant("K tile 0 overwrites with each MMA", S4, OVERWRITES_THROUGHOUT_K_TILE_0, always(WRONG_EVERYWHERE)),
    Mutant("every K tile overwrites", S4, (OVERWRITES_IN_EVERY_K_TILE,),
           always(mismatch("what arrived: K tiles 0 to 8 were lost: the sum started afresh at K tile 9 (fits 16 of 16"))),
    Mutant("a quarter of the bytes expected", S4, (expects(12288),),
           race(*2 * [hangs(f"warp 1, lane 0 at {{{RING_WAIT_FULL}}}", "waits for tile_full[0]",
                            "36864 bytes more than were expected",
                            "likely: expect_tx announces 36864 bytes fewer than the copies bring")],
                seeds(hangs("bytes more than were expected"), least=8)), found="hang"),
    Mutant("no wait for tile_empty", S4, (no_wait(RING_WAIT_EMPTY),),
           race(hangs(*waits("warp 1, lane 0", RING_WAIT_FULL,
                             missing("tile_full[2]", "1 of 1 arrival missing", parity=0, phase=2))),
                ARRIVES_TOO_OFTEN, seeds(ARRIVES_TOO_OFTEN, least=8)), found="overwrite-too-early, barrier-overflow, hang"),
    Mutant("commit to tile_empty before the MMAs", S4, (Move(RING_COMMIT_EMPTY, MMA),),
           race(WRONG_EVERYWHERE, WRONG_EVERYWHERE, seeds(WRONG_EVERYWHERE, least=5)), found="read-too-early, commit-thread"),

    # ---- stores by TMA (step05) --------------------------------------------------------------------------------------
    Mutant("unedited", S5, (), race(GOOD, GOOD, GOOD)),
    Mutant("no wait for the store buffer", S5, (without(WAIT_BUFFER, r"cp\.async\.bulk\.wait_group"),),
           race(GOOD, columns_later(192, "inside it: rows all 128; columns 0-191"), seeds(columns_later(), least=6)),
           found="overwrite-too-early"),
    Mutant("two stores may still read", S5, (waits_for_buffers_but(2),),
           race(GOOD, columns_later(64), seeds(columns_later(64), least=6)), found="overwrite-too-early"),
    Mutant("no store may still read", S5, (waits_for_buffers_but(0),), race(GOOD, GOOD, GOOD)),  # slower, not wrong
    Mutant("one store buffer", S5, ONE_STORE_BUFFER,
           race(GOOD, columns_later(32, "inside it: rows all 128; columns 0-223"), seeds(columns_later(32), least=6)),
           found="overwrite-too-early"),
    Mutant("bulk groups are not closed", S5, (without(CLOSE_GROUP, r"cp\.async\.bulk\.commit_group"),),
           race(GOOD, columns_later(192), seeds(columns_later(), least=6)), found="overwrite-too-early"),
    Mutant("all lanes store", S5, (all_lanes(IF_STORE),),
           race(Good({"tma_stores": 1024}), columns_later(192), seeds(columns_later(), least=6)), found="overwrite-too-early"),
    Mutant("no wait at the end for the buffers", S5, (without(WAIT_BUFFERS, r"cp\.async\.bulk\.wait_group"),),
           race(GOOD, GOOD, GOOD), found="bulk-store-wait"),  # the emulator lets a CTA's own stores finish
    Mutant("no proxy fence before the store", S5, (without(FENCE_STORE, r"fence\.proxy"),),
           race(GOOD, GOOD, GOOD), found="proxy-fence"),  # fences order nothing in the emulator that was not in order
    Mutant("no warp barrier before the store", S5, (without(SYNC_BEFORE_STORE, r"bar\.warp\.sync"),),
           race(GOOD, GOOD, GOOD), found="warp-sync"),  # lanes that go the same way go together in the emulator
    Mutant("chunks not permuted", S5, (CHUNKS_NOT_PERMUTED,),
           always(mismatch("rows 1-7, 9-15, 17-23,",
                           "what arrived: column i holds what belongs to column i + 4 (fits 16 of 16"))),
    Mutant("stored from a row late", S5, (stores_bytes_off(128),),
           always(mismatch("what arrived: row i holds what belongs to row i + 1")), found="read-too-early"),
    Mutant("stored from half a row late", S5, (stores_bytes_off(64),),
           always(stops("must be a multiple of 128 bytes; it is 64 past one. Align the buffer", STORE_ROWS)),
           found="misaligned"),
    Mutant("stored a column late", S5, (stores_columns_off(1),),
           always(stops("TMA store: innermost coordinate 1: times the element's 4 bytes it must be a multiple of 16 bytes",
                        STORE_ROWS)), found="tensor-map"),
    Mutant("stored a stripe late", S5, (stores_columns_off(32),),
           always(mismatch("4096 of 32768 outputs never written",
                           "what arrived: column i holds what belongs to column i - 32 (fits 16 of 16"))),
    Mutant("column and row of the store swapped", S5, (COLUMN_AND_ROW_OF_STORE_SWAPPED,),
           always(mismatch("16384 of 32768 outputs never written", "D[i][j] holds what belongs to D[j][i]"))),
    Mutant("all warps store to the rows of warp 0", S5, (STORES_TO_THE_ROWS_OF_WARP_0,),
           always(mismatch("24576 of 32768 outputs never written", "inside it: rows all 128; columns all 256")),
           found="write-write"),
    Mutant("no wait for the columns read", S5, (without("tcgen05_wait_ld(); write_swizzled_row", r"tcgen05\.wait"),),
           race(GOOD, GOOD, GOOD)),  # as on the chip, whose scoreboard waits
    Mutant("no wait for the columns read, strict", S5, (without("tcgen05_wait_ld(); write_swizzled_row", r"tcgen05\.wait"),),
           always(mismatch("32768 of 32768 outputs NaN")), strict=True),
    Mutant("no wait for either register set", S5, (NO_WAIT_FOR_COLUMNS_READ,), race(GOOD, GOOD, GOOD),
           variant="two-register-sets"),
    Mutant("no wait for either register set, strict", S5, (NO_WAIT_FOR_COLUMNS_READ,),
           always(mismatch("32768 of 32768 outputs NaN")), strict=True, variant="two-register-sets"),

    # ---- loads for a cluster (step06) --------------------------------------------------------------------------------
    Mutant("unedited", S6, (), race(GOOD, GOOD, GOOD)),
    Mutant("unedited, strict", S6, (), race(GOOD, GOOD, GOOD), strict=True),
    Mutant("tile_empty counts one arrival", S6, (counts(RING_INIT_EMPTY, 1, times=4),),
           race(WRONG, ARRIVES_TOO_OFTEN, seeds(ARRIVES_TOO_OFTEN, WRONG, cluster_hangs(), least=8)),
           found="write-write, overwrite-too-early, barrier-overflow, barrier-behind, peer-gone"),
    Mutant("tile_empty counts the whole cluster", S6, (counts(RING_INIT_EMPTY, 4, times=4),),
           always(cluster_hangs(*waits(LANE, CLUSTER_WAIT_EMPTY, missing(EMPTY_0, "1 of 4 arrivals missing")),
                                f"signalled so far: tcgen05.commit, CTA 0, warp 1, {{{CLUSTER_COMMIT}}}",
                                "or mbarrier.init counts too many")), found="hang"),
    Mutant("commit to the own CTA", S6, (COMMIT_TO_OWN_CTA,),
           always(cluster_hangs(*waits(LANE, CLUSTER_WAIT_EMPTY, missing(EMPTY_0, "2 of 3 arrivals missing")),
                                f"signalled so far: tcgen05.commit, CTA 0, warp 1, {{{CLUSTER_COMMIT}}}",
                                "likely: tcgen05.commit of CTA 1, 2, 3 at", "and not of CTA 0: its mask leaves that CTA out")),
           found="hang"),
    Mutant("commit to those that share A", S6, (COMMIT_TO_SHARERS_OF_A,),
           always(cluster_hangs(*waits(LANE, CLUSTER_WAIT_EMPTY, missing(EMPTY_0, "1 of 3 arrivals missing")),
                                f"likely: tcgen05.commit of CTA 1, 3 at {{{CLUSTER_COMMIT}}} arrives at tile_empty[0] of CTA 1, 3 "
                                "and not of CTA 0: its mask leaves that CTA out", "CTA 1-3: the same, at their own")),
           found="hang"),
    Mutant("commit to those that share A, one round", S6, (COMMIT_TO_SHARERS_OF_A,),
           always(cluster_hangs(*waits(LANE, LAST_WAIT_EMPTY, missing(EMPTY_0, "1 of 3 arrivals missing")))),
           shape="256x512x256", found="hang"),
    Mutant("commit to all of the cluster", S6, (COMMIT_TO_ALL,),
           race(WRONG, WRONG, seeds(WRONG, ARRIVES_TOO_OFTEN, cluster_hangs(), least=6)),
           found="overwrite-too-early, peer-gone"),
    Mutant("own slices' bytes expected", S6, (expects(24576),), always(cluster_hangs("bytes more than were expected")),
           found="read-too-early, barrier-bytes, hang"),
    Mutant("bytes expected for each that shares", S6, (expects(98304),),
           always(cluster_hangs(f"at {{{RING_WAIT_FULL}}}", "waits for tile_full[0] of CTA 0 in the cluster",
                                "0 of 1 arrival missing, 49152 bytes missing")), found="hang"),
    Mutant("A to the own CTA", S6, (A_TO_OWN_CTA,),
           always(cluster_hangs(f"at {{{RING_WAIT_FULL}}}", "waits for tile_full[0] of CTA 0 in the cluster",
                                "0 of 1 arrival missing, 8192 bytes missing",
                                "bytes of this phase: 49152 expected", "40960 delivered by 3 copies",
                                f"likely: the copy of CTA 1, 2, 3 at {{{CLUSTER_LOAD_A}}} brings 8192 bytes to tile_full[0] of "
                                "CTA 1, 2, 3 and not of CTA 0: its mask leaves that CTA out", "CTA 1-3: the same, at their own")),
           found="hang"),
    Mutant("masks of the loads swapped", S6, MASKS_OF_LOADS_SWAPPED,
           always(mismatch("98304 of 131072 outputs NaN", "wrong in 4 of 4")), found="write-write, uninitialised"),
    Mutant("every CTA loads the first slice of A", S6, (slice_in_place_of(CLUSTER_LOAD_A, 128),),
           always(mismatch("inside them: rows 64-127;",
                           "what arrived: row i holds what belongs to row i - 64 (fits 16 of 16"))),
    Mutant("every CTA loads the first slice of B", S6, (slice_in_place_of(CLUSTER_LOAD_B, 256),),
           always(mismatch("columns 128-255", "what arrived: column i holds what belongs to column i - 128 (fits 16 of 16"))),
    Mutant("every slice of A where the first lies", S6, (slice_put_first(CLUSTER_LOAD_A, "shr.u32 q, q, 1", 8192),),
           always(mismatch("65536 of 131072 outputs NaN", "wrong in 4 of 4")), found="write-write, uninitialised"),
    Mutant("CTA barrier after the setup", S6, CTA_BARRIER_AFTER_SETUP,
           race(GOOD, GOOD, seeds(says("stopped", "is no mbarrier", "tile_full[0] of CTA",
                                       ": nobody has initialised it"), least=1)), found="barrier-init"),
    Mutant("no wait at the end for the others", S6, (no_wait(LAST_WAIT_EMPTY, times=4),),
           {"earliest": GOOD,
            "latest": notes("a commit came after its CTA of the cluster had ended and is lost", CLUSTER_COMMIT)},
           found="peer-gone"),
    Mutant("no wait at the end for the others, strict", S6, (no_wait(LAST_WAIT_EMPTY, times=4),),
           race(GOOD, stops("after CTA", CLUSTER_COMMIT), seeds(stops("after CTA", CLUSTER_COMMIT), least=1)), strict=True),
    Mutant("CTAs outside of D leave at once", S6, (LOWER_CTAS_LEAVE,),
           always(says("stopped", "shared memory is used after CTA", "of the cluster had ended")), shape="128x512x640",
           found="peer-gone"),
    Mutant("CTAs outside of D do not load", S6, (LOWER_CTAS_DO_NOT_LOAD,),
           always(cluster_hangs(f"at {{{RING_WAIT_FULL}}}", "waits for tile_full[0] of CTA 0 in the cluster",
                                "0 of 1 arrival missing, 16384 bytes missing")), shape="128x512x640", found="hang"),
    Mutant("CTAs across take tiles below", S6, RANKS_OF_TILE_SWAPPED, always(mismatch("wrong in 4 of 4"))),
    Mutant("no wait for tile_empty", S6, (no_wait(CLUSTER_WAIT_EMPTY),),
           race(cluster_hangs(), ARRIVES_TOO_OFTEN, seeds(ARRIVES_TOO_OFTEN, cluster_hangs(), least=8)),
           found="overwrite-too-early, barrier-overflow, hang, barrier-behind"),
)
