// Driver API: copies and fills. Device addresses are numbers here and pointers in the runtime API; otherwise the two
// are the same.

#include <algorithm>

#include "emulator/runtime/api_copy.h"
#include "emulator/runtime/driver_table.h"

namespace emu::runtime {
namespace {

void* to_pointer(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);
}

CUresult copy_plain(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return driver([&] { return cudaMemcpy(to, from, bytes, kind); });
}
CUresult copy_async(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, CUstream stream) {
  return driver([&] { return cudaMemcpyAsync(to, from, bytes, kind, stream); });
}

CUresult copy_any(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_plain(to_pointer(to), to_pointer(from), bytes, cudaMemcpyDefault);
}
CUresult copy_any_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_async(to_pointer(to), to_pointer(from), bytes, cudaMemcpyDefault, stream);
}
CUresult copy_to_device(CUdeviceptr to, const void* from, size_t bytes) {
  return copy_plain(to_pointer(to), from, bytes, cudaMemcpyHostToDevice);
}
CUresult copy_to_device_async(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return copy_async(to_pointer(to), from, bytes, cudaMemcpyHostToDevice, stream);
}
CUresult copy_to_host(void* to, CUdeviceptr from, size_t bytes) {
  return copy_plain(to, to_pointer(from), bytes, cudaMemcpyDeviceToHost);
}
CUresult copy_to_host_async(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_async(to, to_pointer(from), bytes, cudaMemcpyDeviceToHost, stream);
}
CUresult copy_in_device(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_plain(to_pointer(to), to_pointer(from), bytes, cudaMemcpyDeviceToDevice);
}
CUresult copy_in_device_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_async(to_pointer(to), to_pointer(from), bytes, cudaMemcpyDeviceToDevice, stream);
}

// There is one device, so its two contexts are one.
CUresult copy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes) {
  if (to_context != primary_context() || from_context != primary_context()) return CUDA_ERROR_INVALID_CONTEXT;
  return copy_in_device(to, from, bytes);
}
CUresult copy_peer_async(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                         CUstream stream) {
  if (to_context != primary_context() || from_context != primary_context()) return CUDA_ERROR_INVALID_CONTEXT;
  return copy_in_device_async(to, from, bytes, stream);
}

// One side of a copy of rows: where it starts, from what the call says of its kind of memory.
struct Place {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  size_t x_bytes, y, z, pitch, height;
};

Side side_of(const Place& place, const Extent& extent) {
  require(place.type != CU_MEMORYTYPE_ARRAY, cudaErrorNotSupported);
  require(place.type == CU_MEMORYTYPE_HOST || place.type == CU_MEMORYTYPE_DEVICE ||
          place.type == CU_MEMORYTYPE_UNIFIED);
  // The distance of rows matters where there are several, that of slices likewise.
  require(place.pitch >= place.x_bytes + extent.row_bytes || (extent.rows <= 1 && extent.slices <= 1 && place.y == 0));
  require(place.height >= place.y + extent.rows || (extent.slices <= 1 && place.z == 0));
  Side side;
  side.pitch = place.pitch;
  side.slice_pitch = place.pitch * place.height;
  const auto* start =
      static_cast<const std::byte*>(place.type == CU_MEMORYTYPE_HOST ? place.host : to_pointer(place.device));
  side.start = start + place.x_bytes + place.y * side.pitch + place.z * side.slice_pitch;
  return side;
}

cudaMemcpyKind kind_of(CUmemorytype to, CUmemorytype from) {
  if (to == CU_MEMORYTYPE_UNIFIED || from == CU_MEMORYTYPE_UNIFIED) return cudaMemcpyDefault;
  if (to == CU_MEMORYTYPE_HOST) return from == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost;
  return from == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
}

CUresult copy_places(const Place& to, const Place& from, const Extent& extent, CUstream stream, Wait wait) {
  return driver([&] {
    return answer([&](Runtime& runtime) {
      copy(runtime, side_of(to, extent), side_of(from, extent), extent, kind_of(to.type, from.type),
           *runtime.streams.find(stream), wait);
    });
  });
}

CUresult copy_rows(const CUDA_MEMCPY2D* what, CUstream stream, Wait wait) {
  if (!what) return CUDA_ERROR_INVALID_VALUE;
  const Place to{what->dstMemoryType, what->dstHost, what->dstDevice, what->dstXInBytes, what->dstY, 0,
                 what->dstPitch,      what->Height};
  const Place from{what->srcMemoryType, what->srcHost, what->srcDevice, what->srcXInBytes, what->srcY, 0,
                   what->srcPitch,      what->Height};
  return copy_places(to, from, {what->WidthInBytes, what->Height}, stream, wait);
}
CUresult copy_2d_plain(const CUDA_MEMCPY2D* what) {
  return copy_rows(what, CU_STREAM_LEGACY, Wait::as_the_plain_call);
}
CUresult copy_2d_async(const CUDA_MEMCPY2D* what, CUstream stream) {
  return copy_rows(what, stream, Wait::as_the_async_call);
}

