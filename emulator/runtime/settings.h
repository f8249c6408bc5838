#pragma once
// What a program may set about the device and read back. Only the size of the heap (cudaLimitMallocHeapSize) changes
// what the emulator does.

#include <array>
#include <cstddef>
#include <optional>

#include "emulator/runtime/cuda_api.h"

namespace emu::runtime {

struct Settings {
  unsigned device_flags = 0;  ///< of cudaSetDeviceFlags
  cudaFuncCache cache_config = cudaFuncCachePreferNone;
  // By cudaLimit; what an H200 answers before anything was set.
  std::array<std::optional<size_t>, 7> limits = {
      1024,          // cudaLimitStackSize
      8650752,       // cudaLimitPrintfFifoSize
      8 << 20,       // cudaLimitMallocHeapSize
      std::nullopt,  // cudaLimitDevRuntimeSyncDepth: not supported
      2048,          // cudaLimitDevRuntimePendingLaunchCount
      64,            // cudaLimitMaxL2FetchGranularity
      size_t{0},     // cudaLimitPersistingL2CacheSize
  };
};

}  // namespace emu::runtime
