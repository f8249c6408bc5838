// Conversions of accumulators to the output type.
#pragma once

#include <cstdint>

namespace ladder {

/// Two f32 as two f16 in one register, `low` in bits 0-15; round to nearest even, overflow to infinity. PTX ISA: cvt.
__device__ __forceinline__ uint32_t cvt_rn_f16x2_f32(float high, float low) {
  uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

/// Two f32 as two bf16 in one register, `low` in bits 0-15; round to nearest even. PTX ISA: cvt.
__device__ __forceinline__ uint32_t cvt_rn_bf16x2_f32(float high, float low) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

}  // namespace ladder
