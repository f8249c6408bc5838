// Bit fields, shifts and logic. Expected values: the pseudocode of PTX ISA, "Integer Arithmetic Instructions" (popc to
// bmsk) and "Logic and Shift Instructions", bit by bit.

#include <algorithm>

#include "tests/probes/probe.h"

using probe::check;

namespace {

template <class T>
int msb() {
  return sizeof(T) * 8 - 1;
}

template <class T>
bool bit(T value, int i) {
  return static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(value)) >> i & 1;
}

/// Shift counts and field positions: all that matter, and some far out.
std::vector<uint32_t> counts() {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i <= 70; ++i) out.push_back(i);
  for (uint32_t i : {127u, 128u, 200u, 255u, 256u, 257u, 0x80000000u, 0xFFFFFFFFu}) out.push_back(i);
  return out;
}

template <class T>
struct WithCount {
  std::vector<T> a;
  std::vector<uint32_t> n;
  WithCount() {
    for (T v : probe::corners<T>(20))
      for (uint32_t c : counts()) {
        a.push_back(v);
        n.push_back(c);
      }
  }
};

/// "restricted to the range 0..255 by ignoring higher bits"; an H200 instead clamps to it where the field is of 64
/// bits.
template <class T>
int field_part(uint32_t v) {
  return static_cast<int>(sizeof(T) == 8 ? std::min(v, 255u) : v & 0xFF);
}

template <class T>
T extract(T a, uint32_t b, uint32_t c) {
  int pos = field_part<T>(b), len = field_part<T>(c);
  bool sbit = std::is_unsigned_v<T> || len == 0 ? false : bit(a, std::min(pos + len - 1, msb<T>()));
  uint64_t d = 0;
  for (int i = 0; i <= msb<T>(); ++i)
    d |= static_cast<uint64_t>(i < len && pos + i <= msb<T>() ? bit(a, pos + i) : sbit) << i;
  return static_cast<T>(d);
}

template <class T>
T insert(T a, T b, uint32_t c, uint32_t d) {
  int pos = field_part<T>(c), len = field_part<T>(d);
  uint64_t f = b;
  for (int i = 0; i < len && pos + i <= msb<T>(); ++i)
    f = (f & ~(uint64_t{1} << (pos + i))) | static_cast<uint64_t>(bit(a, i)) << (pos + i);
  return static_cast<T>(f);
}

template <class T>
uint32_t find(T a, bool shift) {
  uint64_t bits = static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(a));
  if (std::is_signed_v<T> && a < 0) bits = ~static_cast<uint64_t>(static_cast<int64_t>(a));
  for (int i = msb<T>(); i >= 0; --i)
    if (bits >> i & 1) return static_cast<uint32_t>(shift ? msb<T>() - i : i);
  return 0xFFFFFFFFu;
}

}  // namespace

TEMPLATE_TEST_CASE("shifts clamp their count", "", uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t) {
  using T = TestType;
  WithCount<T> s;
  std::string bits = std::to_string(sizeof(T) * 8);
  check<T, T, uint32_t>(
      "shl.b" + bits + " %d, %a, %b;",
      [](T a, uint32_t n) {
        uint64_t d = 0;
        for (int i = 0; i <= msb<T>(); ++i)
          if (uint64_t to = uint64_t{n} + static_cast<uint64_t>(i); to <= static_cast<uint64_t>(msb<T>()))
            d |= static_cast<uint64_t>(bit(a, i)) << to;
        return static_cast<T>(d);
      },
      s.a, s.n);
  check<T, T, uint32_t>(
      std::string("shr.") + (std::is_signed_v<T> ? "s" : "u") + bits + " %d, %a, %b;",
      [](T a, uint32_t n) {
        bool fill = std::is_signed_v<T> && a < 0;
        uint64_t d = 0;
        for (int i = 0; i <= msb<T>(); ++i) {
          uint64_t from = uint64_t{n} + static_cast<uint64_t>(i);
          bool b = from <= static_cast<uint64_t>(msb<T>()) ? bit(a, static_cast<int>(from)) : fill;
          d |= static_cast<uint64_t>(b) << i;
        }
        return static_cast<T>(d);
      },
      s.a, s.n);
}

