// step05_epilogue: D leaves through shared memory, by TMA. Kernels: blackwell.cu, hopper.cu.

#include "common/harness/rung.h"
#include "step05_epilogue/epilogue.h"

void launch_step05_epilogue(const ladder::Gemm& gemm, Epilogue epilogue);         // blackwell.cu
void launch_step05_epilogue_hopper(const ladder::Gemm& gemm, Epilogue epilogue);  // hopper.cu

template <Epilogue kEpilogue>
static void by(const ladder::Gemm& gemm) {
  launch_step05_epilogue(gemm, kEpilogue);
}

template <Epilogue kEpilogue>
static void hopper_by(const ladder::Gemm& gemm) {
  launch_step05_epilogue_hopper(gemm, kEpilogue);
}

ladder::Rung step05_epilogue() {
  return {
      .name = "step05_epilogue",
      .title = "D leaves through swizzled shared memory and TMA stores",
      .blackwell = {{"tma-store", by<Epilogue::tma_store>, "through shared memory, by TMA"},
                    {"two-register-sets", by<Epilogue::two_register_sets>,
                     "loads of the next columns beside the stores of these"},
                    {"wide-stores", by<Epilogue::wide_stores>, "straight from registers, 32 bytes a store"}},
      .hopper = {{"tma-store", hopper_by<Epilogue::tma_store>, "through shared memory, by TMA"},
                 {"fragment-stores", hopper_by<Epilogue::fragment_stores>, "straight from registers, as before"}},
      .tile_m = 128,
      .tile_n = 256,
      .tile_k = 64,
  };
}
