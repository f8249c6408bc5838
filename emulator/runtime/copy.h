#pragma once
// Copying and filling memory, in rows and slices: which sides are on the device, whether every byte of them is
// somebody's, and whether the call may return before it is done. What waits for what is as an H200 does it; the notes
// are at each rule.

#include <cstddef>
#include <cstdint>

#include "emulator/runtime/runtime.h"

namespace emu::runtime {

/// `slices` of `rows` rows of `row_bytes` bytes; rows start `pitch` bytes apart on their side, slices `slice_pitch`.
struct Extent {
  size_t row_bytes = 0, rows = 1, slices = 1;
  bool empty() const { return row_bytes == 0 || rows == 0 || slices == 0; }
};
struct Side {
  const void* start = nullptr;
  size_t pitch = 0, slice_pitch = 0;
};

enum class Wait {
  as_the_plain_call,  ///< cudaMemcpy: until it is done, except device to device
  as_the_async_call,  ///< cudaMemcpyAsync: not at all, except where pageable host memory is written
};

/// Throws ApiError: cudaErrorInvalidMemcpyDirection for an unknown kind, cudaErrorInvalidValue when a side that the
/// kind puts on the device is not there, or when a byte lies outside its allocation.
void copy(Runtime& runtime, Side to, Side from, Extent extent, cudaMemcpyKind kind, Stream& stream, Wait wait);

/// Fills with a value of `value_bytes` (1, 2 or 4) bytes. `extent.row_bytes` is a multiple of it.
void fill(Runtime& runtime, Side to, uint32_t value, size_t value_bytes, Extent extent, Stream& stream, Wait wait);

}  // namespace emu::runtime
