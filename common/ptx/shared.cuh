// Shared-memory addresses as the instructions of common/ptx take them.
#pragma once

#include <cstdint>

namespace ladder {

/// The 32-bit shared::cta address of an object that lives in shared memory. It is a valid shared::cluster address too:
/// the CTA's own window lies inside the cluster's. PTX ISA: State Spaces, shared; cvta.to.shared.
template <typename T>
__device__ __forceinline__ uint32_t shared_address(const T& object) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(&object));
}

}  // namespace ladder
