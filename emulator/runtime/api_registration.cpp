// What nvcc's generated code calls before main: here are my fat binaries, the kernels and the variables in them.

#include <fmt/format.h>

#include "emulator/runtime/api.h"

using namespace emu::runtime;

void** __cudaRegisterFatBinary(void* wrapper) {
  return Runtime::get().registry.add_image(wrapper);
}

// Code is loaded at its first use, so there is nothing to do at the end of a registration.
void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) {
  Runtime& runtime = Runtime::get();
  runtime.registry.remove_image(handle);
  // The last one: the process is at its end. A kernel may still be running on the worker thread; it must not outlive
  // what it uses.
  if (runtime.registry.empty()) runtime.queue.drop_pending();
}

void __cudaRegisterFunction(void** handle, const char* host_function, char*, const char* device_name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  Runtime::get().registry.add_function(handle, host_function, device_name);
}

void __cudaRegisterVar(void** handle, char* host_variable, char*, const char* device_name, int, size_t size, int, int) {
  Runtime::get().registry.add_symbol(handle, host_variable, device_name, size, nullptr);
}

void __cudaRegisterManagedVar(void** handle, void** host_pointer, char* device_address, const char* device_name, int,
                              size_t size, int, int) {
  // The host finds the variable through *host_pointer, and names it by that pointer's value from then on.
  Runtime::get().registry.add_symbol(handle, device_address, device_name, size, host_pointer);
}

char __cudaInitModule(void** handle) {
  const cudaError_t code = answer([&](Runtime& runtime) {
    for (const Symbol* symbol : runtime.registry.managed_symbols(handle)) {
      const Symbol::Place place = symbol->place(runtime);
      const auto* allocation = runtime.device().memory().find(place.address);
      if (!allocation || !allocation->host)
        refuse(fmt::format(
            "variable {} is __managed__, which the emulator does not do: allocate it with cudaMallocManaged",
            symbol->name));
      *symbol->managed_pointer = reinterpret_cast<void*>(place.address);
    }
  });
  return code == cudaSuccess ? 1 : 0;
}
