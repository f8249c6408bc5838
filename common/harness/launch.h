#pragma once
// Kernel launches with a cluster shape and as much dynamic shared memory as the kernel wants.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "common/harness/cuda_error.h"

namespace ladder {

struct LaunchShape {
  dim3 grid;
  dim3 block;
  dim3 cluster = {1, 1, 1};  ///< CTAs per cluster; must divide the grid in every dimension
  size_t dynamic_shared_bytes = 0;
  cudaStream_t stream = nullptr;
  bool early = false;  ///< CTAs may come while the kernel before it in the stream still runs, and wait in
                       ///< griddepcontrol.wait: programmatic dependent launch
};

/// Untyped form: `arguments` holds the address of each kernel parameter. Throws CudaError.
void launch_pointers(const void* kernel, const LaunchShape& shape, void** arguments);

/// How many clusters of this shape (without its grid) the device holds at once: at least 1. Throws CudaError.
int resident_clusters_of(const void* kernel, const LaunchShape& shape);
template <class... P>
int resident_clusters(void (*kernel)(P...), const LaunchShape& shape) {
  return resident_clusters_of(reinterpret_cast<const void*>(kernel), shape);
}

/// launch(kernel, {.grid = ..., .block = ...}, arguments...). Arguments are converted to the kernel's parameter types,
/// so an int passed for an int64_t is no accident waiting to happen. Dynamic shared memory and clusters of more than 8
/// CTAs are asked for. Throws CudaError; does not wait.
template <class... P, class... A>
void launch(void (*kernel)(P...), const LaunchShape& shape, A&&... args) {
  static_assert(sizeof...(P) == sizeof...(A), "one argument for each kernel parameter");
  std::tuple<std::remove_cv_t<P>...> values{static_cast<std::remove_cv_t<P>>(std::forward<A>(args))...};
  std::apply(
      [&](auto&... value) {
        void* pointers[sizeof...(P) + 1] = {static_cast<void*>(&value)...};
        launch_pointers(reinterpret_cast<const void*>(kernel), shape, pointers);
      },
      values);
}

}  // namespace ladder
