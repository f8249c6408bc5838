// Tensor memory (TMEM): 128 lanes x 512 columns of 32 bits an SM, where tcgen05.mma accumulates. An address is
// (lane << 16) | column. A warp reaches lanes 32 * (its index % 4) to + 31 only, and all its lanes execute these
// together. kCtaGroup is 1, or 2 for a CTA pair; all tcgen05 instructions of a kernel must agree on it.
#pragma once

#include <cstdint>

namespace ladder {

/// Allocates `columns` (a power of two, 32 to 512) columns of all lanes and writes their address to shared memory at
/// `slot`. Blocks while other CTAs on the SM hold too much. One warp; other warps read the slot after a barrier. What
/// the columns hold is undefined. PTX ISA: tcgen05.alloc.
template <int kCtaGroup>
__device__ __forceinline__ void tcgen05_alloc(uint32_t slot, uint32_t columns) {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2);
  asm volatile("tcgen05.alloc.cta_group::%2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(slot), "r"(columns),
               "n"(kCtaGroup)
               : "memory");
}

/// Says that this CTA will allocate no more, so that the next CTA on the SM may. One warp. PTX ISA:
/// tcgen05.relinquish_alloc_permit.
template <int kCtaGroup>
__device__ __forceinline__ void tcgen05_relinquish_alloc_permit() {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2);
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"n"(kCtaGroup) : "memory");
}

/// Frees what tcgen05_alloc gave: required before the kernel ends, after all use of it. One warp. PTX ISA:
/// tcgen05.dealloc.
template <int kCtaGroup>
__device__ __forceinline__ void tcgen05_dealloc(uint32_t address, uint32_t columns) {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2);
  asm volatile("tcgen05.dealloc.cta_group::%2.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns), "n"(kCtaGroup)
               : "memory");
}

/// Waits for the thread's earlier tcgen05.ld: what they read may then be overwritten, freed or handed on. (The loaded
/// registers themselves are safe to use without it: a true dependency on them is respected.) PTX ISA: tcgen05.wait;
/// tcgen05 memory consistency model, register dependencies.
__device__ __forceinline__ void tcgen05_wait_ld() {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

/// Waits for the thread's earlier tcgen05.st, before what they wrote is read or handed on. PTX ISA: tcgen05.wait.
__device__ __forceinline__ void tcgen05_wait_st() {
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}

/// Reads 8 columns from `address` on: thread t of the warp gets lane t of its quarter, columns in order. Asynchronous,
/// see tcgen05_wait_ld. PTX ISA: tcgen05.ld.
__device__ __forceinline__ void tcgen05_ld_32x32b_x8(float (&values)[8], uint32_t address) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3]), "=f"(values[4]), "=f"(values[5]),
                 "=f"(values[6]), "=f"(values[7])
               : "r"(address)
               : "memory");
}

/// The same for 16 columns. PTX ISA: tcgen05.ld.
__device__ __forceinline__ void tcgen05_ld_32x32b_x16(float (&values)[16], uint32_t address) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x16.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
      "[%16];"
      : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3]), "=f"(values[4]), "=f"(values[5]),
        "=f"(values[6]), "=f"(values[7]), "=f"(values[8]), "=f"(values[9]), "=f"(values[10]), "=f"(values[11]),
        "=f"(values[12]), "=f"(values[13]), "=f"(values[14]), "=f"(values[15])
      : "r"(address)
      : "memory");
}

/// The same for 32 columns. PTX ISA: tcgen05.ld.
__device__ __forceinline__ void tcgen05_ld_32x32b_x32(float (&values)[32], uint32_t address) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
      : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3]), "=f"(values[4]), "=f"(values[5]),
        "=f"(values[6]), "=f"(values[7]), "=f"(values[8]), "=f"(values[9]), "=f"(values[10]), "=f"(values[11]),
        "=f"(values[12]), "=f"(values[13]), "=f"(values[14]), "=f"(values[15]), "=f"(values[16]), "=f"(values[17]),
        "=f"(values[18]), "=f"(values[19]), "=f"(values[20]), "=f"(values[21]), "=f"(values[22]), "=f"(values[23]),
        "=f"(values[24]), "=f"(values[25]), "=f"(values[26]), "=f"(values[27]), "=f"(values[28]), "=f"(values[29]),
        "=f"(values[30]), "=f"(values[31])
      : "r"(address)
      : "memory");
}

