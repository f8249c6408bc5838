// A shared library with a kernel, for a process that has other things to do as well.
#include <cuda_runtime_api.h>

__global__ void store(int* where) {
  *where = 42;
}

/// 42, or minus the number of the error.
extern "C" int answer() {
  int* memory = nullptr;
  int value = 0;
  cudaMalloc(&memory, 4);
  store<<<1, 1>>>(memory);
  if (const cudaError_t error = cudaGetLastError()) return -error;
  if (const cudaError_t error = cudaMemcpy(&value, memory, 4, cudaMemcpyDeviceToHost)) return -error;
  return value;
}
