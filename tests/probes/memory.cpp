// Loads and stores. PTX ISA, "Data Movement and Conversion Instructions": ld, st, and the widths of registers in "Type
// Checking of operands"; alignment: "Addresses as Operands".

#include <fmt/format.h>

#include "tests/probes/everywhere.h"

namespace {

using Bytes = std::vector<uint8_t>;

Bytes pattern(size_t count) {
  Bytes bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * 37 + 130);
  return bytes;
}

/// Runs `body` with p0 = `out` (filled with 0xEE) and p1 = `in`.
Bytes transfer(const std::string& body, size_t out_bytes, const Bytes& in, const probe::Shape& shape = {}) {
  probe::Machine machine;
  std::vector<uint64_t> parameters{machine.buffer(Bytes(out_bytes, 0xEE)), machine.buffer(in)};
  auto fault = machine.launch(probe::kernel(body, 2), parameters, shape);
  if (fault) FAIL(fault->report);
  return machine.read<uint8_t>(parameters[0], out_bytes);
}

template <class T>
T at(const Bytes& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

const std::string kPointers = R"(
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d1, [p1];
    mov.u32 %r0, %tid.x;
)";

}  // namespace

TEST_CASE("loads extend what they read to the register's width") {
  Bytes in = pattern(32 * 8);
  struct Case {
    const char* type;
    int bytes;
    bool is_signed;
  };
  for (const Case& c : {Case{"u8", 1, false}, Case{"s8", 1, true}, Case{"b8", 1, false}, Case{"u16", 2, false},
                        Case{"s16", 2, true}, Case{"u32", 4, false}, Case{"s32", 4, true}, Case{"b64", 8, false}}) {
    Bytes out = transfer(kPointers + "mad.wide.u32 %d1, %r0, 8, %d1; mad.wide.u32 %d0, %r0, 8, %d0; ld.global." +
                             c.type + " %d2, [%d1]; st.global.u64 [%d0], %d2;",
                         32 * 8, in);
    for (size_t lane = 0; lane < 32; ++lane) {
      uint64_t raw = 0;
      std::memcpy(&raw, in.data() + lane * 8, static_cast<size_t>(c.bytes));
      int unused = 64 - 8 * c.bytes;
      uint64_t want = c.is_signed ? static_cast<uint64_t>(static_cast<int64_t>(raw << unused) >> unused) : raw;
      INFO("ld." << c.type);
      CHECK(at<uint64_t>(out, lane * 8) == want);
    }
  }
  // An 8-bit value in a 16-bit register.
  Bytes out = transfer(kPointers +
                           "mad.wide.u32 %d1, %r0, 1, %d1; mad.wide.u32 %d0, %r0, 2, %d0;"
                           "ld.global.s8 %h0, [%d1]; st.global.u16 [%d0], %h0;",
                       64, in);
  for (size_t lane = 0; lane < 32; ++lane) CHECK(at<int16_t>(out, lane * 2) == static_cast<int8_t>(in[lane]));
}

TEST_CASE("stores write the low bits, and nothing beside them") {
  for (int bytes : {1, 2, 4, 8}) {
    Bytes out = transfer(kPointers +
                             "mad.wide.u32 %d0, %r0, 16, %d0; mov.b64 %d2, 0x8877665544332211;"
                             "st.global.b" +
                             std::to_string(bytes * 8) + " [%d0+8], %d2;",
                         32 * 16, {});
    Bytes want(32 * 16, 0xEE);
    for (size_t lane = 0; lane < 32; ++lane)
      for (int i = 0; i < bytes; ++i)
        want[lane * 16 + 8 + static_cast<size_t>(i)] = static_cast<uint8_t>(0x11 * (i + 1));
    CHECK(out == want);
  }
}

TEST_CASE("vectors go to consecutive registers, of every shape") {
  Bytes in = pattern(32 * 32);
  auto copy = [&](const std::string& type, const std::string& registers, size_t bytes, const std::string& order = "") {
    Bytes out =
        transfer(kPointers + "mad.wide.u32 %d1, %r0, 32, %d1; mad.wide.u32 %d0, %r0, 32, %d0; ld.global" + order + "." +
                     type + " " + registers + ", [%d1]; st.global." + type + " [%d0], " + registers + ";",
                 32 * 32, in);
    for (size_t lane = 0; lane < 32; ++lane)
      for (size_t i = 0; i < 32; ++i) {
        INFO(type << " lane " << lane << " byte " << i);
        CHECK(out[lane * 32 + i] == (i < bytes ? in[lane * 32 + i] : 0xEE));
      }
  };
  copy("v2.b8", "{%h1, %h2}", 2);
  copy("v4.u8", "{%h1, %h2, %h3, %h4}", 4);
  copy("v2.u16", "{%h1, %h2}", 4);
  copy("v4.b16", "{%h1, %h2, %h3, %h4}", 8);
  copy("v2.f32", "{%r1, %r2}", 8, ".nc");
  copy("v4.b32", "{%r1, %r2, %r3, %r4}", 16, ".nc.L1::no_allocate.L2::128B");
  copy("v2.f64", "{%d2, %d3}", 16);
  copy("b128", "%q0", 16);
  copy("v8.b32", "{%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}", 32);
  copy("v4.b64", "{%d2, %d3, %d4, %d5}", 32, ".L2::evict_last");
}

