// cvt to and from .ue8m0x2. Expected values: NVIDIA's host code for the same conversions (cuda_fp8.hpp).

#include <cuda_fp8.h>

#include <algorithm>

#include "tests/probes/probe.h"

namespace {

std::vector<float> floats() {
  std::vector<float> out = probe::corners<float>(300);
  for (uint32_t bits :
       {0x00400000u, 0x00400001u, 0x003FFFFFu, 0x7F000000u, 0x7F000001u, 0x7F7FFFFFu, 0x7F800001u, 0x80400001u})
    out.push_back(probe::value<float>(bits));
  return out;
}

void check_to(const std::string& modifiers, __nv_saturation_t saturate, cudaRoundMode rounding) {
  std::vector<float> a = floats(), b = a;
  std::reverse(b.begin(), b.end());
  probe::check<uint16_t, float, float>(
      "cvt." + modifiers + ".ue8m0x2.f32 %d, %a, %b;",
      [&](float x, float y) {
        return static_cast<uint16_t>(__nv_cvt_float_to_e8m0(x, saturate, rounding) << 8 |
                                     __nv_cvt_float_to_e8m0(y, saturate, rounding));
      },
      a, b);
  std::vector<uint32_t> pairs;
  for (uint32_t i = 0; i < 65536; i += 37) pairs.push_back(i << 16 | ((i * 29 + 5) & 0xFFFF));
  probe::check<uint16_t, uint32_t>(
      "cvt." + modifiers + ".ue8m0x2.bf16x2 %d, %a;",
      [&](uint32_t x) {
        __nv_bfloat16_raw high, low;
        high.x = static_cast<unsigned short>(x >> 16), low.x = static_cast<unsigned short>(x);
        return static_cast<uint16_t>(__nv_cvt_bfloat16raw_to_e8m0(high, saturate, rounding) << 8 |
                                     __nv_cvt_bfloat16raw_to_e8m0(low, saturate, rounding));
      },
      pairs);
}

}  // namespace

TEST_CASE("cvt to .ue8m0x2") {
  check_to("rz", __NV_NOSAT, cudaRoundZero);
  check_to("rz.satfinite", __NV_SATFINITE, cudaRoundZero);
  check_to("rp", __NV_NOSAT, cudaRoundPosInf);
  check_to("rp.satfinite", __NV_SATFINITE, cudaRoundPosInf);
}

TEST_CASE("cvt from .ue8m0x2") {
  std::vector<uint16_t> all;
  for (uint32_t i = 0; i < 256; ++i) all.push_back(static_cast<uint16_t>(i << 8 | (255 - i)));
  probe::check<uint32_t, uint16_t>(
      "cvt.rn.bf16x2.ue8m0x2 %d, %a;",
      [](uint16_t x) {
        return uint32_t{__nv_cvt_e8m0_to_bf16raw(static_cast<__nv_fp8_storage_t>(x >> 8)).x} << 16 |
               __nv_cvt_e8m0_to_bf16raw(static_cast<__nv_fp8_storage_t>(x)).x;
      },
      all);
}
