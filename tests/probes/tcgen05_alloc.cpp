// tcgen05.alloc, dealloc, relinquish_alloc_permit. PTX ISA, "Tensor Memory Allocation and Management Instructions";
// tensor memory has 512 columns per SM, shared by the CTAs that are on it.

#include <set>

#include <fmt/format.h>

#include "tests/probes/everywhere.h"

namespace {

const std::string kStart = R"(
    .shared .align 8 .b32 address[8];
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, address;
)";

std::string alloc(int slot, const std::string& columns) {
  return fmt::format("    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address+{}], {};\n", 4 * slot,
                     columns);
}
/// Frees `columns` at slot's address.
std::string dealloc(int slot, const std::string& columns) {
  return fmt::format(
      "    ld.shared.u32 %r20, [address+{}];\n    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, {};\n", 4 * slot,
      columns);
}
std::string show(int slot, int word) {
  return fmt::format("    ld.shared.u32 %r21, [address+{}];\n    st.global.u32 [%d0+{}], %r21;\n", 4 * slot, 4 * word);
}

std::string report_of(const std::string& body, uint32_t threads = 32) {
  return probe::failure(probe::kernel(kStart + body, 1), {}, {.block = {threads, 1, 1}}).report;
}

}  // namespace

TEST_CASE("tcgen05.alloc: powers of two from 32 to 512, lane 0, disjoint, free again after dealloc") {
  // All of it, and then 256 + 128 + 64 + 32 + 32 fill tensor memory.
  const int sizes[] = {256, 128, 64, 32, 32};
  std::string body = kStart + alloc(0, "512") + show(0, 5) + dealloc(0, "512");
  for (int i = 0; i < 5; ++i) body += alloc(i, std::to_string(sizes[i])) + show(i, i);
  for (int i = 4; i >= 0; --i) body += dealloc(i, std::to_string(sizes[i]));
  std::vector<uint32_t> got = probe::everywhere<uint32_t>(probe::kernel(body, 1), 6);
  std::set<uint32_t> columns;
  for (size_t i = 0; i < 5; ++i)
    for (uint32_t c = 0; c < static_cast<uint32_t>(sizes[i]); ++c) columns.insert(got[i] + c);
  CHECK(columns.size() == 512);
  CHECK(*columns.rbegin() == 511);
  CHECK(got[5] == 0);
}

TEST_CASE("tcgen05.alloc may not ask for more than the time before") {
  // PTX ISA: "The number of columns allocated should not increase between any two allocations".
  CHECK_THAT(report_of(alloc(0, "32") + dealloc(0, "32") + alloc(1, "64")),
             test::contains("64 columns after one of 32"));
}

TEST_CASE("tcgen05.alloc: the address may be given in the generic address space, the size in a register") {
  const std::string body =
      kStart + R"(
    cvt.u64.u32 %d1, %r1;
    cvta.shared.u64 %d2, %d1;
    mov.u32 %r2, 64;
    tcgen05.alloc.cta_group::1.sync.aligned.b32 [%d2+8], %r2;
)" + show(2, 0) +
      "    ld.shared.u32 %r20, [address+8];\n    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, %r2;\n";
  CHECK(probe::everywhere<uint32_t>(probe::kernel(body, 1), 1)[0] < 512);
  CHECK_THAT(report_of("tcgen05.alloc.cta_group::1.sync.aligned.b32 [%d0], 64;"), test::contains("shared"));
}

TEST_CASE("tcgen05.alloc blocks until another warp of the CTA frees columns") {
  // Warp 0 holds everything for a while; warp 1's alloc waits for it.
  const std::string body = kStart + R"(
    setp.ge.u32 %p0, %r0, 32;
    @%p0 bra second;
)" + alloc(0, "512") + R"(
    barrier.sync 1, 64;
    nanosleep.u32 5000;
    st.shared.u32 [address+16], 1;
)" + dealloc(0, "512") + R"(
    exit;
  second:
    barrier.sync 1, 64;
)" + alloc(1, "128") + R"(
    ld.shared.u32 %r3, [address+16];
    st.global.u32 [%d0], %r3;
)" + dealloc(1, "128");
  CHECK(probe::everywhere<uint32_t>(probe::kernel(body, 1), 1, {}, {.block = {64, 1, 1}})[0] == 1);
}

