// What racecheck of compute-sanitizer takes for a store to a CTA "that might have already exited", in one launch of two
// CTAs: CTA 0 stores a number in CTA 1's shared memory and arrives at its mbarrier, as step07_persistent/hopper.cu
// hands out tiles. CTA 1 leaves only after it has waited for that arrival, so it is there when the number comes.
// Racecheck does not take that for an order. `./ladder sanitize` runs this.
#include <cuda_runtime_api.h>

#include <cstdio>

#include "common/ptx/cluster.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"

using namespace ladder;

constexpr uint32_t kNumber = 4711;

//   CTA  threads        waits for             signals
//   all  all            -                     cluster barrier: the mbarriers are ready
//   0    thread 0       answer_empty          CTA 1's answer_full: the number is there
//   1    thread 0       answer_full           CTA 0's answer_empty: the number has been read
__global__ void __cluster_dims__(2, 1, 1) hand_over(uint32_t* result) {
  __shared__ uint64_t answer_full, answer_empty;
  __shared__ uint32_t answer;
  const uint32_t rank = cluster_ctarank();
  if (threadIdx.x == 0) {
    mbarrier_init(shared_address(answer_full), 1);
    mbarrier_init(shared_address(answer_empty), 1);
    fence_mbarrier_init();
  }
  __syncwarp();
  barrier_cluster_arrive();
  barrier_cluster_wait();
  if (threadIdx.x != 0) return;
  if (rank == 0) {
    st_shared_cluster_u32(mapa_shared_cluster(shared_address(answer), 1), kNumber);
    mbarrier_arrive_cluster(mapa_shared_cluster(shared_address(answer_full), 1));
    mbarrier_wait_parity_cluster(shared_address(answer_empty), 0);  // CTA 1 arrives here: stay until it has
  } else {
    mbarrier_wait_parity_cluster(shared_address(answer_full), 0);
    *result = answer;
    mbarrier_arrive_cluster(mapa_shared_cluster(shared_address(answer_empty), 0));
  }
}

int main() {
  uint32_t *result = nullptr, number = 0;
  cudaError_t error = cudaMalloc(&result, sizeof *result);
  if (error == cudaSuccess) error = cudaMemset(result, 0, sizeof *result);
  if (error == cudaSuccess) {
    hand_over<<<2, 32>>>(result);
    error = cudaGetLastError();
  }
  if (error == cudaSuccess) error = cudaMemcpy(&number, result, sizeof number, cudaMemcpyDeviceToHost);
  cudaFree(result);
  std::printf("%s: %u, expected %u\n", cudaGetErrorString(error), number, kNumber);
  return error == cudaSuccess && number == kNumber ? 0 : 1;
}
