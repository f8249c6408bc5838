#include "emulator/runtime/registry.h"

#include <dlfcn.h>
#include <sys/auxv.h>

#include <algorithm>

namespace emu::runtime {
namespace {

// In the executable, as opposed to a shared library that it was linked with or has loaded.
bool lies_in_executable(const void* address) {
  Dl_info own{}, executable{};
  return dladdr(address, &own) && dladdr(reinterpret_cast<void*>(getauxval(AT_ENTRY)), &executable) &&
         own.dli_fbase == executable.dli_fbase;
}

}  // namespace

void** Registry::add_image(const void* wrapper) {
  auto registered = std::make_unique<Registered>();
  registered->image = std::make_shared<Image>(wrapper);
  registered->of_executable = lies_in_executable(wrapper);
  const std::lock_guard lock(mutex_);
  images_.push_back(std::move(registered));
  return reinterpret_cast<void**>(images_.back().get());
}

void Registry::remove_image(void** handle) {
  const std::lock_guard lock(mutex_);
  const Registered* registered = find(handle);
  if (!registered) return;
  // By key, not by a search: a library may have registered tens of thousands. Two libraries with one template share a
  // host address, which stands for the kernel of the later one.
  for (const void* host_function : registered->host_functions) {
    const auto found = functions_.find(host_function);
    if (found != functions_.end() && found->second->image == registered->image) functions_.erase(found);
  }
  for (const auto& function : registered->functions) functions_.erase(function.get());
  std::erase_if(images_, [&](const auto& owned) { return owned.get() == registered; });
}

bool Registry::empty() const {
  const std::lock_guard lock(mutex_);
  return images_.empty();
}

Registry::Registered* Registry::find(void** handle) const {
  for (const auto& registered : images_)
    if (reinterpret_cast<void**>(registered.get()) == handle) return registered.get();
  return nullptr;
}

void Registry::add_function(void** handle, const void* host_function, std::string name) {
  const std::lock_guard lock(mutex_);
  Registered* registered = find(handle);
  if (!registered) return;
  auto function = std::make_unique<Function>();
  function->image = registered->image;
  function->name = std::move(name);
  function->host_address = host_function;
  functions_[host_function] = functions_[function.get()] = function.get();
  registered->host_functions.push_back(host_function);
  registered->functions.push_back(std::move(function));
}

void Registry::add_symbol(void** handle, const void* host_variable, std::string name, size_t bytes,
                          void** managed_pointer) {
  const std::lock_guard lock(mutex_);
  if (Registered* registered = find(handle))
    registered->symbols.emplace(host_variable, Symbol{registered->image, std::move(name), bytes, managed_pointer});
}

Function* Registry::adopt(std::shared_ptr<Image> image, std::string name) {
  const std::lock_guard lock(mutex_);
  for (const auto& function : adopted_)
    if (function->image == image && function->name == name) return function.get();
  auto function = std::make_unique<Function>();
  function->image = std::move(image);
  function->name = std::move(name);
  functions_[function.get()] = function.get();
  adopted_.push_back(std::move(function));
  return adopted_.back().get();
}

void Registry::drop_adopted(const Image* image) {
  const std::lock_guard lock(mutex_);
  std::erase_if(adopted_, [&](const auto& function) {
    if (function->image.get() != image) return false;
    functions_.erase(function.get());
    return true;
  });
}

Function* Registry::function(const void* what) const {
  const std::lock_guard lock(mutex_);
  const auto found = functions_.find(what);
  return found == functions_.end() ? nullptr : found->second;
}

const Symbol* Registry::symbol(const void* host_variable) const {
  const std::lock_guard lock(mutex_);
  for (const auto& registered : images_) {
    if (const auto found = registered->symbols.find(host_variable); found != registered->symbols.end())
      return &found->second;
    // The program names a __managed__ variable by where it lies.
    for (const auto& [shadow, symbol] : registered->symbols)
      if (symbol.managed_pointer && *symbol.managed_pointer == host_variable) return &symbol;
  }
  return nullptr;
}

std::vector<const Symbol*> Registry::managed_symbols(void** handle) const {
  const std::lock_guard lock(mutex_);
  std::vector<const Symbol*> managed;
  if (const Registered* registered = find(handle)) {
    for (const auto& [host, symbol] : registered->symbols)
      if (symbol.managed_pointer) managed.push_back(&symbol);
  }
  return managed;
}

std::optional<std::string> Registry::objection(const Chip& chip) const {
  const std::lock_guard lock(mutex_);
  std::optional<std::string> first;
  for (const auto& registered : images_) {
    if (!registered->of_executable || registered->functions.empty()) continue;
    auto objection = registered->image->objection(chip);
    if (!objection) return std::nullopt;
    if (!first) first = std::move(objection);
  }
  return first;
}

void Registry::unload_all() {
  std::vector<std::shared_ptr<Image>> images;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& registered : images_) images.push_back(registered->image);
  }
  // Not under our lock: an image that is just being loaded asks the runtime, which may ask us.
  for (const auto& image : images) image->unload(nullptr);
}

}  // namespace emu::runtime