Place target_of(const CUDA_MEMCPY3D& what) {
  return {what.dstMemoryType, what.dstHost, what.dstDevice, what.dstXInBytes,
          what.dstY,          what.dstZ,    what.dstPitch,  what.dstHeight};
}
Place source_of(const CUDA_MEMCPY3D& what) {
  return {what.srcMemoryType, what.srcHost, what.srcDevice, what.srcXInBytes,
          what.srcY,          what.srcZ,    what.srcPitch,  what.srcHeight};
}

CUresult copy_slices(const CUDA_MEMCPY3D* what, CUstream stream, Wait wait) {
  if (!what || what->srcLOD || what->dstLOD) return CUDA_ERROR_INVALID_VALUE;
  return copy_places(target_of(*what), source_of(*what), {what->WidthInBytes, what->Height, what->Depth}, stream, wait);
}
CUresult copy_3d_plain(const CUDA_MEMCPY3D* what) {
  return copy_slices(what, CU_STREAM_LEGACY, Wait::as_the_plain_call);
}
CUresult copy_3d_async(const CUDA_MEMCPY3D* what, CUstream stream) {
  return copy_slices(what, stream, Wait::as_the_async_call);
}

// --------------------------------------------------------------------------------------------------------------------
// fills

CUresult fill_rows(CUdeviceptr to, size_t pitch, uint32_t value, size_t value_bytes, size_t count, size_t rows,
                   CUstream stream, Wait wait) {
  return driver([&] {
    return answer([&](Runtime& runtime) {
      const size_t bytes = count * value_bytes;
      require(to % value_bytes == 0 && (rows <= 1 || (pitch % value_bytes == 0 && pitch >= bytes)));
      fill(runtime, {to_pointer(to), pitch, pitch * rows}, value, value_bytes, {bytes, rows},
           *runtime.streams.find(stream), wait);
    });
  });
}
CUresult fill_elements(CUdeviceptr to, uint32_t value, size_t value_bytes, size_t count, CUstream stream, Wait wait) {
  return fill_rows(to, count * value_bytes, value, value_bytes, count, 1, stream, wait);
}

CUresult fill_8(CUdeviceptr to, unsigned char value, size_t count) {
  return fill_elements(to, value, 1, count, CU_STREAM_LEGACY, Wait::as_the_plain_call);
}
CUresult fill_16(CUdeviceptr to, unsigned short value, size_t count) {
  return fill_elements(to, value, 2, count, CU_STREAM_LEGACY, Wait::as_the_plain_call);
}
CUresult fill_32(CUdeviceptr to, unsigned value, size_t count) {
  return fill_elements(to, value, 4, count, CU_STREAM_LEGACY, Wait::as_the_plain_call);
}
CUresult fill_8_async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return fill_elements(to, value, 1, count, stream, Wait::as_the_async_call);
}
CUresult fill_16_async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return fill_elements(to, value, 2, count, stream, Wait::as_the_async_call);
}
CUresult fill_32_async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return fill_elements(to, value, 4, count, stream, Wait::as_the_async_call);
}

CUresult fill_2d_8(CUdeviceptr to, size_t pitch, unsigned char value, size_t count, size_t rows) {
  return fill_rows(to, pitch, value, 1, count, rows, CU_STREAM_LEGACY, Wait::as_the_plain_call);
}
CUresult fill_2d_8_async(CUdeviceptr to, size_t pitch, unsigned char value, size_t count, size_t rows,
                         CUstream stream) {
  return fill_rows(to, pitch, value, 1, count, rows, stream, Wait::as_the_async_call);
}
CUresult fill_2d_16(CUdeviceptr to, size_t pitch, unsigned short value, size_t count, size_t rows) {
  return fill_rows(to, pitch, value, 2, count, rows, CU_STREAM_LEGACY, Wait::as_the_plain_call);
}
CUresult fill_2d_16_async(CUdeviceptr to, size_t pitch, unsigned short value, size_t count, size_t rows,
                          CUstream stream) {
  return fill_rows(to, pitch, value, 2, count, rows, stream, Wait::as_the_async_call);
}
CUresult fill_2d_32(CUdeviceptr to, size_t pitch, unsigned value, size_t count, size_t rows) {
  return fill_rows(to, pitch, value, 4, count, rows, CU_STREAM_LEGACY, Wait::as_the_plain_call);
}
CUresult fill_2d_32_async(CUdeviceptr to, size_t pitch, unsigned value, size_t count, size_t rows, CUstream stream) {
  return fill_rows(to, pitch, value, 4, count, rows, stream, Wait::as_the_async_call);
}

}  // namespace

cudaMemcpy3DParms to_runtime(const CUDA_MEMCPY3D& what) {
  require(!what.srcLOD && !what.dstLOD);
  const Extent extent{what.WidthInBytes, what.Height, what.Depth};
  const auto pitched = [&](const Place& place) {
    const Side side = side_of(place, extent);
    // A single row needs no pitch.
    return cudaPitchedPtr{const_cast<void*>(side.start), std::max(side.pitch, extent.row_bytes), extent.row_bytes,
                          place.height};
  };
  cudaMemcpy3DParms out{};
  out.dstPtr = pitched(target_of(what));
  out.srcPtr = pitched(source_of(what));
  out.extent = {extent.row_bytes, extent.rows, extent.slices};
  out.kind = kind_of(what.dstMemoryType, what.srcMemoryType);
  return out;
}

