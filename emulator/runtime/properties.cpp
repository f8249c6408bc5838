#include "emulator/runtime/properties.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "emulator/runtime/launch.h"

namespace emu::runtime {
namespace {

constexpr int as_int(uint64_t value) {
  return static_cast<int>(value);
}

// What follows from the chip's description.
std::optional<int> of_chip(const Chip& chip, int attribute) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      return as_int(kMaxThreadsPerBlock);
    case cudaDevAttrMaxBlockDimX:
      return as_int(kMaxThreadsPerBlock);
    case cudaDevAttrMaxBlockDimY:
      return as_int(kMaxThreadsPerBlock);
    case cudaDevAttrMaxBlockDimZ:
      return as_int(kMaxBlockZ);
    case cudaDevAttrMaxGridDimX:
      return as_int(kMaxGridX);
    case cudaDevAttrMaxGridDimY:
      return as_int(kMaxGridYZ);
    case cudaDevAttrMaxGridDimZ:
      return as_int(kMaxGridYZ);
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return as_int(kSharedWithoutAsking);
    case cudaDevAttrMaxRegistersPerBlock:
      return as_int(chip.registers_per_sm);
    case cudaDevAttrClockRate:
      return chip.clock_khz;
    case cudaDevAttrMultiProcessorCount:
      return chip.sm_count;
    case cudaDevAttrMemoryClockRate:
      return chip.memory_clock_khz;
    case cudaDevAttrGlobalMemoryBusWidth:
      return chip.memory_bus_bits;
    case cudaDevAttrL2CacheSize:
      return as_int(chip.l2_bytes);
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return chip.threads_per_sm;
    case cudaDevAttrComputeCapabilityMajor:
      return chip.major;
    case cudaDevAttrComputeCapabilityMinor:
      return chip.minor;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return as_int(chip.shared_per_sm_bytes);
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return as_int(chip.registers_per_sm);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return as_int(chip.shared_per_cta_optin_bytes);
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return chip.ctas_per_sm;
    case cudaDevAttrMaxPersistingL2CacheSize:
      return as_int(chip.l2_bytes / 8 * 5);  // 5/8 on an H200; taken over for the others
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return as_int(chip.shared_reserved_bytes);
    default:
      return std::nullopt;
  }
}

struct Value {
  int attribute, value;
};

