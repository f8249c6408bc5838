"""The statements of the rungs that mutants break, and the ways to break them."""

from surgery import Edit

S0, S1, S2, S3, S4 = "step00_single_mma", "step01_kloop", "step02_pipeline", "step03_warpspec", "step04_swizzle"
S5, S6 = "step05_epilogue", "step06_multicast"

# ---- statements ------------------------------------------------------------------------------------------------------

ALLOC = "tcgen05_alloc<1>("
INIT_FULL, INIT_EMPTY, INIT_ACCUMULATOR = (f"mbarrier_init(shared_address({name})"
                                           for name in ("tile_full", "tile_empty", "accumulator_full"))
SYNC_SETUP = "__syncthreads(); tcgen05_fence_after_thread_sync();"
ELECT = "if (warp == 0 && elect_sync()) {"
DESCRIPTOR_A, DESCRIPTOR_B = (f"tcgen05_smem_descriptor(shared_address({name})" for name in ("a_tile", "b_tile"))
LOOP = "for (int k_tile = 0;"
EXPECT = "mbarrier_arrive_expect_tx("
LOAD_A, LOAD_B = (f"cp_async_bulk_tensor_3d(shared_address({name})" for name in ("a_tile", "b_tile"))
WAIT_FULL, WAIT_EMPTY, WAIT_ACCUMULATOR = (f"mbarrier_wait_parity(shared_address({name})"
                                           for name in ("tile_full", "tile_empty", "accumulator_full"))
MMA = "tcgen05_mma_f16<1>("
COMMIT_EMPTY, COMMIT_ACCUMULATOR = (f"tcgen05_commit<1>(shared_address({name}))"
                                    for name in ("tile_empty", "accumulator_full"))
FLIP = "parity ^= 1;"
LOAD_TMEM = "tcgen05_ld_32x32b_x32("
WAIT_TMEM = "tcgen05_wait_ld();"
STORE = "if (row < m) store_row"
SYNC_END = "__syncthreads(); if (warp == 0)"
DEALLOC = "tcgen05_dealloc<1>("

# Of the rungs with a ring of buffers. Where `load` of step02 is inlined, edits go by the lines of its body and reports name
# those of its calls.
RING_INIT = "for (int stage = 0; stage < stages; ++stage) {"
RING_INIT_EMPTY = "mbarrier_init(shared_address(tile_empty[stage])"
RING_WAIT_FULL, RING_WAIT_EMPTY = (f"mbarrier_wait_parity(shared_address({name}[stage])"
                                   for name in ("tile_full", "tile_empty"))
RING_COMMIT_EMPTY = "tcgen05_commit<1>(shared_address(tile_empty[stage]))"
RING_ACCUMULATE = "const bool accumulate = k_tile > 0;"
PROLOGUE = "for (int k_tile = 0; k_tile < stages && k_tile < k_tiles; ++k_tile) load"
IF_REFILL = "if (k_tile + stages < k_tiles) {"
REFILL = "load(k_tile + stages, stage);"
RING_DESCRIPTOR_A, RING_DESCRIPTOR_B = (f"tcgen05_smem_descriptor({name}_tiles" for name in "ab")
PRODUCER, CONSUMER = ELECT, "if (warp == 1 && elect_sync()) { constexpr MmaInput"
PRODUCER_LOOP, CONSUMER_LOOP = (
    f"for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {{ {wait}" for wait in (RING_WAIT_EMPTY, RING_WAIT_FULL))
RING_FLIP = "if (++stage == stages) stage = 0, parity ^= 1; // the ring wraps }"
PRODUCER_FLIP = f"{RING_FLIP} }} if (warp == 1"
CONSUMER_FLIP = f"{RING_FLIP} tcgen05_commit<1>(shared_address(accumulator_full))"

# ---- edits -----------------------------------------------------------------------------------------------------------


def without(statement, instruction, times=1):
    """The statement's instruction of this name is gone."""
    return Edit(statement, rf"{instruction}.*", "", times)


TRY_WAIT = r"\{ \.reg \.pred p; (mbarrier\.try_wait\S+) p, \[(%r\d+)\], (\S+); selp\.u32 (%r\d+), 1, 0, p; \}"


def no_wait(statement, times=1):
    return Edit(statement, TRY_WAIT, r"mov.b32 \4, 1;", times)


def other_parity(statement):
    return Edit(statement, TRY_WAIT,
                r"{ .reg .pred p; .reg .b32 q; xor.b32 q, \3, 1; \1 p, [\2], q; selp.u32 \4, 1, 0, p; }")


