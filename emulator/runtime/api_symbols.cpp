// __device__ and __constant__ variables.

#include "emulator/runtime/api.h"
#include "emulator/runtime/api_copy.h"

namespace emu::runtime {
namespace {
Side flat(const void* pointer, size_t bytes) {
  return {pointer, bytes, bytes};
}
}  // namespace

cudaError_t copy_to_symbol(const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind,
                           cudaStream_t stream, Wait wait) {
  return answer([&](Runtime& runtime) {
    const auto in = runtime.streams.find(stream);
    const Symbol::Place place = place_of(runtime, symbol);
    require(kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault,
            cudaErrorInvalidMemcpyDirection);
    require(offset <= place.bytes && bytes <= place.bytes - offset);
    copy(runtime, flat(reinterpret_cast<void*>(place.address + offset), bytes), flat(from, bytes), {bytes}, kind, *in,
         wait);
  });
}

cudaError_t copy_from_symbol(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind,
                             cudaStream_t stream, Wait wait) {
  return answer([&](Runtime& runtime) {
    const auto in = runtime.streams.find(stream);
    const Symbol::Place place = place_of(runtime, symbol);
    require(kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault,
            cudaErrorInvalidMemcpyDirection);
    require(offset <= place.bytes && bytes <= place.bytes - offset);
    copy(runtime, flat(to, bytes), flat(reinterpret_cast<void*>(place.address + offset), bytes), {bytes}, kind, *in,
         wait);
  });
}

Symbol::Place place_of(Runtime& runtime, const void* symbol) {
  const Symbol* known = runtime.registry.symbol(symbol);
  require(known != nullptr, cudaErrorInvalidSymbol);
  return known->place(runtime);
}

}  // namespace emu::runtime

using namespace emu::runtime;

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  return copy_to_symbol(symbol, from, bytes, offset, kind, cudaStreamLegacy, Wait::as_the_plain_call);
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_to_symbol(symbol, from, bytes, offset, kind, stream, Wait::as_the_async_call);
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  return copy_from_symbol(to, symbol, bytes, offset, kind, cudaStreamLegacy, Wait::as_the_plain_call);
}

cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
  return copy_from_symbol(to, symbol, bytes, offset, kind, stream, Wait::as_the_async_call);
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return answer([&](Runtime& runtime) {
    require(address != nullptr);
    *address = reinterpret_cast<void*>(place_of(runtime, symbol).address);
  });
}

cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  return answer([&](Runtime& runtime) {
    require(bytes != nullptr);
    *bytes = place_of(runtime, symbol).bytes;
  });
}
