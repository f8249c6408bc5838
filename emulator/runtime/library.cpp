#include "emulator/runtime/library.h"

#include <fstream>
#include <iterator>

#include "emulator/runtime/error.h"
#include "emulator/runtime/runtime.h"

namespace emu::runtime {

Library* Libraries::keep(Runtime& runtime, std::unique_ptr<Library> library, const void* data) {
  library->image = std::make_shared<Image>(data);
  library->image->module(runtime);
  Library* handle = library.get();
  const std::lock_guard lock(mutex_);
  live_.emplace(handle, std::move(library));
  return handle;
}

Library* Libraries::load(Runtime& runtime, const void* data) {
  return keep(runtime, std::make_unique<Library>(), data);
}

Library* Libraries::load_file(Runtime& runtime, const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw ApiError{cudaErrorFileNotFound};
  auto library = std::make_unique<Library>();
  library->bytes.assign(std::istreambuf_iterator<char>(file), {});
  library->bytes.push_back('\0');  // PTX text ends with one
  const void* data = library->bytes.data();
  return keep(runtime, std::move(library), data);
}

Library& Libraries::find(const void* handle) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(handle);
  if (found == live_.end()) throw ApiError{cudaErrorInvalidResourceHandle};
  return *found->second;
}

Library* Libraries::owner(const Image* image) {
  const std::lock_guard lock(mutex_);
  for (const auto& [handle, library] : live_)
    if (library->image.get() == image) return library.get();
  throw ApiError{cudaErrorInvalidResourceHandle};
}

void Libraries::unload(Runtime& runtime, const void* handle) {
  const std::shared_ptr<Image> image = find(handle).image;
  runtime.queue.wait_all();
  runtime.registry.drop_adopted(image.get());
  image->unload(&runtime.device());
  const std::lock_guard lock(mutex_);
  live_.erase(handle);
}

Function* Libraries::function(Runtime& runtime, const void* handle, const char* name) {
  const std::shared_ptr<Image> image = find(handle).image;
  if (!image->module(runtime)->kernel(name)) throw ApiError{cudaErrorSymbolNotFound};
  return runtime.registry.adopt(image, name);
}

Variable Libraries::variable(Runtime& runtime, const void* handle, const char* name) {
  const Variable* variable = find(handle).image->module(runtime)->variable(name);
  if (!variable) throw ApiError{cudaErrorSymbolNotFound};
  return *variable;
}

void Libraries::forget_all(Runtime& runtime) {
  const std::lock_guard lock(mutex_);
  for (const auto& [handle, library] : live_) runtime.registry.drop_adopted(library->image.get());
  live_.clear();
}

}  // namespace emu::runtime
