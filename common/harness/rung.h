#pragma once
// What a rung hands to the harness: its name, its launches, its tile. main.cpp of a rung fills a Rung and returns
// run_rung(...); everything else (options, matrices, checks, timing, reports, choice of device) is the harness.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
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
using Launch = std::function<void(const Gemm&)>;

/// What the host has chosen for a shape on this device, once for as many launches as follow.
struct Planned {
  Launch launch;
  std::string text = "";  ///< the choice in one line; empty: there was nothing to choose
};

struct Variant {
  std::string name;  ///< as --variant takes it
  Launch launch;     ///< nullptr where `plan` makes it
  std::string what;  ///< one line for --help
  std::function<Planned(const Gemm&)> plan = nullptr;

  /// For launches of one shape, all with the same matrices or others.
  Planned planned(const Gemm& gemm) const { return plan ? plan(gemm) : Planned{launch}; }
};

struct Setting {
  std::string name;
  std::vector<std::string> values;  ///< the default first; "1..32" for all numbers from 1 to 32
  std::string what;                 ///< one line for --help
};

/// Variants beside those with a name of their own: a kernel with settings reads `accumulators=1,walk=4`.
struct VariantsBySetting {
  std::function<Variant(const std::string& name)> variant = nullptr;  ///< throws UserError where `name` makes no sense
  std::vector<Setting> settings = {};
};

struct Rung {
  const char* name;                ///< "step01_kloop"
  const char* title;               ///< one line
  std::vector<Variant> blackwell;  ///< the first is the default
  std::vector<Variant> hopper;     ///< empty until the twin exists
  int tile_m, tile_n, tile_k;      ///< what a CTA computes and one K tile: only the mismatch report uses them
  int64_t fixed_k = 0;             ///< step00: 16; 0: any
  VariantsBySetting blackwell_settings = {};
  VariantsBySetting hopper_settings = {};
};

/// All of main. Exit status: 0 good, 1 mismatch or a failed run, 2 bad input (one line on stderr says what to do).
int run_rung(const Rung& rung, int argc, char** argv);

}  // namespace ladder
