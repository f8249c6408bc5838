// Records h200_litmus.json: questions that the PTX ISA leaves to the chip, put to one.
//
//   nvcc -arch=sm_90a -std=c++17 -o record_litmus record_litmus.cu && ./record_litmus > h200_litmus.json
//
// old_copy: a thread loads a word, says so, waits for a flag that another SM stores behind a newer word and a fence,
// and loads the word again. How often does it get the old one? By how it waits. last_block: blocks store a part, fence
// and count; the last one adds the parts up, with or without a fence of its own, and with or without all blocks having
// loaded the parts before. How often is the sum wrong? exit_under_loads: blocks with copies into most of their shared
// memory under way end at once; the next block on that SM fills the memory with a pattern of its own and watches it.
// How often does it see something else?
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                       \
  do {                                                                    \
    if (const cudaError_t error = (call)) {                               \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error)); \
      std::exit(1);                                                       \
    }                                                                     \
  } while (false)

enum class Wait { relaxed, is_volatile, atomic, acquire, relaxed_then_fence };

constexpr int kRounds = 10000;

__device__ int load_acquire(const int* flag) {
  int value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

template <Wait kWait>
__global__ void old_copy(int* word, int* ready, int* loaded, int* old) {
  if (threadIdx.x) return;
  for (int round = 1; round <= kRounds; ++round) {
    if (blockIdx.x == 0) {
      while (load_acquire(loaded) < round) continue;
      *word = round;
      __threadfence();
      asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(ready), "r"(round) : "memory");
      continue;
    }
    int value;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(loaded), "r"(round) : "memory");
    int seen;
    do {
      if (kWait == Wait::is_volatile)
        asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(seen) : "l"(ready) : "memory");
      else if (kWait == Wait::atomic)
        seen = atomicAdd(ready, 0);
      else if (kWait == Wait::acquire)
        seen = load_acquire(ready);
      else
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(ready) : "memory");
    } while (seen < round);
    if (kWait == Wait::relaxed_then_fence) __threadfence();
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    *old += value != round;
  }
}

__global__ void last_block(int* parts, unsigned* count, int* out, bool loads_before, bool fence) {
  __shared__ bool is_last;
  int before = 0;
  for (unsigned i = 0; loads_before && i < gridDim.x; ++i) before += parts[i];
  out[1 + threadIdx.x] = before;
  __syncthreads();
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = static_cast<int>(blockIdx.x) + 1;
    __threadfence();
    is_last = atomicAdd(count, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  if (fence) __threadfence();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += parts[i];
    out[0] = sum;
  }
}

constexpr uint32_t kCopied = 192 * 1024, kCopy = 16 * 1024, kThreads = 128;

__global__ void __launch_bounds__(kThreads) exit_under_loads(const char* source, int* disturbed, bool waits) {
  extern __shared__ __align__(128) int memory[];
  __shared__ __align__(8) uint64_t full;
  const auto barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&full));
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
  if (blockIdx.x % 2 == 0) {
    if (threadIdx.x) return;
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(barrier)
                 : "memory");
    asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n}" ::"r"(barrier),
                 "r"(kCopied)
                 : "memory");
    const char* from = source + blockIdx.x * 977ull % 4096 * 65536;
    for (uint32_t at = 0; at < kCopied; at += kCopy)
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to + at),
          "l"(from + at), "r"(kCopy), "r"(barrier)
          : "memory");
    for (uint32_t over = !waits; !over;)
      asm volatile(
          "{\n.reg .pred over;\nmbarrier.try_wait.parity.shared::cta.b64 over, [%1], 0;\nselp.u32 %0, 1, 0, over;\n}"
          : "=r"(over)
          : "r"(barrier)
          : "memory");
    return;
  }
  for (uint32_t i = threadIdx.x; i < kCopied / 4; i += kThreads) memory[i] = 7;
  __syncthreads();
  int wrong = 0;
  for (int look = 0; look < 50; ++look)
    for (uint32_t i = threadIdx.x; i < kCopied / 4; i += kThreads) wrong += static_cast<volatile int*>(memory)[i] != 7;
  if (__syncthreads_or(wrong) && threadIdx.x == 0) atomicAdd(disturbed, 1);
}

int* zeros(size_t bytes) {
  int* memory;
  CHECK(cudaMalloc(&memory, bytes));
  CHECK(cudaMemset(memory, 0, bytes));
  return memory;
}

int first_of(const int* memory) {
  int value;
  CHECK(cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

template <Wait kWait>
void ask_old_copy(const char* name, bool last = false) {
  int* const old = zeros(4);
  old_copy<kWait><<<2, 32>>>(zeros(4096), zeros(4096), zeros(4096), old);
  CHECK(cudaDeviceSynchronize());
  std::printf("    \"%s\": {\"loads\": %d, \"old\": %d}%s\n", name, kRounds, first_of(old), last ? "" : ",");
}

int main() {
  cudaDeviceProp chip;
  CHECK(cudaGetDeviceProperties(&chip, 0));
  int driver;
  CHECK(cudaDriverGetVersion(&driver));
  std::printf("{\n  \"label\": \"measured\",\n  \"chip\": \"%s\",\n  \"driver\": %d,\n  \"old_copy\": {\n", chip.name,
              driver);
  ask_old_copy<Wait::relaxed>("ld.relaxed");
  ask_old_copy<Wait::is_volatile>("ld.volatile");
  ask_old_copy<Wait::atomic>("atomicAdd");
  ask_old_copy<Wait::acquire>("ld.acquire");
  ask_old_copy<Wait::relaxed_then_fence>("ld.relaxed, __threadfence()", true);
  std::printf("  },\n  \"last_block\": [\n");
  constexpr int kBlocks = 200, kLaunches = 2000;
  int *const parts = zeros(4096), *const count = zeros(4096), *const out = zeros(4096);
  for (int how = 0; how < 4; ++how) {
    int wrong = 0;
    for (int i = 0; i < kLaunches; ++i) {
      CHECK(cudaMemset(parts, 0, 4096));
      CHECK(cudaMemset(count, 0, 4096));
      last_block<<<kBlocks, 64>>>(parts, reinterpret_cast<unsigned*>(count), out, how & 1, how & 2);
      wrong += first_of(out) != kBlocks * (kBlocks + 1) / 2;
    }
    std::printf("    {\"loads before\": %s, \"fence\": %s, \"launches\": %d, \"wrong\": %d}%s\n",
                how & 1 ? "true" : "false", how & 2 ? "true" : "false", kLaunches, wrong, how < 3 ? "," : "");
  }
  std::printf("  ],\n  \"exit_under_loads\": [\n");
  char* source;
  CHECK(cudaMalloc(&source, 4096ull * 65536 + (1 << 20)));
  CHECK(cudaMemset(source, 1, 4096ull * 65536 + (1 << 20)));
  CHECK(cudaFuncSetAttribute(exit_under_loads, cudaFuncAttributeMaxDynamicSharedMemorySize, kCopied));
  for (int waits = 0; waits < 2; ++waits) {
    int* const disturbed = zeros(4);
    for (int i = 0; i < 50; ++i) exit_under_loads<<<2640, kThreads, kCopied>>>(source, disturbed, waits);
    CHECK(cudaDeviceSynchronize());
    std::printf("    {\"waits\": %s, \"blocks\": %d, \"disturbed\": %d}%s\n", waits ? "true" : "false", 50 * 1320,
                first_of(disturbed), waits ? "" : ",");
  }
  std::printf("  ]\n}\n");
}
