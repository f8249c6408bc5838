// Bulk copies out of shared memory: tensor and plain stores, reductions, groups. PTX ISA, "cp.async.bulk",
// "cp.reduce.async.bulk", "cp.async.bulk.commit_group", "cp.async.bulk.wait_group".

#include <fmt/format.h>

#include "emulator/units/tensor_map.h"
#include "tests/probes/everywhere.h"

namespace {

using emu::TensorMap;
using emu::TensorMapSwizzle;
using emu::TensorMapType;

constexpr uint32_t kShared = 8192;
const std::string kSharedVariable = ".extern .shared .align 1024 .b8 smem[];";

/// Shared memory holds word i at byte 4 i; then thread 0 runs on, with %r0 = smem, %d0 = p0, %d1 = p1.
const std::string kFill = R"(
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d1, [p1];
    mov.u32 %r0, smem;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %r1;
  fill:
    mad.lo.u32 %r3, %r2, 4, %r0;
    st.shared.u32 [%r3], %r2;
    add.u32 %r2, %r2, 128;
    setp.lt.u32 %p0, %r2, 2048;
    @%p0 bra fill;
    fence.proxy.async.shared::cta;
    bar.sync 0;
)";
const std::string kThread0 = "    setp.ne.u32 %p0, %r1, 0;\n    @%p0 bra end;\n";

std::vector<uint32_t> run(const std::string& body, size_t count, const std::vector<uint32_t>& input = {}, int seeds = 8,
                          const std::string& before = kThread0, const char* apart = nullptr) {
  return probe::everywhere<uint32_t>(probe::kernel(kFill + before + body + "  end:\n", 2, kSharedVariable), count,
                                     {probe::bytes_of(input)},
                                     {.block = {128, 1, 1}, .dynamic_shared_bytes = kShared, .apart = apart}, seeds);
}
const std::string kFinish = "    cp.async.bulk.commit_group;\n    cp.async.bulk.wait_group 0;\n";

/// Runs `body` with p1 = a tensor map of p0, which starts as `initial`; returns p0.
std::vector<uint32_t> run_tensor(const TensorMap& shape, const std::vector<uint32_t>& initial,
                                 const std::string& body) {
  const std::string ptx = probe::kernel(kFill + kThread0 + body + kFinish + "  end:\n", 2, kSharedVariable);
  std::vector<uint32_t> first;
  for (const auto& [name, with] : probe::settings(3)) {
    probe::Machine machine(with);
    TensorMap map = shape;
    map.address = machine.buffer(initial);
    emu::TensorMapObject object = emu::encode_tensor_map(map);
    std::vector<uint64_t> parameters{map.address, machine.buffer(std::vector<std::byte>(object.begin(), object.end()))};
    auto fault = machine.launch(ptx, parameters, {.block = {128, 1, 1}, .dynamic_shared_bytes = kShared});
    INFO(name);
    if (fault) FAIL(fault->report);
    std::vector<uint32_t> got = machine.read<uint32_t>(map.address, initial.size());
    if (first.empty()) first = got;
    REQUIRE(got == first);
  }
  return first;
}

TensorMap matrix(TensorMapType type, uint32_t columns, uint32_t rows, uint32_t box_columns, uint32_t box_rows,
                 TensorMapSwizzle swizzle = TensorMapSwizzle::none) {
  TensorMap map;
  map.type = type;
  map.rank = 2;
  map.dims = {columns, rows, 1, 1, 1};
  map.strides_bytes = {0, uint64_t{columns} * 4, 0, 0, 0};
  map.box = {box_columns, box_rows, 1, 1, 1};
  map.swizzle = swizzle;
  return map;
}

}  // namespace

TEST_CASE("cp.async.bulk to global memory, whole and in parts") {
  std::vector<uint32_t> got = run(R"(
    cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r0+64], 4096;
    cp.async.bulk.global.shared::cta.bulk_group [%d0+4112], [%r0], 16;
)" + kFinish,
                                  1040);
  for (uint32_t i = 0; i < 1024; ++i) REQUIRE(got[i] == 16 + i);
  for (uint32_t i = 0; i < 4; ++i) CHECK(got[1028 + i] == i);
  CHECK(got[1024] == 0xEEEEEEEE);
  CHECK(got[1032] == 0xEEEEEEEE);
}

