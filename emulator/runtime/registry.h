#pragma once
// What the program's code registered about itself, mostly before main: fat binaries, and the host addresses that stand
// for kernels and variables in them.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/runtime/image.h"

namespace emu::runtime {

class Registry {
 public:
  void** add_image(const void* wrapper);
  void remove_image(void** handle);
  bool empty() const;

  void add_function(void** handle, const void* host_function, std::string name);
  void add_symbol(void** handle, const void* host_variable, std::string name, size_t bytes, void** managed_pointer);

  /// Code that the program loaded at run time (cuModuleLoadData, cudaLibraryLoadData).
  Function* adopt(std::shared_ptr<Image> image, std::string name);
  void drop_adopted(const Image* image);

  /// `what`: the host address of a kernel, or one of our handles. Null when neither.
  Function* function(const void* what) const;
  /// Null when no variable has this host address.
  const Symbol* symbol(const void* host_variable) const;
  std::vector<const Symbol*> managed_symbols(void** handle) const;

  /// Why nothing at all of the program could run on `chip`: its executable registered kernels, and no image of theirs
  /// has PTX for it. Kernels of shared libraries do not count: the program may never launch them.
  std::optional<std::string> objection(const Chip& chip) const;

  void unload_all();

 private:
  struct Registered {
    std::shared_ptr<Image> image;
    std::vector<std::unique_ptr<Function>> functions;
    std::vector<const void*> host_functions;  // keys in functions_ that stand for one of them
    std::map<const void*, Symbol> symbols;    // by host address
    bool of_executable = false;
  };
  Registered* find(void** handle) const;  // needs mutex_

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Registered>> images_;
  std::vector<std::unique_ptr<Function>> adopted_;
  std::unordered_map<const void*, Function*> functions_;  // by host address, and by handle
};

}  // namespace emu::runtime
