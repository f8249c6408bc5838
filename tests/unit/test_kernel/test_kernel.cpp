// A library such as `ladder bench --beside` takes, for tests/unit/bench.cpp: no kernel, but the right functions.
#include <cuda_runtime_api.h>

#include <cstdint>

extern "C" int gemm(int64_t m, int64_t n, int64_t k, const void*, const void*, void* d, cudaStream_t) {
  *static_cast<int*>(d) = static_cast<int>(m * 10000 + n * 100 + k);
  return cudaSuccess;
}

extern "C" int broken(int64_t, int64_t, int64_t, const void*, const void*, void*, cudaStream_t) {
  return cudaErrorInvalidConfiguration;
}
