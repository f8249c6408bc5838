"""What reports say, as parts of what a mutant must come to."""

from edits import (COMMIT_ACCUMULATOR, EXPECT, INIT_FULL, LOAD_TMEM, REFILL, RING_WAIT_EMPTY, RING_WAIT_FULL,
                   WAIT_ACCUMULATOR, WAIT_FULL)
from mutant import hangs, mismatch, says, stops, waits

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
