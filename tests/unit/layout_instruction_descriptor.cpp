// common/layout/instruction_descriptor.h against CUTLASS's builder (tests/golden/cutlass_instr_descriptors.json).
#include "common/layout/instruction_descriptor.h"

#include <map>

#include "tests/catch.h"
#include "tests/unit/layout_golden.h"

using namespace ladder;
using namespace layout_test;

namespace {

// The ladder's own instructions; words by the table of bits in the PTX ISA.
constexpr InstructionDescriptor kF16{MmaInput::f16, MmaInput::f16, MmaAccumulator::f32, 128, 256};
constexpr InstructionDescriptor kBf16{MmaInput::bf16, MmaInput::bf16, MmaAccumulator::f32, 128, 256};
constexpr InstructionDescriptor kPair{MmaInput::f16, MmaInput::f16, MmaAccumulator::f32, 256, 256};
static_assert(kF16.word() == (1u << 4 | 32u << 17 | 8u << 24));
static_assert(kBf16.word() == (1u << 4 | 1u << 7 | 1u << 10 | 32u << 17 | 8u << 24));
static_assert(kPair.word() == (1u << 4 | 32u << 17 | 16u << 24));

const std::map<std::string, MmaInput> kInputs = {
    {"f16", MmaInput::f16},   {"bf16", MmaInput::bf16}, {"tf32", MmaInput::tf32}, {"e4m3", MmaInput::e4m3},
    {"e5m2", MmaInput::e5m2}, {"e2m3", MmaInput::e2m3}, {"e3m2", MmaInput::e3m2}, {"e2m1", MmaInput::e2m1},
    {"u8", MmaInput::u8},     {"s8", MmaInput::s8}};
const std::map<std::string, MmaAccumulator> kAccumulators = {
    {"f16", MmaAccumulator::f16}, {"f32", MmaAccumulator::f32}, {"s32", MmaAccumulator::s32}};

Major major_flag(const nlohmann::json& flag) {
  return flag.get<int>() != 0 ? Major::mn : Major::k;
}

}  // namespace

TEST_CASE("instruction descriptors: every dense word") {
  const auto data = golden("cutlass_instr_descriptors.json");
  REQUIRE(data["dense"].size() == 38);
  size_t words = 0;
  for (const auto& types : data["dense"]) {
    INFO(types[0] << " " << types[1] << " " << types[2]);
    // Columns: M, N, transpose A, transpose B, negate A, negate B, saturate, sparse, max shift code, word.
    for (const auto& row : types[3]) {
      InstructionDescriptor descriptor{kInputs.at(types[0]), kInputs.at(types[1]), kAccumulators.at(types[2]), row[0],
                                       row[1]};
      descriptor.a_major = major_flag(row[2]);
      descriptor.b_major = major_flag(row[3]);
      descriptor.negate_a = row[4] != 0;
      descriptor.negate_b = row[5] != 0;
      descriptor.saturate = row[6] != 0;
      descriptor.sparse = row[7] != 0;
      descriptor.largest_shift_code = row[8];
      INFO(row.dump());
      CHECK(descriptor.word() == hexadecimal(row[9]));
      ++words;
    }
  }
  CHECK(words == 2014);
}
