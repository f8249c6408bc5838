#include "emulator/units/tmem_layout.h"

#include <algorithm>
#include <bit>

namespace emu {

AccumulatorLayout accumulator_layout(const MmaForm& form, uint32_t m, uint32_t n, uint32_t rank) {
  AccumulatorLayout layout;
  layout.rows = form.cta_group == 2 ? m / 2 : m;
  layout.first_row = form.cta_group == 2 ? rank * layout.rows : 0;
  if (form.weight_stationary) {
    layout.parts = 128 / m;
  } else if (form.cta_group == 2 && m == 128 && !form.sparse) {
    layout.parts = 2;
  } else {
    layout.spread = layout.rows == 64;
  }
  layout.part_lanes = layout.parts == 1 ? 0 : 128 / layout.parts;
  layout.columns_per_part = n / layout.parts;
  return layout;
}

namespace {

/// Columns that .x1 of a shape covers; a thread then has max(1, columns / 2) registers.
uint32_t columns_per_repeat(TmemShape shape) {
  switch (shape) {
    case TmemShape::s32x32b:
    case TmemShape::s16x32bx2:
      return 1;
    case TmemShape::s16x64b:
      return 2;
    case TmemShape::s16x128b:
      return 4;
    case TmemShape::s16x256b:
      return 8;
  }
  return 0;
}

}  // namespace

uint32_t register_count(const TmemAccess& access) {
  const uint32_t registers = access.repeat * std::max(1u, columns_per_repeat(access.shape) / 2);
  return std::has_single_bit(access.repeat) && registers <= 128 ? registers : 0;
}

uint32_t column_span(const TmemAccess& access) {
  const uint32_t columns = access.repeat * columns_per_repeat(access.shape) * (access.packed ? 2 : 1);
  return access.shape == TmemShape::s16x32bx2 ? access.immediate + columns : columns;
}

TmemCell register_cell(const TmemAccess& access, uint32_t thread, uint32_t reg) {
  const uint32_t t = thread, r = reg, width = access.packed ? 2 : 1;
  switch (access.shape) {
    case TmemShape::s32x32b:
      return {t, width * r};
    case TmemShape::s16x64b:
      return {8 * (t & 1) + t / 4, width * (2 * r + (t >> 1 & 1))};
    case TmemShape::s16x128b:
      return {t / 4 + 8 * (r & 1), width * (4 * (r / 2) + t % 4)};
    case TmemShape::s16x256b:
      return {t / 4 + 8 * (r >> 1 & 1), width * (8 * (r / 4) + 2 * (t % 4) + (r & 1))};
    case TmemShape::s16x32bx2:
      return {t % 16, (t < 16 ? 0 : access.immediate) + width * r};
  }
  return {};
}

}  // namespace emu