TEST_CASE("tcgen05.alloc: co-resident CTAs share an SM's columns; those for whom none are left wait") {
  // 148 SMs of one CTA each would be enough for 148; 700 CTAs of 32 threads share them, 256 columns each, so that two
  // fit on an SM at once and the others wait. Each counts itself in and out.
  const std::string body = kStart + alloc(0, "256") +
                           "    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n" +
                           R"(
    mov.u32 %r2, %smid;
    mad.wide.u32 %d1, %r2, 8, %d0;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra counted;
    atom.global.add.u32 %r3, [%d1], 1;
    atom.global.max.u32 %r4, [%d1+4], %r3;
    nanosleep.u32 300;
    atom.global.add.u32 %r3, [%d1], -1;
  counted:
)" + dealloc(0, "256");
  // p0 starts as 0xEEEEEEEE everywhere: counts are relative to that.
  std::vector<uint32_t> got =
      probe::everywhere<uint32_t>(probe::kernel(body, 1), 2 * 148, {}, {.grid = {700, 1, 1}}, 2);
  uint32_t most = 0;
  for (size_t sm = 0; sm < 148; ++sm) {
    CHECK(got[2 * sm] == 0xEEEEEEEE);
    most = std::max(most, got[2 * sm + 1] - 0xEEEEEEEE);
  }
  CHECK(most == 1);  // the second to come found one there
}

TEST_CASE("tcgen05.alloc and dealloc refuse sizes and addresses that are none") {
  CHECK_THAT(report_of("mov.u32 %r2, 16; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], %r2;"),
             test::contains("power of two from 32 to 512"));
  CHECK_THAT(report_of("mov.u32 %r2, 96; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], %r2;"),
             test::contains("96"));
  CHECK_THAT(report_of("mov.u32 %r2, 1024; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], %r2;"),
             test::contains("1024"));
  CHECK_THAT(report_of(alloc(0, "128") + dealloc(0, "64")), test::contains("no such allocation"));
  CHECK_THAT(report_of(alloc(0, "128") + dealloc(0, "128") + dealloc(0, "128")), test::contains("holds 0 columns"));
  CHECK_THAT(report_of(alloc(0, "128") + "mov.u32 %r2, 32; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 32;"),
             test::contains("no such allocation"));
}

TEST_CASE("tcgen05.alloc after relinquish_alloc_permit is refused") {
  CHECK_THAT(
      report_of(alloc(0, "32") + "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n" + alloc(1, "32")),
      test::contains("gave up the permit"));
}

TEST_CASE("a CTA that ends with tensor memory still allocated is reported") {
  CHECK_THAT(report_of(alloc(0, "64") + alloc(1, "32")), test::contains("96 columns of tensor memory still allocated"));
}

TEST_CASE("tensor memory that was never allocated cannot be used") {
  CHECK_THAT(report_of("mov.u32 %r2, 0; mov.u32 %r3, 1; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%r3};"
                       "tcgen05.wait::st.sync.aligned;"),
             test::contains("not allocated"));
  CHECK_THAT(report_of(alloc(0, "32") + "ld.shared.u32 %r2, [address]; mov.u32 %r3, 1;"
                                        "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2+32], {%r3};"
                                        "tcgen05.wait::st.sync.aligned;"),
             test::contains("not allocated"));
}

TEST_CASE("tcgen05.alloc by one lane waits for its warp for ever, and the report says so") {
  std::string report =
      report_of("setp.eq.u32 %p0, %r0, 0; @!%p0 bra end;\n" + alloc(0, "32") +
                "  end:\n    mbarrier.init.shared::cta.b64 [%r1+8], 1;\n  wait:\n"
                "    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1+8], 0;\n    @!%p1 bra wait;\n");
  CHECK_THAT(report, test::contains(".aligned instruction for lanes 0xfffffffe"));
}
