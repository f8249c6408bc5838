// atom and red. PTX ISA, "Parallel Synchronization and Communication Instructions": atom, table of operations.

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/probes/probe.h"

namespace {

struct Outcome {
  uint64_t memory;
  std::vector<uint64_t> old;
};

/// All 32 lanes do `op` on one word that starts as `start`; b = input[lane]. By atom, and by red where there is one.
template <class T>
Outcome all_lanes(const std::string& space, const std::string& op, T start, const std::vector<T>& input,
                  bool reduction) {
  std::string bits = std::to_string(sizeof(T) * 8);
  std::string value = sizeof(T) == 8 ? "%d5" : "%r5", old = sizeof(T) == 8 ? "%d6" : "%r6";
  std::string setup =
      "mov.u32 %r0, %tid.x; ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1]; mad.wide.u32 %d2, %r0, 8, %d1;"
      "ld.global.b" +
      bits + " " + value + ", [%d2]; mov.b" + bits + " " + old + ", 0;";
  std::string address = "%d0";
  std::string before, after;
  if (space != ".global" && space != "") {
    before = ".shared .align 16 .b8 word[16]; mov.u32 %r1, word; ld.global.b" + bits + " " +
             (sizeof(T) == 8 ? "%d7" : "%r7") + ", [%d0]; st.shared.b" + bits + " [word], " +
             (sizeof(T) == 8 ? "%d7" : "%r7") + "; bar.warp.sync -1;";
    after = "bar.warp.sync -1; ld.shared.b" + bits + " " + (sizeof(T) == 8 ? "%d7" : "%r7") + ", [word]; st.global.b" +
            bits + " [%d0], " + (sizeof(T) == 8 ? "%d7" : "%r7") + ";";
    address = "%r1";
  }
  std::string instruction = reduction ? "red" + space + "." + op + " [" + address + "], " + value + ";"
                                      : "atom" + space + "." + op + " " + old + ", [" + address + "], " + value + ";";
  // The old values show who came first.
  probe::Shape shape;
  if (sizeof(T) == 8 && std::is_integral_v<T> && space.starts_with(".shared") && !reduction && !op.starts_with("exch"))
    shape.apart = "the order of lanes is left open, and an H200 has one of its own where it makes 64 bits out of cas";
  probe::Machine machine;
  std::vector<uint64_t> padded;
  for (const T& v : input) padded.push_back(probe::bits(v));
  std::vector<uint64_t> parameters{machine.buffer(std::vector<T>{start, T{}}), machine.buffer(padded),
                                   machine.buffer(std::vector<T>(32))};
  std::string store = "ld.param.u64 %d3, [p2]; mad.wide.u32 %d3, %r0, " + std::to_string(sizeof(T)) +
                      ", %d3; st.global.b" + bits + " [%d3], " + old + ";";
  auto fault = machine.launch(probe::kernel(setup + before + instruction + after + store, 3), parameters, shape);
  if (fault) FAIL(fault->report);
  Outcome out{probe::bits(machine.read<T>(parameters[0], 1)[0]), {}};
  for (const T& v : machine.read<T>(parameters[2], 32)) out.old.push_back(probe::bits(v));
  return out;
}

template <class T>
void check(const std::string& op, T start, const std::vector<T>& input, std::function<T(T, T)> f,
           bool reduction = true) {
  for (const std::string space : {".global", "", ".shared", ".shared::cluster"}) {
    INFO("atom" << space << "." << op);
    Outcome got = all_lanes<T>(space, op, start, input, false);
    T value = start;
    for (size_t lane = 0; lane < 32; ++lane) {
      CHECK(got.old[lane] == probe::bits(value));
      value = f(value, input[lane]);
    }
    CHECK(got.memory == probe::bits(value));
    if (reduction) CHECK(all_lanes<T>(space, op, start, input, true).memory == probe::bits(value));
  }
}

template <class T>
std::vector<T> values() {
  auto list = probe::corners<T>(40, 9);
  std::vector<T> out;
  for (size_t i = 0; i < 32; ++i) out.push_back(list[i * 11 % list.size()]);
  return out;
}

}  // namespace

