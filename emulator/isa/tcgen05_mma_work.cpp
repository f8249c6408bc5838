// What a tcgen05.mma does: reads A and B, and then, in the tensor core's order, everything in tensor memory.

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "emulator/isa/tcgen05_mma.h"
#include "emulator/machine/grid.h"
#include "emulator/units/padded_elements.h"
#include "emulator/units/scale_factor.h"
#include "emulator/units/scaled_fp4.h"

namespace emu::isa {
namespace {

constexpr uint32_t kRow = kOperandBytesPerRow;

/// Bits of an element that shared memory holds packed and padded, 0: of one that fills its place.
uint32_t padded_bits(MmaKind kind, ElementType type) {
  if (kind != MmaKind::f8f6f4 && kind != MmaKind::mxf8f6f4) return 0;
  if (type == ElementType::e2m1) return 4;
  return type == ElementType::e2m3 || type == ElementType::e3m2 ? 6 : 0;
}

/// Elements that are packed and padded in shared memory get a byte each.
void widen(uint32_t bits, uint32_t rows, std::byte* dense) {
  for (uint32_t chunk = 0; bits != 0 && chunk < rows * kRow; chunk += 16)
    unpack_padded(bits, dense + chunk, dense + chunk);
}

/// Refuses to add to columns that nothing has written, and notes that these are written now.
void note_written(const Mma& mma) {
  bool read_something = !mma.use.input, any = false;
  const uint32_t columns = mma.layout.columns_per_part;
  for (uint32_t i = 0; i < mma.group.size; ++i)
    for (uint32_t part = 0; part < mma.layout.parts; ++part)
      for (uint32_t row = 0; row < mma.layout.rows; ++row) {
        TensorMemory& tensor_memory = mma.group.ctas[i]->tensor_memory;
        const uint32_t lane = mma.d_lane + mma.layout.lane(row, part);
        if (mma.disabled(i, lane)) continue;
        any = true;
        read_something = read_something || tensor_memory.any_written(lane, mma.d_column, columns);
        tensor_memory.mark_written(lane, mma.d_column, columns);
      }
  if (any && !read_something)
    throw Trap(FaultKind::tensor_memory_unwritten,
               fmt::format("tcgen05.mma adds to columns {} to {} of tensor memory, which nothing has written since "
                           "they were allocated: "
                           "the first MMA of a tile must run with enable-input-d false",
                           mma.d_column, mma.d_column + columns - 1),
               "PTX ISA, tcgen05.alloc: contents are undefined");
}

/// For the hazard rules: the cells of D, A and the scale factors in every CTA of the group.
void tell_cells(const Mma& mma) {
  if (!mma.announced) return;
  using Cells = hazards::Hazards::Cells;
  const uint32_t columns = mma.layout.columns_per_part;
  for (uint32_t i = 0; i < mma.group.size; ++i) {
    Cta& cta = *mma.group.ctas[i];
    std::vector<Cells> d, read;
    for (uint32_t part = 0; part < mma.layout.parts; ++part)
      for (uint32_t row = 0; row < mma.layout.rows; row += 16) {
        const uint32_t lane = mma.d_lane + mma.layout.lane(row, part);
        bool any = false;
        for (uint32_t r = 0; r < 16; ++r) any = any || !mma.disabled(i, lane + r);
        if (any) d.push_back({lane, 16, mma.d_column, columns});
        if (mma.a_in_tensor_memory)
          read.push_back({mma.a_lane + mma.layout.lane(row, part), 16, mma.a_column, kRow / 4});
      }
    if (block_scaled(mma.form.kind)) {
      const uint32_t per_row = (mma.form.kind == MmaKind::mxf8f6f4 ? 32 : 64) / mma.form.block;
      const auto factors = [&](uint32_t column, const ScaleFactors& of) {
        for (uint32_t row = 0; row < of.rows; row += 16)
          for (uint32_t factor = 0; factor < per_row; ++factor)
            for (uint32_t copy = 0; copy < of.copies(); ++copy) {
              const ScaleFactorPlace place = scale_factor_place(of, row, factor, copy);
              read.push_back({place.lane / 16 * 16, 16, column + place.column, 1});
            }
      };
      factors(mma.sfa_column, {mma.layout.rows, per_row, mma.shape.sfa_id, false});
      factors(mma.sfb_column, {mma.shape.n, per_row, mma.shape.sfb_id, mma.layout.parts == 2});
    }
    if (!read.empty()) cta.cluster.hazards->tensor(*mma.announced, hazards::Kind::mma_source, cta, read);
    cta.cluster.hazards->tensor(*mma.announced, hazards::Kind::mma, cta, d);
  }
}

/// A of one CTA as part `part` of D meets it, 32 bytes a row, in shared memory's way or out of tensor memory into
/// `scratch`: there A lies in the lanes of D's rows.
const std::byte* a_rows(const Mma& mma, uint32_t cta, uint32_t part, std::byte* scratch) {
  if (!mma.a_in_tensor_memory) return mma.a_dense[cta].data();
  const bool shifted = padded_bits(mma.form.kind, mma.shape.a) == 4;
  for (uint32_t row = 0; row < mma.layout.rows; ++row) {
    std::byte* to = scratch + row * kRow;
    std::memcpy(to, mma.group.ctas[cta]->tensor_memory.row(mma.a_lane + mma.layout.lane(row, part)) + mma.a_column,
                kRow);
    for (uint32_t i = 0; shifted && i < kRow; ++i) to[i] >>= kFp4Shift;
  }
  return scratch;
}

/// Rows of B that make the columns of part `part`.
const std::byte* b_rows(const Mma& mma, uint32_t part) {
  return mma.b_dense.data() + size_t{part} * mma.layout.columns_per_part * kRow;
}

std::array<uint32_t*, Mma::kLanes> d_rows(const Mma& mma, uint32_t cta, uint32_t part) {
  std::array<uint32_t*, Mma::kLanes> rows{};
  for (uint32_t row = 0; row < mma.layout.rows; ++row) {
    const uint32_t lane = mma.d_lane + mma.layout.lane(row, part);
    if (!mma.disabled(cta, lane)) rows[row] = mma.group.ctas[cta]->tensor_memory.row(lane) + mma.d_column;
  }
  return rows;
}

/// One byte for each row and factor. Traps where the partitions of tensor memory do not agree.
void read_scale_factors(Cta& cta, uint32_t column, const ScaleFactors& factors, const char* operand,
                        std::span<uint8_t> out) {
  TensorMemory& tensor_memory = cta.tensor_memory;
  for (uint32_t row = 0; row < factors.rows; ++row)
    for (uint32_t factor = 0; factor < factors.per_row; ++factor)
      for (uint32_t copy = 0; copy < factors.copies(); ++copy) {
        const ScaleFactorPlace place = scale_factor_place(factors, row, factor, copy);
        const uint8_t value =
            static_cast<uint8_t>(tensor_memory.row(place.lane)[column + place.column] >> 8 * place.byte);
        uint8_t& first = out[row * factors.per_row + factor];
        if (copy == 0) first = value;
        if (value == first && tensor_memory.any_written(place.lane, column + place.column, 1)) continue;
        throw Trap(
            FaultCode::illegal_instruction,
            fmt::format("tcgen05.mma: the scale factor of row {} of {} is {:#04x} in lane {} and {:#04x} in lane "
                        "{}, column {}: every 32-lane partition must hold the factors (tcgen05.cp.32x128b.warpx4 "
                        "puts them there)",
                        row, operand, first, scale_factor_place(factors, row, factor, 0).lane, value, place.lane,
                        column + place.column),
            "PTX ISA, tcgen05 Block Scaling: scale factors are duplicated to all 32-lane partitions");
      }
}

struct Scales {
  uint32_t per_row = 1;
  std::array<uint8_t, 256 * 4> a, b;
  std::span<const uint8_t> of_a(const Mma& mma) const { return {a.data(), mma.layout.rows * per_row}; }
  std::span<const uint8_t> of_b(const Mma& mma, uint32_t part) const {
    const uint32_t count = mma.layout.columns_per_part * per_row;
    return {b.data() + part * count, count};
  }
};

Scales read_scales(const Mma& mma, uint32_t cta) {
  Scales scales;
  scales.per_row = (mma.form.kind == MmaKind::mxf8f6f4 ? 32 : 64) / mma.form.block;
  const ScaleFactors a{mma.layout.rows, scales.per_row, mma.shape.sfa_id, false};
  const ScaleFactors b{mma.shape.n, scales.per_row, mma.shape.sfb_id, mma.layout.parts == 2};
  read_scale_factors(*mma.group.ctas[cta], mma.sfa_column, a, "A", scales.a);
  read_scale_factors(*mma.group.ctas[cta], mma.sfb_column, b, "B", scales.b);
  return scales;
}

void multiply_fp4(const Mma& mma) {
  thread_local const auto packed = std::make_unique<std::pair<ScaledFp4Operand, ScaledFp4Operand>>();
  auto& [a, b] = *packed;
  const ScaleType type = mma.shape.scale_ue8m0 ? ScaleType::ue8m0 : ScaleType::ue4m3;
  for (uint32_t cta = 0; cta < mma.group.size; ++cta) {
    const Scales scales = read_scales(mma, cta);
    for (uint32_t part = 0; part < mma.layout.parts; ++part) {
      std::array<std::byte, Mma::kLanes * kRow> scratch;
      a.pack(mma.layout.rows, a_rows(mma, cta, part, scratch.data()), type, mma.form.block, scales.of_a(mma),
             mma.shape.negate_a);
      b.pack(mma.layout.columns_per_part, b_rows(mma, part), type, mma.form.block, scales.of_b(mma, part),
             mma.shape.negate_b);
      const auto d = d_rows(mma, cta, part);
      scaled_multiply_add(a, b, mma.use.input, std::span(d.data(), mma.layout.rows));
    }
  }
}

void pack_a(const Mma& mma, uint32_t cta, uint32_t part, PackedOperand& a) {
  const uint32_t rows = mma.layout.rows;
  if (mma.a_in_tensor_memory && element_bytes(mma.shape.a) > 1) {
    std::array<const uint32_t*, Mma::kLanes> columns{};
    for (uint32_t row = 0; row < rows; ++row)
      columns[row] = mma.group.ctas[cta]->tensor_memory.row(mma.a_lane + mma.layout.lane(row, part)) + mma.a_column;
    a.pack_tmem(mma.shape.a, std::span(columns.data(), rows), mma.shape.negate_a);
    return;
  }
  std::array<std::byte, Mma::kLanes * kRow> scratch;
  a.pack(mma.shape.a, rows, a_rows(mma, cta, part, scratch.data()), mma.shape.negate_a);
}

void multiply_fused(const Mma& mma) {
  auto& [a, b] = packed_operands();
  const bool scaled = block_scaled(mma.form.kind);
  std::array<Scales, 2> scales;
  for (uint32_t cta = 0; scaled && cta < mma.group.size; ++cta) scales[cta] = read_scales(mma, cta);
  for (uint32_t part = 0; part < mma.layout.parts; ++part)
    for (uint32_t cta = 0; cta < mma.group.size; ++cta) {
      if (cta == 0 || scaled) b.pack(mma.shape.b, mma.layout.columns_per_part, b_rows(mma, part), mma.shape.negate_b);
      pack_a(mma, cta, part, a);
      if (scaled) {
        a.scale(scales[cta].of_a(mma));
        b.scale(scales[cta].of_b(mma, part));
      }
      const auto d = d_rows(mma, cta, part);
      fused_multiply_add(a, b, mma.use, std::span(d.data(), mma.layout.rows));
    }
}

}  // namespace

void read_operands(Mma& mma) {
  const OperandShape a = mma.a_shape(), b = mma.b_shape();
  std::byte* b_dense = mma.b_dense.data();
  for (uint32_t i = 0; i < mma.group.size; ++i) {
    const Cta& cta = *mma.group.ctas[i];
    if (mma.group.size > 1 && cta.exited())
      throw Trap(FaultKind::peer_gone, FaultCode::illegal_address,
                 fmt::format("tcgen05.mma reads the shared memory of CTA {}, which has ended: end a CTA of a pair only "
                             "when all MMAs that work on it are complete",
                             cta.rank),
                 "PTX ISA, CTA Pair");
    const SharedWindow window{cta.window.data(), cta.cluster.grid.device.chip().shared_reserved_bytes,
                              cta.window_bytes};
    if (!mma.a_in_tensor_memory) {
      gather_operand(window, mma.a, a, "A", mma.a_dense[i].data());
      tell_operand(*mma.group.ctas[i], mma.announced, hazards::Kind::mma_operands, mma.a, a);
      widen(padded_bits(mma.form.kind, a.type), a.rows, mma.a_dense[i].data());
    }
    gather_operand(window, mma.b, b, "B", b_dense + size_t{i} * b.rows * kRow);
    tell_operand(*mma.group.ctas[i], mma.announced, hazards::Kind::mma_operands, mma.b, b);
  }
  widen(padded_bits(mma.form.kind, b.type), b.rows * mma.group.size, b_dense);
  // .ws: columns that are shifted, or zeros.
  if (const uint32_t shift = mma.zero_columns.shift)
    std::memmove(b_dense, b_dense + shift * kRow, size_t{mma.shape.n} * kRow);
  const uint32_t columns = mma.layout.columns_per_part;
  for (uint32_t n = 0; mma.zero_columns.any && n < mma.shape.n; ++n)
    if (mma.zero_columns.zero(n / columns, n % columns)) std::memset(b_dense + n * kRow, 0, kRow);
}

void multiply(const Mma& mma) {
  tell_cells(mma);
  note_written(mma);
  if (block_scaled(mma.form.kind) && mma.form.kind != MmaKind::mxf8f6f4)
    multiply_fp4(mma);
  else
    multiply_fused(mma);
}

}  // namespace emu::isa
