// The fused step against what the tensor cores of an H200 gave (tests/golden/h200_fused_sums.json, recorded with wgmma
// by record_fused_sums.cu), f32 and f16 accumulators. tcgen05 is taken to follow the same rule.
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "emulator/units/tensor_core.h"
#include "tests/catch.h"
#include "tests/golden/fused_sum_inputs.h"

namespace {

using namespace emu;

ElementType element_type(fused_sums::Type type) {
  if (type == fused_sums::Type::bf16) return ElementType::bf16;
  return type == fused_sums::Type::tf32 ? ElementType::tf32 : ElementType::f16;
}

void pack(PackedOperand& packed, fused_sums::Type type, int rows, const std::vector<uint32_t>& bits) {
  const ElementType element = element_type(type);
  std::vector<std::byte> dense(bits.size() * element_bytes(element));
  for (size_t i = 0; i < bits.size(); ++i)
    std::memcpy(&dense[i * element_bytes(element)], &bits[i], element_bytes(element));
  packed.pack(element, static_cast<uint32_t>(rows), dense.data());
}

}  // namespace

TEST_CASE("the fused step gives the bits that an H200's wgmma gave") {
  std::ifstream stream(SOURCE_FOLDER "/tests/golden/h200_fused_sums.json");
  REQUIRE(stream.good());
  std::map<std::pair<std::string, std::string>, nlohmann::json> recorded;
  const auto golden = nlohmann::json::parse(stream);
  for (const auto& row : golden["rows"]) recorded[{row[0], row[1]}] = row;
  PackedOperand a, b;
  for (int kind = 0; kind < fused_sums::kClassCount; ++kind) {
    for (fused_sums::Type type : fused_sums::kTypes) {
      const auto& row = recorded.at({fused_sums::name(type), fused_sums::kClasses[kind]});
      INFO(fused_sums::name(type) << ", " << fused_sums::kClasses[kind]);
      const AccumulatorUse use{type == fused_sums::Type::f16_to_f16 ? AccumulatorType::f16 : AccumulatorType::f32};
      uint64_t hash = 0;
      for (int repeat = 0; repeat < fused_sums::kRepeats; ++repeat) {
        fused_sums::Instruction one = fused_sums::make(kind, type, repeat);
        pack(a, type, fused_sums::kRows, one.a);
        pack(b, type, fused_sums::kColumns, one.b);
        const std::vector<uint32_t> old = one.d;
        std::vector<uint32_t*> rows;
        for (int m = 0; m < fused_sums::kRows; ++m) rows.push_back(&one.d[m * fused_sums::kColumns]);
        fused_multiply_add(a, b, use, rows);
        for (uint32_t word : one.d) hash = fused_sums::checksum(hash, word);
        for (size_t i = 0; repeat == 0 && i < row[3].size(); ++i) {
          INFO("row " << i * 21 / fused_sums::kColumns << " column " << i * 21 % fused_sums::kColumns << std::hex
                      << " old " << old[i * 21] << " computed " << one.d[i * 21]);
          CHECK(one.d[i * 21] == std::stoul(row[3][i].get<std::string>(), nullptr, 16));
        }
      }
      CHECK(hash == std::stoull(row[2].get<std::string>(), nullptr, 16));
    }
  }
}
