// f16, bf16 and pairs of them. PTX ISA, "Half Precision Floating Point Instructions". Expected values: exact in the
// host's doubles (or long doubles), rounded by search among all codes.

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/probes/probe.h"
#include "tests/probes/small_floats.h"

using probe::check;
using probe::SmallFloat;

namespace {

struct Kind {
  std::string type;
  const SmallFloat& format;
  bool has_ftz, has_sat;
};
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kKinds = {{"f16", probe::f16(), true, true}, {"bf16", probe::bf16(), false, false}};
  return kKinds;
}

/// Codes with corners, near one another for half of them.
std::vector<uint16_t> codes(const Kind& kind, int random) {
  bool brain = kind.type == "bf16";
  uint16_t infinity = brain ? 0x7F80 : 0x7C00, one = brain ? 0x3F80 : 0x3C00, smallest = brain ? 0x80 : 0x400;
  std::vector<uint16_t> out;
  for (int v :
       {0, 1, 2, smallest - 1, +smallest, smallest + 1, one - 1, +one, one + 1, infinity - 1, +infinity, infinity + 5})
    for (int sign : {0, 0x8000}) out.push_back(static_cast<uint16_t>(v | sign));
  probe::Random generator(5);
  for (int i = 0; i < random; ++i) {
    uint16_t v = static_cast<uint16_t>(generator.next());
    if (i % 2)
      v = static_cast<uint16_t>((v & 0x8000) | (one - (brain ? 0x200 : 0x1000) + (v & (brain ? 0x3FF : 0x1FFF))));
    out.push_back(v);
  }
  return out;
}

uint16_t flush(const Kind& kind, uint16_t code) {
  uint16_t exponent = kind.type == "bf16" ? 0x7F80 : 0x7C00;
  return code & exponent ? code : static_cast<uint16_t>(code & 0x8000);
}

/// a * b + c as a double from which the format's rounding comes out right: exact, or with a sticky last bit. On every
/// machine: the three parts as integers of 2^-300 would be too wide, so the error of the sum is put into the last bit.
double fused(double a, double b, double c) {
  double product = a * b;  // exact: at most 22 bits
  double sum = product + c;
  if (!std::isfinite(sum)) return sum;
  double big = std::fabs(product) > std::fabs(c) ? product : c, small = std::fabs(product) > std::fabs(c) ? c : product;
  double error = small - (sum - big);
  // A double has at least 29 bits more than the format: stepping to the next one towards the exact value keeps its
  // side of every halfway point.
  if (error != 0 && std::fabs(error) < std::fabs(sum) * 0x1p-40)
    return std::nextafter(sum, error > 0 ? INFINITY : -INFINITY);
  return sum;
}

struct Lists {
  std::vector<uint16_t> a, b, c;
  std::vector<uint32_t> pa, pb, pc;
  explicit Lists(const Kind& kind) {
    auto list = codes(kind, 60);
    std::tie(a, b) = probe::pairs(list);
    for (size_t i = 0; i < a.size(); ++i) c.push_back(list[(i * 7 + i / list.size()) % list.size()]);
    auto pair = [&](const std::vector<uint16_t>& v) {
      std::vector<uint32_t> out;
      for (size_t i = 0; i < v.size(); ++i) out.push_back(v[i] | uint32_t{v[(i * 31 + 7) % v.size()]} << 16);
      return out;
    };
    pa = pair(a);
    pb = pair(b);
    pc = pair(c);
  }
};

/// Checks an instruction on single values and on pairs of them.
template <class F>
void both(const std::string& text, const Kind& kind, int sources, const Lists& lists, F&& one) {
  std::string operands = sources == 1 ? " %d, %a;" : sources == 2 ? " %d, %a, %b;" : " %d, %a, %b, %c;";
  std::string single = text + "." + kind.type + operands, pairs = text + "." + kind.type + "x2" + operands;
  auto each = [&](uint32_t x, uint32_t y, uint32_t z) {
    auto half = [](uint32_t w) { return static_cast<uint16_t>(w); };
    return one(half(x), half(y), half(z)) | uint32_t{one(half(x >> 16), half(y >> 16), half(z >> 16))} << 16;
  };
  using H = uint16_t;
  using U = uint32_t;
  if (sources == 1) {
    check<H, H>(
        single, [&](H x) { return one(x, H{0}, H{0}); }, lists.a);
    check<U, U>(
        pairs, [&](U x) { return each(x, 0, 0); }, lists.pa);
  } else if (sources == 2) {
    check<H, H, H>(
        single, [&](H x, H y) { return one(x, y, H{0}); }, lists.a, lists.b);
    check<U, U, U>(
        pairs, [&](U x, U y) { return each(x, y, 0); }, lists.pa, lists.pb);
  } else {
    check<H, H, H, H>(single, one, lists.a, lists.b, lists.c);
    check<U, U, U, U>(pairs, each, lists.pa, lists.pb, lists.pc);
  }
}

}  // namespace

