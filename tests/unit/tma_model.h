#pragma once
// What a tensor copy does, one element at a time, written from the rules alone: dimension by dimension, byte by byte,
// no rows, no patterns, nothing shared with the emulator but the description of the map. Slow and plain, to hold the
// fast code against.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <stdexcept>
#include <vector>

#include "emulator/machine/global_memory.h"
#include "emulator/units/tensor_map.h"

namespace test {

/// Swizzle as PTX ISA's "Swizzling Modes" has it, bit by bit: which bit of the address is flipped by which.
inline uint32_t swizzle_model(emu::TensorMapSwizzle swizzle, uint32_t address) {
  using enum emu::TensorMapSwizzle;
  const auto bit = [&](int i) { return (address >> i) & 1; };
  switch (swizzle) {
    case none:
      return address;
    case b32:
      return address ^ bit(7) << 4;
    case b64:
      return address ^ bit(7) << 4 ^ bit(8) << 5;
    case b128:
      return address ^ bit(7) << 4 ^ bit(8) << 5 ^ bit(9) << 6;
    case b128_atom32:
      return address ^ bit(7) << 5 ^ bit(8) << 6;
    case b128_atom32_flip8:
      return address ^ bit(7) << 5 ^ bit(8) << 6 ^ bit(7) << 3;
    case b128_atom64:
      return address ^ bit(7) << 6;
  }
  throw std::logic_error("no such swizzle");
}

/// Nearest f32 with 10 mantissa bits, ties to even; NaN becomes 0x7FFFE000.
inline uint32_t tf32_model(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  if (std::isnan(value)) return 0x7FFFE000;
  if (std::isinf(value) || value == 0) return bits;
  const double step = std::ldexp(1.0, std::max(std::ilogb(value), -126) - 10);
  const auto rounded = static_cast<float>(std::nearbyint(value / step) * step);
  std::memcpy(&bits, &rounded, 4);
  return bits;
}

/// One element of a box, of the kinds that fill whole bytes. With interleave, a slice of 16 or 32 bytes is the element.
struct ElementModel {
  bool inside;      ///< of the tensor
  uint64_t global;  ///< its address; meaningless outside
  uint32_t bytes;   ///< its size
  uint32_t dense;   ///< where it lies among the box's elements, packed
  uint32_t shared;  ///< where its first byte lies in shared memory before swizzle
};

/// Visits every element of the box, innermost dimension first. `stores`: rows end at the 16 bytes that hold their last
/// element.
inline void for_each_element(const emu::TensorMap& map, const std::vector<int32_t>& coordinates,
                             uint32_t shared_address, bool stores,
                             const std::function<void(const ElementModel&)>& visit) {
  const bool slices = map.interleave != emu::TensorMapInterleave::none;
  const uint32_t size = slices ? 16 * static_cast<uint32_t>(map.interleave) : emu::element_bits(map.type) / 8;
  uint32_t extent[5], step[5], index[5] = {};
  uint64_t elements = 1;
  for (uint32_t d = 0; d < 5; ++d) {
    step[d] = d == 0 && !slices ? 1 : map.element_strides[d];
    extent[d] = (map.box[d] + step[d] - 1) / step[d];
    // The channels of a box are one slice.
    if (slices && d + 2 == map.rank) extent[d] = 1;
    elements *= extent[d];
  }
  const uint32_t row = extent[0] * size;
  uint32_t pitch = row;
  if (!slices && map.swizzle == emu::TensorMapSwizzle::b32) pitch = 32;
  if (!slices && map.swizzle == emu::TensorMapSwizzle::b64) pitch = 64;
  if (!slices && map.swizzle >= emu::TensorMapSwizzle::b128) pitch = 128;
  for (uint64_t e = 0; e < elements; ++e) {
    ElementModel element{true, map.address, size, static_cast<uint32_t>(e * size), 0};
    for (uint32_t d = 0; d < map.rank; ++d) {
      const int64_t position = coordinates[d] + int64_t{index[d]} * step[d];
      uint64_t end = map.dims[d];
      if (stores && d == 0) end = (end * size + 15) / 16 * 16 / size;
      if (position < 0 || position >= static_cast<int64_t>(end)) element.inside = false;
      element.global += static_cast<uint64_t>(position) * (d == 0 ? size : map.strides_bytes[d]);
    }
    element.shared = static_cast<uint32_t>(shared_address + e / extent[0] * pitch + index[0] * size);
    visit(element);
    for (int d = 0; d < 5 && ++index[d] == extent[d]; ++d) index[d] = 0;
  }
}

/// The bytes of one element as a load delivers them. `at`: the byte of global memory behind an address.
inline void loaded_element(const emu::TensorMap& map, const ElementModel& element,
                           const std::function<std::byte(uint64_t)>& at, std::byte* out) {
  for (uint32_t i = 0; i < element.bytes; ++i) {
    if (element.inside) {
      out[i] = at(element.global + i);
    } else {
      out[i] = map.fill == emu::TensorMapFill::zeros ? std::byte{0} : i % 2 == 0 ? std::byte{0xF7} : std::byte{0x7F};
    }
  }
  if (element.inside && (map.type == emu::TensorMapType::tfloat32 || map.type == emu::TensorMapType::tfloat32_ftz)) {
    for (uint32_t i = 0; i < element.bytes; i += 4) {
      uint32_t bits;
      std::memcpy(&bits, out + i, 4);
      bits = tf32_model(bits);
      std::memcpy(out + i, &bits, 4);
    }
  }
}

inline void load_model(const emu::TensorMap& map, const std::vector<int32_t>& coordinates, uint32_t shared_address,
                       const std::function<std::byte(uint64_t)>& at, std::vector<std::byte>& window) {
  for_each_element(map, coordinates, shared_address, false, [&](const ElementModel& element) {
    std::byte value[32];
    loaded_element(map, element, at, value);
    for (uint32_t i = 0; i < element.bytes; ++i) window.at(swizzle_model(map.swizzle, element.shared + i)) = value[i];
  });
}

inline void store_model(const emu::TensorMap& map, const std::vector<int32_t>& coordinates, uint32_t shared_address,
                        const std::vector<std::byte>& window, const std::function<void(uint64_t, std::byte)>& put) {
  for_each_element(map, coordinates, shared_address, true, [&](const ElementModel& element) {
    if (!element.inside) return;
    for (uint32_t i = 0; i < element.bytes; ++i) {
      put(element.global + i, window.at(swizzle_model(map.swizzle, element.shared + i)));
    }
  });
}

/// Global bytes and a map within them, made up at random: every rank, type, swizzle, step; ragged, overlapping,
/// broadcast.
struct RandomCase {
  emu::TensorMap map;
  std::vector<int32_t> coordinates;
  uint32_t shared_address = 0;
  uint64_t global_bytes = 0;  ///< the map lies within this many bytes
};

/// Interleaved: rank 3 to 5, rows of slices.
inline RandomCase random_interleaved_case(std::mt19937_64& random, bool loads, uint32_t window_bytes) {
  const auto below = [&](uint64_t n) { return random() % n; };
  for (;;) {
    RandomCase c;
    emu::TensorMap& map = c.map;
    map.type = static_cast<emu::TensorMapType>(below(13));
    map.interleave = static_cast<emu::TensorMapInterleave>(1 + below(2));
    const uint32_t slice = 16 * static_cast<uint32_t>(map.interleave);
    map.swizzle = slice == 32 ? emu::TensorMapSwizzle::b32 : static_cast<emu::TensorMapSwizzle>(below(4));
    map.rank = 3 + static_cast<uint32_t>(below(3));
    map.address = 32 * below(32);
    if (loads && map.type >= emu::TensorMapType::float16 && below(3) == 0) map.fill = emu::TensorMapFill::nan;
    uint64_t rows = 1, run = slice, extent = slice;
    for (uint32_t d = 0; d < map.rank; ++d) {
      map.element_strides[d] = below(3) ? 1 : 1 + static_cast<uint32_t>(below(8));
      map.box[d] = 1 + static_cast<uint32_t>(below(d == 0 ? 32 : 12));
      if (d == 0) map.box[0] = (map.box[0] + 15) / 16 * 16;
      map.dims[d] = 1 + below(2 * map.box[d]);
      const uint64_t stride = d == 0 ? slice : run + 32 * below(3);
      if (d > 0) map.strides_bytes[d] = stride;
      run = stride * map.dims[d];
      extent += stride * (map.dims[d] - 1);
      if (d + 2 != map.rank) rows *= (map.box[d] + map.element_strides[d] - 1) / map.element_strides[d];
    }
    const uint64_t footprint = (rows * slice + 127) / 128 * 128;
    if (footprint > window_bytes || extent > 1 << 20) continue;
    c.global_bytes = map.address + extent;
    c.shared_address = 128 * static_cast<uint32_t>(below((window_bytes - footprint) / 128 + 1));
    for (uint32_t d = 0; d < map.rank; ++d) {
      const int64_t low = loads ? -static_cast<int64_t>(map.box[d]) : 0;
      const int64_t high = static_cast<int64_t>(map.dims[d]) + (below(4) ? 0 : 2);
      c.coordinates.push_back(
          below(3) ? static_cast<int32_t>(low + static_cast<int64_t>(below(static_cast<uint64_t>(high - low + 1))))
                   : 0);
    }
    return c;
  }
}

/// `loads`: coordinates may be negative and rows may overlap. The map's address is an offset, to be moved to an
/// allocation.
inline RandomCase random_case(std::mt19937_64& random, bool loads, uint32_t window_bytes) {
  const auto below = [&](uint64_t n) { return random() % n; };
  if (below(5) == 0) return random_interleaved_case(random, loads, window_bytes);
  for (;;) {
    RandomCase c;
    emu::TensorMap& map = c.map;
    map.type = static_cast<emu::TensorMapType>(below(13));
    map.swizzle = static_cast<emu::TensorMapSwizzle>(below(7));
    if (!loads && map.swizzle == emu::TensorMapSwizzle::b128_atom32_flip8) continue;
    map.rank = 1 + static_cast<uint32_t>(below(5));
    map.address = 16 * below(64);
    if (loads && map.type >= emu::TensorMapType::float16 && below(3) == 0) map.fill = emu::TensorMapFill::nan;
    const uint32_t size = emu::element_bits(map.type) / 8, granule = 16 / size;
    const uint32_t span = map.swizzle == emu::TensorMapSwizzle::none   ? 256 * size
                          : map.swizzle >= emu::TensorMapSwizzle::b128 ? 128
                                                                       : 16u << static_cast<uint32_t>(map.swizzle);
    const uint64_t widest = std::min<uint64_t>(span / size, 256) / granule;
    map.box[0] = granule * static_cast<uint32_t>(below(3) == 0 ? widest : 1 + below(widest));
    map.dims[0] = 1 + below(3 * map.box[0]);
    uint64_t rows = 1, run = (map.dims[0] * size + 15) / 16 * 16, extent = map.dims[0] * size;
    const bool overlap = loads && below(6) == 0;
    const uint32_t most[] = {0, 1, 64, 16, 6, 4};
    for (uint32_t d = 1; d < map.rank; ++d) {
      const uint32_t step = below(3) ? 1 : 1 + static_cast<uint32_t>(below(8));
      const uint32_t n = 1 + static_cast<uint32_t>(below(most[map.rank]));
      map.element_strides[d] = step;
      map.box[d] = std::min<uint32_t>(256, (n - 1) * step + 1 + static_cast<uint32_t>(below(step)));
      map.dims[d] = 1 + below(2 * map.box[d] + 2);
      map.strides_bytes[d] = overlap ? 16 * below(8) : run + 16 * below(3);
      run = map.strides_bytes[d] * map.dims[d];
      extent += map.strides_bytes[d] * (map.dims[d] - 1);
      rows *= (map.box[d] + step - 1) / step;
    }
    const uint64_t footprint = rows * (map.swizzle == emu::TensorMapSwizzle::none ? map.box[0] * size : span);
    if (footprint > window_bytes || extent > 1 << 20) continue;
    c.global_bytes = map.address + (extent + 15) / 16 * 16;
    c.shared_address = 128 * static_cast<uint32_t>(below((window_bytes - footprint) / 128 + 1));
    for (uint32_t d = 0; d < map.rank; ++d) {
      const auto box = static_cast<int64_t>(map.box[d]);
      const int64_t low = loads ? -box : 0, high = static_cast<int64_t>(map.dims[d]) + (below(4) ? 0 : box);
      int64_t at = below(3) ? low + static_cast<int64_t>(below(static_cast<uint64_t>(high - low + 1))) : 0;
      if (d == 0) at = at / granule * granule;
      c.coordinates.push_back(static_cast<int32_t>(at));
    }
    return c;
  }
}

inline std::vector<std::byte> random_bytes(std::mt19937_64& random, size_t bytes) {
  std::vector<std::byte> out(bytes);
  for (auto& byte : out) byte = static_cast<std::byte>(random());
  return out;
}

}  // namespace test
