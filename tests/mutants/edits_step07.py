"""The statements of step07's three kernels that mutants break, and the ways to break them."""

from edits import CLUSTER_WAIT_EMPTY, COMMIT_TO_CLUSTER, COPY_2D, RING_WAIT_FULL, TRY_WAIT, WAIT_TMEM
from surgery import Edit, Move

S7 = "step07_persistent"

# ---- statements of pair.cu, and of persistent.cu where it has the same -----------------------------------------------

FIRST_SYNC = "barrier_cluster_arrive_relaxed(); // both CTAs run"
FIRST_SYNC_WAIT = "barrier_cluster_wait(); if (warp == 0) { tcgen05_alloc"
SETUP_SYNC_WAIT = "barrier_cluster_wait(); tcgen05_fence_after_thread_sync(); const"
SETUP_SYNC = f"barrier_cluster_arrive(); {SETUP_SYNC_WAIT}"
END_SYNC_WAIT = "barrier_cluster_wait(); if (warp == 0) { tcgen05_fence"
END_SYNC = f"barrier_cluster_arrive(); {END_SYNC_WAIT}"
PAIR_ALLOC = "tcgen05_alloc<2>("
IF_LEADER_EXPECTS = "if (leader) mbarrier_arrive_expect_tx("
LEADERS_FULL = "const uint32_t full = mapa_shared_cluster("
PAIR_LOAD_A, PAIR_LOAD_B = (f"cp_async_bulk_tensor_2d_cta_group<2>({name}_tiles" for name in "ab")
IF_LEADER_MULTIPLIES = "if (warp == 1 && leader && elect_sync()) {"
PAIR_MMA = "tcgen05_mma_f16<2>("
WAIT_BOTH_HALVES = "mbarrier_wait_parity_relaxed_cluster(shared_address(accumulator_full)"
PAIR_COMMIT_EMPTY, PAIR_COMMIT_ACCUMULATOR = (f"tcgen05_commit_multicast<2>(shared_address({name}"
                                              for name in ("tile_empty[stage])", "accumulator_full)"))

# ---- of persistent.cu ------------------------------------------------------------------------------------------------

INIT_ACCUMULATOR_EMPTY, WAIT_ACCUMULATOR_EMPTY = (f"mbarrier_{does}(shared_address(accumulator_empty)"
                                                  for does in ("init", "wait_parity_relaxed_cluster"))
LEADERS_ACCUMULATOR_EMPTY = "const uint32_t empty = mapa_shared_cluster("
PRODUCER_TILE = "const int tile_m = tile % m_pairs * kPairCtas + rank, tile_n = tile / m_pairs; for (int k_tile"
PAIR_ACCUMULATE = "const bool accumulate = k_tile > 0 || k > 0;"
B_DESCRIPTOR = "tcgen05_smem_descriptor(b_tiles"
EPILOGUE_FLIP = "accumulator_parity ^= 1; } if (elect_sync()) cp_async_bulk_wait_group_read"
RELEASE = "if (elect_sync()) mbarrier_arrive_relaxed_cluster(accumulator_empty);"
FENCE_RELEASE = f"tcgen05_fence_before_thread_sync(); __syncwarp(); {RELEASE}"

# ---- of blackwell.cu -------------------------------------------------------------------------------------------------

MMA_ACCUMULATOR, EPILOGUE_ACCUMULATOR = (f"const uint32_t accumulator = accumulators + {rest}"
                                         for rest in ("half * kTileN; for", "quarter_lane"))
COMMIT_ACCUMULATOR = "tcgen05_commit_multicast<T::kCtaGroup>(shared_address(accumulator_full[half])"
WAIT_ACCUMULATOR_FULL = "mbarrier_wait_parity_relaxed_cluster(shared_address(accumulator_full[half])"
NEXT_ACCUMULATOR = "if (++half == plan.accumulators) half = 0, accumulator_parity ^= 1;"
PLACES = tuple(f"const TilePlace place = plan.walk.place(tile); const int {what}" for what in ("a_row", "first_row"))
PRODUCER_TILES = "for (int tile = first_tile; tile < tiles; tile = next_tile(tile)) { if (plan.launch_control"
INIT_ANSWER_EMPTY = "mbarrier_init(shared_address(answer_empty[slot])"
WAIT_ANSWER_EMPTY = "mbarrier_wait_parity_relaxed_cluster(shared_address(answer_empty[slot])"
EXPECT_ANSWER = "mbarrier_arrive_expect_tx(full, sizeof answer"
ASK = "clusterlaunchcontrol_try_cancel_multicast("
FENCE_ANSWER = "fence_proxy_async_release_shared_cta();"
FENCE_ASK = "fence_proxy_async_acquire_shared_cluster();"

# ---- edits -----------------------------------------------------------------------------------------------------------


def to_own_cta(statement):
    """mapa gone: the address is the own CTA's."""
    return Edit(statement, r"mapa\.shared::cluster\.u32 (%r\d+), (%r\d+), %r\d+;", r"mov.b32 \1, \2;")


def commit_to(statement, mask):
    return Edit(statement, COMMIT_TO_CLUSTER, rf"{{ .reg .b16 q; mov.b16 q, {mask}; \1 [\2], q; }}")


def row_without_rank(statement, rows):
    """The row at which the pair's tile begins, which is a multiple of so many."""
    return Edit(statement, COPY_2D, rf"{{ .reg .b32 q; and.b32 q, \5, {-rows}; \1 [\2], [\3, {{\4, q}}], [\6]; }}")


def cta_barrier_for(arrive, wait):
    return Edit(arrive, r"barrier\.cluster\.arrive.*", "bar.sync 0;"), Edit(wait, r"barrier\.cluster\.wait.*", "")


