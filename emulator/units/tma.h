#pragma once
// The TMA unit's data movement: boxes of tensor maps, and plain bulk copies, between global memory and shared windows.
//
// An asynchronous copy reads its source at one time and shows its result at a later one. Both halves exist apart, with
// staging bytes between them (dense: the box's rows one after the other, innermost dimension first, filled and rounded,
// not swizzled):
//
//     load    global --gather--> staging --place--> shared            load()  does both at once, without staging
//     store   shared --collect-> staging --scatter-> global           store() does both at once, without staging
//     reduce  shared --collect-> staging --reduce--> global
//
// Nothing here knows of time, barriers or who issued; the caller keeps the Box (a value) in its queue.
// Global bytes are reached through GlobalMemory's door only. A shared window is a pointer to its byte 0 and its size;
// addresses in it are absolute (CTA-relative, rank bits removed), since swizzle works on them. Sources: PTX ISA,
// "cp.async.bulk.tensor", "cp.reduce.async.bulk(.tensor)", "Tensor-map"; behaviours that the ISA leaves open follow an
// H200 (alignment faults, clipping, fill, byte counts).

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "emulator/machine/global_memory.h"
#include "emulator/units/tensor_map.h"

namespace emu::tma {

/// The shared memory of one CTA as the unit sees it.
struct Window {
  std::byte* bytes = nullptr;  ///< byte 0 of the window
  uint32_t size = 0;           ///< bytes that the CTA owns, from 0
};

enum class Direction : uint8_t { load, store, reduce };

enum class Reduction : uint8_t { add, min, max, inc, dec, bit_and, bit_or, bit_xor };

/// Element types of cp.reduce.async.bulk. The tensor form takes the map's type.
enum class ReductionType : uint8_t { u32, s32, u64, s64, b32, b64, f16, bf16, f32, f64 };

/// One box of a tensor map at given coordinates: checked, with everything that both halves of a copy need.
class Box {
 public:
  /// `coordinates`: as many as the map has dimensions, innermost first, in elements. Throws Trap (illegal instruction,
  /// 715) where the unit refuses them: count other than the rank, innermost offset not a multiple of 16 bytes, a
  /// negative coordinate of a store or reduction, a swizzle the direction does not have; Unimplemented for interleaved
  /// and padded maps.
  Box(const TensorMap& map, std::span<const int32_t> coordinates, Direction direction);

  const TensorMap& map() const { return map_; }
  Direction direction() const { return direction_; }
  const std::array<int32_t, 5>& coordinates() const { return coordinates_; }
  /// "box at (64, 0) of the tensor map of FLOAT16 with address .., dimensions .., strides ..", for reports.
  std::string describe() const;

  /// Bytes that a barrier is credited with, and that staging takes: the whole box, also where it is filled or clipped.
  uint64_t bytes() const { return rows_ * row_bytes_; }
  uint64_t rows() const { return rows_; }            ///< box rows: product of the outer extents
  uint32_t row_bytes() const { return row_bytes_; }  ///< innermost extent in bytes
  uint32_t pitch_bytes() const { return pitch_; }  ///< from row to row in shared memory: row_bytes, or the swizzle span
  /// Bytes from the box's first to past its last in shared memory, before swizzle.
  uint64_t footprint_bytes() const { return rows_ * pitch_; }
  /// Extents after element strides: bytes along dimension 0, elements along the others; 1 beyond the map's rank.
  const std::array<uint32_t, 5>& extent() const { return extent_; }
  /// [first, last) of each extent lies inside the tensor, the rest is filled (loads) or dropped (stores).
  const std::array<uint32_t, 5>& first() const { return first_; }
  const std::array<uint32_t, 5>& last() const { return last_; }
  /// Bytes inside the tensor: what is really read from or written to global memory.
  uint64_t global_bytes() const;

  /// Throws Trap unless `address` is 128-byte aligned (716) and the box lies in a window of `window_bytes` (700).
  void check_shared(uint32_t address, uint32_t window_bytes) const;

  /// Calls visit(address, bytes) for the global bytes touched, neighbouring rows joined, in box order.
  void visit_global(const std::function<void(uint64_t, uint64_t)>& visit) const;
  /// Calls visit(address, bytes) for the shared bytes touched, swizzle applied, neighbours joined.
  void visit_shared(uint32_t address, const std::function<void(uint32_t, uint32_t)>& visit) const;

 private:
  TensorMap map_;
  Direction direction_;
  uint32_t row_bytes_ = 0, pitch_ = 0;
  uint64_t rows_ = 1;
  std::array<int32_t, 5> coordinates_{};
  std::array<uint32_t, 5> extent_{1, 1, 1, 1, 1};
  std::array<uint32_t, 5> first_{}, last_{};
};

/// Global memory to staging, at the time the copy reads. `staging`: box.bytes() bytes. Throws Trap (700) where the
/// tensor covers bytes that nobody allocated, naming the row.
void gather(const Box& box, const GlobalMemory& memory, std::span<std::byte> staging);
/// Staging to shared memory, at the time the copy shows. Multicast: once for every destination.
void place(const Box& box, std::span<const std::byte> staging, Window window, uint32_t address);
/// gather and place at one time.
void load(const Box& box, const GlobalMemory& memory, Window window, uint32_t address);

/// Shared memory to staging, at the time the store reads. `staging`: box.bytes() bytes.
void collect(const Box& box, Window window, uint32_t address, std::span<std::byte> staging);
/// Staging to global memory, clipped at the tensor's ends, at the time the store shows.
void scatter(const Box& box, std::span<const std::byte> staging, GlobalMemory& memory);
/// collect and scatter at one time.
void store(const Box& box, Window window, uint32_t address, GlobalMemory& memory);
/// Throws Trap (715) where cp.reduce.async.bulk.tensor has no such reduction for the map's type: at issue.
void check_reduction(const Box& box, Reduction reduction);
/// As scatter, combining each element with what global memory holds, in one atomic step each.
void reduce(const Box& box, Reduction reduction, std::span<const std::byte> staging, GlobalMemory& memory);

/// Plain bulk copies (cp.async.bulk): throws Trap (716) unless both addresses and the size are multiples of 16.
void check_bulk(uint64_t destination, uint64_t source, uint64_t bytes);
/// Throws Trap (700) unless [address, address + bytes) lies in a window of `window_bytes`.
void check_shared_range(uint32_t address, uint64_t bytes, uint32_t window_bytes);

void bulk_read_global(const GlobalMemory& memory, uint64_t address, std::span<std::byte> to);
void bulk_write_global(GlobalMemory& memory, uint64_t address, std::span<const std::byte> from);
void bulk_read_shared(Window window, uint32_t address, std::span<std::byte> to);
void bulk_write_shared(Window window, uint32_t address, std::span<const std::byte> from);
/// Without staging.
void bulk_load(const GlobalMemory& memory, uint64_t source, Window window, uint32_t destination, uint64_t bytes);
void bulk_store(Window window, uint32_t source, GlobalMemory& memory, uint64_t destination, uint64_t bytes);

/// Throws Trap (715) where cp.reduce.async.bulk has no such combination; `to_shared`: the destination is another CTA's
/// window.
void check_bulk_reduction(Reduction reduction, ReductionType type, bool to_shared);
void bulk_reduce_global(GlobalMemory& memory, uint64_t address, Reduction reduction, ReductionType type,
                        std::span<const std::byte> from);
void bulk_reduce_shared(Window window, uint32_t address, Reduction reduction, ReductionType type,
                        std::span<const std::byte> from);

}  // namespace emu::tma
