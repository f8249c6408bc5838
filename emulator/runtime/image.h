#pragma once
// Device code that a program brought: a fat binary that nvcc's code registered, or what cuModuleLoadData was given.

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "emulator/machine/device.h"
#include "emulator/runtime/cuda_api.h"

namespace emu::runtime {

class Runtime;

/// Throws cudaErrorInvalidKernelImage for text that is no PTX.
void require_ptx(std::string_view text);

class Image {
 public:
  /// `data`: nvcc's wrapper of a fat binary, a fat binary, machine code, or PTX text that ends with a zero byte. Must
  /// stay where it is (nvcc's does); nothing is read before it is needed.
  explicit Image(const void* data) : data_(data) {}

  /// Null when it holds PTX that `chip` can run; otherwise why not, with the way out.
  std::optional<std::string> objection(const Chip& chip) const;

  /// The loaded code. Loads at the first call, as CUDA's lazy loading does. Throws ApiError:
  /// cudaErrorNoKernelImageForDevice, cudaErrorInvalidPtx, cudaErrorInvalidKernelImage; a person is told once.
  std::shared_ptr<Module> module(Runtime& runtime);

  /// Gives the variables' memory back to `device`, unless that is null because the context is gone. The next use loads
  /// again.
  void unload(Device* device);

  /// The compute capability the chosen PTX was written for, times ten: 100 for compute_100f. 0 before it was loaded.
  int ptx_architecture() const { return ptx_architecture_; }

 private:
  std::shared_ptr<Module> load(Runtime& runtime);

  const void* data_;
  std::mutex mutex_;
  std::shared_ptr<Module> module_;
  std::optional<cudaError_t> failed_;
  int ptx_architecture_ = 0;
};

/// A kernel as the program names it: what a cudaKernel_t, a cudaFunction_t and a CUfunction point to. Lives as long as
/// its image.
struct Function {
  std::shared_ptr<Image> image;
  std::string name;                    ///< mangled
  const void* host_address = nullptr;  ///< by which the program knows it; null of functions found by name

  // Set by cudaFuncSetAttribute; kept when the context is reset, as the handle is.
  std::optional<uint32_t> max_dynamic_shared_bytes;
  int carveout = -1;
  bool non_portable_cluster = false;
  Dim3 required_cluster{0, 0, 0};
  int cluster_policy = 0;

  std::string readable_name() const;  ///< demangled

  /// Loads the image when need be. The reference is good while the module is held.
  struct Loaded {
    std::shared_ptr<Module> module;
    const Kernel* kernel;
  };
  Loaded load(Runtime& runtime) const;  ///< throws ApiError, cudaErrorInvalidDeviceFunction when the image lacks it

  /// Most dynamic shared memory a launch may ask for, in bytes.
  uint32_t dynamic_shared_limit(const Kernel& kernel) const;
};

/// A __device__, __constant__ or __managed__ variable as the program names it.
struct Symbol {
  std::shared_ptr<Image> image;
  std::string name;
  size_t bytes = 0;
  void** managed_pointer = nullptr;  ///< where the host's code looks for a __managed__ variable's address

  struct Place {
    uint64_t address;
    size_t bytes;
  };
  Place place(Runtime& runtime) const;  ///< throws ApiError, cudaErrorInvalidSymbol when the image lacks it
};

}  // namespace emu::runtime