/// The same for 64 columns. PTX ISA: tcgen05.ld.
__device__ __forceinline__ void tcgen05_ld_32x32b_x64(float (&values)[64], uint32_t address) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x64.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
      "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "
      "%60, %61, %62, %63}, [%64];"
      : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3]), "=f"(values[4]), "=f"(values[5]),
        "=f"(values[6]), "=f"(values[7]), "=f"(values[8]), "=f"(values[9]), "=f"(values[10]), "=f"(values[11]),
        "=f"(values[12]), "=f"(values[13]), "=f"(values[14]), "=f"(values[15]), "=f"(values[16]), "=f"(values[17]),
        "=f"(values[18]), "=f"(values[19]), "=f"(values[20]), "=f"(values[21]), "=f"(values[22]), "=f"(values[23]),
        "=f"(values[24]), "=f"(values[25]), "=f"(values[26]), "=f"(values[27]), "=f"(values[28]), "=f"(values[29]),
        "=f"(values[30]), "=f"(values[31]), "=f"(values[32]), "=f"(values[33]), "=f"(values[34]), "=f"(values[35]),
        "=f"(values[36]), "=f"(values[37]), "=f"(values[38]), "=f"(values[39]), "=f"(values[40]), "=f"(values[41]),
        "=f"(values[42]), "=f"(values[43]), "=f"(values[44]), "=f"(values[45]), "=f"(values[46]), "=f"(values[47]),
        "=f"(values[48]), "=f"(values[49]), "=f"(values[50]), "=f"(values[51]), "=f"(values[52]), "=f"(values[53]),
        "=f"(values[54]), "=f"(values[55]), "=f"(values[56]), "=f"(values[57]), "=f"(values[58]), "=f"(values[59]),
        "=f"(values[60]), "=f"(values[61]), "=f"(values[62]), "=f"(values[63])
      : "r"(address)
      : "memory");
}

/// The same for 128 columns. PTX ISA: tcgen05.ld.
__device__ __forceinline__ void tcgen05_ld_32x32b_x128(float (&values)[128], uint32_t address) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x128.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
      "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "
      "%60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, "
      "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, "
      "%103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, "
      "%121, %122, %123, %124, %125, %126, %127}, [%128];"
      : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3]), "=f"(values[4]), "=f"(values[5]),
        "=f"(values[6]), "=f"(values[7]), "=f"(values[8]), "=f"(values[9]), "=f"(values[10]), "=f"(values[11]),
        "=f"(values[12]), "=f"(values[13]), "=f"(values[14]), "=f"(values[15]), "=f"(values[16]), "=f"(values[17]),
        "=f"(values[18]), "=f"(values[19]), "=f"(values[20]), "=f"(values[21]), "=f"(values[22]), "=f"(values[23]),
        "=f"(values[24]), "=f"(values[25]), "=f"(values[26]), "=f"(values[27]), "=f"(values[28]), "=f"(values[29]),
        "=f"(values[30]), "=f"(values[31]), "=f"(values[32]), "=f"(values[33]), "=f"(values[34]), "=f"(values[35]),
        "=f"(values[36]), "=f"(values[37]), "=f"(values[38]), "=f"(values[39]), "=f"(values[40]), "=f"(values[41]),
        "=f"(values[42]), "=f"(values[43]), "=f"(values[44]), "=f"(values[45]), "=f"(values[46]), "=f"(values[47]),
        "=f"(values[48]), "=f"(values[49]), "=f"(values[50]), "=f"(values[51]), "=f"(values[52]), "=f"(values[53]),
        "=f"(values[54]), "=f"(values[55]), "=f"(values[56]), "=f"(values[57]), "=f"(values[58]), "=f"(values[59]),
        "=f"(values[60]), "=f"(values[61]), "=f"(values[62]), "=f"(values[63]), "=f"(values[64]), "=f"(values[65]),
        "=f"(values[66]), "=f"(values[67]), "=f"(values[68]), "=f"(values[69]), "=f"(values[70]), "=f"(values[71]),
        "=f"(values[72]), "=f"(values[73]), "=f"(values[74]), "=f"(values[75]), "=f"(values[76]), "=f"(values[77]),
        "=f"(values[78]), "=f"(values[79]), "=f"(values[80]), "=f"(values[81]), "=f"(values[82]), "=f"(values[83]),
        "=f"(values[84]), "=f"(values[85]), "=f"(values[86]), "=f"(values[87]), "=f"(values[88]), "=f"(values[89]),
        "=f"(values[90]), "=f"(values[91]), "=f"(values[92]), "=f"(values[93]), "=f"(values[94]), "=f"(values[95]),
        "=f"(values[96]), "=f"(values[97]), "=f"(values[98]), "=f"(values[99]), "=f"(values[100]), "=f"(values[101]),
        "=f"(values[102]), "=f"(values[103]), "=f"(values[104]), "=f"(values[105]), "=f"(values[106]),
        "=f"(values[107]), "=f"(values[108]), "=f"(values[109]), "=f"(values[110]), "=f"(values[111]),
        "=f"(values[112]), "=f"(values[113]), "=f"(values[114]), "=f"(values[115]), "=f"(values[116]),
        "=f"(values[117]), "=f"(values[118]), "=f"(values[119]), "=f"(values[120]), "=f"(values[121]),
        "=f"(values[122]), "=f"(values[123]), "=f"(values[124]), "=f"(values[125]), "=f"(values[126]), "=f"(values[127])
      : "r"(address)
      : "memory");
}

