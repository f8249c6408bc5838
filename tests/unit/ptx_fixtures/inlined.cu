// Source of inlined.ptx: inline assembly with scopes and labels, inlined functions, a tensor map, a switch.
//   nvcc -std=c++20 -O3 -lineinfo -ptx -arch=compute_100f inlined.cu
#include <cuda.h>

#include <cstdint>

__device__ inline uint32_t elect_one() {
  uint32_t elected;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(elected)::"memory");
  return elected;
}

__device__ inline void wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra done;\nbra again;\ndone:\n}" ::"r"(
          barrier),
      "r"(parity)
      : "memory");
}

__device__ inline void wait_twice(uint32_t barrier) {
  wait(barrier, 0);
  wait(barrier, 1);
}

extern __shared__ __align__(1024) char tiles[];

__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128, 1)
    load(const __grid_constant__ CUtensorMap map, float* out, int which) {
  __shared__ uint64_t tile_full[2];
  const uint32_t barrier = __cvta_generic_to_shared(&tile_full[1]);
  if (elect_one()) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            (uint32_t)__cvta_generic_to_shared(tiles)),
        "l"(&map), "r"(which), "r"(0), "r"(barrier)
        : "memory");
  }
  wait_twice(barrier);
  float x = out[threadIdx.x];
  switch (which) {
    case 0: x = x * x; break;
    case 1: x = x + 3; break;
    case 2: x = 1 / x; break;
    case 3: x = x - 7; break;
    case 4: x = sqrtf(x); break;
    case 5: x = -x; break;
    case 6: x = 2 * x; break;
    default: x = 0;
  }
  out[threadIdx.x] = x;
}
