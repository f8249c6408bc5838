// What kernels may call: functions, virtual functions, pointers to functions, printf, assert, malloc and new; barriers
// over a whole grid; variables that host and device share.

#undef NDEBUG  // assert is what is tested
#include <cooperative_groups.h>
#include <unistd.h>

#include <cassert>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "check.h"

namespace cg = cooperative_groups;

// ---- functions ------------------------------------------------------------------------------------------------------

struct Big {
  int parts[5];
  double scale;
};

__device__ __noinline__ Big grow(Big big, char step, int depth) {
  if (depth == 0) return big;
  Big result = grow(big, static_cast<char>(step + 1), depth - 1);
  result.parts[depth % 5] += step;
  result.scale += depth;
  return result;
}

struct Shape {
  __device__ virtual int area() const = 0;
  __device__ virtual ~Shape() {}
};
struct Square : Shape {
  int side;
  __device__ explicit Square(int s) : side(s) {}
  __device__ int area() const override { return side * side; }
};
struct Oblong : Shape {
  int a, b;
  __device__ Oblong(int x, int y) : a(x), b(y) {}
  __device__ int area() const override { return a * b; }
};

using Unary = int (*)(int);
__device__ __noinline__ int plus_one(int x) {
  return x + 1;
}
__device__ __noinline__ int twice(int x) {
  return 2 * x;
}
__device__ Unary table[2] = {plus_one, twice};

__global__ void functions(int* out, int depth) {
  const int i = static_cast<int>(threadIdx.x);
  Big big{};
  big.parts[0] = i;
  const Big grown = grow(big, static_cast<char>(i), depth);
  int* mine = out + 8 * i;
  for (int k = 0; k < 5; ++k) mine[k] = grown.parts[k];
  mine[5] = static_cast<int>(grown.scale);
  mine[6] = table[i & 1](i);
  Shape* shape = i % 3 == 0 ? static_cast<Shape*>(new Square(i)) : new Oblong(i, 2);
  mine[7] = shape->area();
  delete shape;
}

static void calls() {
  constexpr int threads = 96, depth = 23;
  int* out;
  expect_success(cudaDeviceSetLimit(cudaLimitStackSize, 16 * 1024));
  expect_success(cudaMallocManaged(&out, threads * 8 * sizeof *out));
  functions<<<1, threads>>>(out, depth);
  expect_success(cudaDeviceSynchronize());
  for (int i = 0; i < threads; ++i) {
    int parts[5] = {i};
    for (int d = depth; d > 0; --d) parts[d % 5] += static_cast<signed char>(i + depth - d);
    for (int k = 0; k < 5; ++k) expect_equal(out[8 * i + k], parts[k]);
    expect_equal(out[8 * i + 5], depth * (depth + 1) / 2);
    expect_equal(out[8 * i + 6], i & 1 ? 2 * i : i + 1);
    expect_equal(out[8 * i + 7], i % 3 == 0 ? i * i : 2 * i);
  }
  expect_success(cudaFree(out));
}

// ---- printf and assert ----------------------------------------------------------------------------------------------

__global__ void say(const char* what, double value) {
  if (threadIdx.x == 0) printf("%s %d %.2f\n", what, static_cast<int>(blockIdx.x), value);
}

__global__ void check_positive(const int* values) {
  assert(values[threadIdx.x] > 0);
}

/// What `body` writes to stdout.
template <class Body>
static std::string stdout_of(Body&& body) {
  std::fflush(stdout);
  int ends[2];
  if (pipe(ends) != 0) return "";
  const int before = dup(STDOUT_FILENO);
  dup2(ends[1], STDOUT_FILENO);
  close(ends[1]);
  body();
  std::fflush(stdout);
  dup2(before, STDOUT_FILENO);
  close(before);
  std::string text;
  char part[4096];
  for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;) text.append(part, static_cast<size_t>(got));
  close(ends[0]);
  return text;
}

static void prints() {
  char* word;
  expect_success(cudaMallocManaged(&word, 8));
  std::snprintf(word, 8, "block");
  const std::string text = stdout_of([&] {
    say<<<1, 32>>>(word, 1.5);
    std::printf("before\n");
    expect_success(cudaDeviceSynchronize());
    std::printf("between\n");
    say<<<1, 64>>>(word, -2);
    expect_success(cudaStreamSynchronize(nullptr));
    std::printf("behind\n");
  });
  expect(text == "before\nblock 0 1.50\nbetween\nblock 0 -2.00\nbehind\n", text.c_str());
  expect_success(cudaFree(word));
}