TEST_CASE("a load may overwrite its own address") {
  Bytes in = pattern(32 * 16);
  Bytes out = transfer(kPointers +
                           "mad.wide.u32 %d1, %r0, 16, %d1; mad.wide.u32 %d0, %r0, 16, %d0;"
                           "ld.global.v2.b64 {%d1, %d2}, [%d1]; st.global.v2.b64 [%d0], {%d1, %d2};",
                       32 * 16, in);
  CHECK(out == in);
}

TEST_CASE("broadcast, scattered and reversed addresses") {
  Bytes in = pattern(32 * 4);
  Bytes out = transfer(
      kPointers + "mad.wide.u32 %d0, %r0, 4, %d0; ld.global.b32 %r1, [%d1+20]; st.global.b32 [%d0], %r1;", 128, in);
  for (size_t lane = 0; lane < 32; ++lane) CHECK(at<uint32_t>(out, lane * 4) == at<uint32_t>(in, 20));
  out = transfer(kPointers +
                     "mul.lo.u32 %r2, %r0, 13; and.b32 %r2, %r2, 31; mad.wide.u32 %d1, %r2, 4, %d1;"
                     "sub.u32 %r3, 31, %r0; mad.wide.u32 %d0, %r3, 4, %d0;"
                     "ld.global.b32 %r1, [%d1]; st.global.b32 [%d0], %r1;",
                 128, in);
  for (size_t lane = 0; lane < 32; ++lane)
    CHECK(at<uint32_t>(out, (31 - lane) * 4) == at<uint32_t>(in, lane * 13 % 32 * 4));
}

TEST_CASE("shared memory: own, of another CTA, and through generic addresses") {
  const std::string kShared = R"(
    .shared .align 16 .b8 tile[512];
    mov.u32 %r1, tile;
    mad.lo.u32 %r2, %r0, 16, %r1;
)";
  // Each thread writes 16 bytes and reads its neighbour's.
  Bytes in = pattern(512);
  const std::string kWrite = R"(
    mad.wide.u32 %d2, %r0, 16, %d1;
    ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%d2];
    st.shared.v4.b32 [%r2], {%r4, %r5, %r6, %r7};
    bar.warp.sync -1;
    xor.b32 %r8, %r0, 1;
    mad.lo.u32 %r9, %r8, 16, %r1;
    mad.wide.u32 %d0, %r0, 16, %d0;
)";
  auto check = [&](const Bytes& out) {
    for (size_t i = 0; i < 512; ++i) CHECK(out[i] == in[i ^ 16]);
  };
  check(transfer(kPointers + kShared + kWrite + "ld.shared.b128 %q0, [%r9]; st.global.b128 [%d0], %q0;", 512, in));
  // The same bytes by a generic address.
  check(transfer(kPointers + kShared + kWrite +
                     "cvt.u64.u32 %d3, %r9; cvta.shared.u64 %d3, %d3; ld.b128 %q0, [%d3];"
                     "st.b128 [%d0], %q0;",
                 512, in));
  check(transfer(kPointers + kShared + kWrite +
                     "cvt.u64.u32 %d3, %r9; cvta.shared.u64 %d3, %d3; cvta.to.shared.u64 %d3, %d3;"
                     "ld.shared.b128 %q0, [%d3]; st.global.b128 [%d0], %q0;",
                 512, in));
  // Cluster of two: each CTA reads the other's tile, between two meetings at a counter in global memory.
  auto meet = [](const std::string& label, int offset) {
    std::string place = "[%d1+" + std::to_string(offset) + "];\n";
    return "atom.add.release.gpu.global.u32 %r20, [%d1+" + std::to_string(offset) + "], 1;\n" + label +
           ": ld.acquire.gpu.global.u32 %r20, " + place + "setp.ne.u32 %p1, %r20, 64; @%p1 bra " + label + ";\n";
  };
  std::string body = kPointers + kShared + R"(
    mov.u32 %r10, %cluster_ctarank;
    add.u32 %r11, %r10, 100;
    st.shared.u32 [%r2], %r11;
)" + meet("first", 0) +
                     R"(
    xor.b32 %r12, %r10, 1;
    mapa.shared::cluster.u32 %r13, %r2, %r12;
    ld.shared::cluster.u32 %r14, [%r13];
    add.u32 %r14, %r14, %r0;
)" + meet("second", 4) +
                     R"(
    mov.u32 %r15, %ctaid.x;
    mad.lo.u32 %r16, %r15, 32, %r0;
    mad.wide.u32 %d0, %r16, 4, %d0;
    st.global.u32 [%d0], %r14;
)";
  Bytes out = transfer(body, 256, Bytes(8), {.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}});
  for (uint32_t i = 0; i < 64; ++i) CHECK(at<uint32_t>(out, i * 4) == (i < 32 ? 101u : 100u) + i % 32);
}