NO_FIRST_SYNC = Edit(FIRST_SYNC, r"barrier\.cluster\.arrive.*", ""), Edit(FIRST_SYNC_WAIT, r"barrier\.cluster\.wait.*", "")
CTA_BARRIER_AT_THE_END = cta_barrier_for(END_SYNC, END_SYNC_WAIT)
LEADER_ALLOCATES = Edit(PAIR_ALLOC, r"tcgen05\.alloc.*", r"{ .reg .pred q; .reg .b32 rank; mov.u32 rank, %cluster_ctarank; "
                                                         r"setp.eq.u32 q, rank, 0; @q \g<0> }")
BOTH_MULTIPLY = Edit(IF_LEADER_MULTIPLIES, r"or\.pred (%p\d+), (%p\d+), %p\d+;", r"mov.pred \1, \2;")
EXPECTS_OWN_BYTES = Edit(IF_LEADER_EXPECTS, r"mov\.b32 (%r\d+), 65536;", r"mov.b32 \1, 32768;")
BOTH_EXPECT = Edit(IF_LEADER_EXPECTS, r"@%p\d+ bra \S+", "")
EXPECTS_AT_THE_LEADER = Edit(IF_LEADER_EXPECTS, r"mbarrier\.arrive\S+ _, \[(%r\d+)\], (%r\d+);",
                             r"{ .reg .b32 q; mapa.shared::cluster.u32 q, \1, 0; "
                             r"mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [q], \2; }")
LOADS_OF_ONE_CTA = tuple(Edit(load, r"\.cta_group::2", "") for load in (PAIR_LOAD_A, PAIR_LOAD_B))
HALF_AS_MANY_ROWS = Edit(PAIR_MMA, r"mov\.b32 (%r\d+), (\d{6,});", lambda m: f"mov.b32 {m[1]}, {int(m[2]) - (128 // 16 << 24)};")
COMMITS_FOR_ONE_CTA = Edit(PAIR_COMMIT_EMPTY, "cta_group::2", "cta_group::1")

# Stage and parity are 0 at the first K tile of each tile.
ROLES_BEGIN_ANEW = (
    Edit(PRODUCER_TILE, r"div\.s32 .*", r".reg .pred loads_first; setp.eq.u32 loads_first, 0, 0; \g<0>"),
    Edit(CLUSTER_WAIT_EMPTY, r"shl\.b32 %r\d+, (%r\d+), 3;", r"@loads_first mov.b32 \1, 0; \g<0>"),
    Edit(CLUSTER_WAIT_EMPTY, r"xor\.b32 (%r\d+), (%r\d+), 1;",
         r"@loads_first mov.b32 \2, 0; setp.ne.u32 loads_first, 0, 0; \g<0>"),
    Edit(WAIT_ACCUMULATOR_EMPTY, r"mov\.u32 .*", r".reg .pred multiplies_first; setp.eq.u32 multiplies_first, 0, 0; \g<0>"),
    Edit(RING_WAIT_FULL, r"shl\.b32 %r\d+, (%r\d+), 3;", r"@multiplies_first mov.b32 \1, 0; \g<0>"),
    Edit(RING_WAIT_FULL, TRY_WAIT, r"@multiplies_first mov.b32 \3, 0; setp.ne.u32 multiplies_first, 0, 0; \g<0>"))
EPILOGUE_NEVER_FLIPS = Edit(EPILOGUE_FLIP, r"xor\.b32 (%r\d+), (%r\d+), 1;", r"mov.b32 \1, \2;")
RELEASED_BEFORE_THE_WAIT = Move(WAIT_TMEM, "write_swizzled_row<kOut>(")
SUM_GOES_ON = (  # what accumulates is not told anew with each tile
    Edit(B_DESCRIPTOR, r"or\.b64 .*", r"\g<0> .reg .b32 begun; mov.b32 begun, 0;"),
    Edit(PAIR_ACCUMULATE, r"setp\.ne\.s32 (%p\d+), %r\d+, 0;", r"setp.ne.s32 \1, begun, 0; mov.b32 begun, 1;"))

ACCUMULATOR_COLUMN = r"shl\.b32 (%r\d+), (%r\d+), 8;"
OTHER_ACCUMULATOR_STORED = Edit(EPILOGUE_ACCUMULATOR, ACCUMULATOR_COLUMN,
                                r"{ .reg .b32 q; xor.b32 q, \2, 1; shl.b32 \1, q, 8; }")


def accumulators_apart(columns):
    """So many columns from one to the next."""
    return tuple(Edit(at, ACCUMULATOR_COLUMN, rf"mul.lo.u32 \1, \2, {columns};")
                 for at in (MMA_ACCUMULATOR, EPILOGUE_ACCUMULATOR))


PARITY_FLIPS_EACH_TILE = tuple(Edit(f"{NEXT_ACCUMULATOR} {after}", r"xor\.b32 (%r\d+), (%r\d+), %r\d+;", r"xor.b32 \1, \2, 1;")
                               for after in ("} }", "tile = next"))
LAST_GROUP_NOT_CUT = tuple(Edit(place, r"min\.s32 (%r\d+), (%r\d+), %r\d+;", r"mov.b32 \1, \2;") for place in PLACES)
LEADER_EXPECTS_ANSWER = Edit(EXPECT_ANSWER, r"mbarrier\.arrive\.expect_tx\S+ _, \[%r\d+\], %r\d+;",
                             r"{ .reg .b32 q; .reg .pred p; mov.u32 q, %cluster_ctarank; setp.eq.u32 p, q, 0; @p \g<0> }")
ASKS_ONCE_MORE = Edit(PRODUCER_TILES, r"setp\.lt\.s32 (%p\d+), (%r\d+), (%r\d+);", r"setp.le.s32 \1, \2, \3;")