/// The one of these that fills `values`. PTX ISA: tcgen05.ld.
template <int kColumns>
__device__ __forceinline__ void tcgen05_ld_32x32b(float (&values)[kColumns], uint32_t address) {
  static_assert(kColumns == 32 || kColumns == 64 || kColumns == 128);
  if constexpr (kColumns == 32) tcgen05_ld_32x32b_x32(values, address);
  if constexpr (kColumns == 64) tcgen05_ld_32x32b_x64(values, address);
  if constexpr (kColumns == 128) tcgen05_ld_32x32b_x128(values, address);
}

/// Writes 8 columns from `address` on: thread t of the warp writes lane t of its quarter. Asynchronous, see
/// tcgen05_wait_st. PTX ISA: tcgen05.st.
__device__ __forceinline__ void tcgen05_st_32x32b_x8(uint32_t address, const float (&values)[8]) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"r"(address),
               "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3]), "f"(values[4]), "f"(values[5]),
               "f"(values[6]), "f"(values[7])
               : "memory");
}

/// The same for 16 columns. PTX ISA: tcgen05.st.
__device__ __forceinline__ void tcgen05_st_32x32b_x16(uint32_t address, const float (&values)[16]) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x16.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16};" ::"r"(address),
      "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3]), "f"(values[4]), "f"(values[5]), "f"(values[6]),
      "f"(values[7]), "f"(values[8]), "f"(values[9]), "f"(values[10]), "f"(values[11]), "f"(values[12]),
      "f"(values[13]), "f"(values[14]), "f"(values[15])
      : "memory");
}

/// The same for 32 columns. PTX ISA: tcgen05.st.
__device__ __forceinline__ void tcgen05_st_32x32b_x32(uint32_t address, const float (&values)[32]) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x32.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32};" ::"r"(address),
      "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3]), "f"(values[4]), "f"(values[5]), "f"(values[6]),
      "f"(values[7]), "f"(values[8]), "f"(values[9]), "f"(values[10]), "f"(values[11]), "f"(values[12]),
      "f"(values[13]), "f"(values[14]), "f"(values[15]), "f"(values[16]), "f"(values[17]), "f"(values[18]),
      "f"(values[19]), "f"(values[20]), "f"(values[21]), "f"(values[22]), "f"(values[23]), "f"(values[24]),
      "f"(values[25]), "f"(values[26]), "f"(values[27]), "f"(values[28]), "f"(values[29]), "f"(values[30]),
      "f"(values[31])
      : "memory");
}

