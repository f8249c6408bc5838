// wgmma and mma.sync against what an H200 gave (tests/golden/h200_tensor_core.json, by record_tensor_core.cu): one
// instruction, and the same products added four times. wgmma by its arithmetic alone; mma.sync as PTX. Until the record
// is there, the inputs are only held against the scalar model.

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "emulator/units/tensor_core.h"
#include "tests/golden/tensor_core_inputs.h"
#include "tests/probes/everywhere.h"
#include "tests/tensor_model.h"

#include <fmt/format.h>

namespace {

namespace record = tensor_core_record;
using record::Element;
using record::Kind;
using record::Result;

emu::ElementType element_type(Element element) {
  using enum emu::ElementType;
  constexpr emu::ElementType kTypes[] = {f16, bf16, tf32, e4m3, e5m2, u8, s8};
  return kTypes[static_cast<int>(element)];
}

std::vector<std::byte> dense(Element element, const std::vector<uint32_t>& bits) {
  const size_t bytes = static_cast<size_t>(record::element_bytes(element));
  std::vector<std::byte> out(bits.size() * bytes);
  for (size_t i = 0; i < bits.size(); ++i) std::memcpy(&out[i * bytes], &bits[i], bytes);
  return out;
}

bool eight_bit_float(Element element) {
  return element == Element::e4m3 || element == Element::e5m2;
}

/// D after `chain` times the instruction.
std::vector<uint32_t> multiply(const Kind& kind, const fused_sums::Instruction& one, int chain) {
  static emu::PackedOperand a, b;
  a.pack(element_type(kind.a), static_cast<uint32_t>(kind.rows()), dense(kind.a, one.a).data());
  b.pack(element_type(kind.b), record::kColumns, dense(kind.b, one.b).data());
  std::vector<uint32_t> d = one.d;
  std::vector<uint32_t*> rows;
  for (int row = 0; row < kind.rows(); ++row) rows.push_back(&d[static_cast<size_t>(row) * record::kColumns]);
  const emu::AccumulatorUse use{.type = kind.d == Result::f16   ? emu::AccumulatorType::f16
                                        : kind.d == Result::f32 ? emu::AccumulatorType::f32
                                                                : emu::AccumulatorType::s32,
                                .rule = eight_bit_float(kind.a) ? emu::FusedRule::hopper8 : emu::FusedRule::wide,
                                .saturate = kind.d == Result::s32_saturated};
  for (int i = 0; i < chain; ++i) emu::fused_multiply_add(a, b, use, rows);
  return d;
}

/// PTX of `chain` mma.sync, one warp a CTA: p1 has A, B, C as 4 + 2 + 4 words by CTA and lane; D goes to p0.
std::string mma_program(const Kind& kind, int chain) {
  const std::string name = kind.name;
  const std::string types = name.substr(name.find('.') + 1);
  const bool half = kind.d == Result::f16;
  const std::string c = half ? "f16" : kind.d == Result::f32 ? "f32" : "s32";
  std::string body = R"(
    .reg .b32 %m<12>;
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d1, [p1];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    mad.lo.u32 %r0, %r1, 32, %r0;
    mad.wide.u32 %d1, %r0, 48, %d1;
    mad.wide.u32 %d0, %r0, 16, %d0;
    ld.global.v4.b32 {%m0, %m1, %m2, %m3}, [%d1];
    ld.global.v4.b32 {%m4, %m5, %m6, %m7}, [%d1+16];
    ld.global.v4.b32 {%m8, %m9, %m10, %m11}, [%d1+32];
)";
  const std::string d = half ? "{%m8, %m9}" : "{%m8, %m9, %m10, %m11}";
  for (int i = 0; i < chain; ++i)
    body += fmt::format("    mma.sync.aligned.m16n8k{}.row.col.{}.{} {}, {{%m0, %m1, %m2, %m3}}, {{%m4, %m5}}, {};\n",
                        record::depth(kind.a), types, c, d, d);
  return probe::kernel(body + "    st.global.v4.b32 [%d0], {%m8, %m9, %m10, %m11};\n", 2);
}

/// D of all instructions of a class.
std::vector<uint32_t> run_mma(const Kind& kind, const std::vector<fused_sums::Instruction>& all, int chain) {
  std::vector<uint32_t> memory(all.size() * 32 * 12);
  const auto cell = [](uint32_t lane, uint32_t i) { return (lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2; };
  const bool half = kind.d == Result::f16;
  for (size_t n = 0; n < all.size(); ++n) {
    const auto a = dense(kind.a, all[n].a), b = dense(kind.b, all[n].b);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      uint32_t* words = &memory[(n * 32 + lane) * 12];
      for (uint32_t i = 0; i < 4; ++i)
        std::memcpy(words + i, &a[(lane / 4 + i % 2 * 8) * 32 + lane % 4 * 4 + i / 2 * 16], 4);
      for (uint32_t i = 0; i < 2; ++i) std::memcpy(words + 4 + i, &b[lane / 4 * 32 + lane % 4 * 4 + i * 16], 4);
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t bits = all[n].d[cell(lane, i)];
        words[8 + (half ? i / 2 : i)] |= half ? bits << (i % 2 * 16) : bits;
      }
    }
  }
  emu::Options options;
  options.chip = "h200";
  std::string text = mma_program(kind, chain);
  text.replace(text.find("sm_100a"), 7, "sm_90a");
  const auto ending = probe::launch_with(options, text, all.size() * 512, {probe::bytes_of(memory)},
                                         {.grid = {static_cast<uint32_t>(all.size()), 1, 1}, .block = {32, 1, 1}});
  if (!ending.report.empty()) {
    FAIL(ending.report << text);
    return {};
  }
  const auto got = probe::values_of<uint32_t>(ending.bytes);
  std::vector<uint32_t> d(all.size() * 128);
  for (size_t n = 0; n < all.size(); ++n)
    for (uint32_t lane = 0; lane < 32; ++lane)
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t* words = &got[(n * 32 + lane) * 4];
        d[n * 128 + cell(lane, i)] = half ? words[i / 2] >> (i % 2 * 16) & 0xFFFF : words[i];
      }
  return d;
}

