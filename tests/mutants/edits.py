"""The statements of the rungs that mutants break, and the ways to break them."""

from surgery import Edit

S0, S1 = "step00_single_mma", "step01_kloop"

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

# ---- edits -----------------------------------------------------------------------------------------------------------


def without(statement, instruction):
    """The statement's instruction of this name is gone."""
    return Edit(statement, rf"{instruction}.*", "")


TRY_WAIT = r"\{ \.reg \.pred p; (mbarrier\.try_wait\S+) p, \[(%r\d+)\], (\S+); selp\.u32 (%r\d+), 1, 0, p; \}"


def no_wait(statement):
    return Edit(statement, TRY_WAIT, r"mov.b32 \4, 1;")


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


def immediate(statement, instruction, value):
    """Another number as the last operand of the statement's instruction."""
    return Edit(statement, rf"({instruction}[^;]*), %r\d+;", rf"\1, {value};")


def expects(bytes_):
    return immediate(EXPECT, r"mbarrier\.arrive\.expect_tx", bytes_)


def counts(statement, arrivals):
    return immediate(statement, r"mbarrier\.init", arrivals)


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


def k_tiles(more):
    return Edit(LOOP, r"setp\.ne\.s32 (%p\d+), (%r\d+), (%r\d+);",
                rf"{{ .reg .b32 q; add.s32 q, \3, {more}; setp.ne.s32 \1, \2, q; }}")


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
