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
#include <string_view>

#include "emulator/machine/global_memory.h"
#include "emulator/units/tensor_map.h"

namespace emu::tma {

/// The shared memory of one CTA as the unit sees it.
struct Window {
  std::byte* bytes = nullptr;  ///< byte 0 of the window; aligned to 16 for reductions
  uint32_t size = 0;           ///< where it ends
  uint32_t first = 0;          ///< where what the CTA owns begins: behind the chip's reserved bytes
};

enum class Direction : uint8_t { load, store, reduce };

enum class Reduction : uint8_t { add, min, max, inc, dec, bit_and, bit_or, bit_xor };

/// Element types of cp.reduce.async.bulk, and f32 with subnormals flushed to zero, which only maps of *_FTZ types have.
enum class ReductionType : uint8_t { u32, s32, u64, s64, b32, b64, f16, bf16, f32, f64, f32_ftz };

/// One box of a tensor map at given coordinates: checked, with everything that both halves of a copy need.
///
/// It is held as rows of bytes along axes. Without interleave, axis 0 is dimension 0 counted in bytes and axes 1 to 4
/// are the other dimensions. With interleave, a row (axis 0) is one slice of 16 or 32 bytes, axis 1 is dimension 0
/// counted in slices, the last dimension but one (the slices of channels) is one index deep whatever the box says, and
/// axes 2 to 4 are the rest.
class Box {
 public:
  /// `coordinates`: as many as the map has dimensions, innermost first, in elements (slices, with interleave). Throws
  /// Trap (illegal instruction, 715) where the unit refuses them: count other than the rank, innermost offset not a
  /// multiple of 16 bytes (32 of padded types), a negative coordinate of a store or reduction, a swizzle or type that
  /// the direction does not have.
  Box(const TensorMap& map, std::span<const int32_t> coordinates, Direction direction);

  const TensorMap& map() const { return map_; }
  Direction direction() const { return direction_; }
  const std::array<int32_t, 5>& coordinates() const { return coordinates_; }
  /// "box at (64, 0) of the tensor map of FLOAT16 with address .., dimensions .., strides ..", for reports.
  std::string describe() const;

  /// Bytes that a barrier is credited with, and that staging takes: the whole box, also where it is filled or clipped.
  /// Padding does not count: CUTLASS expects the bytes of packed elements.
  uint64_t bytes() const { return rows_ * row_bytes(); }
  uint64_t rows() const { return rows_; }  ///< product of the extents of axes 1 to 4
  uint32_t row_bytes() const { return axes_[0].extent; }
  /// The bytes of each 16 in shared memory that hold elements: 8 and 12 of the padded types, which leave the others be.
  uint32_t chunk_bytes() const { return chunk_; }
  uint32_t shared_row_bytes() const { return row_bytes() / chunk_ * 16; }
  uint32_t pitch_bytes() const { return pitch_; }  ///< from row to row in shared memory: a row, or the swizzle span
  /// Bytes from the box's first to past its last in shared memory.
  uint64_t footprint_bytes() const;
  /// Bytes read from or written to global memory.
  uint64_t global_bytes() const;

  struct Axis {
    uint32_t extent = 1;           ///< indices in the box, after element strides
    uint32_t first = 0, last = 1;  ///< [first, last) of them are read or written; the rest is filled (loads) or dropped
    int64_t begin = 0;             ///< position of index 0
    uint32_t step = 1;             ///< positions from index to index
    uint64_t stride_bytes = 0;     ///< from position to position in global memory
  };
  const std::array<Axis, 5>& axes() const { return axes_; }
  /// Address of position 0 of all axes.
  uint64_t origin() const { return origin_; }
  /// The part of a row that is inside the tensor. A store writes up to a multiple of 16 bytes, past the end of a row
  /// that has none.
  uint32_t inner_last() const { return inner_last_; }

  /// Throws Trap unless `address` is 128-byte aligned (716) and the box lies in a window of `window_bytes` (700).
  void check_shared(uint32_t address, const Window& window) const;

  /// Calls visit(address, bytes) for the global bytes touched, neighbouring rows joined, in box order.
  void visit_global(const std::function<void(uint64_t, uint64_t)>& visit) const;
  /// Calls visit(address, bytes) for the shared bytes touched, swizzle applied, neighbours joined, in rising order.
  void visit_shared(uint32_t address, const std::function<void(uint32_t, uint32_t)>& visit) const;

 private:
  TensorMap map_;
  Direction direction_;
  uint32_t pitch_ = 0, inner_last_ = 0, chunk_ = 16;
  uint64_t rows_ = 1, origin_ = 0;
  std::array<int32_t, 5> coordinates_{};
  std::array<Axis, 5> axes_;
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
/// Staging to global memory, clipped at the tensor's ends (in 16-byte steps along a row), at the time the store shows.
void scatter(const Box& box, std::span<const std::byte> staging, GlobalMemory& memory);
/// collect and scatter at one time.
void store(const Box& box, Window window, uint32_t address, GlobalMemory& memory);
/// Throws Trap (715) where cp.reduce.async.bulk.tensor has no such reduction for the map's type: at issue.
void check_reduction(const Box& box, Reduction reduction);
/// As scatter, combining each element with what global memory holds, in one atomic step each.
void reduce(const Box& box, Reduction reduction, std::span<const std::byte> staging, GlobalMemory& memory);

/// Plain bulk copies (cp.async.bulk): throws Trap (716) unless both addresses and the size are multiples of 16.
void check_bulk(uint64_t destination, uint64_t source, uint64_t bytes);
/// Throws Trap (700) where `address` lies before what the CTA owns. `what`: who reads or writes there.
void check_first(uint32_t address, const Window& window, std::string_view what);
/// Throws Trap (700) unless [address, address + bytes) lies in what the CTA owns.
void check_shared_range(uint32_t address, uint64_t bytes, const Window& window);

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
