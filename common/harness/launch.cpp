#include "common/harness/launch.h"

namespace ladder {

void launch_pointers(const void* kernel, const LaunchShape& shape, void** arguments) {
  constexpr unsigned kPortableClusterSize = 8;
  if (shape.dynamic_shared_bytes > 0) {  // needed where more than 48 KB come together with the static ones
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shape.dynamic_shared_bytes)),
          "asking for dynamic shared memory");
  }
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.dynamic_shared_bytes;
  config.stream = shape.stream;
  cudaLaunchAttribute attribute{};
  const unsigned cluster = shape.cluster.x * shape.cluster.y * shape.cluster.z;
  if (cluster > 1) {
    if (cluster > kPortableClusterSize) {
      check(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
            "asking for a cluster of more than 8 CTAs");
    }
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = shape.cluster.x;
    attribute.val.clusterDim.y = shape.cluster.y;
    attribute.val.clusterDim.z = shape.cluster.z;
    config.attrs = &attribute;
    config.numAttrs = 1;
  }
  check(cudaLaunchKernelExC(&config, kernel, arguments), "launching the kernel");
}

}  // namespace ladder
