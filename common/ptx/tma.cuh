// TMA: copies of boxes between a tensor in global memory, described by a tensor map, and shared memory.
// Coordinates count elements, innermost dimension first, and may lie outside on loads: what lies outside reads as the
// map's fill (zeros) and is counted in bytes all the same; stores drop it (and take no negative coordinate). The box in
// shared memory is dense (or swizzled as the map says) and starts at a multiple of 128 bytes, with swizzle of the
// pattern's period. Asynchronous, through the async proxy, one copy per active thread: call them in one thread. `map`:
// a const __grid_constant__ kernel parameter, or constant or global memory.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace ladder {

/// Brings the tensor map into the cache that copies read it from. PTX ISA: prefetch.tensormap.
__device__ __forceinline__ void prefetch_tensormap(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/// Loads one box into shared memory at `destination`; `barrier` is credited with the box's bytes when they have
/// arrived, and whoever then waits on it sees them. PTX ISA: cp.async.bulk.tensor.
__device__ __forceinline__ void cp_async_bulk_tensor_1d(uint32_t destination, const CUtensorMap* map, uint32_t barrier,
                                                        int32_t c0) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3}], [%2];" ::"r"(
          destination),
      "l"(map), "r"(barrier), "r"(c0)
      : "memory");
}

/// The same from a 2-D tensor. PTX ISA: cp.async.bulk.tensor.
__device__ __forceinline__ void cp_async_bulk_tensor_2d(uint32_t destination, const CUtensorMap* map, uint32_t barrier,
                                                        int32_t c0, int32_t c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
          destination),
      "l"(map), "r"(barrier), "r"(c0), "r"(c1)
      : "memory");
}

/// The same for CTAs of a pair. With kCtaGroup 2, `barrier` may be in either CTA of the pair (a shared::cluster
/// address), whichever of them `destination` is in. PTX ISA: cp.async.bulk.tensor, .cta_group.
template <int kCtaGroup>
__device__ __forceinline__ void cp_async_bulk_tensor_2d_cta_group(uint32_t destination, const CUtensorMap* map,
                                                                  uint32_t barrier, int32_t c0, int32_t c1) {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2);
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::%5 [%0], [%1, {%3, "
      "%4}], [%2];" ::"r"(destination),
      "l"(map), "r"(barrier), "r"(c0), "r"(c1), "n"(kCtaGroup)
      : "memory");
}

/// The same into every CTA of the cluster whose rank's bit is set in `ctas`: to the same offset in its shared memory as
/// `destination` has in this CTA's, and credited to its barrier at the offset of `barrier`. PTX ISA:
/// cp.async.bulk.tensor, .multicast::cluster.
__device__ __forceinline__ void cp_async_bulk_tensor_2d_multicast(uint32_t destination, const CUtensorMap* map,
                                                                  uint32_t barrier, int32_t c0, int32_t c1,
                                                                  uint16_t ctas) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, "
      "{%3, %4}], [%2], %5;" ::"r"(destination),
      "l"(map), "r"(barrier), "r"(c0), "r"(c1), "h"(ctas)
      : "memory");
}

/// The same from a 3-D tensor. PTX ISA: cp.async.bulk.tensor.
__device__ __forceinline__ void cp_async_bulk_tensor_3d(uint32_t destination, const CUtensorMap* map, uint32_t barrier,
                                                        int32_t c0, int32_t c1, int32_t c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::
          "r"(destination),
      "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}

/// The same from a 4-D tensor. PTX ISA: cp.async.bulk.tensor.
__device__ __forceinline__ void cp_async_bulk_tensor_4d(uint32_t destination, const CUtensorMap* map, uint32_t barrier,
                                                        int32_t c0, int32_t c1, int32_t c2, int32_t c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
      "[%2];" ::"r"(destination),
      "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}

/// The same from a 5-D tensor. PTX ISA: cp.async.bulk.tensor.
__device__ __forceinline__ void cp_async_bulk_tensor_5d(uint32_t destination, const CUtensorMap* map, uint32_t barrier,
                                                        int32_t c0, int32_t c1, int32_t c2, int32_t c3, int32_t c4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], "
      "[%2];" ::"r"(destination),
      "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}

/// Stores one box from shared memory at `source`, as part of the thread's current bulk group (bulk.cuh). Writers of the
/// source execute fence_proxy_async_shared_cta and a barrier first. PTX ISA: cp.async.bulk.tensor.
__device__ __forceinline__ void cp_async_bulk_tensor_1d_store(const CUtensorMap* map, uint32_t source, int32_t c0) {
  asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%0, {%2}], [%1];" ::"l"(map), "r"(source),
               "r"(c0)
               : "memory");
}

/// The same to a 2-D tensor. PTX ISA: cp.async.bulk.tensor.
__device__ __forceinline__ void cp_async_bulk_tensor_2d_store(const CUtensorMap* map, uint32_t source, int32_t c0,
                                                              int32_t c1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
               "r"(source), "r"(c0), "r"(c1)
               : "memory");
}

/// The same to a 3-D tensor. PTX ISA: cp.async.bulk.tensor.
__device__ __forceinline__ void cp_async_bulk_tensor_3d_store(const CUtensorMap* map, uint32_t source, int32_t c0,
                                                              int32_t c1, int32_t c2) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
               "r"(source), "r"(c0), "r"(c1), "r"(c2)
               : "memory");
}

/// The same to a 4-D tensor. PTX ISA: cp.async.bulk.tensor.
__device__ __forceinline__ void cp_async_bulk_tensor_4d_store(const CUtensorMap* map, uint32_t source, int32_t c0,
                                                              int32_t c1, int32_t c2, int32_t c3) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),
               "r"(source), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
               : "memory");
}

/// The same to a 5-D tensor. PTX ISA: cp.async.bulk.tensor.
__device__ __forceinline__ void cp_async_bulk_tensor_5d_store(const CUtensorMap* map, uint32_t source, int32_t c0,
                                                              int32_t c1, int32_t c2, int32_t c3, int32_t c4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(map),
      "r"(source), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}

}  // namespace ladder