TEST_CASE("atomic integer operations, lane after lane") {
  auto u = values<uint32_t>();
  auto s = values<int32_t>();
  auto wide = values<uint64_t>();
  auto wide_signed = values<int64_t>();
  check<uint32_t>("add.u32", 5, u, [](uint32_t a, uint32_t b) { return a + b; });
  check<uint32_t>("min.u32", ~0u, u, [](uint32_t a, uint32_t b) { return std::min(a, b); });
  check<uint32_t>("max.u32", 0, u, [](uint32_t a, uint32_t b) { return std::max(a, b); });
  check<int32_t>("min.s32", 9, s, [](int32_t a, int32_t b) { return std::min(a, b); });
  check<int32_t>("max.s32", -9, s, [](int32_t a, int32_t b) { return std::max(a, b); });
  check<uint32_t>("and.b32", ~0u, u, [](uint32_t a, uint32_t b) { return a & b; });
  check<uint32_t>("or.b32", 0, u, [](uint32_t a, uint32_t b) { return a | b; });
  check<uint32_t>("xor.b32", 3, u, [](uint32_t a, uint32_t b) { return a ^ b; });
  check<uint64_t>("add.u64", 5, wide, [](uint64_t a, uint64_t b) { return a + b; });
  check<uint64_t>("max.u64", 5, wide, [](uint64_t a, uint64_t b) { return std::max(a, b); });
  check<int64_t>("min.s64", 5, wide_signed, [](int64_t a, int64_t b) { return std::min(a, b); });
  check<uint64_t>("xor.b64", 5, wide, [](uint64_t a, uint64_t b) { return a ^ b; });
  check<uint32_t>(
      "exch.b32", 5, u, [](uint32_t, uint32_t b) { return b; }, false);
  check<uint64_t>(
      "exch.b64", 5, wide, [](uint64_t, uint64_t b) { return b; }, false);
  // inc: old >= b ? 0 : old + 1. dec: old == 0 || old > b ? b : old - 1.
  std::vector<uint32_t> limit(32, 6);
  check<uint32_t>("inc.u32", 3, limit, [](uint32_t a, uint32_t b) { return a >= b ? 0 : a + 1; });
  check<uint32_t>("dec.u32", 3, limit, [](uint32_t a, uint32_t b) { return a == 0 || a > b ? b : a - 1; });
}

TEST_CASE("compare and swap of every width") {
  // Lane i swaps i for i + 1, so all succeed in turn; in a second round all but one fail.
  auto run = [](const std::string& body, size_t count) {
    return probe::run<uint64_t>("mov.u32 %r0, %tid.x; add.u32 %r1, %r0, 1; ld.param.u64 %d0, [p0];" + body, count);
  };
  CHECK(run("atom.global.cas.b32 %r2, [%d0], %r0, %r1; atom.global.cas.b32 %r2, [%d0+8], 0, %r1;", 2) ==
        std::vector<uint64_t>{32, 1});
  CHECK(run("cvt.u64.u32 %d1, %r0; cvt.u64.u32 %d2, %r1; atom.cas.b64 %d3, [%d0], %d1, %d2;", 1) ==
        std::vector<uint64_t>{32});
  CHECK(run("cvt.u16.u32 %h1, %r0; cvt.u16.u32 %h2, %r1; atom.global.cas.b16 %h3, [%d0+2], %h1, %h2;", 1) ==
        std::vector<uint64_t>{32u << 16});
  CHECK(run("cvt.u64.u32 %d1, %r0; cvt.u64.u32 %d2, %r1; mov.b128 %q0, {%d1, %d1}; mov.b128 %q1, {%d2, %d2};"
            "atom.global.cas.b128 %q2, [%d0], %q0, %q1;",
            2) == std::vector<uint64_t>{32, 32});
  CHECK(run("cvt.u64.u32 %d1, %r0; mov.b128 %q0, {%d1, 7}; atom.global.exch.b128 %q2, [%d0], %q0;", 2) ==
        std::vector<uint64_t>{31, 7});
}

