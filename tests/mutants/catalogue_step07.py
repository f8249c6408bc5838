"""The mutants of step07: of pair.cu, of persistent.cu, and of blackwell.cu."""

from edits import (CLUSTER_WAIT_EMPTY, LAST_WAIT_EMPTY, RING_WAIT_FULL, STORE_ROWS, WAIT_BUFFER, WAIT_BUFFERS, all_lanes,
                   counts, no_wait, other_parity, without)
from edits_step07 import (ASK, ASKS_ONCE_MORE, BOTH_EXPECT, BOTH_MULTIPLY, COMMITS_FOR_ONE_CTA, COMMIT_ACCUMULATOR,
                          CTA_BARRIER_AT_THE_END, EPILOGUE_NEVER_FLIPS, EXPECTS_AT_THE_LEADER, EXPECTS_OWN_BYTES,
                          EXPECT_ANSWER, FENCE_ANSWER, FENCE_ASK, FENCE_RELEASE, HALF_AS_MANY_ROWS, IF_LEADER_EXPECTS,
                          INIT_ACCUMULATOR_EMPTY, INIT_ANSWER_EMPTY, LAST_GROUP_NOT_CUT, LEADERS_ACCUMULATOR_EMPTY,
                          LEADERS_FULL, LEADER_ALLOCATES, LEADER_EXPECTS_ANSWER, LOADS_OF_ONE_CTA, NO_FIRST_SYNC,
                          OTHER_ACCUMULATOR_STORED, PAIR_ALLOC, PAIR_COMMIT_ACCUMULATOR, PAIR_COMMIT_EMPTY,
                          PAIR_LOAD_A, PAIR_LOAD_B, PARITY_FLIPS_EACH_TILE, RELEASE, RELEASED_BEFORE_THE_WAIT,
                          ROLES_BEGIN_ANEW, S7, SETUP_SYNC, SETUP_SYNC_WAIT, SUM_GOES_ON, WAIT_ACCUMULATOR_EMPTY,
                          WAIT_ACCUMULATOR_FULL, WAIT_ANSWER_EMPTY, WAIT_BOTH_HALVES, accumulators_apart, commit_to,
                          cta_barrier_for, row_without_rank, to_own_cta)
from mutant import GOOD, Mutant, always, mismatch, notes, race, says, seeds, stops, waits
from said import LANE, WRONG, cluster_hangs, missing

# One tile more than the chip has pairs: the first pair takes a second one. GRID's are 64 columns wide and cost little, WIDE's
# are whole. Of MANY there are four for each pair and more, so that the answers' three slots are used again.
GRID, WIDE, MANY = "19200x64x64", "256x19200x64", "76800x8x16"
SEEDS = tuple(f"random:{seed}" for seed in range(1, 4))


def pair(name, edits, under, **more):
    return Mutant(name, S7, edits, under, variant="pair", **more)


def grid(name, edits, under, shape=GRID, **more):
    return Mutant(name, S7, edits, under, shape=shape, variant="persistent", **more)


def tiles(name, edits, under, shape="512x512x320", variant="clusters=1", **more):
    """Of blackwell.cu: four tiles, one pair."""
    return Mutant(name, S7, edits, under, shape=shape, variant=f"{variant},tile-n=256", **more)


def on_demand(name, edits, under, **more):
    return Mutant(name, S7, edits, under, shape=MANY, variant="scheduler=clc,tile-n=128", **more)


def luck(earliest, latest, random):
    """As race(), with three seeds."""
    return {"earliest": earliest, "latest": latest, SEEDS: random}


def of_cta(cta, barrier, text, parity=0, phase=0):
    return missing(f"{barrier} of CTA {cta} in the cluster", text, parity, phase)


