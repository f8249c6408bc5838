// cvt to and from .ue8m0x2, the scale factors of block-scaled MMAs: eight bits of exponent, 2^-127 to 2^127, and 0xFF
// for NaN. PTX ISA, "cvt"; corners as in NVIDIA's own cuda_fp8.hpp (CUDA 13.0).

#include "emulator/isa/convert_scale.h"

#include "emulator/isa/lanes.h"

namespace emu::isa {
namespace {

constexpr uint32_t kInfinity = 0x7F800000, kSmallest = 0x00400000;  // f32; the latter is 2^-127

template <bool kUp, bool kFinite>
uint8_t scale_of(uint32_t f32) {
  uint32_t magnitude = f32 & 0x7FFFFFFF;
  if (magnitude > kInfinity) return 0xFF;
  uint32_t exponent = magnitude >> 23;
  if (kUp && magnitude & 0x7FFFFF && magnitude > kSmallest) ++exponent;
  if (kFinite && exponent == 0xFF) exponent = 0xFE;
  return static_cast<uint8_t>(exponent);
}

template <bool kUp, bool kFinite>
uint16_t from_floats(uint32_t a, uint32_t b) {
  return static_cast<uint16_t>(scale_of<kUp, kFinite>(a) << 8 | scale_of<kUp, kFinite>(b));
}
template <bool kUp, bool kFinite>
uint16_t from_bf16x2(uint32_t a) {
  return from_floats<kUp, kFinite>(a & 0xFFFF0000, a << 16);
}

uint32_t bf16_of(uint32_t scale) {
  return scale == 0xFF ? 0x7FFF : scale == 0 ? kSmallest >> 16 : scale << 7;
}
uint32_t to_bf16x2(uint16_t scales) {
  return bf16_of(scales >> 8) << 16 | bf16_of(scales & 0xFF);
}

template <bool kUp, bool kFinite>
void bind_to_scale(Binder& binder, std::string_view from) {
  if (from == "f32")
    bind_map<from_floats<kUp, kFinite>>(binder);
  else if (from == "bf16x2")
    bind_map<from_bf16x2<kUp, kFinite>>(binder);
  else
    refuse_type(binder, from);
}

}  // namespace

bool bind_scale(Binder& binder, std::string_view to, std::string_view from, std::string_view rounding) {
  if (to == "bf16x2" && from == "ue8m0x2") {
    if (rounding != "rn") binder.refuse("rounding ." + std::string(rounding) + " is not executed");
    bind_map<to_bf16x2>(binder);
    return true;
  }
  if (to != "ue8m0x2") return false;
  if (rounding != "rz" && rounding != "rp") binder.refuse("rounding ." + std::string(rounding) + " is not executed");
  bool up = rounding == "rp", finite = binder.take("satfinite");
  if (up)
    finite ? bind_to_scale<true, true>(binder, from) : bind_to_scale<true, false>(binder, from);
  else
    finite ? bind_to_scale<false, true>(binder, from) : bind_to_scale<false, false>(binder, from);
  return true;
}

}  // namespace emu::isa
