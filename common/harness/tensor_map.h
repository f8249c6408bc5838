#pragma once
// TMA tensor maps, without linking libcuda: the encoder comes from the runtime by cudaGetDriverEntryPointByVersion.

#include <cuda.h>

#include <cstdint>
#include <span>

#include "common/harness/dtype.h"

namespace ladder {

/// A tiled map of rank dims.size() (1 to 5) over dense-in-dimension-0 memory.
/// `base`: device pointer, 16-byte aligned. `dims`: elements, innermost first, each 1 to 2^32. `strides_bytes`: rank -
/// 1 values for the dimensions 1 and up, multiples of 16, below 2^40. `box`: elements, each 1 to 256, box[0] times the
/// element size a multiple of 16 and, with a swizzle, at most its span.
/// No interleave, element strides 1, L2 promotion 256 B, zero fill outside.
/// Throws std::invalid_argument naming the argument, its value and the rule; CudaError when there is no encoder.
/// Source: CUDA driver API, cuTensorMapEncodeTiled.
CUtensorMap make_tensor_map(DType type, const void* base, std::span<const uint64_t> dims,
                            std::span<const uint64_t> strides_bytes, std::span<const uint32_t> box,
                            CUtensorMapSwizzle swizzle);

}  // namespace ladder
