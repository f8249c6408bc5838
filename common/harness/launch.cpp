#include "common/harness/launch.h"

#include <algorithm>
#include <array>

namespace ladder {

namespace {

/// What a launch and a question about one have in common. `attributes` must outlive the result.
using Attributes = std::array<cudaLaunchAttribute, 2>;
cudaLaunchConfig_t prepare(const void* kernel, const LaunchShape& shape, Attributes& attributes) {
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
  const unsigned cluster = shape.cluster.x * shape.cluster.y * shape.cluster.z;
  if (cluster > 1) {
    if (cluster > kPortableClusterSize) {
      check(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
            "asking for a cluster of more than 8 CTAs");
    }
    cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = shape.cluster.x;
    attribute.val.clusterDim.y = shape.cluster.y;
    attribute.val.clusterDim.z = shape.cluster.z;
  }
  if (shape.early) {
    cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  }
  config.attrs = attributes.data();
  return config;
}

}  // namespace

int resident_clusters_of(const void* kernel, const LaunchShape& shape) {
  Attributes attributes{};
  LaunchShape one = shape;
  one.grid = shape.cluster;
  one.early = false;
  const cudaLaunchConfig_t config = prepare(kernel, one, attributes);
  int clusters = 0;
  if (config.numAttrs > 0) {
    check(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config), "asking how many clusters fit");
  } else {
    int device = 0, sms = 0, ctas = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device), "asking for the number of SMs");
    check(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &ctas, kernel, static_cast<int>(shape.block.x * shape.block.y * shape.block.z), shape.dynamic_shared_bytes),
        "asking how many CTAs fit on an SM");
    clusters = sms * ctas;
  }
  return std::max(clusters, 1);  // where not one fits, the launch says why
}

void launch_pointers(const void* kernel, const LaunchShape& shape, void** arguments) {
  Attributes attributes{};
  const cudaLaunchConfig_t config = prepare(kernel, shape, attributes);
  check(cudaLaunchKernelExC(&config, kernel, arguments), "launching the kernel");
}

}  // namespace ladder
