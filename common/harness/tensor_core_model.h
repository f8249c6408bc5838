#pragma once
// What a tensor core computes, one output at a time, in plain integers: the reference for sampled outputs. It shares no
// code with the emulator, on purpose.
//
// The rule for 16-bit inputs and fp32 accumulation (Hopper wgmma and Blackwell tcgen05 kind::f16 alike): one
// instruction adds its 16 products and the old accumulator in one fused sum. Every term has an exponent: of a product
// the sum of its operands' exponents (significands not normalised, subnormals at their format's lowest exponent), of
// the accumulator its own. Zero terms do not count. All terms are aligned to the largest exponent, which is taken as at
// least -133, and cut toward zero 25 fraction bits below it; the sum of what is left is exact; it becomes an f32 by
// cutting toward zero, subnormals too. A zero result is +0, a NaN 0x7FFFFFFF, overflow infinity.
// Source: MMA-Sim (arXiv 2511.10909), confirmed bit for bit with cuBLAS on an H200.

#include <cstdint>
#include <span>

#include "common/harness/dtype.h"

namespace ladder {

constexpr int kFusedProducts = 16;

/// One instruction: `a` and `b` hold the bits of up to 16 elements of type f16 or bf16 (fewer: the rest are zero, as
/// TMA fills them), `accumulator` the bits of an f32. Returns the bits of the new f32.
uint32_t fused_multiply_add(DType type, std::span<const uint16_t> a, std::span<const uint16_t> b, uint32_t accumulator);

/// The accumulator after a whole row of A and of B (`k` elements each), in blocks of 16 along k from zero: the f32 bits
/// of one output.
uint32_t tensor_core_dot(DType type, const uint16_t* a, const uint16_t* b, int64_t k);

}  // namespace ladder
