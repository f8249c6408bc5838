// PTX ISA, "Comparison and Selection Instructions", and the tables of comparison operators in "Predicated Execution".

#include <cmath>
#include <functional>
#include <map>

#include "tests/probes/probe.h"

using probe::check;

namespace {

enum Outcome { less, equal, greater, unordered };

template <class T>
Outcome compare(T a, T b) {
  return a < b ? less : a > b ? greater : a == b ? equal : unordered;
}

struct Relation {
  const char* name;
  bool holds[4];  // by Outcome
};
// "Comparison operators": for floats eq .. ge are false when a source is NaN, equ .. geu true.
constexpr Relation kOrdered[] = {{"eq", {false, true, false, false}}, {"ne", {true, false, true, false}},
                                 {"lt", {true, false, false, false}}, {"le", {true, true, false, false}},
                                 {"gt", {false, false, true, false}}, {"ge", {false, true, true, false}}};
constexpr Relation kUnordered[] = {{"equ", {false, true, false, true}}, {"neu", {true, false, true, true}},
                                   {"ltu", {true, false, false, true}}, {"leu", {true, true, false, true}},
                                   {"gtu", {false, false, true, true}}, {"geu", {false, true, true, true}},
                                   {"num", {true, true, true, false}},  {"nan", {false, false, false, true}}};
constexpr Relation kUnsigned[] = {{"lo", {true, false, false, false}},
                                  {"ls", {true, true, false, false}},
                                  {"hi", {false, false, true, false}},
                                  {"hs", {false, true, true, false}}};

template <class T>
void check_relation(const Relation& relation, const std::string& type, const std::vector<T>& a,
                    const std::vector<T>& b) {
  check<uint32_t, T, T>(
      "{ .reg .pred p; setp." + std::string(relation.name) + "." + type + " p, %a, %b; selp.b32 %d, 1, 0, p; }",
      [&](T x, T y) { return relation.holds[compare(x, y)] ? 1u : 0u; }, a, b);
}

template <class T>
std::string integer_type() {
  return (std::is_signed_v<T> ? "s" : "u") + std::to_string(sizeof(T) * 8);
}

}  // namespace

TEMPLATE_TEST_CASE("setp compares integers", "", uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t) {
  auto [a, b] = probe::pairs(probe::corners<TestType>(20));
  for (const Relation& relation : kOrdered) check_relation(relation, integer_type<TestType>(), a, b);
  if constexpr (std::is_unsigned_v<TestType>) {
    for (const Relation& relation : kUnsigned) check_relation(relation, integer_type<TestType>(), a, b);
    for (const char* name : {"eq", "ne"})
      check_relation(std::string(name) == "eq" ? kOrdered[0] : kOrdered[1], "b" + std::to_string(sizeof(TestType) * 8),
                     a, b);
  }
}

TEMPLATE_TEST_CASE("setp compares floats, NaN included", "", float, double) {
  auto [a, b] = probe::pairs(probe::corners<TestType>(20));
  std::string type = sizeof(TestType) == 4 ? "f32" : "f64";
  for (const Relation& relation : kOrdered) check_relation(relation, type, a, b);
  for (const Relation& relation : kUnordered) check_relation(relation, type, a, b);
}

TEST_CASE("setp.ftz takes subnormals for zeros") {
  auto [a, b] = probe::pairs(probe::corners<float>(20));
  auto flush = [](float x) { return std::fpclassify(x) == FP_SUBNORMAL ? 0.0f : x; };
  check<uint32_t, float, float>(
      "{ .reg .pred p; setp.eq.ftz.f32 p, %a, %b; selp.b32 %d, 1, 0, p; }",
      [&](float x, float y) { return flush(x) == flush(y) ? 1u : 0u; }, a, b);
}

TEST_CASE("setp joins its result with a predicate, and gives the opposite as a second one") {
  auto [a, b] = probe::pairs(probe::corners<int32_t>(6));
  const std::map<std::string, std::function<bool(bool, bool)>> kJoin = {{"and", [](bool t, bool c) { return t && c; }},
                                                                        {"or", [](bool t, bool c) { return t || c; }},
                                                                        {"xor", [](bool t, bool c) { return t != c; }}};
  for (const auto& [name, join] : kJoin)
    for (bool negated : {false, true})
      check<uint32_t, int32_t, int32_t>(
          "{ .reg .pred p, q, c; .reg .b32 t; setp.gt.s32 c, %b, 20; setp.lt." + name + ".s32 p|q, %a, %b, " +
              (negated ? "!" : "") + "c; selp.b32 t, 2, 0, q; selp.b32 %d, 1, 0, p; or.b32 %d, %d, t; }",
          [&, &join = join](int32_t x, int32_t y) {
            bool c = (y > 20) != negated, t = x < y;
            // p = (a op b) bool c; q = !(a op b) bool c.
            return (join(t, c) ? 1u : 0u) | (join(!t, c) ? 2u : 0u);
          },
          a, b);
  // Without a predicate the second result is the plain opposite.
  check<uint32_t, int32_t, int32_t>(
      "{ .reg .pred p, q; setp.lt.s32 p|q, %a, %b; selp.b32 %d, 1, 2, q; }",
      [](int32_t x, int32_t y) { return x < y ? 2u : 1u; }, a, b);
}

