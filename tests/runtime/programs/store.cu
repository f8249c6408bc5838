// A kernel, and how its launch went. Arguments: what to do instead.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>

__global__ void store(int* where, int value) {
  *where = value;
}

static int report(const char* what, cudaError_t code) {
  std::printf("%s: %s\n", what, cudaGetErrorName(code));
  return code == cudaSuccess ? 0 : 1;
}

int main(int count, char** arguments) {
  std::printf("main\n");
  if (count > 1 && std::strcmp(arguments[1], "devices") == 0) {
    int devices = 0;
    return report("count", cudaGetDeviceCount(&devices));
  }
  if (count > 1 && std::strcmp(arguments[1], "array") == 0) {
    cudaArray_t array;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    report("array", cudaMallocArray(&array, &format, 16));
    return report("array", cudaMallocArray(&array, &format, 16));
  }
  int *memory, value = 0;
  if (report("malloc", cudaMalloc(&memory, 4))) return 1;
  store<<<1, 1>>>(memory, 42);
  if (report("launch", cudaGetLastError())) return 1;
  if (report("copy", cudaMemcpy(&value, memory, 4, cudaMemcpyDeviceToHost))) return 1;
  std::printf("value %d\n", value);
  return 0;
}