std::vector<uint32_t> results(const Kind& kind, const std::vector<fused_sums::Instruction>& all, int chain) {
  if (!kind.wgmma) return run_mma(kind, all, chain);
  std::vector<uint32_t> d;
  for (const auto& one : all) {
    const auto part = multiply(kind, one, chain);
    d.insert(d.end(), part.begin(), part.end());
  }
  return d;
}

/// By the scalar model. Not for mma.sync of 8-bit floats, which is more than one sum.
std::vector<uint32_t> expected(const Kind& kind, const fused_sums::Instruction& one) {
  const auto depth = static_cast<size_t>(record::depth(kind.a));
  std::vector<uint32_t> d = one.d;
  for (size_t row = 0; row < static_cast<size_t>(kind.rows()); ++row)
    for (size_t column = 0; column < record::kColumns; ++column) {
      uint32_t& cell = d[row * record::kColumns + column];
      if (record::is_integer(kind.a)) {
        const auto value = [](Element type, uint32_t bits) {
          return type == Element::s8 ? static_cast<int8_t>(bits) : static_cast<int>(bits & 0xFF);
        };
        int64_t sum = static_cast<int32_t>(cell);
        for (size_t k = 0; k < depth; ++k)
          sum += value(kind.a, one.a[row * depth + k]) * value(kind.b, one.b[column * depth + k]);
        if (kind.d == Result::s32_saturated) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
        cell = static_cast<uint32_t>(sum);
        continue;
      }
      const auto slice = [&](Element type, const std::vector<uint32_t>& all, size_t index) {
        constexpr tensor_model::Type kTypes[] = {tensor_model::Type::f16, tensor_model::Type::bf16,
                                                 tensor_model::Type::tf32, tensor_model::Type::e4m3,
                                                 tensor_model::Type::e5m2};
        std::vector<tensor_model::Number> out;
        for (size_t k = 0; k < depth; ++k)
          out.push_back(tensor_model::decode(kTypes[static_cast<int>(type)], all[index * depth + k]));
        return out;
      };
      const bool half = kind.d == Result::f16, narrow = eight_bit_float(kind.a);
      cell = tensor_model::fused(slice(kind.a, one.a, row), slice(kind.b, one.b, column),
                                 tensor_model::decode(half ? tensor_model::Type::f16 : tensor_model::Type::f32, cell),
                                 narrow ? 13 : 25,
                                 half     ? tensor_model::Result::f16
                                 : narrow ? tensor_model::Result::f32_13
                                          : tensor_model::Result::f32);
    }
  return d;
}

/// What the emulator refuses: mma.sync of 8-bit floats with a D of f16. It is recorded to be learnt from.
bool refused(const Kind& kind) {
  return !kind.wgmma && eight_bit_float(kind.a) && kind.d == Result::f16;
}

}  // namespace

TEST_CASE("wgmma and mma.sync give what an H200 gave") {
  std::map<std::pair<std::string, std::string>, nlohmann::json> rows;
  std::ifstream stream(SOURCE_FOLDER "/tests/golden/h200_tensor_core.json");
  if (stream.good()) {
    const auto golden = nlohmann::json::parse(stream);
    for (const auto& row : golden["rows"]) rows[{row[0], row[1]}] = row;
  } else {
    WARN("tests/golden/h200_tensor_core.json is not there: held against the model only");
  }
  for (int which = 0; which < record::kKindCount; ++which) {
    const Kind& kind = record::kKinds[which];
    if (refused(kind)) continue;
    for (int c = 0; c < record::kClassCount; ++c) {
      INFO(kind.name << ", " << record::class_name(c));
      std::vector<fused_sums::Instruction> all;
      for (int repeat = 0; repeat < record::kRepeats; ++repeat) all.push_back(record::make(which, c, repeat));
      const std::vector<uint32_t> single = results(kind, all, 1);
      REQUIRE(single.size() == all.size() * all[0].d.size());
      if (kind.wgmma || !eight_bit_float(kind.a)) {
        const std::vector<uint32_t> want = expected(kind, all[0]);
        CHECK(std::equal(want.begin(), want.end(), single.begin()));
      }
      if (rows.empty()) continue;
      const nlohmann::json& row = rows.at({kind.name, record::class_name(c)});
      const auto number = [](const nlohmann::json& text) { return std::stoull(text.get<std::string>(), nullptr, 16); };
      const auto checksum = [](const std::vector<uint32_t>& words) {
        uint64_t hash = 0;
        for (uint32_t word : words) hash = fused_sums::checksum(hash, word);
        return hash;
      };
      for (size_t i = 0; i < row[5].size(); ++i) {
        INFO("word " << i * 10 << std::hex << " old " << all[0].d[i * 10] << " computed " << single[i * 10]);
        CHECK(single[i * 10] == number(row[5][i]));
      }
      CHECK(checksum(single) == number(row[2]));
      const uint64_t chained = checksum(results(kind, all, 4));
      CHECK(chained == number(row[3]));
      CHECK(chained == number(row[4]));
    }
  }
}
