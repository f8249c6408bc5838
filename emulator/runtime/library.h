#pragma once
// Code that a program loads while it runs: cudaLibraryLoadData, cuModuleLoadData and their relatives.

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulator/runtime/image.h"

namespace emu::runtime {

/// What a cudaLibrary_t, CUlibrary or CUmodule points to.
struct Library {
  std::vector<char> bytes;  ///< of a file; empty when the program keeps the data
  std::shared_ptr<Image> image;
};

class Libraries {
 public:
  /// Loads at once. `data` as for Image. Throws ApiError.
  Library* load(Runtime& runtime, const void* data);
  Library* load_file(Runtime& runtime, const char* path);  ///< also cudaErrorFileNotFound
  void unload(Runtime& runtime, const void* handle);

  /// Throws cudaErrorInvalidResourceHandle.
  Library& find(const void* handle);

  /// The handle of the library that `image` came from. Throws cudaErrorInvalidResourceHandle.
  Library* owner(const Image* image);

  /// Throws cudaErrorSymbolNotFound.
  Function* function(Runtime& runtime, const void* handle, const char* name);
  Variable variable(Runtime& runtime, const void* handle, const char* name);

  void forget_all(Runtime& runtime);

 private:
  Library* keep(Runtime& runtime, std::unique_ptr<Library> library, const void* data);

  std::mutex mutex_;
  std::map<const void*, std::unique_ptr<Library>> live_;
};

}  // namespace emu::runtime
