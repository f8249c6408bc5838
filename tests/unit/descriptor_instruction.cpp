// Instruction descriptors of tcgen05.mma. Expectations: words that CUTLASS's builder made (tests/golden), and the PTX
// ISA's tables of formats and shapes, written down here a second time.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "emulator/machine/trap.h"
#include "emulator/units/descriptor.h"
#include "tests/catch.h"

namespace {

using namespace emu;

std::string message(uint32_t word, const MmaForm& form) {
  try {
    decode_instruction_descriptor(word, form);
  } catch (const Trap& trap) {
    CHECK(trap.code == FaultCode::illegal_instruction);
    CHECK_FALSE(trap.source.empty());
    return trap.what();
  }
  return "";
}

MmaKind kind_of(const std::string& type) {
  if (type == "f16" || type == "bf16") return MmaKind::f16;
  if (type == "tf32") return MmaKind::tf32;
  return type == "u8" || type == "s8" ? MmaKind::i8 : MmaKind::f8f6f4;
}

/// PTX ISA, tcgen05 matrix shape, dense and sparse kinds without block scaling.
bool legal_shape(const MmaForm& form, int m, int n) {
  const auto step = [n](int from, int by) { return n >= from && n <= 256 && n % by == 0; };
  if (form.weight_stationary)
    return (m == 32 || m == 64 || m == 128) && (n == 64 || n == 128 || (n == 256 && !form.sparse));
  if (form.cta_group == 2) return (m == 128 || m == 256) && (form.kind == MmaKind::i8 ? step(32, 32) : step(16, 16));
  if (m != 64 && m != 128) return false;
  return form.kind == MmaKind::i8 ? n == 8 || n == 24 || step(16, 16) : step(8, 8);
}

constexpr uint32_t kF16 = 0x08400010;  // f16 -> f32, 128 x 256

}  // namespace

TEST_CASE("every word of CUTLASS's builder is decoded to what it was built from, or refused by the ISA's tables") {
  std::ifstream stream(SOURCE_FOLDER "/tests/golden/cutlass_instr_descriptors.json");
  REQUIRE(stream.good());
  const auto golden = nlohmann::json::parse(stream);
  int decoded = 0, refused = 0;
  for (const auto& triple : golden["dense"]) {
    const std::string a = triple[0], b = triple[1], d = triple[2];
    for (const auto& row : triple[3]) {
      const int m = row[0], n = row[1], transpose_a = row[2], transpose_b = row[3], negate_a = row[4],
                negate_b = row[5];
      const int saturate = row[6], sparse = row[7], shift = row[8];
      const auto word = static_cast<uint32_t>(std::stoul(row[9].get<std::string>(), nullptr, 16));
      for (int cta_group : {1, 2}) {
        for (bool weight_stationary : {false, true}) {
          if (weight_stationary && cta_group == 2) continue;
          const MmaForm form{kind_of(a), cta_group, weight_stationary, sparse == 1};
          const bool integer = form.kind == MmaKind::i8;
          const auto padded = [](const std::string& type) {
            return type == "e2m3" || type == "e3m2" || type == "e2m1";
          };
          bool legal = legal_shape(form, m, n) && (!integer || (!negate_a && !negate_b)) && (integer || !saturate);
          legal = legal && (weight_stationary || shift == 0);
          legal = legal && !(transpose_a && padded(a)) && !(transpose_b && padded(b));
          const bool bytes = integer || form.kind == MmaKind::f8f6f4;
          if (!weight_stationary && transpose_b && bytes && n % (cta_group == 2 ? 32 : 16) != 0) legal = false;
          INFO(a << " " << b << " " << d << " " << row.dump() << " cta_group " << cta_group << " ws "
                 << weight_stationary);
          if (!legal) {
            ++refused;
            CHECK_FALSE(message(word, form).empty());
            continue;
          }
          ++decoded;
          const InstructionDescriptor descriptor = decode_instruction_descriptor(word, form);
          CHECK(name(descriptor.a) == a);
          CHECK(name(descriptor.b) == b);
          CHECK(name(descriptor.d) == d);
          CHECK(descriptor.m == static_cast<uint32_t>(m));
          CHECK(descriptor.n == static_cast<uint32_t>(n));
          CHECK((descriptor.a_major == Major::mn) == (transpose_a == 1));
          CHECK((descriptor.b_major == Major::mn) == (transpose_b == 1));
          CHECK(descriptor.negate_a == (negate_a == 1));
          CHECK(descriptor.negate_b == (negate_b == 1));
          CHECK(descriptor.saturate == (saturate == 1));
          CHECK(descriptor.sparse == (sparse == 1));
          CHECK(descriptor.max_b_shift == (shift == 0 ? 0 : 4 << shift));
          CHECK_FALSE(message(word, {form.kind, cta_group, weight_stationary, !form.sparse}).empty());
        }
      }
    }
  }
  CHECK(decoded > 1000);
  CHECK(refused > 1000);
}