TEST_CASE("dynamic shared memory starts behind the static variables") {
  probe::Machine machine;
  std::vector<uint64_t> parameters{machine.buffer(Bytes(12))};
  auto fault = machine.launch(probe::kernel(R"(
    .shared .align 4 .b32 word;
    mov.u32 %r1, word;
    mov.u32 %r2, dynamic;
    sub.u32 %r3, %r2, %r1;
    st.shared.u32 [word], 5;
    st.shared.u32 [dynamic+60], 6;
    ld.shared.u32 %r4, [word];
    ld.shared.u32 %r5, [%r2+60];
    ld.param.u64 %d0, [p0];
    st.global.u32 [%d0], %r4;
    st.global.u32 [%d0+4], %r5;
    st.global.u32 [%d0+8], %r3;
)",
                                            1, ".extern .shared .align 16 .b8 dynamic[];"),
                              parameters, {.dynamic_shared_bytes = 64});
  if (fault) FAIL(fault->report);
  CHECK(machine.read<uint32_t>(parameters[0], 3) == std::vector<uint32_t>{5, 6, 16});
}

TEST_CASE("local memory belongs to each thread alone") {
  Bytes out = transfer(kPointers + R"(
    .local .align 8 .b8 depot[64];
    mov.u64 %d5, depot;
    cvta.local.u64 %d6, %d5;
    mul.lo.u32 %r1, %r0, 3;
    st.local.u32 [%d5+12], %r1;
    st.u32 [%d6+16], %r0;
    ld.u32 %r2, [%d6+12];
    ld.local.u32 %r3, [depot+16];
    add.u32 %r4, %r2, %r3;
    mad.wide.u32 %d0, %r0, 4, %d0;
    st.global.u32 [%d0], %r4;
)",
                       128, {});
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(at<uint32_t>(out, lane * 4) == 4 * lane);
}

TEST_CASE("constants and global variables of the module") {
  probe::Machine machine;
  std::vector<uint64_t> parameters{machine.buffer(Bytes(32, 0xEE))};
  auto fault = machine.launch(probe::kernel(R"(
    ld.param.u64 %d0, [p0];
    ld.const.v2.u32 {%r0, %r1}, [table+8];
    ld.global.u64 %d1, [pointer]; cvta.to.const.u64 %d1, %d1;
    ld.const.u32 %r2, [%d1];
    mov.u64 %d2, counter;
    ld.u32 %r3, [%d2];
    add.u32 %r3, %r3, 1;
    st.global.u32 [counter], %r3;
    ld.global.u32 %r4, [counter];
    st.global.v4.u32 [%d0], {%r0, %r1, %r2, %r4};
)",
                                            1,
                                            ".const .align 8 .u32 table[4] = {11, 22, 33, 44};\n"
                                            ".global .u32 counter = 7;\n.global .u64 pointer = generic(table)+4;\n"),
                              parameters, {.block = {1, 1, 1}});
  if (fault) FAIL(fault->report);
  CHECK(machine.read<uint32_t>(parameters[0], 4) == std::vector<uint32_t>{33, 44, 22, 8});
}