TEST_CASE("funnel shifts") {
  WithCount<uint32_t> s;
  std::vector<uint32_t> b;
  for (size_t i = 0; i < s.a.size(); ++i) b.push_back(s.a[(i * 31) % s.a.size()]);
  for (bool left : {true, false})
    for (bool wrap : {true, false})
      check<uint32_t, uint32_t, uint32_t, uint32_t>(
          std::string("shf.") + (left ? "l" : "r") + (wrap ? ".wrap" : ".clamp") + ".b32 %d, %a, %b, %c;",
          [&](uint32_t lo, uint32_t hi, uint32_t c) {
            uint32_t n = wrap ? c & 31 : std::min(c, 32u);
            uint32_t d = 0;
            for (uint32_t i = 0; i < 32; ++i) {
              uint32_t from = left ? 32 + i - n : i + n;  // of hi:lo
              d |= (from >= 32 ? hi >> (from - 32) & 1 : lo >> from & 1) << i;
            }
            return d;
          },
          s.a, b, s.n);
}

TEMPLATE_TEST_CASE("logic on bits", "", uint16_t, uint32_t, uint64_t) {
  using T = TestType;
  auto [a, b] = probe::pairs(probe::corners<T>(30));
  std::string t = ".b" + std::to_string(sizeof(T) * 8);
  check<T, T, T>(
      "and" + t + " %d, %a, %b;", [](T x, T y) { return x & y; }, a, b);
  check<T, T, T>(
      "or" + t + " %d, %a, %b;", [](T x, T y) { return x | y; }, a, b);
  check<T, T, T>(
      "xor" + t + " %d, %a, %b;", [](T x, T y) { return x ^ y; }, a, b);
  check<T, T>(
      "not" + t + " %d, %a;", [](T x) { return ~x; }, a);
  check<T, T>(
      "cnot" + t + " %d, %a;", [](T x) { return x == 0 ? 1 : 0; }, a);
}

TEST_CASE("lop3 does every function of three bits") {
  auto list = probe::corners<uint32_t>(10);
  auto [a, b] = probe::pairs(list);
  std::vector<uint32_t> c;
  for (size_t i = 0; i < a.size(); ++i) c.push_back(list[(i * 5 + 3) % list.size()]);
  for (int table = 0; table < 256; table += table < 16 || table > 240 ? 1 : 7)
    check<uint32_t, uint32_t, uint32_t, uint32_t>(
        "lop3.b32 %d, %a, %b, %c, " + std::to_string(table) + ";",
        [&](uint32_t x, uint32_t y, uint32_t z) {
          uint32_t d = 0;
          for (int i = 0; i < 32; ++i) {
            int index = bit(x, i) * 4 + bit(y, i) * 2 + bit(z, i);
            d |= static_cast<uint32_t>(table >> index & 1) << i;
          }
          return d;
        },
        a, b, c);
}

TEST_CASE("lop3 may set a predicate too") {
  auto list = probe::corners<uint32_t>(10);
  auto [a, b] = probe::pairs(list);
  for (bool disjunction : {true, false})
    for (bool sink : {true, false})
      check<uint32_t, uint32_t, uint32_t>(
          std::string("{ .reg .pred p, q; setp.lt.u32 q, %a, 40; lop3.") + (disjunction ? "or" : "and") + ".b32 " +
              (sink ? "_" : "%d") + "|p, %a, %b, 0, 0xC0, q; selp.b32 " +
              (sink ? "%d, 1, 0, p; }" : "%d, %d, -1, p; }"),
          [&](uint32_t x, uint32_t y) {  // table 0xC0 is a & b
            bool p = disjunction ? (x & y) != 0 || x < 40 : (x & y) != 0 && x < 40;
            return sink ? p : p ? x & y : 0xFFFFFFFFu;
          },
          a, b);
}

