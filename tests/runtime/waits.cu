// libcu++'s barriers: they wait by the clock, and sleep the longer the longer they have waited. A phase that ends is
// waited for; one that never does is called a hang, which a real GPU cannot do.

#include <cuda/barrier>
#include <cuda/semaphore>

#include <chrono>
#include <thread>

#include "check.h"

template <cuda::thread_scope scope>
__global__ void meet(int missing, int* met) {
  // Constructed in the kernel: a shared variable has no dynamic initialisation.
  __shared__ cuda::std::aligned_storage_t<sizeof(cuda::barrier<scope>), alignof(cuda::barrier<scope>)> storage;
  auto& barrier = reinterpret_cast<cuda::barrier<scope>&>(storage);
  if (threadIdx.x == 0) init(&barrier, static_cast<int>(blockDim.x) + missing);
  __syncthreads();
  for (int phase = 0; phase < 3; ++phase) barrier.arrive_and_wait();
  atomicAdd(met, 1);
}

__global__ void acquire(int* count) {
  __shared__ cuda::std::aligned_storage_t<sizeof(cuda::binary_semaphore<cuda::thread_scope_block>), 8> storage;
  auto& semaphore = reinterpret_cast<cuda::binary_semaphore<cuda::thread_scope_block>&>(storage);
  if (threadIdx.x == 0) new (&semaphore) cuda::binary_semaphore<cuda::thread_scope_block>(1);
  __syncthreads();
  semaphore.acquire();
  ++*count;
  if (threadIdx.x != 7) semaphore.release();  // nobody acquires it after thread 7
}

using GridBarrier = cuda::barrier<cuda::thread_scope_device>;
__device__ cuda::std::aligned_storage_t<sizeof(GridBarrier), alignof(GridBarrier)> grid_barrier;

__global__ void init_grid_barrier(int expected) {
  init(reinterpret_cast<GridBarrier*>(&grid_barrier), expected);
}

__global__ void meet_in_grid(int* met) {
  reinterpret_cast<GridBarrier*>(&grid_barrier)->arrive_and_wait();
  atomicAdd(met, 1);
}

// Gives up after ten seconds.
__global__ void ask_host(const volatile int* flag, int* seen) {
  uint64_t begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (!*flag && now - begin < 10'000'000'000);
  *seen = *flag;
}

template <class Launch>
static void expect_hang(Launch launch) {
  const std::string report = in_child([&] {
    int* result;
    expect_success(cudaMalloc(&result, sizeof(int)));
    launch(result);
    expect_error(cudaDeviceSynchronize(), cudaErrorLaunchTimeout);
  });
  expect(report.find("hangs") != std::string::npos, "no report of a hang");
  expect(report.find("hours have passed since, in vain") != std::string::npos, "no time was given to the clock");
}

int main() {
  if (emulated()) {
    expect_hang([](int* met) { meet<cuda::thread_scope_block><<<1, 64>>>(1, met); });
    expect_hang([](int* met) { meet<cuda::thread_scope_device><<<1, 64>>>(1, met); });
    expect_hang([](int* count) { acquire<<<1, 64>>>(count); });
    expect_hang([](int* met) {
      init_grid_barrier<<<1, 1>>>(4 * 32 + 1);
      meet_in_grid<<<4, 32>>>(met);
    });
  }
  int *met, sum = 0;
  expect_success(cudaMalloc(&met, sizeof(int)));
  expect_success(cudaMemset(met, 0, sizeof(int)));
  meet<cuda::thread_scope_block><<<4, 64>>>(0, met);
  meet<cuda::thread_scope_device><<<4, 64>>>(0, met);
  expect_success(cudaMemcpy(&sum, met, sizeof sum, cudaMemcpyDefault));
  expect_equal(sum, 512);
  init_grid_barrier<<<1, 1>>>(4 * 32);
  meet_in_grid<<<4, 32>>>(met);
  expect_success(cudaMemcpy(&sum, met, sizeof sum, cudaMemcpyDefault));
  expect_equal(sum, 640);

  // The host needs longer than a loop without a clock would be given, and less than the kernel gives it.
  int* flags;
  expect_success(cudaMallocHost(&flags, 2 * sizeof(int)));
  flags[0] = flags[1] = 0;
  ask_host<<<1, 1>>>(flags, flags + 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  reinterpret_cast<volatile int*>(flags)[0] = 1;
  expect_success(cudaDeviceSynchronize());
  expect_equal(flags[1], 1);
  return result();
}