CUDA_MEMCPY3D to_driver(const cudaMemcpy3DParms& what) {
  const auto type = [&](cudaMemcpyKind one, cudaMemcpyKind other) {
    if (what.kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
    return what.kind == one || what.kind == other ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  };
  CUDA_MEMCPY3D out{};
  out.dstMemoryType = type(cudaMemcpyHostToHost, cudaMemcpyDeviceToHost);
  out.srcMemoryType = type(cudaMemcpyHostToHost, cudaMemcpyHostToDevice);
  out.dstHost = what.dstPtr.ptr;
  out.srcHost = what.srcPtr.ptr;
  out.dstDevice = reinterpret_cast<CUdeviceptr>(what.dstPtr.ptr);
  out.srcDevice = reinterpret_cast<CUdeviceptr>(what.srcPtr.ptr);
  out.dstXInBytes = what.dstPos.x;
  out.srcXInBytes = what.srcPos.x;
  out.dstY = what.dstPos.y;
  out.srcY = what.srcPos.y;
  out.dstZ = what.dstPos.z;
  out.srcZ = what.srcPos.z;
  out.dstPitch = what.dstPtr.pitch;
  out.srcPitch = what.srcPtr.pitch;
  out.dstHeight = what.dstPtr.ysize;
  out.srcHeight = what.srcPtr.ysize;
  out.WidthInBytes = what.extent.width;
  out.Height = what.extent.height;
  out.Depth = what.extent.depth;
  return out;
}

std::span<const DriverFunction> driver_functions_of_copies() {
  static const DriverFunction table[] = {
      entry<PFN_cuMemcpy_v4000>("cuMemcpy", 4000, copy_any),
      entry<PFN_cuMemcpyAsync_v4000>("cuMemcpyAsync", 4000, copy_any_async),
      entry<PFN_cuMemcpyHtoD_v3020>("cuMemcpyHtoD", 3020, copy_to_device),
      entry<PFN_cuMemcpyHtoDAsync_v3020>("cuMemcpyHtoDAsync", 3020, copy_to_device_async),
      entry<PFN_cuMemcpyDtoH_v3020>("cuMemcpyDtoH", 3020, copy_to_host),
      entry<PFN_cuMemcpyDtoHAsync_v3020>("cuMemcpyDtoHAsync", 3020, copy_to_host_async),
      entry<PFN_cuMemcpyDtoD_v3020>("cuMemcpyDtoD", 3020, copy_in_device),
      entry<PFN_cuMemcpyDtoDAsync_v3020>("cuMemcpyDtoDAsync", 3020, copy_in_device_async),
      entry<PFN_cuMemsetD8_v3020>("cuMemsetD8", 3020, fill_8),
      entry<PFN_cuMemsetD16_v3020>("cuMemsetD16", 3020, fill_16),
      entry<PFN_cuMemsetD32_v3020>("cuMemsetD32", 3020, fill_32),
      entry<PFN_cuMemsetD8Async_v3020>("cuMemsetD8Async", 3020, fill_8_async),
      entry<PFN_cuMemsetD16Async_v3020>("cuMemsetD16Async", 3020, fill_16_async),
      entry<PFN_cuMemsetD32Async_v3020>("cuMemsetD32Async", 3020, fill_32_async),
      entry<PFN_cuMemcpyPeer_v4000>("cuMemcpyPeer", 4000, copy_peer),
      entry<PFN_cuMemcpyPeerAsync_v4000>("cuMemcpyPeerAsync", 4000, copy_peer_async),
      entry<PFN_cuMemcpy2D_v3020>("cuMemcpy2D", 3020, copy_2d_plain),
      entry<PFN_cuMemcpy2DUnaligned_v3020>("cuMemcpy2DUnaligned", 3020, copy_2d_plain),
      entry<PFN_cuMemcpy2DAsync_v3020>("cuMemcpy2DAsync", 3020, copy_2d_async),
      entry<PFN_cuMemcpy3D_v3020>("cuMemcpy3D", 3020, copy_3d_plain),
      entry<PFN_cuMemcpy3DAsync_v3020>("cuMemcpy3DAsync", 3020, copy_3d_async),
      entry<PFN_cuMemsetD2D8_v3020>("cuMemsetD2D8", 3020, fill_2d_8),
      entry<PFN_cuMemsetD2D8Async_v3020>("cuMemsetD2D8Async", 3020, fill_2d_8_async),
      entry<PFN_cuMemsetD2D16_v3020>("cuMemsetD2D16", 3020, fill_2d_16),
      entry<PFN_cuMemsetD2D16Async_v3020>("cuMemsetD2D16Async", 3020, fill_2d_16_async),
      entry<PFN_cuMemsetD2D32_v3020>("cuMemsetD2D32", 3020, fill_2d_32),
      entry<PFN_cuMemsetD2D32Async_v3020>("cuMemsetD2D32Async", 3020, fill_2d_32_async),
  };
  return table;
}

}  // namespace emu::runtime