TEST_CASE("parameters are read by name, by address and as generic memory") {
  Bytes out = transfer(R"(
    ld.param.u64 %d0, [p0];
    mov.b64 %d1, p0;
    ld.param.u64 %d2, [%d1+8];
    cvta.param.u64 %d3, %d1;
    ld.u64 %d4, [%d3+8];
    ld.param.v2.u32 {%r0, %r1}, [p1];
    mov.b64 %d5, {%r0, %r1};
    xor.b64 %d2, %d2, %d4;
    xor.b64 %d5, %d5, %d4;
    st.global.v2.u64 [%d0], {%d2, %d5};
)",
                       16, pattern(8), {.block = {1, 1, 1}});
  CHECK(out == Bytes(16, 0));
  // LLVM keeps addresses of small memories in 32 bits: the generic address comes from that half.
  out = transfer(R"(
    ld.param.u64 %d0, [p0];
    mov.b32 %r0, p0;
    add.u32 %r0, %r0, 8;
    cvt.u64.u32 %d1, %r0;
    cvta.param.u64 %d3, %d1;
    ld.u64 %d4, [%d3];
    ld.param.u64 %d5, [p1];
    ld.param.u64 %d6, [%r0];
    xor.b64 %d5, %d5, %d4;
    xor.b64 %d6, %d6, %d4;
    st.global.v2.u64 [%d0], {%d5, %d6};
)",
                 16, pattern(8), {.block = {1, 1, 1}});
  CHECK(out == Bytes(16, 0));
}

// An assembler drops a load that nobody looks at.
const std::string kLook = R"(
    st.global.u32 [%d9], %r0;
    st.global.u16 [%d9+4], %h0;
    st.global.u64 [%d9+8], %d1;
    st.global.u64 [%d9+16], %d2;
)";
const std::string kHere = R"(
    .shared .align 16 .b8 tile[64];
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d9, [p1];
    mov.u32 %r0, 0;
    mov.u16 %h0, 0;
    mov.u64 %d1, 0;
    mov.u64 %d2, 0;
    )";

TEST_CASE("misaligned accesses are faults that name address and size") {
  auto fault = [](const std::string& access) {
    int error = 0;
    std::string report = probe::fault(kHere + access + kLook, {.block = {1, 1, 1}}, &error);
    CHECK(error == 716);  // cudaErrorMisalignedAddress
    return report;
  };
  CHECK_THAT(fault("ld.global.u32 %r0, [%d0+2];"), test::contains("4 bytes") && test::contains("multiple of 4"));
  CHECK_THAT(fault("st.global.v4.u32 [%d0+8], {%r0, %r0, %r0, %r0};"), test::contains("multiple of 16"));
  CHECK_THAT(fault("ld.shared.u64 %d1, [tile+4];"), test::contains("shared") && test::contains("multiple of 8"));
  CHECK_THAT(fault("ld.u16 %h0, [%d0+1];"), test::contains("multiple of 2"));
  CHECK_THAT(fault("red.global.add.u32 [%d0+2], 1;"), test::contains("multiple of 4"));
}

TEST_CASE("accesses that belong to nobody are faults") {
  auto fault = [](const std::string& access, int code = 700, const char* apart = nullptr) {
    int error = 0;
    std::string report = probe::fault(kHere + access + kLook, {.block = {1, 1, 1}, .apart = apart}, &error);
    CHECK(error == code);  // 700: cudaErrorIllegalAddress
    return report;
  };
  const char* kMapped = "what lies behind an allocation is mapped on a GPU, and not refused";
  CHECK_THAT(fault("mov.b64 %d0, 16; ld.global.u32 %r0, [%d0];"), test::contains("null pointer"));
  CHECK_THAT(fault("st.global.u32 [%d0+2048], %r0;", 700, kMapped), test::contains("2048 bytes"));
  CHECK_THAT(fault("ld.shared.u32 %r0, [tile+128];"), test::contains("shared"));
  const char* kChance = "the lower half of a pointer names a rank by chance";
  CHECK_THAT(fault("ld.shared.u32 %r0, [%d0];", 700, kChance), test::contains("cvta.to.shared"));
  CHECK_THAT(fault("mov.b32 %r0, 0x3000400; ld.shared::cluster.u32 %r0, [%r0];", 715), test::contains("CTA 3"));
  CHECK_THAT(fault("mov.b64 %d1, p0; ld.param.u64 %d2, [%d1+16];", 700, kMapped), test::contains("parameter"));
}

TEST_CASE("a warp in which only one lane goes astray is reported with that lane's address") {
  std::string report = probe::fault(R"(
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %d0, %r0, 4, %d0;
    ld.global.u32 %r1, [%d0+1924];
)",
                                    {.apart = "what lies behind an allocation is mapped on a GPU"});
  // 2048 bytes; lane 31 would read those from 1924 + 124 on.
  CHECK_THAT(report, test::contains("4 bytes at global address"));
}