/// The same for 64 columns. PTX ISA: tcgen05.st.
__device__ __forceinline__ void tcgen05_st_32x32b_x64(uint32_t address, const float (&values)[64]) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x64.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
      "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "
      "%60, %61, %62, %63, %64};" ::"r"(address),
      "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3]), "f"(values[4]), "f"(values[5]), "f"(values[6]),
      "f"(values[7]), "f"(values[8]), "f"(values[9]), "f"(values[10]), "f"(values[11]), "f"(values[12]),
      "f"(values[13]), "f"(values[14]), "f"(values[15]), "f"(values[16]), "f"(values[17]), "f"(values[18]),
      "f"(values[19]), "f"(values[20]), "f"(values[21]), "f"(values[22]), "f"(values[23]), "f"(values[24]),
      "f"(values[25]), "f"(values[26]), "f"(values[27]), "f"(values[28]), "f"(values[29]), "f"(values[30]),
      "f"(values[31]), "f"(values[32]), "f"(values[33]), "f"(values[34]), "f"(values[35]), "f"(values[36]),
      "f"(values[37]), "f"(values[38]), "f"(values[39]), "f"(values[40]), "f"(values[41]), "f"(values[42]),
      "f"(values[43]), "f"(values[44]), "f"(values[45]), "f"(values[46]), "f"(values[47]), "f"(values[48]),
      "f"(values[49]), "f"(values[50]), "f"(values[51]), "f"(values[52]), "f"(values[53]), "f"(values[54]),
      "f"(values[55]), "f"(values[56]), "f"(values[57]), "f"(values[58]), "f"(values[59]), "f"(values[60]),
      "f"(values[61]), "f"(values[62]), "f"(values[63])
      : "memory");
}

/// The same for 128 columns. PTX ISA: tcgen05.st.
__device__ __forceinline__ void tcgen05_st_32x32b_x128(uint32_t address, const float (&values)[128]) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x128.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, "
      "%15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, "
      "%37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, "
      "%59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, "
      "%81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, "
      "%102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, "
      "%120, %121, %122, %123, %124, %125, %126, %127, %128};" ::"r"(address),
      "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3]), "f"(values[4]), "f"(values[5]), "f"(values[6]),
      "f"(values[7]), "f"(values[8]), "f"(values[9]), "f"(values[10]), "f"(values[11]), "f"(values[12]),
      "f"(values[13]), "f"(values[14]), "f"(values[15]), "f"(values[16]), "f"(values[17]), "f"(values[18]),
      "f"(values[19]), "f"(values[20]), "f"(values[21]), "f"(values[22]), "f"(values[23]), "f"(values[24]),
      "f"(values[25]), "f"(values[26]), "f"(values[27]), "f"(values[28]), "f"(values[29]), "f"(values[30]),
      "f"(values[31]), "f"(values[32]), "f"(values[33]), "f"(values[34]), "f"(values[35]), "f"(values[36]),
      "f"(values[37]), "f"(values[38]), "f"(values[39]), "f"(values[40]), "f"(values[41]), "f"(values[42]),
      "f"(values[43]), "f"(values[44]), "f"(values[45]), "f"(values[46]), "f"(values[47]), "f"(values[48]),
      "f"(values[49]), "f"(values[50]), "f"(values[51]), "f"(values[52]), "f"(values[53]), "f"(values[54]),
      "f"(values[55]), "f"(values[56]), "f"(values[57]), "f"(values[58]), "f"(values[59]), "f"(values[60]),
      "f"(values[61]), "f"(values[62]), "f"(values[63]), "f"(values[64]), "f"(values[65]), "f"(values[66]),
      "f"(values[67]), "f"(values[68]), "f"(values[69]), "f"(values[70]), "f"(values[71]), "f"(values[72]),
      "f"(values[73]), "f"(values[74]), "f"(values[75]), "f"(values[76]), "f"(values[77]), "f"(values[78]),
      "f"(values[79]), "f"(values[80]), "f"(values[81]), "f"(values[82]), "f"(values[83]), "f"(values[84]),
      "f"(values[85]), "f"(values[86]), "f"(values[87]), "f"(values[88]), "f"(values[89]), "f"(values[90]),
      "f"(values[91]), "f"(values[92]), "f"(values[93]), "f"(values[94]), "f"(values[95]), "f"(values[96]),
      "f"(values[97]), "f"(values[98]), "f"(values[99]), "f"(values[100]), "f"(values[101]), "f"(values[102]),
      "f"(values[103]), "f"(values[104]), "f"(values[105]), "f"(values[106]), "f"(values[107]), "f"(values[108]),
      "f"(values[109]), "f"(values[110]), "f"(values[111]), "f"(values[112]), "f"(values[113]), "f"(values[114]),
      "f"(values[115]), "f"(values[116]), "f"(values[117]), "f"(values[118]), "f"(values[119]), "f"(values[120]),
      "f"(values[121]), "f"(values[122]), "f"(values[123]), "f"(values[124]), "f"(values[125]), "f"(values[126]),
      "f"(values[127])
      : "memory");
}

}  // namespace ladder