TEST_CASE("logic on predicates") {
  auto [a, b] = probe::pairs(probe::corners<uint32_t>(4));
  auto text = [](const std::string& op) {
    return "{ .reg .pred p, q; setp.lt.s32 p, %a, 3; setp.gt.u32 q, %b, 30; " + op + " selp.b32 %d, 7, 9, p; }";
  };
  auto p = [](uint32_t x) { return static_cast<int32_t>(x) < 3; };
  auto q = [](uint32_t y) { return y > 30; };
  auto give = [](bool v) { return v ? 7u : 9u; };
  using U = uint32_t;
  check<U, U, U>(
      text("and.pred p, p, q;"), [&](U x, U y) { return give(p(x) && q(y)); }, a, b);
  check<U, U, U>(
      text("or.pred p, p, q;"), [&](U x, U y) { return give(p(x) || q(y)); }, a, b);
  check<U, U, U>(
      text("xor.pred p, p, q;"), [&](U x, U y) { return give(p(x) != q(y)); }, a, b);
  check<U, U, U>(
      text("not.pred p, q;"), [&](U, U y) { return give(!q(y)); }, a, b);
  check<U, U, U>(
      text("mov.pred p, q;"), [&](U, U y) { return give(q(y)); }, a, b);
}

TEMPLATE_TEST_CASE("counting and finding bits", "", uint32_t, uint64_t) {
  using T = TestType;
  using S = std::make_signed_t<T>;
  auto list = probe::corners<T>(200);
  std::vector<S> signed_list(list.begin(), list.end());
  std::string bits = std::to_string(sizeof(T) * 8);
  check<uint32_t, T>(
      "popc.b" + bits + " %d, %a;",
      [](T a) {
        uint32_t n = 0;
        for (int i = 0; i <= msb<T>(); ++i) n += bit(a, i);
        return n;
      },
      list);
  check<uint32_t, T>(
      "clz.b" + bits + " %d, %a;", [](T a) { return a ? find(a, true) : msb<T>() + 1u; }, list);
  check<T, T>(
      "brev.b" + bits + " %d, %a;",
      [](T a) {
        T d = 0;
        for (int i = 0; i <= msb<T>(); ++i) d |= static_cast<T>(bit(a, i)) << (msb<T>() - i);
        return d;
      },
      list);
  check<uint32_t, T>(
      "bfind.u" + bits + " %d, %a;", [](T a) { return find(a, false); }, list);
  check<uint32_t, T>(
      "bfind.shiftamt.u" + bits + " %d, %a;", [](T a) { return find(a, true); }, list);
  check<uint32_t, S>(
      "bfind.s" + bits + " %d, %a;", [](S a) { return find(a, false); }, signed_list);
  check<uint32_t, S>(
      "bfind.shiftamt.s" + bits + " %d, %a;", [](S a) { return find(a, true); }, signed_list);
}

TEMPLATE_TEST_CASE("bit fields out and in", "", uint32_t, int32_t, uint64_t, int64_t) {
  using T = TestType;
  using U = std::make_unsigned_t<T>;
  std::vector<T> a;
  std::vector<U> f, g;
  std::vector<uint32_t> position, length;
  auto values = probe::corners<T>(4);
  for (uint32_t p : counts())
    for (uint32_t n : counts()) {
      size_t i = a.size();
      a.push_back(values[i % values.size()]);
      f.push_back(static_cast<U>(values[(i * 3 + 1) % values.size()]));
      g.push_back(static_cast<U>(values[(i * 11 + 5) % values.size()]));
      position.push_back(p);
      length.push_back(n);
    }
  std::string bits = std::to_string(sizeof(T) * 8);
  check<T, T, uint32_t, uint32_t>(
      std::string("bfe.") + (std::is_signed_v<T> ? "s" : "u") + bits + " %d, %a, %b, %c;",
      [](T x, uint32_t b, uint32_t c) { return extract(x, b, c); }, a, position, length);
  if constexpr (std::is_unsigned_v<T>) {
    // The value inserted into is computed from the one inserted, as only three sources are at hand.
    check<T, T, uint32_t, uint32_t>(
        "{ .reg .b" + bits + " t; xor.b" + bits + " t, %a, 0x5A5A5A5A; bfi.b" + bits + " %d, %a, t, %b, %c; }",
        [](T x, uint32_t b, uint32_t c) { return insert<T>(x, x ^ 0x5A5A5A5A, b, c); }, f, position, length);
  }
}

