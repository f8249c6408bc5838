// Source of calls.ptx: calls of every kind, and variables with initial values.
//   nvcc -std=c++20 -O3 -ptx -arch=compute_100f calls.cu
#include <cassert>
#include <cstdio>

__constant__ float weights[5] = {1.f, 2.f};
__device__ int counters[3];
__device__ int* second_counter = &counters[1];
__device__ const char* greeting = "hello";
__device__ double grid[2][3] = {{1, 2}, {-0.5}};

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __noinline__ int square(int x) { return x * x; }
__device__ int (*table[2])(int) = {fibonacci, square};

struct Pair {
  double first;
  int second[3];
};
__device__ __noinline__ Pair make_pair(char c, Pair p, int n) {
  p.first += c;
  p.second[n] = n;
  return p;
}

__global__ void call_all(int* data, char c, Pair pair, unsigned short s) {
  assert(data != nullptr);
  data[0] = table[data[1]](data[2]);
  pair = make_pair(c, pair, data[3]);
  printf("%d %f %s\n", data[0], pair.first, greeting);
  data[1] = pair.second[2] + s + *second_counter;
  ((double*)data)[2] = grid[data[4]][1] + weights[data[5]];
}
