#pragma once
// The toolkit's declarations of what this library exports. Everything else is hidden (-fvisibility=hidden), and the
// first declaration of a function decides, so these headers are never included without the push around them.

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>

// Of cuda_profiler_api.h, which not every packaging of the toolkit has.
extern "C" cudaError_t cudaProfilerStart(void);
extern "C" cudaError_t cudaProfilerStop(void);

// What nvcc's generated host code calls; the toolkit declares it only inside that code (crt/host_runtime.h).
extern "C" {
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* host_function, char* device_function, const char* device_name,
                            int thread_limit, uint3* thread_index, uint3* block_index, dim3* block_dim, dim3* grid_dim,
                            int* warp_size);
void __cudaRegisterVar(void** handle, char* host_variable, char* device_address, const char* device_name, int external,
                       size_t size, int constant, int global);
void __cudaRegisterManagedVar(void** handle, void** host_pointer, char* device_address, const char* device_name,
                              int external, size_t size, int constant, int global);
char __cudaInitModule(void** handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, CUstream_st* stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                               cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                                    cudaStream_t stream);
}
#pragma GCC visibility pop
