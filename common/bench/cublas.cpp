#include "common/bench/cublas.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "common/harness/cuda_error.h"
#include "common/harness/user_error.h"

namespace ladder {
namespace {

constexpr size_t kWorkspaceBytes = size_t{64} << 20;

void* open(const char* name) {
  void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw UserError(
        fmt::format("{} cannot be loaded ({}); it comes with the CUDA Toolkit, or `./ladder build --cublas` "
                    "fetches it",
                    name, dlerror()));
  }
  return library;
}

template <class Function>
void find(void* library, Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) throw UserError(fmt::format("cuBLAS has no {}; this needs that of CUDA 13", name));
}

void good(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(fmt::format("{}: cuBLAS status {}", what, int{status}));
}

cudaDataType_t cuda_type(DType type) {
  return type == DType::f16 ? CUDA_R_16F : type == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

}  // namespace

struct Cublas::Library {
  decltype(&cublasCreate_v2) create;
  decltype(&cublasDestroy_v2) destroy;
  decltype(&cublasGetVersion_v2) get_version;
  decltype(&cublasSetWorkspace_v2) set_workspace;
  decltype(&cublasSetStream_v2) set_stream;
  cublasStatus_t (*gemm_ex)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                            const void*, cudaDataType, int, const void*, cudaDataType, int, const void*, void*,
                            cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);  // C++ has another of this name
  decltype(&cublasLtCreate) lt_create;
  decltype(&cublasLtDestroy) lt_destroy;
  decltype(&cublasLtMatmul) lt_matmul;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;

  cublasHandle_t handle = nullptr;
  cublasLtHandle_t lt_handle = nullptr;
  void* workspace = nullptr;

  Library() {
    void* const lt = open("libcublasLt.so.13");
    void* const blas = open("libcublas.so.13");
    find(blas, create, "cublasCreate_v2");
    find(blas, destroy, "cublasDestroy_v2");
    find(blas, get_version, "cublasGetVersion_v2");
    find(blas, set_workspace, "cublasSetWorkspace_v2");
    find(blas, set_stream, "cublasSetStream_v2");
    find(blas, gemm_ex, "cublasGemmEx");
    find(lt, lt_create, "cublasLtCreate");
    find(lt, lt_destroy, "cublasLtDestroy");
    find(lt, lt_matmul, "cublasLtMatmul");
    find(lt, desc_create, "cublasLtMatmulDescCreate");
    find(lt, desc_destroy, "cublasLtMatmulDescDestroy");
    find(lt, desc_set, "cublasLtMatmulDescSetAttribute");
    find(lt, layout_create, "cublasLtMatrixLayoutCreate");
    find(lt, layout_destroy, "cublasLtMatrixLayoutDestroy");
    find(lt, preference_create, "cublasLtMatmulPreferenceCreate");
    find(lt, preference_destroy, "cublasLtMatmulPreferenceDestroy");
    find(lt, preference_set, "cublasLtMatmulPreferenceSetAttribute");
    find(lt, heuristic, "cublasLtMatmulAlgoGetHeuristic");
    check(cudaMalloc(&workspace, kWorkspaceBytes), "cudaMalloc of cuBLAS's workspace");
    good(create(&handle), "cublasCreate");
    good(set_workspace(handle, workspace, kWorkspaceBytes), "cublasSetWorkspace");
    good(lt_create(&lt_handle), "cublasLtCreate");
  }
  ~Library() {
    if (lt_handle) lt_destroy(lt_handle);
    if (handle) destroy(handle);
    cudaFree(workspace);
  }
};

namespace {

// cuBLAS's matrices are column-major: D^T (n x m) = B (of k x n, transposed) A (k x m).
struct Problem {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t b = nullptr, a = nullptr, d = nullptr;
};

}  // namespace

Cublas::Cublas() : library_(std::make_shared<Library>()) {}
Cublas::~Cublas() = default;

std::string Cublas::version() const {
  int version = 0;
  good(library_->get_version(library_->handle, &version), "cublasGetVersion");
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

void Cublas::gemm_ex(const Gemm& gemm) const {
  const float one = 1, zero = 0;
  const auto m = static_cast<int>(gemm.m), n = static_cast<int>(gemm.n), k = static_cast<int>(gemm.k);
  good(library_->set_stream(library_->handle, gemm.stream), "cublasSetStream");
  good(library_->set_workspace(library_->handle, library_->workspace, kWorkspaceBytes), "cublasSetWorkspace");
  good(library_->gemm_ex(library_->handle, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, gemm.b, cuda_type(gemm.in), k,
                         gemm.a, cuda_type(gemm.in), k, &zero, gemm.d, cuda_type(gemm.out), n, CUBLAS_COMPUTE_32F,
                         CUBLAS_GEMM_DEFAULT),
       "cublasGemmEx");
}

std::vector<Launch> Cublas::proposals(const Gemm& gemm, int most) const {
  const std::shared_ptr<Library> lib = library_;
  const std::shared_ptr<Problem> problem(new Problem, [lib](Problem* p) {
    if (p->operation) lib->desc_destroy(p->operation);
    for (cublasLtMatrixLayout_t layout : {p->b, p->a, p->d})
      if (layout) lib->layout_destroy(layout);
    delete p;
  });
  const cublasOperation_t transposed = CUBLAS_OP_T, plain = CUBLAS_OP_N;
  const auto m = static_cast<uint64_t>(gemm.m), n = static_cast<uint64_t>(gemm.n), k = static_cast<uint64_t>(gemm.k);
  good(lib->desc_create(&problem->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  good(lib->desc_set(problem->operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed), "transposing");
  good(lib->desc_set(problem->operation, CUBLASLT_MATMUL_DESC_TRANSB, &plain, sizeof plain), "not transposing");
  good(lib->layout_create(&problem->b, cuda_type(gemm.in), k, n, static_cast<int64_t>(k)), "layout of B");
  good(lib->layout_create(&problem->a, cuda_type(gemm.in), k, m, static_cast<int64_t>(k)), "layout of A");
  good(lib->layout_create(&problem->d, cuda_type(gemm.out), n, m, static_cast<int64_t>(n)), "layout of D");
  cublasLtMatmulPreference_t preference = nullptr;
  good(lib->preference_create(&preference), "cublasLtMatmulPreferenceCreate");
  const std::shared_ptr<void> owner(
      preference, [lib](void* p) { lib->preference_destroy(static_cast<cublasLtMatmulPreference_t>(p)); });
  const size_t bytes = kWorkspaceBytes;
  good(lib->preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes),
       "limiting the workspace");
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(most));
  int count = 0;
  good(lib->heuristic(lib->lt_handle, problem->operation, problem->b, problem->a, problem->d, problem->d, preference,
                      most, results.data(), &count),
       "cublasLtMatmulAlgoGetHeuristic");
  std::vector<Launch> launches;
  for (int i = 0; i < count; ++i) {
    if (results[i].state != CUBLAS_STATUS_SUCCESS) continue;
    launches.push_back([lib, problem, algorithm = results[i].algo](const Gemm& run) {
      const float one = 1, zero = 0;
      good(lib->lt_matmul(lib->lt_handle, problem->operation, &one, run.b, problem->b, run.a, problem->a, &zero, run.d,
                          problem->d, run.d, problem->d, &algorithm, lib->workspace, kWorkspaceBytes, run.stream),
           "cublasLtMatmul");
    });
  }
  return launches;
}

}  // namespace ladder
