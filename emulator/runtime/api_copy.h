#pragma once
// Copies and fills in a given stream, as exported functions: what the plain, the asynchronous and the per-thread-stream
// variants of cudaMemcpy and cudaMemset have in common.

#include "emulator/runtime/copy.h"
#include "emulator/runtime/cuda_api.h"

namespace emu::runtime {

cudaError_t copy_1d(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream, Wait wait);
cudaError_t copy_2d(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                    cudaMemcpyKind kind, cudaStream_t stream, Wait wait);
cudaError_t copy_3d(const cudaMemcpy3DParms* what, cudaStream_t stream, Wait wait);
/// The same without an answer: throws ApiError.
void copy_3d(Runtime& runtime, const cudaMemcpy3DParms& what, Stream& stream, Wait wait);
cudaError_t copy_to_symbol(const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind,
                           cudaStream_t stream, Wait wait);
cudaError_t copy_from_symbol(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind,
                             cudaStream_t stream, Wait wait);
cudaError_t fill_2d(void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream, Wait wait);
cudaError_t fill_3d(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream, Wait wait);

/// Where the variable lies that a program names by its host shadow. Throws cudaErrorInvalidSymbol.
Symbol::Place place_of(Runtime& runtime, const void* symbol);

}  // namespace emu::runtime