def descriptor(statement, change):
    """Changes the constant part of a shared-memory descriptor: all but the start address."""
    return Edit(statement, r"or\.b64 (%rd\d+), (%rd\d+), (\d+);", lambda m: f"or.b64 {m[1]}, {m[2]}, {change(int(m[3]))};")


def start_off(statement, bytes_):
    return Edit(statement, r"(or\.b64 (%rd\d+), %rd\d+, \d+;)", rf"\1 add.s64 \2, \2, {bytes_ >> 4};")


def offsets(word):
    return word >> 16 & 0x3FFF, word >> 32 & 0x3FFF


def with_offsets(word, leading, stride):
    return word & ~(0x3FFF << 16 | 0x3FFF << 32) | leading << 16 | stride << 32


def swapped_offsets(word):
    return with_offsets(word, *reversed(offsets(word)))


def instruction_descriptor(change):
    return Edit(MMA, r"mov\.b32 (%r\d+), (\d{6,});", lambda m: f"mov.b32 {m[1]}, {change(int(m[2]))};")


def immediate(statement, instruction, value, times=1):
    """Another number as the last operand of the statement's instruction."""
    return Edit(statement, rf"({instruction}[^;]*), %r\d+;", rf"\1, {value};", times)


def expects(bytes_):
    return immediate(EXPECT, r"mbarrier\.arrive\.expect_tx", bytes_)


def counts(statement, arrivals, times=1):
    return immediate(statement, r"mbarrier\.init", arrivals, times)


def allocates(columns):
    return immediate(ALLOC, r"tcgen05\.alloc", columns)


def deallocates(columns):
    return immediate(DEALLOC, r"tcgen05\.dealloc", columns)


ACCUMULATES = Edit(MMA, r"setp\.ne\.u32 p, (%r\d+), 0;", r"setp.eq.u32 p, \1, \1;")

# Groups: instruction, shared address, map, three coordinates (8 elements of K; row; column of 8), barrier.
COPY = r"(cp\.async\.bulk\.tensor\S+) \[(%r\d+)\], \[(%rd\d+), \{(%r\d+), (%r\d+), (%r\d+)\}\], \[(%r\d+)\];"


def rows_off(statement, rows):
    return Edit(statement, COPY, rf"{{ .reg .b32 q; add.s32 q, \5, {rows}; \1 [\2], [\3, {{\4, q, \6}}], [\7]; }}")


def k_columns_off(statement, columns):
    return Edit(statement, COPY, rf"{{ .reg .b32 q; add.s32 q, \6, {columns}; \1 [\2], [\3, {{\4, \5, q}}], [\7]; }}")


def k_columns_at_most(statement, column):
    return Edit(statement, COPY, rf"{{ .reg .b32 q; min.s32 q, \6, {column}; \1 [\2], [\3, {{\4, \5, q}}], [\7]; }}")


def tensor_load(change):
    """Changes the address of tcgen05.ld, q."""
    return Edit(LOAD_TMEM, r"tcgen05\.ld(.*), \[(%r\d+)\];",
                rf"{{ .reg .b32 q; mov.b32 q, \2; {change}; tcgen05.ld\1, [q]; }}")


def k_tiles(more, loop=LOOP):
    return Edit(loop, r"setp\.ne\.s32 (%p\d+), (%r\d+), (%r\d+);",
                rf"{{ .reg .b32 q; add.s32 q, \3, {more}; setp.ne.s32 \1, \2, q; }}")


def all_lanes(statement):
    return Edit(statement, r"\{ \.reg \.pred p; elect\.sync.*selp\.u32 (%r\d+), 1, 0, p; \}", r"mov.b32 \1, 1;")


# The parity of a ring flips with its last stage.
RING_FLIPS = r"xor\.b32 (%r\d+), (%r\d+), %r\d+;"


def never_flips(statement):
    return Edit(statement, RING_FLIPS, r"mov.b32 \1, \2;")


def always_flips(statement):
    return Edit(statement, RING_FLIPS, r"xor.b32 \1, \2, 1;")


def refill_off(k_tiles):
    """The refill of step02 loads a K tile further on, or back."""
    return Edit(REFILL, r"shl\.b32 (%r\d+), (%r\d+), 1;", rf"shl.b32 \1, \2, 1; add.s32 \1, \1, {2 * k_tiles};")


ONE_BUFFER_NOT_INITIALISED = (  # of four: the compiler makes one round of four, and then rounds of one
    Edit(RING_INIT, r"setp\.lt\.u32 (%p\d+), %r\d+, 4;", r"setp.eq.s32 \1, 0, 0;"),
    Edit(RING_INIT, r"and\.b32 (%r\d+), %r\d+, 3;", r"mov.b32 \1, 3;"))