static void asserts() {
  const std::string text = in_child([] {
    int* values;
    expect_success(cudaMallocManaged(&values, 32 * sizeof *values));
    for (int i = 0; i < 32; ++i) values[i] = 5 - i % 6;
    check_positive<<<1, 32>>>(values);
    expect_error(cudaDeviceSynchronize(), cudaErrorAssert);
    expect_error(cudaFree(values), cudaErrorAssert);
  });
  expect(text.find("block: [0,0,0], thread: [5,0,0] Assertion `values[threadIdx.x] > 0` failed.") != std::string::npos,
         text.c_str());
  expect(text.find("thread: [29,0,0] Assertion") != std::string::npos, text.c_str());
  expect(text.find("thread: [4,0,0] Assertion") == std::string::npos, text.c_str());
}

// ---- the heap -------------------------------------------------------------------------------------------------------

__global__ void take_megabytes(int count, int* given) {
  for (int i = 0; i < count; ++i)
    if (malloc(1 << 20)) ++*given;
}

static void heap() {
  const std::string text = in_child([] {
    int* given;
    expect_success(cudaMallocManaged(&given, sizeof *given));
    *given = 0;
    expect_success(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20));
    take_megabytes<<<1, 1>>>(200, given);
    expect_success(cudaDeviceSynchronize());
    expect(*given >= 48 && *given <= 64, "megabytes out of a heap of 64");
    // CUDA programming guide, "Heap Memory Allocation": the size cannot be changed once a module is loaded.
    expect_error(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 128 << 20), cudaErrorInvalidValue);
  });
  if (emulated()) expect(text.find("malloc()") != std::string::npos, text.c_str());
}

// ---- a barrier over the grid ----------------------------------------------------------------------------------------

__global__ void neighbours(int* values, int* out, int rounds) {
  const cg::grid_group grid = cg::this_grid();
  const auto rank = static_cast<int>(grid.thread_rank()), size = static_cast<int>(grid.size());
  for (int round = 0; round < rounds; ++round) {
    values[rank] = rank * (round + 1);
    grid.sync();
    out[rank] += values[(rank + 1) % size];
    grid.sync();
  }
}

static void cooperative() {
  constexpr int blocks = 24, threads = 64, rounds = 3, size = blocks * threads;
  int *values, *out;
  expect_success(cudaMallocManaged(&values, size * sizeof *values));
  expect_success(cudaMallocManaged(&out, size * sizeof *out));
  for (int i = 0; i < size; ++i) out[i] = 0;
  int count = rounds;
  void* arguments[] = {&values, &out, &count};
  const auto kernel = reinterpret_cast<const void*>(neighbours);
  expect_success(cudaLaunchCooperativeKernel(kernel, blocks, threads, arguments, 0, nullptr));
  expect_success(cudaDeviceSynchronize());
  int wrong = 0;
  for (int i = 0; i < size; ++i) wrong += out[i] != (i + 1) % size * (1 + 2 + 3);
  expect_equal(wrong, 0);

  int per_sm = 0, sms = 0;
  expect_success(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, neighbours, threads, 0));
  expect_success(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  expect_remembered(cudaLaunchCooperativeKernel(kernel, per_sm * sms + 1, threads, arguments, 0, nullptr),
                    cudaErrorCooperativeLaunchTooLarge);
  expect_success(cudaFree(values));
  expect_success(cudaFree(out));
}

// ---- kernels that follow each other ---------------------------------------------------------------------------------

__global__ void first(int* value) {
  cudaTriggerProgrammaticLaunchCompletion();
  *value = 41;
}
__global__ void second(int* value) {
  cudaGridDependencySynchronize();
  *value += 1;
}

static void programmatic() {
  int* value;
  expect_success(cudaMallocManaged(&value, sizeof *value));
  *value = 0;
  first<<<1, 1>>>(value);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = dim3(1);
  config.attrs = &attribute;
  config.numAttrs = 1;
  expect_success(cudaLaunchKernelEx(&config, second, value));
  expect_success(cudaDeviceSynchronize());
  expect_equal(*value, 42);
  expect_success(cudaFree(value));
}

// ---- variables that both sides share --------------------------------------------------------------------------------

__managed__ int shared_count = 5;
__managed__ double shared_table[3] = {0.5, 1.5, 2.5};

__global__ void change_shared() {
  shared_count += static_cast<int>(2 * shared_table[2]);
  shared_table[0] = 9;
}

static void managed() {
  expect_equal(shared_count, 5);
  shared_table[2] = 4.0;
  change_shared<<<1, 1>>>();
  expect_success(cudaDeviceSynchronize());
  expect_equal(shared_count, 13);
  expect_equal(shared_table[0], 9.0);
  int copy = 0;
  expect_success(cudaMemcpyFromSymbol(&copy, shared_count, sizeof copy));
  expect_equal(copy, 13);
}

int main() {
  asserts();
  heap();
  calls();
  prints();
  cooperative();
  programmatic();
  managed();
  return result();
}
