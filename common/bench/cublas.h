#pragma once
// cuBLAS as the other side of a comparison: loaded at run time, so that nothing else needs it.

#include <memory>
#include <string>
#include <vector>

#include "common/harness/rung.h"

namespace ladder {

class Cublas {
 public:
  /// Loads libcublas and libcublasLt and takes 64 MiB of workspace. Throws UserError where they are not to be had.
  Cublas();
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  std::string version() const;
  /// cublasGemmEx with the default algorithm: fp32 compute, beta 0.
  void gemm_ex(const Gemm& gemm) const;
  /// What cublasLt's heuristics propose for the shape, at most `most`: each a launch. Fewer may come back.
  std::vector<Launch> proposals(const Gemm& gemm, int most) const;

 private:
  struct Library;
  std::shared_ptr<Library> library_;
};

}  // namespace ladder
