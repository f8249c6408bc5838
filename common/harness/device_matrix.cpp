#include "common/harness/device_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "common/harness/canary.h"
#include "common/harness/cuda_error.h"

namespace ladder {

size_t device_bytes(size_t matrix_bytes) {
  return matrix_bytes + 2 * kBandBytes;
}

DeviceMatrix::DeviceMatrix(size_t bytes, std::string name, uint32_t which)
    : bytes_(bytes), name_(std::move(name)), which_(which) {
  const std::string what = fmt::format("cudaMalloc of {} bytes for {}", device_bytes(bytes_), name_);
  void* allocation = nullptr;
  check(cudaMalloc(&allocation, device_bytes(bytes_)), what.c_str());
  allocation_ = static_cast<std::byte*>(allocation);
  std::vector<std::byte> band(kBandBytes);
  fill_canary(band, 2 * which_);
  check(cudaMemcpy(allocation_, band.data(), kBandBytes, cudaMemcpyHostToDevice), "writing the band before a matrix");
  fill_canary(band, 2 * which_ + 1);
  check(cudaMemcpy(allocation_ + kBandBytes + bytes_, band.data(), kBandBytes, cudaMemcpyHostToDevice),
        "writing the band after a matrix");
}

DeviceMatrix::~DeviceMatrix() {
  cudaFree(allocation_);
}

void* DeviceMatrix::data() const {
  return allocation_ + kBandBytes;
}

void DeviceMatrix::upload(const HostMatrix& matrix) {
  check(cudaMemcpy(data(), matrix.data(), bytes_, cudaMemcpyHostToDevice), "copying a matrix to the device");
}

void DeviceMatrix::download(HostMatrix& matrix) const {
  check(cudaMemcpy(matrix.data(), data(), bytes_, cudaMemcpyDeviceToHost), "copying a matrix from the device");
}

void DeviceMatrix::fill(unsigned char byte) {
  check(cudaMemset(data(), byte, bytes_), "filling a matrix");
}

std::optional<std::string> DeviceMatrix::damage() const {
  std::vector<std::byte> band(kBandBytes);
  for (const bool after : {false, true}) {
    const std::byte* source = after ? allocation_ + kBandBytes + bytes_ : allocation_;
    check(cudaMemcpy(band.data(), source, kBandBytes, cudaMemcpyDeviceToHost), "reading a band");
    const std::optional<size_t> offset = find_canary_damage(band, 2 * which_ + after);
    if (!offset) continue;
    return after
               ? fmt::format("something wrote past the end of {}: byte {} after it", name_, *offset)
               : fmt::format("something wrote before the start of {}: byte {} before it", name_, kBandBytes - *offset);
  }
  return std::nullopt;
}

std::optional<std::string> DeviceMatrix::change_from(const HostMatrix& original) const {
  constexpr size_t kChunkBytes = 1 << 20;
  std::vector<std::byte> chunk(std::min(kChunkBytes, bytes_));
  for (size_t first = 0; first < bytes_; first += chunk.size()) {
    const size_t count = std::min(chunk.size(), bytes_ - first);
    check(cudaMemcpy(chunk.data(), static_cast<std::byte*>(data()) + first, count, cudaMemcpyDeviceToHost),
          "reading an input back");
    if (std::memcmp(chunk.data(), original.data() + first, count) == 0) continue;
    const auto differs =
        std::mismatch(chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(count), original.data() + first);
    const auto byte = static_cast<int64_t>(first) + (differs.first - chunk.begin());
    const int64_t element = byte / static_cast<int64_t>(bytes_of(original.type()));
    return fmt::format("something wrote into {}: element [{}][{}] changed", name_, element / original.cols(),
                       element % original.cols());
  }
  return std::nullopt;
}

}  // namespace ladder
