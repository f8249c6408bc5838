// How many CTAs and clusters the chip holds.

#include <algorithm>

#include "emulator/runtime/api.h"
#include "emulator/runtime/launch.h"

using namespace emu::runtime;

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int block_size,
                                                          size_t dynamic_shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, dynamic_shared_bytes,
                                                                cudaOccupancyDefault);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int block_size,
                                                                   size_t dynamic_shared_bytes, unsigned flags) {
  return answer([&](Runtime& runtime) {
    require(blocks && block_size > 0 && flags <= cudaOccupancyDisableCachingOverride);
    *blocks = blocks_per_sm(runtime, find_function(runtime, function), block_size, dynamic_shared_bytes);
  });
}

// As an H200 answers: an even share of the SM's shared memory, within what the kernel may ask for.
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* dynamic_shared_bytes, const void* what, int blocks,
                                                      int block_size) {
  return answer([&](Runtime& runtime) {
    require(dynamic_shared_bytes && blocks > 0 && block_size > 0);
    const Function& function = find_function(runtime, what);
    const auto loaded = function.load(runtime);
    const uint32_t share = runtime.chip().shared_per_sm_bytes / static_cast<uint32_t>(blocks);
    require(share >= loaded.kernel->static_shared_bytes);
    require(blocks_per_sm(runtime, function, block_size, 0) >= blocks);
    *dynamic_shared_bytes =
        std::min(share - loaded.kernel->static_shared_bytes, function.dynamic_shared_limit(*loaded.kernel));
  });
}

// A cluster keeps inside a GPC, so that large ones leave some SMs idle (Chip::gpc_sms).
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* function, const cudaLaunchConfig_t* config) {
  return answer([&](Runtime& runtime) {
    require(clusters && config && (config->attrs || config->numAttrs == 0));
    const Function& kernel = find_function(runtime, function);
    const dim3 block = config->blockDim;
    const uint64_t threads = uint64_t{block.x} * block.y * block.z;
    require(threads > 0);
    emu::Dim3 cluster = kernel.load(runtime).kernel->required_cluster;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      if (config->attrs[i].id != cudaLaunchAttributeClusterDimension) continue;
      const auto& dim = config->attrs[i].val.clusterDim;
      cluster = {dim.x, dim.y, dim.z};
    }
    const emu::Chip& chip = runtime.chip();
    const auto most = static_cast<uint64_t>(kernel.non_portable_cluster ? chip.max_cluster : chip.max_cluster_portable);
    require(cluster.count() >= 1 && cluster.count() <= most, cudaErrorInvalidClusterSize);
    const int per_sm = threads > kMaxThreadsPerBlock
                           ? 0
                           : blocks_per_sm(runtime, kernel, static_cast<int>(threads), config->dynamicSmemBytes);
    *clusters = runtime.device().max_clusters(per_sm, cluster.count());
  });
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* function, const cudaLaunchConfig_t* config) {
  return answer([&](Runtime& runtime) {
    require(size && config);
    const Function& kernel = find_function(runtime, function);
    const dim3 block = config->blockDim;
    const uint64_t threads = uint64_t{block.x} * block.y * block.z;
    require(threads > 0 && threads <= kMaxThreadsPerBlock);
    const int per_sm = blocks_per_sm(runtime, kernel, static_cast<int>(threads), config->dynamicSmemBytes);
    int most = kernel.non_portable_cluster ? runtime.chip().max_cluster : runtime.chip().max_cluster_portable;
    while (most > 0 && runtime.device().max_clusters(per_sm, static_cast<uint64_t>(most)) == 0) --most;
    *size = most;
  });
}