TEST_CASE("cp.async.bulk.tensor stores: clipped at the tensor's ends, swizzle undone") {
  // A 24 x 10 matrix of 32-bit words; a box of 16 x 4 at (16, 8) keeps 8 columns and 2 rows.
  std::vector<uint32_t> initial(240, 7);
  std::vector<uint32_t> got =
      run_tensor(matrix(TensorMapType::uint32, 24, 10, 16, 4), initial,
                 "    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d1, {16, 8}], [%r0];\n");
  for (uint32_t row = 0; row < 10; ++row)
    for (uint32_t column = 0; column < 24; ++column)
      CHECK(got[row * 24 + column] == (row >= 8 && column >= 16 ? (row - 8) * 16 + column - 16 : 7));
  // 128-byte rows, 128B swizzle: chunk c of row r lies at chunk c ^ (r % 8).
  got = run_tensor(matrix(TensorMapType::uint32, 32, 16, 32, 12, TensorMapSwizzle::b128), std::vector<uint32_t>(512, 7),
                   "    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d1, {0, 2}], [%r0+1024];\n");
  for (uint32_t row = 0; row < 16; ++row)
    for (uint32_t column = 0; column < 32; ++column) {
      uint32_t r = row - 2;
      uint32_t want = row < 2 || row >= 14 ? 7 : 256 + r * 32 + ((column / 4) ^ (r % 8)) * 4 + column % 4;
      REQUIRE(got[row * 32 + column] == want);
    }
}

TEST_CASE("cp.reduce.async.bulk.tensor combines with what is there") {
  struct Case {
    const char* operation;
    uint32_t (*combine)(uint32_t, uint32_t);
  };
  for (const Case& c : {Case{"add", [](uint32_t a, uint32_t b) { return a + b; }},
                        Case{"min", [](uint32_t a, uint32_t b) { return std::min(a, b); }},
                        Case{"max", [](uint32_t a, uint32_t b) { return std::max(a, b); }},
                        Case{"and", [](uint32_t a, uint32_t b) { return a & b; }},
                        Case{"or", [](uint32_t a, uint32_t b) { return a | b; }},
                        Case{"xor", [](uint32_t a, uint32_t b) { return a ^ b; }}}) {
    std::vector<uint32_t> initial(96);
    for (uint32_t i = 0; i < 96; ++i) initial[i] = i * 5 % 64;
    std::vector<uint32_t> got = run_tensor(
        matrix(TensorMapType::uint32, 16, 6, 8, 4), initial,
        fmt::format(
            "    cp.reduce.async.bulk.tensor.2d.global.shared::cta.{}.tile.bulk_group [%d1, {{4, 1}}], [%r0];\n",
            c.operation));
    for (uint32_t row = 0; row < 6; ++row)
      for (uint32_t column = 0; column < 16; ++column) {
        bool inside = row >= 1 && row < 5 && column >= 4 && column < 12;
        uint32_t i = row * 16 + column, own = (row - 1) * 8 + column - 4;
        CHECK(got[i] == (inside ? c.combine(initial[i], own) : initial[i]));
      }
  }
}

TEST_CASE("cp.reduce.async.bulk: plain reductions, and several lanes are several of them") {
  // 20 lanes add the same 64 words; lane i starts at word i.
  std::vector<uint32_t> got = run(R"(
    mad.lo.u32 %r4, %r1, 16, %r0;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0], [%r4], 256;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
)",
                                  64, {}, 8, "    setp.ge.u32 %p0, %r1, 20;\n    @%p0 bra end;\n");
  for (uint32_t i = 0; i < 64; ++i) CHECK(got[i] == 0xEEEEEEEE + 20 * i + 4 * 190);
}