PROLOGUE_LOADS_ONE_MORE = Edit(PROLOGUE, r"(min\.u32 (%r\d+), %r\d+, %r\d+;)", r"\1 add.u32 \2, \2, 1;")
ACCUMULATES_BUT_IN_STAGE_0 = Edit(RING_ACCUMULATE, r"setp\.ne\.s32 (%p\d+), (%r\d+), 0;",
                                  r"{ .reg .b32 q; and.b32 q, \2, 3; setp.ne.s32 \1, q, 0; }")
DESCRIPTORS_STAY = Edit(MMA, r"add\.s64 (%rd\d+), (%rd\d+), %rd\d+;", r"mov.b64 \1, \2;", times=2)
# Of step04, whose K tile is four MMAs long. Groups of the copy: instruction, shared address, map, K, row, barrier.
LOAD_2D_A = "cp_async_bulk_tensor_2d(a_tiles"
COPY_2D = r"(cp\.async\.bulk\.tensor\S+) \[(%r\d+)\], \[(%rd\d+), \{(%r\d+), (%r\d+)\}\], \[(%r\d+)\];"
K_STEP = "const uint64_t step = (stage * kStageBytes + k * 2) >> 4;"
K_STEP_BYTES = r"or\.b32 (%r\d+), (%r\d+), (\d+);"
K_AND_ROW_OF_A_SWAPPED = Edit(LOAD_2D_A, COPY_2D, r"\1 [\2], [\3, {\5, \4}], [\6];")
NO_K_STEP = Edit(K_STEP, K_STEP_BYTES, r"mov.b32 \1, \2;", times=3)
K_STEP_IN_ELEMENTS = Edit(K_STEP, K_STEP_BYTES, lambda m: f"or.b32 {m[1]}, {m[2]}, {int(m[3]) // 2};", times=3)
K_TILES_16_WIDE = Edit(LOAD_2D_A, r"shl\.b32 (%r\d+), (%r\d+), 6;", r"shl.b32 \1, \2, 4;")
OVERWRITES_THROUGHOUT_K_TILE_0 = (
    Edit("const bool accumulate = k_tile > 0 || k > 0;", r"(setp\.ne\.s32 (%p\d+), %r\d+, 0;)",
         r".reg .b32 later; \1 selp.u32 later, 1, 0, \2;"),
    Edit(MMA, r"mov\.b32 (%r\d+), 1;", r"mov.b32 \1, later;"))
OVERWRITES_IN_EVERY_K_TILE = Edit(MMA, r"selp\.u32 (%r\d+), 1, 0, %p\d+;", r"mov.b32 \1, 0;")


# Of step05, whose stores are TMA's. Groups of the store: instruction, map, column, row, shared address.
FENCE_STORE = "fence_proxy_async_shared_cta();"
WAIT_BUFFER, WAIT_BUFFERS = (f"cp_async_bulk_wait_group_read<{groups}>();" for groups in (1, 0))
WRITE_BUFFER = "write_swizzled_row<kOut>("
SYNC_BEFORE_STORE = "__syncwarp(); if (elect_sync()) { cp_async_bulk_tensor_2d_store("
IF_STORE = "if (elect_sync()) { cp_async_bulk_tensor_2d_store("
STORE_2D, CLOSE_GROUP = "cp_async_bulk_tensor_2d_store(", "cp_async_bulk_commit_group();"
STORE_DIRECTLY = "store_directly<kOut, kTileN>("
COPY_OUT = r"(cp\.async\.bulk\.tensor\S+) \[(%rd\d+), \{(%r\d+), (%r\d+)\}\], \[(%r\d+)\];"
STORE_ROWS = "store_rows<kOut>(&d_map"  # where reports say that it is
NO_WAIT_FOR_COLUMNS_READ = Edit(STORE_DIRECTLY, r"tcgen05\.wait::ld.*", "", times=6)
CHUNKS_NOT_PERMUTED = Edit(None, r"and\.b32 (%r\d+), (%r\d+), 112;", r"mov.b32 \1, 0;")
COLUMN_AND_ROW_OF_STORE_SWAPPED = Edit(STORE_2D, COPY_OUT, r"\1 [\2, {\4, \3}], [\5];")
STORES_TO_THE_ROWS_OF_WARP_0 = Edit(STORE_2D, COPY_OUT, r"{ .reg .b32 q; and.b32 q, \4, -128; \1 [\2, {\3, q}], [\5]; }")
ONE_STORE_BUFFER = (  # the second is 16 KB behind the first, which begins in the first 16 KB
    Edit(WRITE_BUFFER, r"add\.s32 (%r\d+), (%r\d+), (%r\d+);", r"and.b32 \1, \2, -16385; add.s32 \1, \1, \3;", times=8),
    Edit(STORE_2D, COPY_OUT, r"{ .reg .b32 q; and.b32 q, \5, -16385; \1 [\2, {\3, \4}], [q]; }"))


