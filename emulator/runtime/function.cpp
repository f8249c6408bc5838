#include <fmt/format.h>

#include <algorithm>

#include "emulator/machine/demangle.h"
#include "emulator/runtime/error.h"
#include "emulator/runtime/image.h"
#include "emulator/runtime/launch.h"
#include "emulator/runtime/runtime.h"

namespace emu::runtime {

std::string Function::readable_name() const {
  return demangled(name);
}

Function::Loaded Function::load(Runtime& runtime) const {
  auto module = image->module(runtime);
  const Kernel* kernel = module->kernel(name);
  if (!kernel)
    throw ApiError{
        cudaErrorInvalidDeviceFunction,
        fmt::format("{}: the PTX that was chosen for chip {} has no such kernel; was it compiled away for this "
                    "architecture (__CUDA_ARCH__)?",
                    readable_name(), runtime.chip().name)};
  return {std::move(module), kernel};
}

uint32_t Function::dynamic_shared_limit(const Kernel& kernel) const {
  if (max_dynamic_shared_bytes) return *max_dynamic_shared_bytes;
  return kSharedWithoutAsking - std::min(kSharedWithoutAsking, kernel.static_shared_bytes);
}

Symbol::Place Symbol::place(Runtime& runtime) const {
  runtime.device();
  const Variable* variable = image->module(runtime)->variable(name);
  if (!variable)
    throw ApiError{cudaErrorInvalidSymbol, fmt::format("{}: the PTX that was chosen for chip {} has no such variable",
                                                       name, runtime.chip().name)};
  return {variable->address, variable->bytes};
}

}  // namespace emu::runtime
