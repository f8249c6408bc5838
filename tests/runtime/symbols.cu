// __device__ and __constant__ variables, seen from the host.

#include "check.h"

__device__ int numbers[16];
__device__ int primes[5] = {2, 3, 5, 7, 11};
__constant__ float factors[4] = {0.5f, 1.5f, 2.5f, 3.5f};
__device__ int* pointer_to_primes = primes + 2;

__global__ void use(int* out) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < 4) out[i] = static_cast<int>(factors[i] * 10);
  if (i == 4) out[4] = *pointer_to_primes;
  if (i == 5) out[5] = numbers[3];
}

int main() {
  int values[16] = {}, back[5] = {};
  expect_success(cudaMemcpyFromSymbol(back, primes, sizeof back));
  for (int i = 0; i < 5; ++i) expect_equal(back[i], (int[]){2, 3, 5, 7, 11}[i]);
  expect_success(cudaMemcpyFromSymbol(values, numbers, sizeof values));
  for (int value : values) expect_equal(value, 0);  // zero where nothing else was said

  for (int i = 0; i < 16; ++i) values[i] = 100 + i;
  expect_success(cudaMemcpyToSymbol(numbers, values, sizeof values));
  const int other = -1;
  expect_success(cudaMemcpyToSymbol(numbers, &other, 4, 60));
  expect_success(cudaMemcpyFromSymbol(back, numbers, 8, 56));
  expect_equal(back[0], 114);
  expect_equal(back[1], -1);
  const float ten = 10;
  expect_success(cudaMemcpyToSymbolAsync(factors, &ten, 4, 8, cudaMemcpyHostToDevice, nullptr));

  size_t bytes = 0;
  int* address = nullptr;
  expect_success(cudaGetSymbolSize(&bytes, numbers));
  expect_equal(bytes, size_t{64});
  expect_success(cudaGetSymbolAddress(reinterpret_cast<void**>(&address), numbers));
  expect_success(cudaMemcpy(back, address + 4, 8, cudaMemcpyDeviceToHost));
  expect_equal(back[1], 105);

  int* out;
  expect_success(cudaMallocManaged(&out, 6 * sizeof(int)));
  use<<<1, 32>>>(out);
  expect_success(cudaGetLastError());
  expect_success(cudaDeviceSynchronize());
  const int wanted[] = {5, 15, 100, 35, 5, 103};
  for (int i = 0; i < 6; ++i) expect_equal(out[i], wanted[i]);
  expect_success(cudaFree(out));
  expect_remembered(cudaFree(address), cudaErrorInvalidValue);  // a variable is nobody's to free

  static int of_the_host;
  void* nothing;
  expect_remembered(cudaGetSymbolAddress(&nothing, static_cast<const void*>(&of_the_host)), cudaErrorInvalidSymbol);
  expect_remembered(cudaMemcpyToSymbol(static_cast<const void*>(&of_the_host), &other, 4), cudaErrorInvalidSymbol);
  expect_remembered(cudaMemcpyToSymbol(numbers, &other, 4, 61), cudaErrorInvalidValue);
  expect_remembered(cudaMemcpyToSymbol(numbers, &other, 4, 0, cudaMemcpyDeviceToHost), cudaErrorInvalidMemcpyDirection);
  expect_remembered(cudaMemcpyFromSymbol(back, numbers, 4, 0, cudaMemcpyHostToDevice), cudaErrorInvalidMemcpyDirection);

  // A reset gives the variables their first values again.
  expect_success(cudaDeviceReset());
  expect_success(cudaMemcpyFromSymbol(values, numbers, sizeof values));
  expect_equal(values[3], 0);
  return result();
}