TEST_CASE("the n-th set bit") {
  std::vector<uint32_t> mask, base;
  std::vector<int32_t> offset;
  for (uint32_t m : probe::corners<uint32_t>(30))
    for (uint32_t b : {0u, 1u, 7u, 16u, 30u, 31u})
      for (int32_t o : {-33, -5, -2, -1, 0, 1, 2, 3, 9, 31, 32, 33}) {
        mask.push_back(m);
        base.push_back(b);
        offset.push_back(o);
      }
  check<uint32_t, uint32_t, uint32_t, int32_t>(
      "fns.b32 %d, %a, %b, %c;",
      [](uint32_t m, uint32_t b, int32_t o) {
        if (o == 0) return m >> b & 1 ? b : 0xFFFFFFFFu;
        int pos = static_cast<int>(b), count = std::abs(o) - 1;
        int inc = o > 0 ? 1 : -1;
        while (pos >= 0 && pos < 32) {
          if (m >> pos & 1) {
            if (count == 0) return static_cast<uint32_t>(pos);
            --count;
          }
          pos += inc;
        }
        return 0xFFFFFFFFu;
      },
      mask, base, offset);
}

TEST_CASE("sign extension from any width, and masks of bits") {
  WithCount<uint32_t> s;
  std::vector<int32_t> a(s.a.begin(), s.a.end());
  for (bool wrap : {true, false}) {
    std::string mode = wrap ? "wrap" : "clamp";
    // The low `width` bits are kept; above them copies of the topmost kept bit, or zeros.
    auto kept = [&](uint32_t n) { return !wrap && n >= 32 ? 32 : n & 31; };
    check<int32_t, int32_t, uint32_t>(
        "szext." + mode + ".s32 %d, %a, %b;",
        [&](int32_t x, uint32_t n) {
          uint32_t width = kept(n);
          uint32_t d = 0;
          for (uint32_t i = 0; i < 32 && width; ++i)
            d |= static_cast<uint32_t>(bit(x, static_cast<int>(std::min(i, width - 1)))) << i;
          return static_cast<int32_t>(d);
        },
        a, s.n);
    check<uint32_t, uint32_t, uint32_t>(
        "szext." + mode + ".u32 %d, %a, %b;",
        [&](uint32_t x, uint32_t n) {
          uint32_t width = kept(n), d = 0;
          for (uint32_t i = 0; i < width; ++i) d |= (x >> i & 1) << i;
          return d;
        },
        s.a, s.n);
  }
  std::vector<uint32_t> from, width;
  for (uint32_t p : counts())
    for (uint32_t n : counts()) {
      from.push_back(p);
      width.push_back(n);
    }
  auto mask = [](uint64_t p, uint64_t n) {
    uint32_t d = 0;
    for (uint64_t i = p; i < p + n && i < 32; ++i) d |= 1u << i;
    return d;
  };
  check<uint32_t, uint32_t, uint32_t>(
      "bmsk.clamp.b32 %d, %a, %b;", [&](uint32_t p, uint32_t n) { return mask(p, n); }, from, width);
  check<uint32_t, uint32_t, uint32_t>(
      "bmsk.wrap.b32 %d, %a, %b;", [&](uint32_t p, uint32_t n) { return mask(p & 31, n & 31); }, from, width);
}