// What an H200 answers and a program may ask for, but no emulated chip differs in.
constexpr Value kCommon[] = {
    {cudaDevAttrTotalConstantMemory, 65536},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMaxPitch, 2147483647},
    {cudaDevAttrTextureAlignment, 512},
    {cudaDevAttrGpuOverlap, 1},
    {cudaDevAttrKernelExecTimeout, 0},
    {cudaDevAttrIntegrated, 0},
    {cudaDevAttrCanMapHostMemory, 1},
    {cudaDevAttrComputeMode, 0},
    {cudaDevAttrMaxTexture1DWidth, 131072},
    {cudaDevAttrMaxTexture2DWidth, 131072},
    {cudaDevAttrMaxTexture2DHeight, 65536},
    {cudaDevAttrMaxTexture3DWidth, 16384},
    {cudaDevAttrMaxTexture3DHeight, 16384},
    {cudaDevAttrMaxTexture3DDepth, 16384},
    {cudaDevAttrMaxTexture2DLayeredWidth, 32768},
    {cudaDevAttrMaxTexture2DLayeredHeight, 32768},
    {cudaDevAttrMaxTexture2DLayeredLayers, 2048},
    {cudaDevAttrSurfaceAlignment, 512},
    {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrEccEnabled, 1},
    {cudaDevAttrPciBusId, 0},
    {cudaDevAttrTccDriver, 0},
    {cudaDevAttrAsyncEngineCount, 3},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrMaxTexture1DLayeredWidth, 32768},
    {cudaDevAttrMaxTexture1DLayeredLayers, 2048},
    {cudaDevAttrMaxTexture2DGatherWidth, 32768},
    {cudaDevAttrMaxTexture2DGatherHeight, 32768},
    {cudaDevAttrMaxTexture3DWidthAlt, 8192},
    {cudaDevAttrMaxTexture3DHeightAlt, 8192},
    {cudaDevAttrMaxTexture3DDepthAlt, 32768},
    {cudaDevAttrPciDomainId, 0},
    {cudaDevAttrTexturePitchAlignment, 32},
    {cudaDevAttrMaxTextureCubemapWidth, 32768},
    {cudaDevAttrMaxTextureCubemapLayeredWidth, 32768},
    {cudaDevAttrMaxTextureCubemapLayeredLayers, 2046},
    {cudaDevAttrMaxSurface1DWidth, 32768},
    {cudaDevAttrMaxSurface2DWidth, 131072},
    {cudaDevAttrMaxSurface2DHeight, 65536},
    {cudaDevAttrMaxSurface3DWidth, 16384},
    {cudaDevAttrMaxSurface3DHeight, 16384},
    {cudaDevAttrMaxSurface3DDepth, 16384},
    {cudaDevAttrMaxSurface1DLayeredWidth, 32768},
    {cudaDevAttrMaxSurface1DLayeredLayers, 2048},
    {cudaDevAttrMaxSurface2DLayeredWidth, 32768},
    {cudaDevAttrMaxSurface2DLayeredHeight, 32768},
    {cudaDevAttrMaxSurface2DLayeredLayers, 2048},
    {cudaDevAttrMaxSurfaceCubemapWidth, 32768},
    {cudaDevAttrMaxSurfaceCubemapLayeredWidth, 32768},
    {cudaDevAttrMaxSurfaceCubemapLayeredLayers, 2046},
    {cudaDevAttrMaxTexture1DLinearWidth, 268435456},
    {cudaDevAttrMaxTexture2DLinearWidth, 131072},
    {cudaDevAttrMaxTexture2DLinearHeight, 65000},
    {cudaDevAttrMaxTexture2DLinearPitch, 2097120},
    {cudaDevAttrMaxTexture2DMipmappedWidth, 32768},
    {cudaDevAttrMaxTexture2DMipmappedHeight, 32768},
    {cudaDevAttrMaxTexture1DMipmappedWidth, 32768},
    {cudaDevAttrStreamPrioritiesSupported, 1},
    {cudaDevAttrGlobalL1CacheSupported, 1},
    {cudaDevAttrLocalL1CacheSupported, 1},
    {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrIsMultiGpuBoard, 0},
    {cudaDevAttrMultiGpuBoardGroupID, 0},
    {cudaDevAttrHostNativeAtomicSupported, 0},
    {cudaDevAttrSingleToDoublePrecisionPerfRatio, 2},
    {cudaDevAttrPageableMemoryAccess, 0},
    {cudaDevAttrConcurrentManagedAccess, 1},
    {cudaDevAttrComputePreemptionSupported, 1},
    {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
    {cudaDevAttrCooperativeLaunch, 1},
    {cudaDevAttrCanFlushRemoteWrites, 0},
    {cudaDevAttrHostRegisterSupported, 1},
    {cudaDevAttrPageableMemoryAccessUsesHostPageTables, 0},
    {cudaDevAttrDirectManagedMemAccessFromHost, 0},
    {cudaDevAttrMaxAccessPolicyWindowSize, 134217728},
    {cudaDevAttrHostRegisterReadOnlySupported, 1},
    {cudaDevAttrMemoryPoolsSupported, 1},
    {cudaDevAttrClusterLaunch, 1},
    {cudaDevAttrMemSyncDomainCount, 4},
    {cudaDevAttrNumaConfig, 0},
    {cudaDevAttrNumaId, -1},
    {cudaDevAttrMpsEnabled, 0},
    {cudaDevAttrHostNumaId, 0},
    {cudaDevAttrD3D12CigSupported, 0},
    {cudaDevAttrVulkanCigSupported, 0},
    {cudaDevAttrHostNumaMultinodeIpcSupported, 0},
    {cudaDevAttrOnlyPartialHostNativeAtomicSupported, 0},
    // Those that only the driver API has a name for.
    {122, 1},  // CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS
    {123, 1},  // CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR
    {127, 1},  // CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED
    {129, 1},  // CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS
};

