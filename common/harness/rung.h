#pragma once
// What a rung hands to the harness: its name, its launches, its tile. main.cpp of a rung fills a Rung and returns
// run_rung(...); everything else (options, matrices, checks, timing, reports, choice of device) is the harness.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "common/harness/dtype.h"

namespace ladder {

/// D = A B^T with fp32 accumulation. A: m x k, B: n x k, D: m x n, all row-major and dense. Device pointers, aligned
/// as cudaMalloc does (256 bytes at least). `in` is f16 or bf16; `out` is `in` or f32. The harness has checked the
/// shape: every dimension is at least 1, k % 8 == 0, n % 8 == 0, and k equals Rung::fixed_k where that is set.
struct Gemm {
  int64_t m, n, k;
  DType in, out;
  const void* a;
  const void* b;
  void* d;
  cudaStream_t stream;
};

/// Launches the kernel on `stream` and returns without waiting. CUDA errors are thrown as ladder::CudaError.
using Launch = void (*)(const Gemm&);

struct Variant {
  const char* name;  ///< as --variant takes it
  Launch launch;
  const char* what;  ///< one line for --help
};

struct Rung {
  const char* name;                ///< "step01_kloop"
  const char* title;               ///< one line
  std::vector<Variant> blackwell;  ///< the first is the default
  std::vector<Variant> hopper;     ///< empty until the twin exists
  int tile_m, tile_n, tile_k;      ///< what a CTA computes and one K tile: only the mismatch report uses them
  int64_t fixed_k = 0;             ///< step00: 16; 0: any
};

/// All of main. Exit status: 0 good, 1 mismatch or a failed run, 2 bad input (one line on stderr says what to do).
int run_rung(const Rung& rung, int argc, char** argv);

}  // namespace ladder
