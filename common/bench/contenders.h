#pragma once
// Who takes part beside cuBLAS: the rungs, their variants, step04's study, and kernels of other people's.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/harness/device_choice.h"
#include "common/harness/rung.h"

namespace ladder {

struct Contender {
  std::string name;
  std::function<Planned(const Gemm&)> planned;
  int64_t fixed_k = 0;   ///< 0: any
  bool computes = true;  ///< false: a part of the study, which does not write D's product
};

/// `wanted`: "step04" (its default), "step07:walk=4", or "step07:*" for all that have a name. Throws UserError.
std::vector<Contender> contenders(const std::vector<std::string>& wanted, Family family);

/// Somebody else's kernel, out of a shared library: "LIBRARY.so" or "LIBRARY.so:SYMBOL" of
///   extern "C" int SYMBOL(int64_t m, int64_t n, int64_t k, const void* a, const void* b, void* d, cudaStream_t)
/// (gemm unless named), which enqueues D = A B^T for matrices as Gemm has them and returns a cudaError_t. Throws
/// UserError.
Contender beside(const std::string& library);

}  // namespace ladder
