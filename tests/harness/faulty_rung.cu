// A rung that goes wrong, one variant for each way the harness should notice: test_faults.py says what must be said.
// Plain CUDA, one thread for each output, so that the mistakes are all there is to see.

#include <cuda_fp16.h>

#include "common/harness/launch.h"
#include "common/harness/rung.h"
#include "common/ptx/mbarrier.cuh"

using namespace ladder;

enum class Mistake { none, after_d, before_d, into_a, unwritten, nan, one_element, k_tile, wild };

template <Mistake kMistake>
__global__ void product(__half* a, const __half* b, float* d, int64_t m, int64_t n, int64_t k) {
  const int64_t i = blockIdx.y, j = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (j >= n || (kMistake == Mistake::unwritten && i >= 128 && j < 256)) return;
  float sum = 0;
  for (int64_t x = 0; x < k; ++x) {
    if (kMistake == Mistake::k_tile && x / 16 == 2) continue;
    sum += __half2float(a[i * k + x]) * __half2float(b[j * k + x]);
  }
  if (i == m - 1 && j == n - 1) {
    if (kMistake == Mistake::after_d) d[m * n + 5] = sum;
    if (kMistake == Mistake::before_d) d[-1] = sum;
    if (kMistake == Mistake::into_a) a[k + 2] = __float2half(77.0f);
    if (kMistake == Mistake::wild) d[m * n + (int64_t{1} << 40)] = sum;
    if (kMistake == Mistake::one_element) sum += 1;
  }
  if (kMistake == Mistake::nan && i == 5) sum = __int_as_float(0x7FC00000);
  d[i * n + j] = sum;
}

__global__ void wait_for_nobody() {
  __shared__ uint64_t never;
  const auto barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&never));
  if (threadIdx.x == 0) mbarrier_init(barrier, 1);
  __syncthreads();
  mbarrier_wait_parity(barrier, 0);
}

__global__ void count_for_ages(float* d) {
  float sum = 0;
  for (int64_t i = 0; i < int64_t{1} << 40; ++i) sum = sum * 0.5f + 1;
  d[0] = sum;
}

template <Mistake kMistake>
static void launch_product(const Gemm& gemm) {
  launch(product<kMistake>,
         {.grid = dim3(static_cast<unsigned>((gemm.n + 127) / 128), static_cast<unsigned>(gemm.m)),
          .block = 128,
          .stream = gemm.stream},
         static_cast<__half*>(const_cast<void*>(gemm.a)), static_cast<const __half*>(gemm.b),
         static_cast<float*>(gemm.d), gemm.m, gemm.n, gemm.k);
}

// Right the first time, wrong from then on: as a kernel that leaves something behind.
static void launch_once(const Gemm& gemm) {
  static bool again = false;
  again ? launch_product<Mistake::one_element>(gemm) : launch_product<Mistake::none>(gemm);
  again = true;
}

static void launch_hang(const Gemm& gemm) {
  launch(wait_for_nobody, {.grid = 1, .block = 32, .stream = gemm.stream});
}
static void launch_slow(const Gemm& gemm) {
  launch(count_for_ages, {.grid = 1, .block = 1, .stream = gemm.stream}, static_cast<float*>(gemm.d));
}
static void launch_too_large(const Gemm& gemm) {
  launch(wait_for_nobody, {.grid = 1, .block = 2048, .stream = gemm.stream});
}

int main(int argc, char** argv) {
  const Rung rung{.name = "faulty_rung",
                  .title = "goes wrong on request; f16 in, f32 out",
                  .blackwell = {{"none", launch_product<Mistake::none>, "right for integer inputs"},
                                {"after-d", launch_product<Mistake::after_d>, "writes past the end of D"},
                                {"before-d", launch_product<Mistake::before_d>, "writes before its start"},
                                {"into-a", launch_product<Mistake::into_a>, "writes into A"},
                                {"unwritten", launch_product<Mistake::unwritten>, "leaves a tile out"},
                                {"nan", launch_product<Mistake::nan>, "a row of NaN"},
                                {"one-element", launch_product<Mistake::one_element>, "the last element is off by one"},
                                {"k-tile", launch_product<Mistake::k_tile>, "leaves out the third K tile"},
                                {"once", launch_once, "is wrong from the second launch on"},
                                {"wild", launch_product<Mistake::wild>, "writes to no allocation"},
                                {"hang", launch_hang, "waits for an arrival that nobody makes"},
                                {"slow", launch_slow, "counts for ages"},
                                {"too-large", launch_too_large, "asks for more threads than a block has"}},
                  .hopper = {},
                  .tile_m = 128,
                  .tile_n = 256,
                  .tile_k = 16};
  return run_rung(rung, argc, argv);
}
