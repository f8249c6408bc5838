// Moving boxes and bulk copies. A box's part inside the tensor is a nest of loops over rows; `Mover` finds the nest and
// runs it with the row copy that fits (width known or not, swizzled or not), then fills what lies outside.

#include "emulator/units/tma.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "emulator/machine/trap.h"
#include "emulator/units/tma_nest.h"

namespace emu::tma {
namespace {

/// The XOR that a swizzle mode makes, by bits 7 to 9 of the address: within a 128-byte line it is one value.
struct Pattern {
  explicit Pattern(TensorMapSwizzle swizzle) {
    for (uint32_t line = 0; line < 8; ++line)
      by_line[line] = static_cast<uint8_t>(swizzled(swizzle, line << 7) ^ (line << 7));
  }
  uint32_t at(uint32_t address) const { return by_line[(address >> 7) & 7]; }
  uint8_t by_line[8];
};

/// TFLOAT32 loads: to 10 mantissa bits, to nearest even; a NaN becomes 0x7FFFE000. Read off an H200.
uint32_t to_tf32(uint32_t bits) {
  if ((bits & 0x7FFF'FFFF) > 0x7F80'0000) return 0x7FFF'E000;
  if ((bits & 0x7F80'0000) == 0x7F80'0000) return bits;
  return (bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFFu;
}

void round_elements(std::byte* elements, uint32_t bytes) {
  for (uint32_t at = 0; at < bytes; at += 4) {
    uint32_t element;
    std::memcpy(&element, elements + at, 4);
    element = to_tf32(element);
    std::memcpy(elements + at, &element, 4);
  }
}

/// How rows lie on the local side: shared memory or staging. Addresses are what swizzle works on.
struct Local {
  std::byte* bytes;  ///< address 0
  uint32_t begin;    ///< address of the box
};

template <bool kToLocal>
inline void move_bytes(std::byte* local, std::byte* global, size_t bytes) {
  if constexpr (kToLocal) {
    std::memcpy(local, global, bytes);
  } else {
    std::memcpy(global, local, bytes);
  }
}

/// How one row moves. `kUnit`: bytes that the pattern keeps together (16, or 8 for the flip); 0 without a pattern.
/// `kWidth`: its bytes, 0 where only `width` says.
template <bool kToLocal, uint32_t kUnit, bool kRound, uint32_t kWidth>
struct Row {
  static constexpr uint32_t kBytes = kWidth;
  static void move(Local local, uint64_t offset, std::byte* global, uint32_t width, const Pattern& pattern) {
    if constexpr (kWidth != 0) width = kWidth;
    const auto address = static_cast<uint32_t>(local.begin + offset);
    std::byte* const dense = local.bytes + address;
    if constexpr (kUnit == 0) {
      move_bytes<kToLocal>(dense, global, width);
      if constexpr (kRound) round_elements(dense, width);
    } else {
      // A row lies within one line.
      std::byte* const line = local.bytes + (address & ~127u);
      const uint32_t in_line = address & 127u, change = pattern.at(address);
      for (uint32_t at = 0; at < width; at += kUnit) {
        std::byte* const unit = line + ((in_line + at) ^ change);
        const uint32_t bytes = kWidth != 0 ? kUnit : std::min(kUnit, width - at);
        move_bytes<kToLocal>(unit, global + at, bytes);
        if constexpr (kRound) round_elements(unit, bytes);
      }
    }
  }
};

/// Calls f with the Row type for this width: the common ones get code without a loop or a call in it.
template <bool kToLocal, uint32_t kUnit, bool kRound, class F>
void with_row_of_width(uint32_t width, F&& f) {
  if constexpr (!kRound) {
    switch (width) {
      case 16:
        return f(Row<kToLocal, kUnit, kRound, 16>{});
      case 32:
        return f(Row<kToLocal, kUnit, kRound, 32>{});
      case 64:
        return f(Row<kToLocal, kUnit, kRound, 64>{});
      case 128:
        return f(Row<kToLocal, kUnit, kRound, 128>{});
    }
  }
  f(Row<kToLocal, kUnit, kRound, 0>{});
}

constexpr uint32_t kAnyWidth = 0;

template <bool kToLocal, bool kRound, class F>
void with_row(TensorMapSwizzle swizzle, uint32_t width, F&& f) {
  switch (swizzle) {
    case TensorMapSwizzle::none:
      return with_row_of_width<kToLocal, 0, kRound>(width, f);
    case TensorMapSwizzle::b128_atom32_flip8:
      return with_row_of_width<kToLocal, 8, kRound>(width, f);
    default:
      return with_row_of_width<kToLocal, 16, kRound>(width, f);
  }
}

/// Rows this narrow share a cache line with their neighbours. The box that follows along the row will want the next
/// line, and hardware sees no pattern in rows that lie kilobytes apart.
constexpr uint32_t kNarrow = 32;
constexpr uint32_t kLine = 64;

void check_staging(const Box& box, size_t bytes) {
  if (bytes != box.bytes() || bytes > UINT32_MAX) {
    throw std::invalid_argument(fmt::format("staging of {} bytes for a box of {}", bytes, box.bytes()));
  }
}

/// Moves one box between global memory and a local side.
struct Mover {
  const Box& box;
  TensorMapSwizzle swizzle;  // of the local side: the map's in shared memory, none in staging
  uint32_t pitch;            // from row to row there
  Nest nest;

  Mover(const Box& box, bool staging)
      : box(box),
        swizzle(staging ? TensorMapSwizzle::none : box.map().swizzle),
        pitch(staging ? box.row_bytes() : box.pitch_bytes()),
        nest(Nest::of(box, pitch)) {}

  template <bool kToLocal>
  void move(Local local, const GlobalMemory& memory) const {
    const TensorMapType type = box.map().type;
    if (nest.extent == 0) return;
    if (kToLocal && (type == TensorMapType::tfloat32 || type == TensorMapType::tfloat32_ftz)) {
      move_as<kToLocal, true>(local, memory);
    } else {
      move_as<kToLocal, false>(local, memory);
    }
  }

  template <bool kToLocal, bool kRound>
  void move_as(Local local, const GlobalMemory& memory) const {
    constexpr Access kAccess = kToLocal ? Access::read : Access::write;
    const Pattern pattern(swizzle);
    const auto* allocation = memory.find(nest.global);
    const bool whole = allocation != nullptr && nest.extent <= allocation->bytes - (nest.global - allocation->address);
    std::byte* const global = whole ? memory.door(nest.global, nest.extent, kAccess) : nullptr;
    if (whole) {
      with_row<kToLocal, kRound>(swizzle, nest.width, [&](auto row) {
        for_rows(nest, [=, begin = nest.local, width = nest.width](uint64_t global_offset, uint64_t local_offset) {
          std::byte* const there = global + global_offset;
          if constexpr (kToLocal && row.kBytes != 0 && row.kBytes <= kNarrow) {
            const std::byte* const end = there + row.kBytes;
            if (reinterpret_cast<uintptr_t>(end) % kLine == 0) __builtin_prefetch(end);
          }
          row.move(local, begin + local_offset, there, width, pattern);
        });
      });
    } else {
      // Row by row: parts may lie in several allocations, and a fault can name its row.
      with_row<kToLocal, kRound>(swizzle, kAnyWidth, [&](auto row) {
        for_rows(nest, [&](uint64_t global_offset, uint64_t local_offset) {
          const std::span<std::byte> there = nest.row(box, memory, global_offset, kAccess);
          row.move(local, nest.local + local_offset, there.data(), static_cast<uint32_t>(there.size()), pattern);
        });
      });
    }
  }

  /// What a load puts where the box leaves the tensor.
  void fill(Local local) const {
    if (box.global_bytes() == box.bytes()) return;
    const auto& axes = box.axes();
    const auto inside = [&](uint32_t d, uint32_t i) { return i >= axes[d].first && i < axes[d].last; };
    const Pattern pattern(swizzle);
    constexpr uint32_t kUnit = 8;  // what every pattern keeps together
    // Every 16 bits alike, whatever the type. Read off an H200.
    const uint16_t value = box.map().fill == TensorMapFill::nan ? 0x7FF7 : 0;
    uint16_t source[kUnit / 2];
    std::fill(std::begin(source), std::end(source), value);
    const auto fill_part = [&](uint64_t address, uint32_t from, uint32_t to) {
      for (uint32_t at = from; at < to;) {
        const auto place = static_cast<uint32_t>(address + at);
        const uint32_t bytes = std::min(kUnit - at % kUnit, to - at);
        std::memcpy(local.bytes + (place ^ pattern.at(place)), source, bytes);
        at += bytes;
      }
    };
    uint64_t address = local.begin;
    for (uint32_t i4 = 0; i4 < axes[4].extent; ++i4) {
      for (uint32_t i3 = 0; i3 < axes[3].extent; ++i3) {
        for (uint32_t i2 = 0; i2 < axes[2].extent; ++i2) {
          const bool plane_inside = inside(4, i4) && inside(3, i3) && inside(2, i2);
          for (uint32_t i1 = 0; i1 < axes[1].extent; ++i1) {
            if (plane_inside && inside(1, i1)) {
              fill_part(address, 0, axes[0].first);
              fill_part(address, axes[0].last, box.row_bytes());
            } else {
              fill_part(address, 0, box.row_bytes());
            }
            address += pitch;
          }
        }
      }
    }
  }
};

/// The same of padded types: each chunk of packed elements goes to 16 bytes of shared memory, which keep the others.
template <bool kToShared>
void repack_padded(const Box& box, Local shared, std::byte* staging) {
  const Pattern pattern(box.map().swizzle);
  for (uint64_t row = 0; row < box.rows(); ++row)
    for (uint32_t chunk = 0; chunk < box.row_bytes() / box.chunk_bytes(); ++chunk) {
      const auto place = static_cast<uint32_t>(shared.begin + row * box.pitch_bytes() + chunk * 16);
      move_bytes<kToShared>(shared.bytes + (place ^ pattern.at(place)), staging, box.chunk_bytes());
      staging += box.chunk_bytes();
    }
}

/// All rows of the box between staging and shared memory.
template <bool kToShared>
void repack(const Box& box, Local shared, std::byte* staging) {
  if (box.chunk_bytes() != 16) return repack_padded<kToShared>(box, shared, staging);
  if (box.pitch_bytes() == box.row_bytes() && box.map().swizzle == TensorMapSwizzle::none) {
    move_bytes<kToShared>(shared.bytes + shared.begin, staging, box.bytes());
    return;
  }
  const Pattern pattern(box.map().swizzle);
  with_row<kToShared, false>(box.map().swizzle, box.row_bytes(), [&](auto row) {
    for (uint64_t i = 0; i < box.rows(); ++i) {
      row.move(shared, i * box.pitch_bytes(), staging + i * box.row_bytes(), box.row_bytes(), pattern);
    }
  });
}

}  // namespace

void gather(const Box& box, const GlobalMemory& memory, std::span<std::byte> staging) {
  check_staging(box, staging.size());
  const Mover mover(box, true);
  const Local local{staging.data(), 0};
  mover.move<true>(local, memory);
  mover.fill(local);
}

void place(const Box& box, std::span<const std::byte> staging, Window window, uint32_t address) {
  check_staging(box, staging.size());
  box.check_shared(address, window);
  repack<true>(box, {window.bytes, address}, const_cast<std::byte*>(staging.data()));
}

void load(const Box& box, const GlobalMemory& memory, Window window, uint32_t address) {
  box.check_shared(address, window);
  if (box.chunk_bytes() != 16) {
    std::vector<std::byte> staging(box.bytes());
    gather(box, memory, staging);
    return place(box, staging, window, address);
  }
  const Mover mover(box, false);
  const Local local{window.bytes, address};
  mover.move<true>(local, memory);
  mover.fill(local);
}

void collect(const Box& box, Window window, uint32_t address, std::span<std::byte> staging) {
  check_staging(box, staging.size());
  box.check_shared(address, window);
  repack<false>(box, {window.bytes, address}, staging.data());
}

void scatter(const Box& box, std::span<const std::byte> staging, GlobalMemory& memory) {
  check_staging(box, staging.size());
  Mover(box, true).move<false>({const_cast<std::byte*>(staging.data()), 0}, memory);
}

void store(const Box& box, Window window, uint32_t address, GlobalMemory& memory) {
  box.check_shared(address, window);
  if (box.chunk_bytes() != 16) {
    std::vector<std::byte> staging(box.bytes());
    collect(box, window, address, staging);
    return scatter(box, staging, memory);
  }
  Mover(box, false).move<false>({window.bytes, address}, memory);
}

}  // namespace emu::tma
