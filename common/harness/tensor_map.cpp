#include "common/harness/tensor_map.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "common/harness/cuda_error.h"

namespace ladder {
namespace {

constexpr size_t kMostDimensions = 5;
constexpr uint64_t kLargestDimension = uint64_t{1} << 32, kStrideLimit = uint64_t{1} << 40;
constexpr uint32_t kLargestBox = 256;

using Encode = decltype(&cuTensorMapEncodeTiled);

Encode find_encoder() {
  constexpr unsigned kSinceCuda12 = 12000;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kSinceCuda12, cudaEnableDefault, &found),
        "cudaGetDriverEntryPointByVersion of cuTensorMapEncodeTiled");
  if (found != cudaDriverEntryPointSuccess || function == nullptr) {
    throw CudaError(cudaErrorNotSupported,
                    "the driver has no cuTensorMapEncodeTiled: TMA needs a driver for CUDA 12 or newer");
  }
  return reinterpret_cast<Encode>(function);
}

CUtensorMapDataType encoded(DType type) {
  switch (type) {
    case DType::f16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::f32:
      break;
  }
  return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
}

uint64_t span_bytes(CUtensorMapSwizzle swizzle) {
  switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_NONE:
      return UINT64_MAX;
    case CU_TENSOR_MAP_SWIZZLE_32B:
      return 32;
    case CU_TENSOR_MAP_SWIZZLE_64B:
      return 64;
    default:
      return 128;
  }
}

[[noreturn]] void refuse(const std::string& why) {
  throw std::invalid_argument("tensor map: " + why);
}

void check_arguments(DType type, const void* base, std::span<const uint64_t> dims,
                     std::span<const uint64_t> strides_bytes, std::span<const uint32_t> box,
                     CUtensorMapSwizzle swizzle) {
  if (dims.empty() || dims.size() > kMostDimensions)
    refuse(fmt::format("{} dimensions; 1 to 5 are possible", dims.size()));
  if (strides_bytes.size() + 1 != dims.size()) {
    refuse(fmt::format("{} strides for {} dimensions; the first is dense, so one fewer", strides_bytes.size(),
                       dims.size()));
  }
  if (box.size() != dims.size()) refuse(fmt::format("a box of {} dimensions in {}", box.size(), dims.size()));
  if (reinterpret_cast<uintptr_t>(base) % 16 != 0) {
    refuse(fmt::format("base address {} is not a multiple of 16", fmt::ptr(base)));
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 1 || dims[i] > kLargestDimension) refuse(fmt::format("dims[{}] = {}: must be 1 to 2^32", i, dims[i]));
    if (box[i] < 1 || box[i] > kLargestBox) refuse(fmt::format("box[{}] = {}: must be 1 to 256", i, box[i]));
  }
  for (size_t i = 0; i < strides_bytes.size(); ++i) {
    if (strides_bytes[i] % 16 != 0 || strides_bytes[i] >= kStrideLimit) {
      refuse(fmt::format("strides_bytes[{}] = {}: must be a multiple of 16 below 2^40", i, strides_bytes[i]));
    }
  }
  const uint64_t row_bytes = box[0] * bytes_of(type);
  if (row_bytes % 16 != 0) {
    refuse(fmt::format("box[0] = {} elements are {} bytes: must be a multiple of 16 bytes", box[0], row_bytes));
  }
  if (row_bytes > span_bytes(swizzle)) {
    refuse(fmt::format("box[0] = {} elements are {} bytes: more than the {} bytes of the swizzle", box[0], row_bytes,
                       span_bytes(swizzle)));
  }
}

}  // namespace

CUtensorMap make_tensor_map(DType type, const void* base, std::span<const uint64_t> dims,
                            std::span<const uint64_t> strides_bytes, std::span<const uint32_t> box,
                            CUtensorMapSwizzle swizzle) {
  check_arguments(type, base, dims, strides_bytes, box, swizzle);
  static const Encode encode = find_encoder();
  std::array<cuuint64_t, kMostDimensions> encoded_dims{}, encoded_strides{};
  std::array<cuuint32_t, kMostDimensions> encoded_box{}, element_strides{};
  std::copy(dims.begin(), dims.end(), encoded_dims.begin());
  std::copy(strides_bytes.begin(), strides_bytes.end(), encoded_strides.begin());
  std::copy(box.begin(), box.end(), encoded_box.begin());
  element_strides.fill(1);
  CUtensorMap map;
  const CUresult result =
      encode(&map, encoded(type), static_cast<cuuint32_t>(dims.size()), const_cast<void*>(base), encoded_dims.data(),
             encoded_strides.data(), encoded_box.data(), element_strides.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw CudaError(cudaErrorInvalidValue,
                    fmt::format("cuTensorMapEncodeTiled refused a {}-D map (CUresult {}): its arguments keep the "
                                "documented rules, so the driver knows another",
                                dims.size(), static_cast<int>(result)));
  }
  return map;
}

}  // namespace ladder
