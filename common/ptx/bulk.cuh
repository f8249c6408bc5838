// Bulk copies without a tensor map, and the groups by which a thread waits for its own bulk stores (TMA tile stores
// too). Addresses and sizes are multiples of 16 bytes. Asynchronous, through the async proxy, one copy per active
// thread.
#pragma once

#include <cstdint>

namespace ladder {

/// Copies `bytes` bytes from global memory at `source` to shared memory at `destination`; `barrier` is credited with
/// the bytes when they have arrived. PTX ISA: cp.async.bulk.
__device__ __forceinline__ void cp_async_bulk_load(uint32_t destination, const void* source, uint32_t bytes,
                                                   uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(destination),
               "l"(source), "r"(bytes), "r"(barrier)
               : "memory");
}

/// Copies `bytes` bytes from shared memory at `source` to global memory at `destination`, as part of the thread's
/// current bulk group. Writers of the source execute fence_proxy_async_shared_cta and a barrier first. PTX ISA:
/// cp.async.bulk.
__device__ __forceinline__ void cp_async_bulk_store(void* destination, uint32_t source, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(destination), "r"(source), "r"(bytes)
               : "memory");
}

/// Closes the thread's current bulk group. PTX ISA: cp.async.bulk.commit_group.
__device__ __forceinline__ void cp_async_bulk_commit_group() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Waits until at most kGroups of the thread's latest bulk groups are incomplete; what the others wrote is then visible
/// to the thread. PTX ISA: cp.async.bulk.wait_group.
template <int kGroups>
__device__ __forceinline__ void cp_async_bulk_wait_group() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kGroups) : "memory");
}

/// Waits until at most kGroups of the thread's latest bulk groups still have to read their source: shared memory that
/// the others read may be written again. PTX ISA: cp.async.bulk.wait_group.read.
template <int kGroups>
__device__ __forceinline__ void cp_async_bulk_wait_group_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kGroups) : "memory");
}

/// The same for a number that is known at run time only, 0 to 7. PTX ISA: cp.async.bulk.wait_group.read.
__device__ __forceinline__ void cp_async_bulk_wait_group_read(int groups) {
  switch (groups) {
    case 0:
      return cp_async_bulk_wait_group_read<0>();
    case 1:
      return cp_async_bulk_wait_group_read<1>();
    case 2:
      return cp_async_bulk_wait_group_read<2>();
    case 3:
      return cp_async_bulk_wait_group_read<3>();
    case 4:
      return cp_async_bulk_wait_group_read<4>();
    case 5:
      return cp_async_bulk_wait_group_read<5>();
    case 6:
      return cp_async_bulk_wait_group_read<6>();
    default:
      return cp_async_bulk_wait_group_read<7>();
  }
}

}  // namespace ladder