TEST_CASE("sums, products and fused sums of halves") {
  for (const Kind& kind : kinds()) {
    Lists lists(kind);
    const SmallFloat& f = kind.format;
    struct Form {
      const char* name;
      bool ftz, sat, relu;
    };
    const Form kForms[] = {{"", false, false, false},          {".rn", false, false, false},
                           {".rn.ftz", true, false, false},    {".rn.sat", false, true, false},
                           {".rn.ftz.sat", true, true, false}, {".rn.relu", false, false, true},
                           {".rn.ftz.relu", true, false, true}};
    for (const Form& form : kForms) {
      if ((form.ftz && !kind.has_ftz) || (form.sat && !kind.has_sat)) continue;
      auto value = [&](uint16_t code) { return f.value(form.ftz ? flush(kind, code) : code); };
      auto give = [&](double v) {
        if (form.sat) v = v > 0 ? std::min(v, 1.0) : 0.0;
        if (form.relu && v <= 0) v = 0.0;
        // Flushed is what is subnormal after it was rounded as if exponents had no end (read off an H200).
        if (form.ftz && std::fabs(v) < 0x1p-14)
          v = std::copysign(f.value(f.code(std::fabs(v) * 256, SmallFloat::even)) >= 0x1p-6 ? 0x1p-14 : 0.0, v);
        return static_cast<uint16_t>(f.code(v, SmallFloat::even));
      };
      std::string name = form.name;
      if (!form.relu) {
        both("add" + name, kind, 2, lists,
             [&](uint16_t x, uint16_t y, uint16_t) { return give(fused(value(x), 1, value(y))); });
        both("sub" + name, kind, 2, lists,
             [&](uint16_t x, uint16_t y, uint16_t) { return give(fused(value(x), 1, -value(y))); });
        both("mul" + name, kind, 2, lists, [&](uint16_t x, uint16_t y, uint16_t) { return give(value(x) * value(y)); });
      }
      if (!name.empty())
        both("fma" + name, kind, 3, lists,
             [&](uint16_t x, uint16_t y, uint16_t z) { return give(fused(value(x), value(y), value(z))); });
    }
  }
}

TEST_CASE("order and sign of halves") {
  for (const Kind& kind : kinds()) {
    Lists lists(kind);
    const SmallFloat& f = kind.format;
    auto extreme = [&](uint16_t x, uint16_t y, bool least, bool nan) -> uint16_t {
      double a = f.value(x), b = f.value(y);
      if (a != a || b != b) return nan || (a != a && b != b) ? 0x7FFF : a != a ? y : x;
      bool less = a < b || (a == b && x >> 15);
      return less == least ? x : y;
    };
    for (bool least : {true, false})
      for (bool nan : {false, true}) {
        std::string name = std::string(least ? "min" : "max") + (nan ? ".NaN" : "");
        both(name, kind, 2, lists, [&](uint16_t x, uint16_t y, uint16_t) { return extreme(x, y, least, nan); });
        both(name + ".xorsign.abs", kind, 2, lists, [&](uint16_t x, uint16_t y, uint16_t) {
          uint16_t m = extreme(x & 0x7FFF, y & 0x7FFF, least, nan);
          return f.value(m) != f.value(m) ? m : static_cast<uint16_t>(m | ((x ^ y) & 0x8000));
        });
        if (kind.has_ftz)
          both(std::string(least ? "min" : "max") + ".ftz" + (nan ? ".NaN" : ""), kind, 2, lists,
               [&](uint16_t x, uint16_t y, uint16_t) { return extreme(flush(kind, x), flush(kind, y), least, nan); });
      }
    both("neg", kind, 1, lists, [&](uint16_t x, uint16_t, uint16_t) {
      return f.value(x) != f.value(x) ? uint16_t{0x7FFF} : static_cast<uint16_t>(x ^ 0x8000);
    });
    both("abs", kind, 1, lists, [&](uint16_t x, uint16_t, uint16_t) {
      return f.value(x) != f.value(x) ? uint16_t{0x7FFF} : static_cast<uint16_t>(x & 0x7FFF);
    });
  }
}
