// wgmma.mma_async of 8-bit types on random operands, against the scalar model and plain integers.

#include "tests/probes/wgmma_program.h"

using probe::Swizzle;
using probe::WgmmaProgram;
using probe::WgmmaType;

namespace {

WgmmaProgram of(WgmmaType a, WgmmaType b, uint32_t n, uint32_t steps) {
  WgmmaProgram program;
  program.a_type = a;
  program.b_type = b;
  program.n = n;
  program.steps = steps;
  return program;
}

constexpr WgmmaType kFloats[] = {WgmmaType::e4m3, WgmmaType::e5m2};
constexpr WgmmaType kIntegers[] = {WgmmaType::u8, WgmmaType::s8};

}  // namespace

TEST_CASE("wgmma of e4m3 and e5m2, all mixes, f32 and f16 accumulators") {
  for (WgmmaType a : kFloats)
    for (WgmmaType b : kFloats)
      for (bool half : {false, true}) {
        WgmmaProgram program = of(a, b, 40, 2);
        program.d_is_f16 = half;
        check_wgmma(program, 1);
        program.steps = 1;
        check_wgmma(program, 2, true, 0);
        program.a_in_registers = true;
        program.negate_a = true;
        check_wgmma(program, 3, false, 0);
      }
}

TEST_CASE("wgmma of e4m3 in every layout") {
  for (Swizzle swizzle : {Swizzle::none, Swizzle::b32, Swizzle::b64, Swizzle::b128}) {
    WgmmaProgram program = of(WgmmaType::e4m3, WgmmaType::e4m3, 128, 4);
    program.a.swizzle = program.b.swizzle = swizzle;
    check_wgmma(program, 4, false, 0);
  }
}

TEST_CASE("wgmma of u8 and s8, all mixes, wrapping around and saturating") {
  for (WgmmaType a : kIntegers)
    for (WgmmaType b : kIntegers)
      for (bool saturate : {false, true}) {
        WgmmaProgram program = of(a, b, 48, 3);
        program.saturate = saturate;
        check_wgmma(program, 5);
        program.a_in_registers = true;
        program.first_adds = false;
        check_wgmma(program, 6, false, 0);
      }
  for (uint32_t n : {8u, 16u, 24u, 32u, 256u}) check_wgmma(of(WgmmaType::s8, WgmmaType::s8, n, 1), 7, false, 0);
}
