// atom.add, .min and .max of floats on special values: one thread, one word for each pair, the old value and the new.
// PTX ISA, atom: subnormals of .f32 are flushed in global memory and kept in shared memory, .noftz keeps them; which
// NaN comes out the ISA does not say, an H200 does (tests/golden/h200_probes.json).

#include <cmath>

#include "tests/probes/everywhere.h"
#include "tests/probes/small_floats.h"

namespace {

/// The words that `instruction` leaves: %r5 (or %d5, %h5) is b, [%r0] or [%d2] the word, old values go to old.
std::vector<uint64_t> run(const std::string& operation, const std::string& space, int bits,
                          const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  const std::string bytes = std::to_string(bits / 8), type = "b" + std::to_string(bits);
  const bool shared = space == ".shared";
  std::string body = ".reg ." + type + R"( %a, %b, %old, %new;
    .shared .align 8 .b64 word;
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d1, [p1];
    ld.param.u64 %d2, [p2];
    mov.u32 %r0, %ctaid.x;
    mad.wide.u32 %d0, %r0, )" +
                     std::to_string(bits / 4) + R"(, %d0;
    mad.wide.u32 %d1, %r0, )" +
                     bytes + R"(, %d1;
    mad.wide.u32 %d2, %r0, )" +
                     bytes + ", %d2;\n    ld.global." + type + " %a, [%d1];\n    ld.global." + type + " %b, [%d2];\n";
  const std::string at = shared ? "[word]" : "[%d0]";
  body += "    st" + space + "." + type + " " + at + ", %a;\n    atom" + space + "." + operation + " %old, " + at +
          ", %b;\n    ld" + space + "." + type + " %new, " + at + ";\n    st.global." + type +
          " [%d0], %new;\n    st.global." + type + " [%d0+" + bytes + "], %old;\n";
  auto narrow = [&](const std::vector<uint64_t>& values) {
    std::vector<std::byte> out(values.size() * static_cast<size_t>(bits) / 8);
    for (size_t i = 0; i < values.size(); ++i)
      std::memcpy(out.data() + i * static_cast<size_t>(bits) / 8, &values[i], static_cast<size_t>(bits) / 8);
    return out;
  };
  probe::Shape shape{.grid = {static_cast<uint32_t>(a.size()), 1, 1}, .block = {1, 1, 1}};
  probe::Ending ending = probe::launch_with({}, probe::kernel(body, 3), a.size() * static_cast<size_t>(bits) / 4,
                                            {narrow(a), narrow(b)}, shape);
  if (!ending.report.empty()) FAIL(ending.report);
  std::vector<uint64_t> out(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    uint64_t old = 0;
    std::memcpy(&out[i], ending.bytes.data() + i * static_cast<size_t>(bits) / 4, static_cast<size_t>(bits) / 8);
    std::memcpy(&old, ending.bytes.data() + i * static_cast<size_t>(bits) / 4 + static_cast<size_t>(bits) / 8,
                static_cast<size_t>(bits) / 8);
    CHECK(old == a[i]);
  }
  return out;
}

template <class T>
float flushed(T value) {
  return std::fabs(value) < static_cast<T>(0x1p-126f) ? std::copysign(0.0f, value) : value;
}

}  // namespace

TEST_CASE("atom.add of f32 and f64 on pairs of special values") {
  auto [a, b] = probe::pairs(probe::corners<float>(6));
  for (const std::string space : {".global", ".shared"}) {
    std::vector<uint64_t> got = run("add.f32", space, 32, probe::all_bits(a), probe::all_bits(b));
    for (size_t i = 0; i < a.size(); ++i) {
      float want = space == ".global" ? flushed(flushed(a[i]) + flushed(b[i])) : a[i] + b[i];
      INFO(space << " " << probe::hex(probe::bits(a[i])) << " + " << probe::hex(probe::bits(b[i])) << " gives "
                 << probe::hex(got[i]));
      if (want == want)
        CHECK(got[i] == probe::bits(want));
      else
        CHECK(std::isnan(probe::value<float>(got[i])));
    }
  }
  auto [c, d] = probe::pairs(probe::corners<double>(6));
  for (const std::string space : {".global", ".shared"}) {
    std::vector<uint64_t> got = run("add.f64", space, 64, probe::all_bits(c), probe::all_bits(d));
    for (size_t i = 0; i < c.size(); ++i) {
      double want = c[i] + d[i];
      if (want == want)
        CHECK(got[i] == probe::bits(want));
      else if (std::isnan(c[i]) && std::isnan(d[i]))  // an H200 keeps one of them as it is
        CHECK(got[i] == probe::bits(space == ".global" ? d[i] : c[i]));
      else
        CHECK(std::isnan(probe::value<double>(got[i])));
    }
  }
}

TEST_CASE("atom.add.noftz of halves, alone and in pairs, on special values") {
  for (bool brain : {false, true}) {
    const probe::SmallFloat& format = brain ? probe::bf16() : probe::f16();
    const uint32_t infinity = brain ? 0x7F80 : 0x7C00;
    std::vector<uint64_t> list;
    for (uint32_t code : {0u, 1u, 2u, 0x3u, infinity / 2, infinity / 2 + 1, infinity - 1, infinity, infinity + 1,
                          0x7FFFu, 0x3C00u, 0x3C01u, 0x0400u, 0x03FFu, 0x0080u, 0x007Fu})
      for (uint32_t sign : {0u, 0x8000u}) list.push_back(code | sign);
    auto [a, b] = probe::pairs(list);
    auto sum = [&](uint64_t x, uint64_t y) {
      return format.code(format.value(static_cast<uint32_t>(x)) + format.value(static_cast<uint32_t>(y)),
                         probe::SmallFloat::even);
    };
    const std::string type = brain ? "bf16" : "f16";
    for (const std::string space : {".global", ".shared"}) {
      std::vector<uint64_t> got = run("add.noftz." + type, space, 16, a, b);
      for (size_t i = 0; i < a.size(); ++i) {
        INFO(type << space << " " << probe::hex(a[i]) << " + " << probe::hex(b[i]));
        CHECK(got[i] == sum(a[i], b[i]));
      }
      std::vector<uint64_t> wide_a, wide_b;
      for (size_t i = 0; i < a.size(); ++i) {
        wide_a.push_back(a[i] << 16 | a[a.size() - 1 - i]);
        wide_b.push_back(b[i] << 16 | b[a.size() - 1 - i]);
      }
      got = run("add.noftz." + type + "x2", space, 32, wide_a, wide_b);
      for (size_t i = 0; i < a.size(); ++i)
        CHECK(got[i] == (uint64_t{sum(a[i], b[i])} << 16 | sum(a[a.size() - 1 - i], b[a.size() - 1 - i])));
    }
  }
}
