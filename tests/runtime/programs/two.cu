#include <cuda_runtime_api.h>

#include <cstdio>

__global__ void store(int* where, int value) {
  *where = value;
}
void launch_other(int* where);

int main() {
  int* memory;
  cudaMalloc(&memory, 4);
  store<<<1, 1>>>(memory, 42);
  std::printf("own: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  launch_other(memory);
  std::printf("other: %s\n", cudaGetErrorName(cudaGetLastError()));
  std::printf("after: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
