#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>

#include "common/bench/contenders.h"
#include "common/harness/user_error.h"

namespace ladder {

Contender beside(const std::string& library) {
  using Function = int(int64_t, int64_t, int64_t, const void*, const void*, void*, cudaStream_t);
  const size_t colon = library.rfind(':');
  const std::string file = library.substr(0, colon),
                    symbol = colon == library.npos ? "gemm" : library.substr(colon + 1);
  // dlopen looks for a name without a slash in the system's folders only.
  void* const loaded = dlopen(std::filesystem::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) throw UserError(fmt::format("--beside {}: {}", library, dlerror()));
  const auto function = reinterpret_cast<Function*>(dlsym(loaded, symbol.c_str()));
  if (function == nullptr) {
    throw UserError(fmt::format("--beside {}: {} has no extern \"C\" function {}; name it as LIBRARY.so:SYMBOL",
                                library, file, symbol));
  }
  const std::string name = fmt::format("{}:{}", std::filesystem::path(file).stem().string(), symbol);
  const Launch launch = [=](const Gemm& gemm) {
    const int status = function(gemm.m, gemm.n, gemm.k, gemm.a, gemm.b, gemm.d, gemm.stream);
    if (status != cudaSuccess)
      throw std::runtime_error(fmt::format("{} returned {}, which is no cudaSuccess", name, status));
  };
  return {.name = name, .planned = [=](const Gemm&) { return Planned{launch}; }};
}

}  // namespace ladder