TEST_CASE("wait_group: all but the most recent groups are written, and the source of .read groups may be reused") {
  // Three groups to different places; after wait_group 1 the first two can be read back.
  std::vector<uint32_t> got = run(R"(
    cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r0], 64;
    cp.async.bulk.commit_group;
    cp.async.bulk.global.shared::cta.bulk_group [%d0+64], [%r0+64], 64;
    cp.async.bulk.commit_group;
    cp.async.bulk.global.shared::cta.bulk_group [%d0+128], [%r0+128], 64;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 1;
    ld.global.u32 %r5, [%d0+4];
    ld.global.u32 %r6, [%d0+68];
    cp.async.bulk.wait_group.read 0;
    st.shared.u32 [%r0+132], 999;
    cp.async.bulk.wait_group 0;
    st.global.v2.u32 [%d0+192], {%r5, %r6};
)",
                                  50);
  for (uint32_t i = 0; i < 48; ++i) CHECK(got[i] == i);
  CHECK(got[48] == 1);
  CHECK(got[49] == 17);
}

TEST_CASE("a ring of two store buffers: refilled after wait_group.read 1, forty times") {
  std::vector<uint32_t> got = run(R"(
    mov.u32 %r4, 0;
  tile:
    and.b32 %r5, %r4, 1;
    mad.lo.u32 %r5, %r5, 64, %r0;
    cp.async.bulk.wait_group.read 1;
    mul.lo.u32 %r6, %r4, 3;
    st.shared.v4.u32 [%r5], {%r6, %r4, %r6, %r4};
    fence.proxy.async.shared::cta;
    mul.wide.u32 %d2, %r4, 16;
    add.u64 %d2, %d2, %d0;
    cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r5], 16;
    cp.async.bulk.commit_group;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, 40;
    @%p1 bra tile;
    cp.async.bulk.wait_group 0;
)",
                                  160, {}, 16);
  for (uint32_t i = 0; i < 160; ++i) CHECK(got[i] == (i % 2 ? i / 4 : i / 4 * 3));
}

TEST_CASE("groups are each thread's own; empty groups and waits without groups pass") {
  std::vector<uint32_t> got = run(R"(
    cp.async.bulk.wait_group 0;
    cp.async.bulk.commit_group;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
    mad.lo.u32 %r4, %r1, 16, %r0;
    mad.wide.u32 %d2, %r1, 16, %d0;
    and.b32 %r5, %r1, 1;
    setp.eq.u32 %p1, %r5, 0;
    @%p1 cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r4], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
)",
                                  128, {}, 6, "    setp.ge.u32 %p0, %r1, 32;\n    @%p0 bra end;\n");
  for (uint32_t i = 0; i < 128; ++i) CHECK(got[i] == (i / 4 % 2 ? 0xEEEEEEEE : i));
}

TEST_CASE("a kernel's stores arrive though nobody waits for them") {
  // The ISA lets a thread exit with copies under way, as long as shared memory stays alive.
  std::vector<uint32_t> got =
      run("    cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r0], 1024;\n"
          "    cp.async.bulk.commit_group;\n    cp.async.bulk.wait_group.read 0;\n",
          256);
  for (uint32_t i = 0; i < 256; ++i) CHECK(got[i] == i);
}

TEST_CASE("cp.async.bulk from shared to shared memory of the same CTA signals bytes") {
  std::vector<uint32_t> got =
      run(R"(
    .shared .align 8 .b64 full;
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;
    mov.u32 %r5, full;
    add.u32 %r4, %r0, 4096;
    cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r4], [%r0+128], 256, [%r5];
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], 0;
    @!%p1 bra wait;
    ld.shared.u32 %r6, [%r4];
    ld.shared.u32 %r7, [%r4+252];
    ld.shared.u32 %r8, [%r4+256];
    st.global.v2.u32 [%d0], {%r6, %r7};
    st.global.u32 [%d0+8], %r8;
)",
          3, {}, 8, kThread0, "an H200 refuses it (715) in a launch without clusters; the ISA does not say so");
  CHECK(got == std::vector<uint32_t>{32, 95, 1024 + 64});
}
