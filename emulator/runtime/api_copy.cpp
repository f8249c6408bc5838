// cudaMemcpy, cudaMemset and their families. The functions that work in "the" default stream take the stream as an
// argument here, so that the variants for per-thread default streams (api_per_thread.cpp) share them.

#include "emulator/runtime/api_copy.h"

#include "emulator/runtime/api.h"
#include "emulator/runtime/copy.h"

namespace emu::runtime {
namespace {

Side flat(const void* pointer, size_t bytes) {
  return {pointer, bytes, bytes};
}

}  // namespace

void copy_3d(Runtime& runtime, const cudaMemcpy3DParms& what, Stream& stream, Wait wait) {
  if (what.srcArray || what.dstArray)
    throw ApiError{cudaErrorNotSupported, "cudaMemcpy3D: CUDA arrays are not emulated: use pitched memory"};
  const auto side = [](const cudaPitchedPtr& memory, const cudaPos& at) {
    const auto* start = static_cast<const std::byte*>(memory.ptr);
    const size_t slice = memory.pitch * memory.ysize;
    return Side{start ? start + at.z * slice + at.y * memory.pitch + at.x : nullptr, memory.pitch, slice};
  };
  const Extent extent{what.extent.width, what.extent.height, what.extent.depth};
  if (!extent.empty())
    require(extent.row_bytes <= what.srcPtr.pitch && extent.row_bytes <= what.dstPtr.pitch, cudaErrorInvalidPitchValue);
  copy(runtime, side(what.dstPtr, what.dstPos), side(what.srcPtr, what.srcPos), extent, what.kind, stream, wait);
}

cudaError_t copy_1d(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream, Wait wait) {
  return answer([&](Runtime& runtime) {
    copy(runtime, flat(to, bytes), flat(from, bytes), {bytes}, kind, *runtime.streams.find(stream), wait);
  });
}

cudaError_t copy_2d(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                    cudaMemcpyKind kind, cudaStream_t stream, Wait wait) {
  return answer([&](Runtime& runtime) {
    const auto in = runtime.streams.find(stream);
    require(width <= to_pitch && width <= from_pitch, cudaErrorInvalidPitchValue);
    copy(runtime, {to, to_pitch, 0}, {from, from_pitch, 0}, {width, height}, kind, *in, wait);
  });
}

cudaError_t copy_3d(const cudaMemcpy3DParms* what, cudaStream_t stream, Wait wait) {
  return answer([&](Runtime& runtime) {
    require(what != nullptr);
    copy_3d(runtime, *what, *runtime.streams.find(stream), wait);
  });
}

cudaError_t fill_2d(void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream, Wait wait) {
  return answer([&](Runtime& runtime) {
    const auto in = runtime.streams.find(stream);
    require(width <= pitch || height <= 1);
    fill(runtime, {to, pitch, 0}, static_cast<uint8_t>(value), 1, {width, height}, *in, wait);
  });
}

cudaError_t fill_3d(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream, Wait wait) {
  return answer([&](Runtime& runtime) {
    const auto in = runtime.streams.find(stream);
    require(extent.width <= to.pitch);
    fill(runtime, {to.ptr, to.pitch, to.pitch * to.ysize}, static_cast<uint8_t>(value), 1,
         {extent.width, extent.height, extent.depth}, *in, wait);
  });
}

}  // namespace emu::runtime

using namespace emu::runtime;

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return copy_1d(to, from, bytes, kind, cudaStreamLegacy, Wait::as_the_plain_call);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_1d(to, from, bytes, kind, stream, Wait::as_the_async_call);
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
  return copy_2d(to, to_pitch, from, from_pitch, width, height, kind, cudaStreamLegacy, Wait::as_the_plain_call);
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_2d(to, to_pitch, from, from_pitch, width, height, kind, stream, Wait::as_the_async_call);
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* what) {
  return copy_3d(what, cudaStreamLegacy, Wait::as_the_plain_call);
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* what, cudaStream_t stream) {
  return copy_3d(what, stream, Wait::as_the_async_call);
}

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  if (to_device != 0 || from_device != 0) return remember(cudaErrorInvalidDevice);
  return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream) {
  if (to_device != 0 || from_device != 0) return remember(cudaErrorInvalidDevice);
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return fill_2d(to, bytes, value, bytes, 1, cudaStreamLegacy, Wait::as_the_plain_call);
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return fill_2d(to, bytes, value, bytes, 1, stream, Wait::as_the_async_call);
}

cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return fill_2d(to, pitch, value, width, height, cudaStreamLegacy, Wait::as_the_plain_call);
}

cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  return fill_2d(to, pitch, value, width, height, stream, Wait::as_the_async_call);
}

cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
  return fill_3d(to, value, extent, cudaStreamLegacy, Wait::as_the_plain_call);
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream) {
  return fill_3d(to, value, extent, stream, Wait::as_the_async_call);
}
