// Wide accesses to global memory.
#pragma once

#include <cstdint>

namespace ladder {

/// Stores 32 bytes, `low` first, to global memory at `destination`, a multiple of 32. sm_100 and later. PTX ISA: st,
/// .v8.
__device__ __forceinline__ void st_global_v8_b32(void* destination, uint4 low, uint4 high) {
  asm volatile("st.global.v8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"l"(__cvta_generic_to_global(destination)),
               "r"(low.x), "r"(low.y), "r"(low.z), "r"(low.w), "r"(high.x), "r"(high.y), "r"(high.z), "r"(high.w)
               : "memory");
}

}  // namespace ladder
