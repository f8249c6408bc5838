// Which instruction sets the tensor core's vector code is compiled for. Include it where Highway's foreach_target.h
// belongs, with HWY_TARGET_INCLUDE set. No include guard: foreach_target.h includes the file that includes this one
// again.

#ifndef HWY_DISABLED_TARGETS
// Vectors of unknown length (SVE) cannot be kept in arrays, which the kernels do; those chips have NEON as well.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif
#include "hwy/foreach_target.h"  // IWYU pragma: keep
