#pragma once
// The driver API's functions as a program gets them without linking against libcuda.

#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstdlib>

#include "check.h"

template <class F>
F entry(const char* name, unsigned version = 12000) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status;
  expect_success(cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &status));
  if (!function) {
    std::printf("no %s\n", name);
    std::exit(1);
  }
  return reinterpret_cast<F>(function);
}

inline void expect_result(CUresult got, CUresult wanted,
                          const std::source_location& at = std::source_location::current()) {
  if (got != wanted) fail(("got CUresult " + std::to_string(got) + ", wanted " + std::to_string(wanted)).c_str(), at);
}