def waits_for_buffers_but(groups):
    return Edit(WAIT_BUFFER, r"(cp\.async\.bulk\.wait_group\.read) 1;", rf"\1 {groups};")


def stores_columns_off(columns):
    return Edit(STORE_2D, COPY_OUT, rf"{{ .reg .b32 q; add.s32 q, \3, {columns}; \1 [\2, {{q, \4}}], [\5]; }}")


def stores_bytes_off(bytes_):
    return Edit(STORE_2D, COPY_OUT, rf"{{ .reg .b32 q; add.s32 q, \5, {bytes_}; \1 [\2, {{\3, \4}}], [q]; }}")


# Of step06, whose CTAs load for each other: four of them, ranks 0 and 1 one below the other. Groups of the load:
# instruction, shared address, map, K, row, barrier, mask.
CLUSTER_LOAD_A, CLUSTER_LOAD_B = (f"cp_async_bulk_tensor_2d_multicast({name}_tiles" for name in "ab")
CLUSTER_COMMIT = "tcgen05_commit_multicast<1>("
CLUSTER_SYNC, CLUSTER_SYNC_WAIT = "barrier_cluster_arrive();", "barrier_cluster_wait();"
CLUSTER_RANK = "const int rank = static_cast<int>(cluster_ctarank())"
CLUSTER_WAIT_EMPTY, LAST_WAIT_EMPTY = (f"{RING_WAIT_EMPTY}, parity ^ 1); {after}" for after in ("// passes", "if (++stage"))
COPY_TO_CLUSTER = r"(cp\.async\.bulk\.tensor\S+) \[(%r\d+)\], \[(%rd\d+), \{(%r\d+), (%r\d+)\}\], \[(%r\d+)\], (%rs\d+);"
COMMIT_TO_CLUSTER = r"(tcgen05\.commit\S+) \[(%r\d+)\], (%rs\d+);"
BOTH_MASKS = r"or\.b16 (%rs\d+), (%rs\d+), (%rs\d+);"  # B's, then A's
RANK = "{ .reg .b32 q; .reg .b16 mask; mov.u32 q, %cluster_ctarank;"


def mask_of_load(statement, compute):
    """Another mask: `compute` turns the rank, q, into it."""
    return Edit(statement, COPY_TO_CLUSTER,
                rf"{RANK} {compute}; cvt.u16.u32 mask, q; \1 [\2], [\3, {{\4, \5}}], [\6], mask; }}")


def slice_in_place_of(statement, rows):
    """Loads the first slice of so many rows, wherever it puts it."""
    return Edit(statement, COPY_TO_CLUSTER, rf"{{ .reg .b32 q; and.b32 q, \5, {-rows}; \1 [\2], [\3, {{\4, q}}], [\6], \7; }}")


def slice_put_first(statement, share, bytes_):
    """Puts its slice where the first one lies. `share`: turns the rank, q, into the slice's number."""
    return Edit(statement, COPY_TO_CLUSTER,
                rf"{RANK} {share}; mul.lo.u32 q, q, {bytes_}; sub.s32 q, \2, q; \1 [q], [\3, {{\4, \5}}], [\6], \7; }}")


COMMIT_TO_OWN_CTA = Edit(CLUSTER_COMMIT, COMMIT_TO_CLUSTER,
                         r"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [\2];")
COMMIT_TO_ALL = Edit(CLUSTER_COMMIT, COMMIT_TO_CLUSTER, r"{ .reg .b16 q; mov.b16 q, 15; \1 [\2], q; }")
COMMIT_TO_SHARERS_OF_A = Edit(None, BOTH_MASKS, r"mov.b16 \1, \3;")
A_TO_OWN_CTA = mask_of_load(CLUSTER_LOAD_A, "shl.b32 q, 1, q")
MASKS_OF_LOADS_SWAPPED = (mask_of_load(CLUSTER_LOAD_A, "and.b32 q, q, 2; shl.b32 q, 3, q"),
                          mask_of_load(CLUSTER_LOAD_B, "and.b32 q, q, 1; shl.b32 q, 5, q"))