TEST_CASE("set gives all ones, or 1.0") {
  auto [a, b] = probe::pairs(probe::corners<float>(10));
  check<uint32_t, float, float>(
      "set.lt.u32.f32 %d, %a, %b;", [](float x, float y) { return x < y ? 0xFFFFFFFFu : 0; }, a, b);
  check<float, float, float>(
      "set.neu.f32.f32 %d, %a, %b;", [](float x, float y) { return x != y ? 1.0f : 0.0f; }, a, b);
  check<uint32_t, float, float>(
      "{ .reg .pred c; setp.gt.f32 c, %b, 0f3F800000; set.le.and.u32.f32 %d, %a, %b, c; }",
      [](float x, float y) { return x <= y && y > 1.0f ? 0xFFFFFFFFu : 0; }, a, b);
  auto [i, j] = probe::pairs(probe::corners<int64_t>(10));
  check<int32_t, int64_t, int64_t>(
      "set.ge.s32.s64 %d, %a, %b;", [](int64_t x, int64_t y) { return x >= y ? -1 : 0; }, i, j);
}

TEST_CASE("selection by predicate and by sign") {
  auto [a, b] = probe::pairs(probe::corners<uint32_t>(20));
  std::vector<int32_t> c;
  std::vector<float> f;
  auto floats = probe::corners<float>(20);
  for (size_t i = 0; i < a.size(); ++i) {
    c.push_back(static_cast<int32_t>(b[i] * 77777u) >> (i % 3 ? 0 : 31));
    f.push_back(floats[i % floats.size()]);
  }
  using U = uint32_t;
  check<U, U, U, int32_t>(
      "slct.u32.s32 %d, %a, %b, %c;", [](U x, U y, int32_t s) { return s >= 0 ? x : y; }, a, b, c);
  check<U, U, U, float>(
      "slct.b32.f32 %d, %a, %b, %c;", [](U x, U y, float s) { return s >= 0 ? x : y; }, a, b, f);
  check<U, U, U, float>(
      "slct.ftz.b32.f32 %d, %a, %b, %c;",
      [](U x, U y, float s) { return s >= 0 || std::fpclassify(s) == FP_SUBNORMAL ? x : y; }, a, b, f);
  std::vector<uint64_t> wide(a.begin(), a.end()), other(b.begin(), b.end());
  check<uint64_t, uint64_t, uint64_t>(
      "{ .reg .pred p; setp.gt.u64 p, %a, %b; selp.b64 %d, %b, %a, p; }",
      [](uint64_t x, uint64_t y) { return x > y ? y : x; }, wide, other);
  std::vector<uint16_t> h(a.begin(), a.end()), k(b.begin(), b.end());
  check<uint16_t, uint16_t, uint16_t>(
      "{ .reg .pred p; setp.gt.u16 p, %a, %b; selp.u16 %d, %a, %b, !p; }",
      [](uint16_t x, uint16_t y) { return x > y ? y : x; }, h, k);
}

TEST_CASE("halves compare as the numbers they are") {
  // 1.0, -0, +0, 2.0, NaN, smallest subnormal, infinity; of both formats.
  struct Kind {
    const char* type;
    std::vector<std::pair<uint16_t, double>> values;
  };
  const double kNan = std::nan(""), kInf = INFINITY;
  const Kind kKinds[] = {{"f16",
                          {{0x3C00, 1},
                           {0x8000, -0.0},
                           {0x0000, 0},
                           {0x4000, 2},
                           {0x7E01, kNan},
                           {0x0001, 0x1p-24},
                           {0x7C00, kInf},
                           {0xFC00, -kInf}}},
                         {"bf16",
                          {{0x3F80, 1},
                           {0x8000, -0.0},
                           {0x0000, 0},
                           {0x4000, 2},
                           {0x7FC1, kNan},
                           {0x0001, 0x1p-133},
                           {0x7F80, kInf},
                           {0xFF80, -kInf}}}};
  for (const Kind& kind : kKinds)
    for (const auto& relations : {std::span<const Relation>(kOrdered), std::span<const Relation>(kUnordered)})
      for (const Relation& relation : relations) {
        std::vector<uint16_t> a, b;
        std::map<uint16_t, double> number(kind.values.begin(), kind.values.end());
        for (const auto& [x, unused_x] : kind.values)
          for (const auto& [y, unused_y] : kind.values) {
            a.push_back(x);
            b.push_back(y);
          }
        check<uint32_t, uint16_t, uint16_t>(
            "{ .reg .pred p; setp." + std::string(relation.name) + "." + kind.type +
                " p, %a, %b; selp.b32 %d, 1, 0, p; }",
            [&](uint16_t x, uint16_t y) { return relation.holds[compare(number.at(x), number.at(y))] ? 1u : 0u; }, a,
            b);
        std::vector<uint32_t> pair_a, pair_b;
        for (size_t i = 0; i < a.size(); ++i) {
          pair_a.push_back(a[i] | uint32_t{a[a.size() - 1 - i]} << 16);
          pair_b.push_back(b[i] | uint32_t{b[(i * 3) % b.size()]} << 16);
        }
        check<uint32_t, uint32_t, uint32_t>(
            "{ .reg .pred p, q; .reg .b32 t; setp." + std::string(relation.name) + "." + kind.type +
                "x2 p|q, %a, %b; selp.b32 t, 2, 0, q; selp.b32 %d, 1, 0, p; or.b32 %d, %d, t; }",
            [&](uint32_t x, uint32_t y) {
              auto holds = [&](uint32_t u, uint32_t v) {
                return relation
                    .holds[compare(number.at(static_cast<uint16_t>(u)), number.at(static_cast<uint16_t>(v)))];
              };
              return (holds(x, y) ? 1u : 0u) | (holds(x >> 16, y >> 16) ? 2u : 0u);
            },
            pair_a, pair_b);
      }
}