TEST_CASE("block-scaled words of CUTLASS's builder are decoded to what they were built from, or refused") {
  std::ifstream stream(SOURCE_FOLDER "/tests/golden/cutlass_instr_descriptors.json");
  REQUIRE(stream.good());
  const auto golden = nlohmann::json::parse(stream);
  int decoded = 0, refused = 0;
  for (const auto& quadruple : golden["block_scaled"]) {
    const std::string a = quadruple[0], b = quadruple[1], scale = quadruple[2], kind = quadruple[3];
    const bool fp8 = kind == "mxf8f6f4";
    for (const auto& row : quadruple[4]) {
      const uint32_t m = row[0], n = row[1], transpose_a = row[2], transpose_b = row[3], negate_a = row[4],
                     negate_b = row[5], sparse = row[6], sfa = row[7], sfb = row[8];
      const auto word = static_cast<uint32_t>(std::stoul(row[9].get<std::string>(), nullptr, 16));
      std::vector<MmaForm> forms;
      for (int cta_group : {1, 2}) {
        const auto add = [&](MmaKind k, uint32_t block) {
          forms.push_back({.kind = k, .cta_group = cta_group, .block = block});
        };
        if (fp8) {
          add(MmaKind::mxf8f6f4, 32);
        } else {
          add(MmaKind::mxf4, 32);
          add(MmaKind::mxf4nvf4, 32);
          add(MmaKind::mxf4nvf4, 16);
        }
      }
      for (const MmaForm& form : forms) {
        // The ISA's tables: shapes, ids by factors a row, scale types, majors.
        const bool pair = form.cta_group == 2;
        const uint32_t factors = (fp8 ? 32 : 64) / form.block;
        bool legal = (m == 128 || (pair && m == 256)) && n % (pair ? 16 : 8) == 0 && !sparse;
        legal = legal && sfa % factors == 0 && sfb % factors == 0;
        legal = legal && (scale == "ue8m0" || (form.kind == MmaKind::mxf4nvf4 && form.block == 16));
        const auto wide = [](const std::string& type) { return type == "e4m3" || type == "e5m2"; };
        if (transpose_a) legal = legal && fp8 && wide(a);
        if (transpose_b) legal = legal && fp8 && wide(b) && n % (pair ? 32 : 16) == 0;
        INFO(quadruple[0] << " " << quadruple[1] << " " << kind << " " << row.dump() << " cta_group " << form.cta_group
                          << " block " << form.block);
        CHECK(message(word, form).empty() == legal);
        if (!legal) {
          ++refused;
          continue;
        }
        const InstructionDescriptor got = decode_instruction_descriptor(word, form);
        CHECK(name(got.a) == a);
        CHECK(name(got.b) == b);
        CHECK(got.d == AccumulatorType::f32);
        CHECK(got.m == m);
        CHECK(got.n == n);
        CHECK((got.a_major == Major::mn) == (transpose_a == 1));
        CHECK((got.b_major == Major::mn) == (transpose_b == 1));
        CHECK(got.negate_a == (negate_a == 1));
        CHECK(got.negate_b == (negate_b == 1));
        CHECK(got.scale_ue8m0 == (scale == "ue8m0"));
        CHECK(got.sfa_id == sfa);
        CHECK(got.sfb_id == sfb);
        ++decoded;
      }
    }
  }
  CHECK(decoded > 500);
  CHECK(refused > 500);
}

TEST_CASE("K of an instruction") {
  CHECK(decode_instruction_descriptor(kF16, {MmaKind::f16}).k() == 16);
  CHECK(decode_instruction_descriptor(0x08400910, {MmaKind::tf32}).k() == 8);
  CHECK(decode_instruction_descriptor(0x08400010, {MmaKind::f8f6f4}).k() == 32);
  CHECK(decode_instruction_descriptor(kF16 | 4, {MmaKind::f16, 1, false, true}).k() == 32);
}

TEST_CASE("an instruction descriptor that breaks a rule is refused by value, rule and way out") {
  REQUIRE(message(kF16, {}).empty());
  for (int bit : {6, 23, 29}) {
    CHECK_THAT(message(kF16 | 1u << bit, {}), test::contains("bit " + std::to_string(bit) + " is reserved"));
  }
  CHECK_THAT(message(kF16 | 2 << 7, {}), test::contains("type 2 of A (bits 7-9); kind::f16 takes 0 (f16) or 1 (bf16)"));
  CHECK_THAT(message(kF16, {MmaKind::tf32}), test::contains("type 0 of A (bits 7-9); kind::tf32 takes 2 (tf32)"));
  CHECK_THAT(message(kF16 | 7 << 10, {MmaKind::f8f6f4}), test::contains("type 7 of B (bits 10-12)"));
  CHECK_THAT(message((kF16 & ~0x10u) | 1 << 7, {}), test::contains("only f16 inputs can have an f16 D"));
  CHECK_THAT(message((kF16 & ~0x30u) | 0x20, {}), test::contains("type 2 of D (bits 4-5)"));
  CHECK_THAT(message(0x10400010, {}),
             test::contains("M is 256 (bits 24-28); cta_group::1 takes 64 or 128. 256 is for a pair"));
  CHECK(message(0x10400010, {MmaKind::f16, 2}).empty());
  CHECK_THAT(message(kF16 & ~(63u << 17), {}), test::contains("N is 0 (bits 17-22)"));
  CHECK_THAT(message((kF16 & ~(63u << 17)) | 33 << 17, {}), test::contains("N is 264"));
  CHECK(message((kF16 & ~(63u << 17)) | 3 << 17, {}).empty());  // N = 24 with M = 128: the ISA's step is 8
  CHECK_THAT(message((kF16 & ~(63u << 17)) | 3 << 17, {MmaKind::f16, 2}), test::contains("steps of 16"));
  CHECK_THAT(message(kF16 | 8, {}), test::contains("bit 3 asks for saturation"));
  CHECK_THAT(message(kF16 | 4, {}), test::contains("not tcgen05.mma.sp"));
  CHECK(message(kF16, {MmaKind::f16, 1, true}).empty());
  CHECK_THAT(message(kF16 | 4, {MmaKind::f16, 1, true, true}), test::contains("tcgen05.mma.ws.sp takes 64 or 128"));
  CHECK_THAT(message(kF16 | 1u << 30, {}), test::contains("tcgen05.mma.ws"));
  CHECK_THAT(message(0x08400020 | 1 << 13, {MmaKind::i8}), test::contains("kind::i8 cannot"));
}
