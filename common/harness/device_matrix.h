#pragma once
// Matrices on the device between canary bands.

#include <cstddef>
#include <optional>
#include <string>

#include "common/harness/matrix.h"

namespace ladder {

/// One allocation: band, matrix, band. Both bands hold the canary pattern (canary.h); the matrix starts kBandBytes into
/// the allocation, so it has the alignment of cudaMalloc.
class DeviceMatrix {
 public:
  /// `name`: "A"; `which` tells its bands from others'. Throws CudaError.
  DeviceMatrix(size_t bytes, std::string name, uint32_t which);
  ~DeviceMatrix();
  DeviceMatrix(const DeviceMatrix&) = delete;
  DeviceMatrix& operator=(const DeviceMatrix&) = delete;

  void* data() const;
  void upload(const HostMatrix& matrix);
  void download(HostMatrix& matrix) const;
  void fill(unsigned char byte);

  /// A sentence when a band was written to.
  std::optional<std::string> damage() const;
  /// A sentence when the matrix is no longer `original`.
  std::optional<std::string> change_from(const HostMatrix& original) const;

 private:
  std::byte* allocation_ = nullptr;
  size_t bytes_;
  std::string name_;
  uint32_t which_;
};

/// Device memory that a DeviceMatrix of so many bytes takes.
size_t device_bytes(size_t matrix_bytes);

}  // namespace ladder