def leaves_cta_1_out(who, at, barrier, commit):
    """CTA 1 waits for a commit of CTA 0 that does not name it."""
    return cluster_hangs(*waits(f"CTA 1, {who}", at, of_cta(1, barrier, "1 of 1 arrival missing")),
                         "nobody has signalled it since its mbarrier.init",
                         f"likely: tcgen05.commit of CTA 0 at {{{commit}}} arrives at {barrier} of CTA 0 and not of CTA 1: its "
                         "mask leaves that CTA out")


def half_missing(*more):
    """The leader's MMA warp lacks what CTA 1 has loaded."""
    return cluster_hangs(*waits("CTA 0, warp 1, lane 0", RING_WAIT_FULL,
                                of_cta(0, "tile_full[0]", "0 of 1 arrival missing, 32768 bytes missing")),
                         "bytes of this phase: 65536 expected", "32768 delivered by 2 copies", *more)


OVERFLOW = "mbarrier arrive beyond its count by 1"
NEXT_TILE = mismatch("wrong in 2 of 150", "what arrived: column i holds what belongs to column i + 18944")
ARRIVE_LOST = notes("a remote arrive came after its CTA of the cluster had ended and is lost", STORE_ROWS)

STEP07 = (
    # ---- pair.cu -----------------------------------------------------------------------------------------------------
    pair("unedited, pair", (), always(GOOD)),
    pair("commit to tile_empty leaves CTA 1 out", (commit_to(PAIR_COMMIT_EMPTY, 1),),
         always(leaves_cta_1_out(LANE, CLUSTER_WAIT_EMPTY, "tile_empty[0]", PAIR_COMMIT_EMPTY)), found="hang"),
    pair("commit to tile_empty leaves CTA 1 out, three K tiles", (commit_to(PAIR_COMMIT_EMPTY, 1),),
         always(leaves_cta_1_out(LANE, LAST_WAIT_EMPTY, "tile_empty[0]", PAIR_COMMIT_EMPTY)), shape="256x256x192", found="hang"),
    pair("commit to tile_empty leaves CTA 1 out, no wait at the end",
         (commit_to(PAIR_COMMIT_EMPTY, 1), no_wait(LAST_WAIT_EMPTY, times=6)),
         always(leaves_cta_1_out(LANE, CLUSTER_WAIT_EMPTY, "tile_empty[0]", PAIR_COMMIT_EMPTY)), shape="256x256x1024",
         found="hang"),
    pair("commit to tile_empty leaves CTA 1 out, no wait at the end, three K tiles",  # the origin's: it is not used twice
         (commit_to(PAIR_COMMIT_EMPTY, 1), no_wait(LAST_WAIT_EMPTY, times=6)), always(GOOD), shape="256x256x192"),
    pair("commit to accumulator_full leaves CTA 1 out", (commit_to(PAIR_COMMIT_ACCUMULATOR, 1),),
         always(leaves_cta_1_out("warps 0-3, all lanes", WAIT_BOTH_HALVES, "accumulator_full", PAIR_COMMIT_ACCUMULATOR)),
         found="hang"),
    pair("both CTAs multiply", (BOTH_MULTIPLY,),
         always(cluster_hangs(*waits("CTA 1, warp 1, lane 0", RING_WAIT_FULL,
                                     of_cta(1, "tile_full[0]", "1 of 1 arrival missing")),
                              f"likely: CTA 0 arrives at its own with arrive.expect_tx at {{{IF_LEADER_EXPECTS}}}; CTA 1 has "
                              "not")), found="hang"),
    pair("own bytes expected", (EXPECTS_OWN_BYTES,),
         race(cluster_hangs("CTA 0, warp 1, lane 0", "65536 bytes more than were expected"),
              stops("shared memory is written by a bulk copy after CTA 1 of the cluster had ended", PAIR_LOAD_A),
              seeds(mismatch("outputs NaN", "wrong in 2 of 2"), cluster_hangs("bytes more than were expected"), least=8)),
         found="read-too-early, barrier-bytes, hang, peer-gone"),
    pair("both CTAs expect", (BOTH_EXPECT, EXPECTS_AT_THE_LEADER),
         always(stops(OVERFLOW, IF_LEADER_EXPECTS, "mbarrier.arrive.expect_tx")), found="barrier-overflow"),
    pair("both CTAs expect, each at its own", (BOTH_EXPECT,),
         always(says("stopped", OVERFLOW, "tile_full[0] of CTA 1 in the cluster", "65536 bytes missing", "65536 expected",
                     "0 delivered")),
         found="barrier-overflow"),
    pair("both CTAs expect, each at its own, six K tiles", (BOTH_EXPECT,), always(GOOD), shape="256x256x384"),
    pair("loads tell their own CTA", (to_own_cta(LEADERS_FULL),),
         always(half_missing(f"likely: copies of CTA 1 at {{{PAIR_LOAD_A}}} and {{{PAIR_LOAD_B}}} bring 32768 "
                             "bytes to tile_full[0] of CTA 1 and not of CTA 0: the mbarrier named is the issuing CTA's own")),
         found="hang"),
    pair("loads without cta_group::2", LOADS_OF_ONE_CTA,
         always(half_missing("bring 32768 bytes to tile_full[0] of CTA 1 and not of CTA 0: without "
                             ".multicast::cluster or .cta_group::2 only the CTA that is written to is told")), found="hang"),
    pair("both CTAs load the first half of B", (row_without_rank(PAIR_LOAD_B, 256),),
         always(mismatch("wrong in 2 of 2", "columns 128-255",
                         "what arrived: column i holds what belongs to column i - 128 (fits 16 of 16"))),
    pair("both CTAs load the upper half of A", (row_without_rank(PAIR_LOAD_A, 256),),
         always(mismatch("wrong in 1 of 2", "what arrived: row i holds what belongs to row i - 128 (fits 16 of 16"))),
    pair("instruction descriptor of 128 rows", (HALF_AS_MANY_ROWS,),
         always(mismatch("32768 of 65536 outputs NaN", "49152 of 65536 outputs compared differ", "wrong in 2 of 2"))),
    pair("commit of cta_group::1", (COMMITS_FOR_ONE_CTA,),
         always(stops("this instruction is of cta_group::1, another one of the kernel of cta_group::2", PAIR_COMMIT_EMPTY)),
         found="cta-group"),
    pair("the leader alone allocates", (LEADER_ALLOCATES,),
         always(cluster_hangs(*waits("CTA 0, warp 0, all lanes", PAIR_ALLOC,
                                     "waits in tcgen05.alloc of 256 columns for the other CTA of its pair, CTA 1 of the "
                                     "cluster, which has not called it"),
                              "CTA 1, warps 0-3, all lanes", "not arrived: CTA 0 (warps 0)")), found="hang"),
    pair("no cluster barrier before the alloc", NO_FIRST_SYNC, always(GOOD), found="peer-not-started"),
    pair("CTA barrier after the setup, pair", cta_barrier_for(SETUP_SYNC, SETUP_SYNC_WAIT),
         luck(GOOD, GOOD, seeds(says("stopped", "is no mbarrier", "nobody has initialised it"), least=1)), found="barrier-init"),
    # What others do to a CTA is over by its accumulator_full and the producer's last waits, and dealloc waits for the pair.
    pair("CTA barrier at the end, pair", CTA_BARRIER_AT_THE_END, always(GOOD)),
    pair("no wait at the end for the commits", (no_wait(LAST_WAIT_EMPTY, times=6),), always(GOOD),
         found="peer-gone"),

    # ---- persistent.cu -----------------------------------------------------------------------------------------------
    grid("unedited, persistent", (), always(GOOD)),
    grid("both roles begin each tile at stage 0", ROLES_BEGIN_ANEW,
         {"earliest": cluster_hangs(*waits(f"CTA 0, {LANE}", LAST_WAIT_EMPTY,
                                           of_cta(0, "tile_empty[4]", "1 of 1 arrival missing", phase=2)),
                                    "CTA 1: the same, at its own"),
          "random:1": cluster_hangs("waits for tile_empty[4] of CTA")}, shape="19200x64x640", found="hang"),
    grid("both roles begin each tile at stage 0, twelve K tiles", ROLES_BEGIN_ANEW, {"earliest": GOOD},
         shape="19200x64x768"),
    grid("epilogue's parity never flipped", (EPILOGUE_NEVER_FLIPS,),
         luck(mismatch("what arrived: column i holds what belongs to column i - 18944"),
              mismatch("what arrived: column i holds what belongs to column i - 18944 (fits 16 of 16"),
              seeds(WRONG, cluster_hangs("waits for accumulator_full of CTA", "it asks for parity 0: a parity turns over once "
                                         "for each phase"), least=3)), shape="256x19200x192",
         found="overwrite-too-early, peer-gone"),
    grid("accumulator_empty counts the warps of one CTA", (counts(INIT_ACCUMULATOR_EMPTY, 4),),
         luck(GOOD, GOOD, seeds(WRONG, least=2)), shape=WIDE, found="overwrite-too-early"),
    grid("each CTA arrives at its own accumulator_empty", (to_own_cta(LEADERS_ACCUMULATOR_EMPTY),),
         always(cluster_hangs(*waits("CTA 0, warp 1, lane 0", WAIT_ACCUMULATOR_EMPTY,
                                     of_cta(0, "accumulator_empty", "4 of 8 arrivals missing")),
                              f"likely: with arrive at {{{STORE_ROWS}}} CTA 1 arrives at accumulator_empty of CTA 1 and not of "
                              "CTA 0")), found="hang"),
    grid("no wait for accumulator_empty", (no_wait(WAIT_ACCUMULATOR_EMPTY),),
         luck(NEXT_TILE, NEXT_TILE, seeds(WRONG, least=2)), shape=WIDE, found="overwrite-too-early"),
    grid("accumulator_empty waited for with the other parity", (other_parity(WAIT_ACCUMULATOR_EMPTY),),
         always(cluster_hangs(*waits("CTA 0, warp 1, lane 0", WAIT_ACCUMULATOR_EMPTY,
                                     of_cta(0, "accumulator_empty", "8 of 8 arrivals missing")),
                              "likely: it multiplies next, so it waits for an accumulator to be free")), found="hang"),
    grid("released before the last columns are in registers", (RELEASED_BEFORE_THE_WAIT,), always(GOOD),
         found="overwrite-too-early"),
    grid("released without the tcgen05 fence", (without(FENCE_RELEASE, r"tcgen05\.fence"),), always(GOOD),
         found="tcgen05-fence"),
    grid("all lanes release", (all_lanes(RELEASE),),
         always(stops("lanes of one warp arrive together, more than the", STORE_ROWS)), found="barrier-overflow"),
    grid("the sum goes on from tile to tile", SUM_GOES_ON, always(mismatch("wrong in 2 of 150"))),
    grid("no wait for the store buffer, from tile to tile", (without(WAIT_BUFFER, r"cp\.async\.bulk\.wait_group"),),
         luck(GOOD, mismatch("wrong in 150 of 150", "what arrived: column i holds what belongs to column i + 64"),
              seeds(mismatch("what arrived: column i holds what belongs to column i + 64"), least=3)),
         shape=WIDE, found="overwrite-too-early"),
    grid("no wait at the end for the store buffers", (without(WAIT_BUFFERS, r"cp\.async\.bulk\.wait_group"),),
         always(GOOD), found="bulk-store-wait"),
    grid("CTA barrier at the end", CTA_BARRIER_AT_THE_END,
         {"earliest": GOOD, "latest": ARRIVE_LOST, "random:1": ARRIVE_LOST}, found="peer-gone"),
    grid("CTA barrier at the end, strict", CTA_BARRIER_AT_THE_END,
         {"earliest": GOOD, "latest": stops("after CTA 0 of the cluster had ended", STORE_ROWS)}, strict=True),

    # ---- blackwell.cu ------------------------------------------------------------------------------------------------
    tiles("unedited, two accumulators", (), race(GOOD, GOOD, GOOD)),
    on_demand("unedited, tiles on demand", (), always(GOOD)),
    tiles("commit to accumulator_full leaves CTA 1 out, of two", (commit_to(COMMIT_ACCUMULATOR, 1),),
          always(leaves_cta_1_out("warps 2-5, all lanes", WAIT_ACCUMULATOR_FULL, "accumulator_full[0]", COMMIT_ACCUMULATOR)),
          found="hang"),
    tiles("epilogue reads the other accumulator", (OTHER_ACCUMULATOR_STORED,), race(WRONG, WRONG, WRONG),
          found="read-too-early"),
    tiles("both accumulators in one place", accumulators_apart(0), race(WRONG, WRONG, WRONG),
          found="overwrite-too-early"),
    tiles("accumulators 128 columns apart", accumulators_apart(128),
          race(WRONG, mismatch("what arrived: column i holds what belongs to column i + 128 (fits 16 of 16"),
               WRONG), found="read-too-early"),
    tiles("parity flips with each tile", PARITY_FLIPS_EACH_TILE,
          race(mismatch("65536 of 262144 outputs NaN", "what arrived: row i holds what belongs to row i - 256"), WRONG,
               seeds(mismatch("outputs NaN"), cluster_hangs("a parity turns over once for each phase"), least=8)),
          found="read-too-early, hang, peer-gone"),
    tiles("the last group of the walk not cut", LAST_GROUP_NOT_CUT,
          always(mismatch("65536 of 393216 outputs never written", "wrong in 2 of 12")), shape="768x512x64",
          variant="clusters=2,walk=2"),
    on_demand("answer_empty counts one reader too few", (counts(INIT_ANSWER_EMPTY, 10, times=3),),
              luck(GOOD, GOOD, seeds(cluster_hangs(), WRONG, least=2)), found="overwrite-too-early, hang"),
    on_demand("answer_empty counts one reader too many", (counts(INIT_ANSWER_EMPTY, 12, times=3),),
              {"earliest": cluster_hangs(*waits(f"CTA 0, {LANE}", WAIT_ANSWER_EMPTY,
                                                of_cta(0, "answer_empty[0]", "1 of 12 arrivals missing")),
                                         "likely: 11 of 12 arrivals have come",
                                         "somebody does not arrive, or mbarrier.init counts too many"),
               "random:1": cluster_hangs("1 of 12 arrivals missing")}, found="hang"),
    on_demand("no wait for answer_empty", (no_wait(WAIT_ANSWER_EMPTY),),
              luck(GOOD, GOOD, seeds(cluster_hangs("waits for answer_full", "likely: "), least=3)),
              found="overwrite-too-early, barrier-bytes, hang"),
    on_demand("no proxy fence behind the answer", (without(FENCE_ANSWER, r"fence\.proxy", times=3),), always(GOOD),
              found="weak-order"),
    on_demand("no proxy fence before the next question", (without(FENCE_ASK, r"fence\.proxy"),), always(GOOD), found="weak-order"),
    on_demand("CTA 0 alone expects the answer", (LEADER_EXPECTS_ANSWER,),
              {"earliest": cluster_hangs(f"CTA 1, {LANE}",
                                         of_cta(1, "answer_full[0]", "1 of 1 arrival missing, 16 bytes more than were expected "
                                                                  "so far")),
               "random:1": cluster_hangs("waits for answer_full[0] of CTA 1")}, found="hang"),
    on_demand("asked again after none was left", (ASKS_ONCE_MORE,),
              always(stops("clusterlaunchcontrol.try_cancel after this CTA has seen that no cluster was left", ASK)),
              found="launch-control"),
)
