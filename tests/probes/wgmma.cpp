// wgmma.mma_async of f16, bf16 and tf32 on random operands, against the scalar model: shapes, layouts, A in registers,
// transposes, signs, groups.

#include "tests/probes/wgmma_program.h"

using probe::Swizzle;
using probe::WgmmaProgram;
using probe::WgmmaType;

namespace {

WgmmaProgram with(WgmmaType type, Swizzle a, bool a_mn, Swizzle b, bool b_mn) {
  WgmmaProgram program;
  program.a_type = program.b_type = type;
  program.a.swizzle = a, program.a.mn_major = a_mn;
  program.b.swizzle = b, program.b.mn_major = b_mn;
  return program;
}

constexpr Swizzle kSwizzles[] = {Swizzle::none, Swizzle::b32, Swizzle::b64, Swizzle::b128};

}  // namespace

TEST_CASE("wgmma multiplies f16, bf16 and tf32 from shared memory") {
  for (WgmmaType type : {WgmmaType::f16, WgmmaType::bf16, WgmmaType::tf32}) {
    WgmmaProgram program = with(type, Swizzle::b128, false, Swizzle::b128, false);
    program.steps = 4;
    check_wgmma(program, 7);
    program.first_adds = false;
    program.n = 8;
    check_wgmma(program, 8);
  }
}

TEST_CASE("wgmma: infinities and NaN") {
  for (WgmmaType type : {WgmmaType::f16, WgmmaType::bf16, WgmmaType::tf32}) {
    WgmmaProgram program = with(type, Swizzle::b128, false, Swizzle::b128, false);
    program.n = 32;
    check_wgmma(program, 9, true);
  }
}

TEST_CASE("wgmma: every N") {
  for (uint32_t n = 8; n <= 256; n += 8) {
    WgmmaProgram program;
    program.n = n;
    check_wgmma(program, n, false, 0);
  }
}

TEST_CASE("wgmma: every layout of A and B") {
  for (WgmmaType type : {WgmmaType::f16, WgmmaType::bf16})
    for (Swizzle swizzle : kSwizzles)
      for (int majors = 0; majors < 4; ++majors) {
        WgmmaProgram program = with(type, swizzle, majors & 1, swizzle, majors & 2);
        program.steps = 2;
        program.n = 72;
        program.a.gap = program.b.gap = 1024;
        check_wgmma(program, 20 + static_cast<uint64_t>(majors), false, 0);
      }
  for (Swizzle swizzle : kSwizzles) {
    WgmmaProgram program = with(WgmmaType::tf32, swizzle, false, swizzle, false);
    program.steps = 2;
    program.n = 24;
    check_wgmma(program, 30, false, 0);
  }
  WgmmaProgram program = with(WgmmaType::f16, Swizzle::none, true, Swizzle::b64, false);
  program.steps = 3;
  check_wgmma(program, 31);
}

TEST_CASE("wgmma: A in registers") {
  for (WgmmaType type : {WgmmaType::f16, WgmmaType::bf16, WgmmaType::tf32})
    for (bool b_mn : {false, true}) {
      if (b_mn && type == WgmmaType::tf32) continue;
      WgmmaProgram program = with(type, Swizzle::b128, false, Swizzle::b128, b_mn);
      program.a_in_registers = true;
      program.steps = 2;
      check_wgmma(program, 40);
    }
}

TEST_CASE("wgmma: f16 accumulators") {
  for (bool a_in_registers : {false, true}) {
    WgmmaProgram program;
    program.d_is_f16 = true;
    program.a_in_registers = a_in_registers;
    program.steps = 3;
    program.n = 96;
    check_wgmma(program, 50);
    program.n = 8;
    check_wgmma(program, 51, true);
  }
}

TEST_CASE("wgmma: imm-scale-a and imm-scale-b flip signs") {
  for (int signs = 1; signs < 4; ++signs)
    for (WgmmaType type : {WgmmaType::f16, WgmmaType::bf16, WgmmaType::tf32}) {
      WgmmaProgram program = with(type, Swizzle::b64, false, Swizzle::b32, false);
      program.negate_a = signs & 1;
      program.negate_b = signs & 2;
      program.n = 16;
      check_wgmma(program, 60, true, 0);
    }
}

TEST_CASE("wgmma: groups, two warpgroups, registers used before the wait") {
  WgmmaProgram program;
  program.steps = 8;
  program.commit_each = true;
  program.warpgroups = 2;
  program.n = 256;
  check_wgmma(program, 70, false, 4);
  program.commit_each = false;
  program.early = true;  // ptxas puts the wait in: C7517
  program.n = 64;
  check_wgmma(program, 71, false, 4);
}