// What a real chip has and the emulator does not: 0.
constexpr int kAbsent[] = {
    cudaDevAttrPciDeviceId,
    cudaDevAttrSparseCudaArraySupported,
    cudaDevAttrTimelineSemaphoreInteropSupported,
    cudaDevAttrGPUDirectRDMASupported,
    cudaDevAttrGPUDirectRDMAFlushWritesOptions,
    cudaDevAttrGPUDirectRDMAWritesOrdering,
    cudaDevAttrMemoryPoolSupportedHandleTypes,
    cudaDevAttrDeferredMappingCudaArraySupported,
    cudaDevAttrIpcEventSupport,
    cudaDevAttrGpuPciDeviceId,
    cudaDevAttrGpuPciSubsystemId,
    cudaDevAttrHostNumaMemoryPoolsSupported,
    cudaDevAttrHostMemoryPoolsSupported,
    102,  // CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
    132,  // CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED
};

}  // namespace

std::optional<int> device_attribute(const Chip& chip, int attribute) {
  if (const auto value = of_chip(chip, attribute)) return value;
  for (const Value& common : kCommon)
    if (common.attribute == attribute) return common.value;
  if (std::find(std::begin(kAbsent), std::end(kAbsent), attribute) != std::end(kAbsent)) return 0;
  return std::nullopt;
}