TEST_CASE("atomic sums of floats") {
  std::vector<float> f;
  std::vector<double> d;
  for (int i = 0; i < 32; ++i) {
    f.push_back(std::ldexp(1.0f + static_cast<float>(i) / 7, i % 9 - 4));
    d.push_back(std::ldexp(1.0 + i / 7.0, i % 50 - 4));
  }
  check<float>("add.f32", 0.1f, f, [](float a, float b) { return a + b; });
  check<double>("add.f64", 0.1, d, [](double a, double b) { return a + b; });
}

TEST_CASE("atomic f32 sums flush subnormals in global memory, not in shared memory") {
  // PTX ISA, atom: notes on .add of .f32.
  std::vector<float> tiny(32, 0x1p-140f);
  CHECK(all_lanes<float>(".global", "add.f32", 0.0f, tiny, false).memory == 0);
  CHECK(all_lanes<float>(".shared", "add.f32", 0.0f, tiny, false).memory == probe::bits(0x1p-135f));
}

TEST_CASE("atomic sums and extremes of halves, in pairs and vectors") {
  // 1.0 = 0x3C00, 2.0 = 0x4000, -1.0 = 0xBC00 in f16; 0x3F80, 0x4000, 0xBF80 in bf16. 32 lanes add 1.0 and 2.0.
  auto word = [](const std::string& body) { return probe::run<uint32_t>("ld.param.u64 %d0, [p0];" + body, 4); };
  CHECK(word("mov.b32 %r1, 0x40003C00; red.global.add.noftz.f16x2 [%d0], %r1;")[0] == 0x54005000u);  // 64, 32
  CHECK(word("mov.b32 %r1, 0x40003F80; red.global.add.noftz.bf16x2 [%d0], %r1;")[0] == 0x42804200u);
  CHECK(word("mov.b16 %h1, 0x3C00; atom.global.add.noftz.f16 %h2, [%d0+2], %h1;")[0] == 0x50000000u);
  CHECK(word("mov.b16 %h1, 0x3F80; mov.b16 %h2, 0xBF80; red.global.v2.bf16.max.noftz [%d0], {%h1, %h2};")[0] ==
        0x00003F80u);
  CHECK(word("mov.b32 %r1, 0x3F800000; mov.b32 %r2, 0x40000000;"
             "atom.global.v4.f32.add {%r3, %r4, %r5, %r6}, [%d0], {%r1, %r2, %r1, %r2};") ==
        std::vector<uint32_t>{0x42000000u, 0x42800000u, 0x42000000u, 0x42800000u});
  CHECK(word("mov.b32 %r1, 0x40003C00; mov.b32 %r2, 0xBC00C000;"
             "red.global.v2.f16x2.min.noftz [%d0], {%r1, %r2};") == std::vector<uint32_t>{0, 0xBC00C000u, 0, 0});
}

TEST_CASE("orders, scopes and hints change nothing here") {
  CHECK(probe::run<uint32_t>(
            "ld.param.u64 %d0, [p0]; createpolicy.fractional.L2::evict_last.b64 %d4, 1.0;"
            "atom.acq_rel.gpu.global.add.u32 %r1, [%d0], 1; atom.relaxed.sys.global.add.u32 %r1, [%d0], 1;"
            "red.release.cta.global.add.u32 [%d0], 1; atom.global.add.L2::cache_hint.u32 %r1, [%d0], 1, %d4;"
            "red.relaxed.cluster.global.add.u32 [%d0], 1;",
            1)[0] == 160);
}

TEST_CASE("many clusters add to one word") {
  probe::Machine machine;
  std::vector<uint64_t> parameters{machine.buffer(std::vector<uint32_t>(1))};
  auto fault = machine.launch(probe::kernel("ld.param.u64 %d0, [p0]; atom.global.add.u32 %r1, [%d0], 1;", 1),
                              parameters, {.grid = {300, 1, 1}, .block = {64, 1, 1}});
  if (fault) FAIL(fault->report);
  CHECK(machine.read<uint32_t>(parameters[0], 1)[0] == 300 * 64);
}
