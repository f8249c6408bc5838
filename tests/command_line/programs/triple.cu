// A CUDA program that has nothing to do with the ladder: triples numbers and prints their sum, or its arguments.
#include <cuda_runtime.h>

#include <cstdio>
#include <numeric>
#include <vector>

__global__ void triple(int* values, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] *= 3;
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) std::printf("%s\n", argv[i]);
  std::vector<int> values(1000);
  std::iota(values.begin(), values.end(), 0);
  int* device = nullptr;
  const size_t bytes = values.size() * sizeof(int);
  if (cudaMalloc(&device, bytes) != cudaSuccess) return 3;
  cudaMemcpy(device, values.data(), bytes, cudaMemcpyHostToDevice);
  triple<<<8, 128>>>(device, static_cast<int>(values.size()));
  if (cudaMemcpy(values.data(), device, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) return 4;
  std::printf("sum %d\n", std::accumulate(values.begin(), values.end(), 0));
  return 0;
}