TEST_CASE("prefetches touch nothing; discard and applypriority want a line of global memory") {
  probe::run<uint32_t>(
      "ld.param.u64 %d0, [p0]; prefetch.global.L2 [%d0]; prefetch.global.L2::evict_last [%d0];"
      "prefetch.L1 [%d0]; prefetchu.L1 [%d0]; prefetch.global.L1 [%d1];"
      "discard.global.L2 [%d0], 128; applypriority.global.L2::evict_normal [%d0], 128;",
      64);
  CHECK_THAT(probe::fault("ld.param.u64 %d0, [p0]; discard.global.L2 [%d0+4], 128;",
                          {.apart = "PTX ISA, discard: a multiple of 128; an H200 does not mind"}),
             test::contains("multiple of 128"));
}

TEST_CASE("a CTA is given shared memory in pieces of 128 bytes; what lies beyond its own is used with a note") {
  probe::Shape shape{.block = {1, 1, 1}, .dynamic_shared_bytes = 102};
  const auto store_at = [&](int offset, bool strict = false) {
    emu::Options options;
    options.strict = strict;
    shape.apart = strict ? "LADDER_STRICT" : nullptr;
    const std::string body = fmt::format(R"(
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, 7;
    st.shared.u32 [dynamic+{}], %r0;
    ld.shared.u32 %r1, [dynamic+{}];
    st.global.u32 [%d0], %r1;
)",
                                         offset, offset);
    return probe::launch_with(options, probe::kernel(body, 1, ".extern .shared .align 4 .b8 dynamic[];"), 4, {}, shape);
  };
  const auto seven = probe::bytes_of(std::vector<uint32_t>{7});
  for (const bool strict : {false, true})  // the last word that holds bytes of its own
    CHECK(store_at(100, strict) == probe::Ending{.bytes = seven, .report = {}});
  for (const int offset : {104, 124}) {
    const probe::Ending ending = store_at(offset);
    CHECK(ending.bytes == seven);
    CHECK_THAT(ending.remarks, test::contains("0x400 to 0x465 (102 bytes); chips give it in pieces of 128 bytes"));
    CHECK_THAT(store_at(offset, true).report, test::contains("the CTA's shared memory is 0x400 to 0x465 (102 bytes)"));
  }
  CHECK_THAT(store_at(128).report, test::contains("write of 4 bytes at shared address 0x480"));
  CHECK(store_at(128).error == 700);
}

TEST_CASE("a report names the lane that went astray") {
  probe::Machine machine;
  const uint64_t out = machine.buffer(std::vector<uint32_t>(32));
  // Lanes 8 and up store; lane 21 does so 4000 bytes further on.
  const std::string body = R"(
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %tid.x;
    mul.lo.u32 %r1, %r0, 4;
    setp.eq.u32 %p1, %r0, 21;
    @%p1 add.u32 %r1, %r1, 4000;
    cvt.u64.u32 %d1, %r1;
    add.u64 %d0, %d0, %d1;
    setp.ge.u32 %p2, %r0, 8;
    @%p2 st.global.u32 [%d0], %r0;
)";
  const auto fault =
      machine.launch(probe::kernel(body, 1), {out}, {.block = {32, 1, 1}, .apart = "a chip gives out whole pages"});
  REQUIRE(fault);
  CHECK_THAT(fault->report, test::contains("warp 0, lane 21: st.global.u32"));
}

// As an H200 has it: ptxas ignores the `.extern` of an array with a size, where nothing is linked. Taichi writes it so.
TEST_CASE("a shared array declared extern with a size is memory of its kernel") {
  probe::Machine machine;
  const uint64_t out = machine.buffer(std::vector<uint32_t>(64));
  const std::string ptx = probe::kernel(
      "mov.u32 %r0, %tid.x; mul.wide.u32 %d0, %r0, 4; mov.u64 %d1, array; add.u64 %d1, %d1, %d0;"
      "st.shared.u32 [%d1], %r0; ld.shared.u32 %r1, [%d1]; mov.u32 %r2, %total_smem_size;"
      "mad.lo.u32 %r1, %r2, 1000, %r1; ld.param.u64 %d2, [p0]; add.u64 %d2, %d2, %d0; st.global.u32 [%d2], %r1;",
      1, ".extern .shared .align 8 .b8 array[260];");
  const auto fault = machine.launch(ptx, {out}, {.block = {64, 1, 1}});
  if (fault) FAIL(fault->report);
  const std::vector<uint32_t> got = machine.read<uint32_t>(out, 64);
  for (uint32_t i = 0; i < 64; ++i) CHECK(got[i] == 384'000 + i);
}