CTA_BARRIER_AFTER_SETUP = (Edit(CLUSTER_SYNC, r"barrier\.cluster\.arrive.*", "bar.sync 0;"),
                           Edit(CLUSTER_SYNC_WAIT, r"barrier\.cluster\.wait.*", ""))
TILE_OF_RANK = r"mad\.lo\.s32 (%r\d+), (%r\d+), (%r\d+), %r\d+;"
RANKS_OF_TILE_SWAPPED = tuple(
    Edit(f"const int tile_{name} = cluster_index", TILE_OF_RANK, rf"{RANK} {rank}; mad.lo.s32 \1, \2, \3, q; }}")
    for name, rank in (("m", "shr.u32 q, q, 1"), ("n", "and.b32 q, q, 1")))
IN_LOWER_CTAS = r".reg .pred lower; { .reg .b32 q; mov.u32 q, %cluster_ctarank; and.b32 q, q, 1; setp.ne.u32 lower, q, 0; }"
LOWER_CTAS_LEAVE = Edit(CLUSTER_RANK, r"mov\.u32 %r\d+, %cluster_ctarank;", rf"\g<0> {IN_LOWER_CTAS} @lower exit;")
LOWER_CTAS_DO_NOT_LOAD = Edit(PRODUCER, r"\{ \.reg \.pred p; elect\.sync.*selp\.u32 (%r\d+), 1, 0, p; \}",
                              rf"\g<0> {IN_LOWER_CTAS} @lower mov.b32 \1, 0;")


def both_descriptors(change):
    return descriptor(RING_DESCRIPTOR_A, change), descriptor(RING_DESCRIPTOR_B, change)


def swizzle_named(layout):
    """The descriptors name another layout: 0 none, 2 of 128 bytes, 4 of 64, 6 of 32."""
    return both_descriptors(lambda word: word & ~(7 << 61) | layout << 61)


CONSUMER_IN_WARP_0 = Edit(CONSUMER, r"setp\.ne\.s32 (%p\d+), (%r\d+), 1;", r"setp.ne.s32 \1, \2, 0;")

NOT_WARP_3 = r"{ .reg .b32 t; .reg .pred q; mov.u32 t, %tid.x; setp.lt.u32 q, t, 96; @q bar.sync 0; }"

# The tile's place in D. For every step of 32 columns the PTX adds up row * n, the column in the tile, and its first column.
KEEP_FIRST_COLUMN = Edit("const int64_t first_column =", r"(mul\.wide\.s32 (%rd\d+), %r\d+, 256;)",
                         r".reg .b64 first; \1 mov.b64 first, \2;")
ROW_TIMES_N = r"mul\.lo\.s64 (%rd\d+), (%rd\d+), (%rd\d+);"
ROW_AND_FIRST_COLUMN_SWAPPED = (
    KEEP_FIRST_COLUMN,
    Edit(None, ROW_TIMES_N, r"mul.lo.s64 \1, first, \3; add.s64 \1, \1, \2; sub.s64 \1, \1, first;"))
ROWS_AND_COLUMNS_SWAPPED = (  # in a matrix of 128 x 128, stored element by element
    Edit(None, ROW_TIMES_N, r".reg .b64 row, column; mov.b64 row, \2; mul.lo.s64 \1, \2, \3;"),
    Edit(STORE, r"(sub\.s64 %rd\d+, %rd\d+, (%rd\d+);)", r"\1 mov.b64 column, \2;"),
    Edit(STORE, r"shl\.b64 (%rd\d+), %rd\d+, 2;", r"shl.b64 \1, column, 7; add.s64 \1, \1, row; shl.b64 \1, \1, 2;"),
    Edit(STORE, r"or\.pred (%p\d+), %p\d+, %p\d+;", r"setp.eq.s32 \1, 0, 0;"),
    Edit(STORE, r"st\.global\.f32 \[(%rd\d+)(?:\+(\d+))?\],",
         lambda m: f"st.global.f32 [{m[1]}+{128 * int(m[2] or 0)}],", times=32))
TILE_INDICES_SWAPPED = (
    Edit("const int tile_m = static_cast", r"div\.s32 (%r\d+), (%r\d+), (%r\d+);",
         r".reg .b32 tiles; mov.b32 tiles, \3; rem.s32 \1, \2, tiles;"),
    Edit("const int tile_m = static_cast", r"sub\.s32 (%r\d+), (%r\d+), %r\d+;", r"div.s32 \1, \2, tiles;"))