cudaDeviceProp device_properties(const Chip& chip) {
  static_assert(sizeof(cudaDeviceProp) == 1008, "the layout of CUDA 13.0");
  cudaDeviceProp properties;
  std::memset(&properties, 0, sizeof properties);
  fmt::format_to_n(properties.name, sizeof properties.name - 1, "{}", chip.device_name);
  fmt::format_to_n(properties.uuid.bytes, sizeof properties.uuid.bytes, "emulated-{}", chip.name);
  properties.totalGlobalMem = chip.global_memory_bytes;
  properties.unifiedFunctionPointers = 1;
  const auto set = [&](auto& field, cudaDeviceAttr attribute) {
    field = static_cast<std::remove_reference_t<decltype(field)>>(*device_attribute(chip, attribute));
  };
  set(properties.sharedMemPerBlock, cudaDevAttrMaxSharedMemoryPerBlock);
  set(properties.regsPerBlock, cudaDevAttrMaxRegistersPerBlock);
  set(properties.warpSize, cudaDevAttrWarpSize);
  set(properties.memPitch, cudaDevAttrMaxPitch);
  set(properties.maxThreadsPerBlock, cudaDevAttrMaxThreadsPerBlock);
  set(properties.maxThreadsDim[0], cudaDevAttrMaxBlockDimX);
  set(properties.maxThreadsDim[1], cudaDevAttrMaxBlockDimY);
  set(properties.maxThreadsDim[2], cudaDevAttrMaxBlockDimZ);
  set(properties.maxGridSize[0], cudaDevAttrMaxGridDimX);
  set(properties.maxGridSize[1], cudaDevAttrMaxGridDimY);
  set(properties.maxGridSize[2], cudaDevAttrMaxGridDimZ);
  set(properties.totalConstMem, cudaDevAttrTotalConstantMemory);
  set(properties.major, cudaDevAttrComputeCapabilityMajor);
  set(properties.minor, cudaDevAttrComputeCapabilityMinor);
  set(properties.textureAlignment, cudaDevAttrTextureAlignment);
  set(properties.texturePitchAlignment, cudaDevAttrTexturePitchAlignment);
  set(properties.multiProcessorCount, cudaDevAttrMultiProcessorCount);
  set(properties.integrated, cudaDevAttrIntegrated);
  set(properties.canMapHostMemory, cudaDevAttrCanMapHostMemory);
  set(properties.maxTexture1D, cudaDevAttrMaxTexture1DWidth);
  set(properties.maxTexture1DMipmap, cudaDevAttrMaxTexture1DMipmappedWidth);
  set(properties.maxTexture2D[0], cudaDevAttrMaxTexture2DWidth);
  set(properties.maxTexture2D[1], cudaDevAttrMaxTexture2DHeight);
  set(properties.maxTexture2DMipmap[0], cudaDevAttrMaxTexture2DMipmappedWidth);
  set(properties.maxTexture2DMipmap[1], cudaDevAttrMaxTexture2DMipmappedHeight);
  set(properties.maxTexture2DLinear[0], cudaDevAttrMaxTexture2DLinearWidth);
  set(properties.maxTexture2DLinear[1], cudaDevAttrMaxTexture2DLinearHeight);
  set(properties.maxTexture2DLinear[2], cudaDevAttrMaxTexture2DLinearPitch);
  set(properties.maxTexture2DGather[0], cudaDevAttrMaxTexture2DGatherWidth);
  set(properties.maxTexture2DGather[1], cudaDevAttrMaxTexture2DGatherHeight);
  set(properties.maxTexture3D[0], cudaDevAttrMaxTexture3DWidth);
  set(properties.maxTexture3D[1], cudaDevAttrMaxTexture3DHeight);
  set(properties.maxTexture3D[2], cudaDevAttrMaxTexture3DDepth);
  set(properties.maxTexture3DAlt[0], cudaDevAttrMaxTexture3DWidthAlt);
  set(properties.maxTexture3DAlt[1], cudaDevAttrMaxTexture3DHeightAlt);
  set(properties.maxTexture3DAlt[2], cudaDevAttrMaxTexture3DDepthAlt);
  set(properties.maxTextureCubemap, cudaDevAttrMaxTextureCubemapWidth);
  set(properties.maxTexture1DLayered[0], cudaDevAttrMaxTexture1DLayeredWidth);
  set(properties.maxTexture1DLayered[1], cudaDevAttrMaxTexture1DLayeredLayers);
  set(properties.maxTexture2DLayered[0], cudaDevAttrMaxTexture2DLayeredWidth);
  set(properties.maxTexture2DLayered[1], cudaDevAttrMaxTexture2DLayeredHeight);
  set(properties.maxTexture2DLayered[2], cudaDevAttrMaxTexture2DLayeredLayers);
  set(properties.maxTextureCubemapLayered[0], cudaDevAttrMaxTextureCubemapLayeredWidth);
  set(properties.maxTextureCubemapLayered[1], cudaDevAttrMaxTextureCubemapLayeredLayers);
  set(properties.maxSurface1D, cudaDevAttrMaxSurface1DWidth);
  set(properties.maxSurface2D[0], cudaDevAttrMaxSurface2DWidth);
  set(properties.maxSurface2D[1], cudaDevAttrMaxSurface2DHeight);
  set(properties.maxSurface3D[0], cudaDevAttrMaxSurface3DWidth);
  set(properties.maxSurface3D[1], cudaDevAttrMaxSurface3DHeight);
  set(properties.maxSurface3D[2], cudaDevAttrMaxSurface3DDepth);
  set(properties.maxSurface1DLayered[0], cudaDevAttrMaxSurface1DLayeredWidth);
  set(properties.maxSurface1DLayered[1], cudaDevAttrMaxSurface1DLayeredLayers);
  set(properties.maxSurface2DLayered[0], cudaDevAttrMaxSurface2DLayeredWidth);
  set(properties.maxSurface2DLayered[1], cudaDevAttrMaxSurface2DLayeredHeight);
  set(properties.maxSurface2DLayered[2], cudaDevAttrMaxSurface2DLayeredLayers);
  set(properties.maxSurfaceCubemap, cudaDevAttrMaxSurfaceCubemapWidth);
  set(properties.maxSurfaceCubemapLayered[0], cudaDevAttrMaxSurfaceCubemapLayeredWidth);
  set(properties.maxSurfaceCubemapLayered[1], cudaDevAttrMaxSurfaceCubemapLayeredLayers);
  set(properties.surfaceAlignment, cudaDevAttrSurfaceAlignment);
  set(properties.concurrentKernels, cudaDevAttrConcurrentKernels);
  set(properties.ECCEnabled, cudaDevAttrEccEnabled);
  set(properties.pciBusID, cudaDevAttrPciBusId);
  set(properties.pciDeviceID, cudaDevAttrPciDeviceId);
  set(properties.pciDomainID, cudaDevAttrPciDomainId);
  set(properties.tccDriver, cudaDevAttrTccDriver);
  set(properties.asyncEngineCount, cudaDevAttrAsyncEngineCount);
  set(properties.unifiedAddressing, cudaDevAttrUnifiedAddressing);
  set(properties.memoryBusWidth, cudaDevAttrGlobalMemoryBusWidth);
  set(properties.l2CacheSize, cudaDevAttrL2CacheSize);
  set(properties.persistingL2CacheMaxSize, cudaDevAttrMaxPersistingL2CacheSize);
  set(properties.maxThreadsPerMultiProcessor, cudaDevAttrMaxThreadsPerMultiProcessor);
  set(properties.streamPrioritiesSupported, cudaDevAttrStreamPrioritiesSupported);
  set(properties.globalL1CacheSupported, cudaDevAttrGlobalL1CacheSupported);
  set(properties.localL1CacheSupported, cudaDevAttrLocalL1CacheSupported);
  set(properties.sharedMemPerMultiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  set(properties.regsPerMultiprocessor, cudaDevAttrMaxRegistersPerMultiprocessor);
  set(properties.managedMemory, cudaDevAttrManagedMemory);
  set(properties.isMultiGpuBoard, cudaDevAttrIsMultiGpuBoard);
  set(properties.multiGpuBoardGroupID, cudaDevAttrMultiGpuBoardGroupID);
  set(properties.hostNativeAtomicSupported, cudaDevAttrHostNativeAtomicSupported);
  set(properties.pageableMemoryAccess, cudaDevAttrPageableMemoryAccess);
  set(properties.concurrentManagedAccess, cudaDevAttrConcurrentManagedAccess);
  set(properties.computePreemptionSupported, cudaDevAttrComputePreemptionSupported);
  set(properties.canUseHostPointerForRegisteredMem, cudaDevAttrCanUseHostPointerForRegisteredMem);
  set(properties.cooperativeLaunch, cudaDevAttrCooperativeLaunch);
  set(properties.sharedMemPerBlockOptin, cudaDevAttrMaxSharedMemoryPerBlockOptin);
  set(properties.pageableMemoryAccessUsesHostPageTables, cudaDevAttrPageableMemoryAccessUsesHostPageTables);
  set(properties.directManagedMemAccessFromHost, cudaDevAttrDirectManagedMemAccessFromHost);
  set(properties.maxBlocksPerMultiProcessor, cudaDevAttrMaxBlocksPerMultiprocessor);
  set(properties.accessPolicyMaxWindowSize, cudaDevAttrMaxAccessPolicyWindowSize);
  set(properties.reservedSharedMemPerBlock, cudaDevAttrReservedSharedMemoryPerBlock);
  set(properties.hostRegisterSupported, cudaDevAttrHostRegisterSupported);
  set(properties.sparseCudaArraySupported, cudaDevAttrSparseCudaArraySupported);
  set(properties.hostRegisterReadOnlySupported, cudaDevAttrHostRegisterReadOnlySupported);
  set(properties.timelineSemaphoreInteropSupported, cudaDevAttrTimelineSemaphoreInteropSupported);
  set(properties.memoryPoolsSupported, cudaDevAttrMemoryPoolsSupported);
  set(properties.gpuDirectRDMASupported, cudaDevAttrGPUDirectRDMASupported);
  set(properties.gpuDirectRDMAFlushWritesOptions, cudaDevAttrGPUDirectRDMAFlushWritesOptions);
  set(properties.gpuDirectRDMAWritesOrdering, cudaDevAttrGPUDirectRDMAWritesOrdering);
  set(properties.memoryPoolSupportedHandleTypes, cudaDevAttrMemoryPoolSupportedHandleTypes);
  set(properties.deferredMappingCudaArraySupported, cudaDevAttrDeferredMappingCudaArraySupported);
  set(properties.ipcEventSupported, cudaDevAttrIpcEventSupport);
  set(properties.clusterLaunch, cudaDevAttrClusterLaunch);
  set(properties.deviceNumaConfig, cudaDevAttrNumaConfig);
  set(properties.deviceNumaId, cudaDevAttrNumaId);
  set(properties.mpsEnabled, cudaDevAttrMpsEnabled);
  set(properties.hostNumaId, cudaDevAttrHostNumaId);
  set(properties.gpuPciDeviceID, cudaDevAttrGpuPciDeviceId);
  set(properties.gpuPciSubsystemID, cudaDevAttrGpuPciSubsystemId);
  set(properties.hostNumaMultinodeIpcSupported, cudaDevAttrHostNumaMultinodeIpcSupported);
  return properties;
}

}  // namespace emu::runtime
