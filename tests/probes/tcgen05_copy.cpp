// tcgen05.cp and tcgen05.shift. PTX ISA, "tcgen05.cp", "Optional Decompression", "tcgen05.shift". Which warps hold the
// same rows: CUTLASS, copy_traits_sm100.hpp (02_13: warps 0 and 2, 1 and 3; 01_23: warps 0 and 1, 2 and 3). Where a row
// starts in shared memory: the K-major canonical layout, written down in mma_program.h.

#include "tests/probes/pair_program.h"

namespace {

using probe::Operand;
using probe::Swizzle;

struct Form {
  const char* name;
  uint32_t rows, row_bytes;
  /// Row that lane `lane` holds, -1: none.
  int (*row)(uint32_t lane);
};
const Form kForms[] = {
    {"128x256b", 128, 32, [](uint32_t lane) { return static_cast<int>(lane); }},
    {"4x256b", 4, 32, [](uint32_t lane) { return lane % 32 ? -1 : static_cast<int>(lane / 32); }},
    {"128x128b", 128, 16, [](uint32_t lane) { return static_cast<int>(lane); }},
    {"64x128b.warpx2::02_13", 64, 16, [](uint32_t lane) { return static_cast<int>(lane / 32 % 2 * 32 + lane % 32); }},
    {"64x128b.warpx2::01_23", 64, 16, [](uint32_t lane) { return static_cast<int>(lane / 64 * 32 + lane % 32); }},
    {"32x128b.warpx4", 32, 16, [](uint32_t lane) { return static_cast<int>(lane % 32); }},
};

constexpr uint32_t kColumns = 16;  // that are shown

/// One kernel for a CTA or a pair: fills kColumns columns with lane * 256 + column (+ 2^16 in the odd CTA), lets thread
/// 0 (of the even CTA) run `work`, commits, shows the columns. %d5: descriptor of the image; %r5: tensor memory.
std::string program(uint32_t group, uint64_t descriptor, uint32_t image_bytes, const std::string& work) {
  const std::string barrier = group == 2 ? probe::kClusterBarrier : "    bar.sync 0;\n";
  const std::string g = std::to_string(group);
  std::string text = fmt::format(R"(
    .shared .align 8 .b64 done;
    .shared .align 4 .b32 address;
    .reg .b32 %v<8>;
    .reg .pred %yes, %no;
    setp.eq.u32 %yes, 0, 0;
    setp.eq.u32 %no, 0, 1;
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d1, [p1];
    mov.u32 %r20, %cluster_ctarank;
    mad.wide.u32 %d1, %r20, {image}, %d1;
    mov.u32 %r0, smem;
    mov.u32 %r1, %tid.x;
    mad.lo.u32 %r21, %r20, 128, %r1;
    shr.u32 %r2, %r1, 5;
    shl.b32 %r3, %r1, 4;
  copy:
    setp.ge.u32 %p0, %r3, {image};
    @%p0 bra copied;
    cvt.u64.u32 %d4, %r3;
    add.u64 %d4, %d4, %d1;
    add.u32 %r4, %r0, %r3;
    ld.global.v4.u32 {{%v0, %v1, %v2, %v3}}, [%d4];
    st.shared.v4.u32 [%r4], {{%v0, %v1, %v2, %v3}};
    add.u32 %r3, %r3, 2048;
    bra copy;
  copied:
    fence.proxy.async.shared::cta;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra allocated;
    tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [address], 256;
    setp.eq.u32 %p0, %r1, 0;
    @%p0 mbarrier.init.shared::cta.b64 [done], 1;
  allocated:
{barrier}
    ld.shared.u32 %r5, [address];
    shl.b32 %r6, %r2, 21;
    add.u32 %r6, %r6, %r5;
    shl.b32 %r8, %r20, 16;
    mad.lo.u32 %r8, %r1, 256, %r8;
)",
                                 fmt::arg("image", image_bytes), fmt::arg("group", g), fmt::arg("barrier", barrier));
  for (uint32_t column = 0; column < kColumns; ++column)
    text += fmt::format(
        "    add.u32 %r7, %r6, {0};\n    add.u32 %v0, %r8, {0};\n"
        "    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r7], {{%v0}};\n",
        column);
  text += "    tcgen05.wait::st.sync.aligned;\n    tcgen05.fence::before_thread_sync;\n" + barrier +
          fmt::format(R"(
    tcgen05.fence::after_thread_sync;
    or.b32 %r7, %r1, %r20;
    setp.ne.u32 %p1, %r7, 0;
    @%p1 bra issued;
    shr.u32 %r7, %r0, 4;
    and.b32 %r7, %r7, 0x3FFF;
    cvt.u64.u32 %d5, %r7;
    or.b64 %d5, %d5, {:#x};
)",
                      descriptor) +
          work +
          (group == 2 ? "    mov.u16 %h0, 3;\n    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster."
                        "multicast::cluster.b64 [done], %h0;\n"
                      : "    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\n") +
          R"(
  issued:
    mbarrier.try_wait.parity.shared::cta.b64 %p0, [done], 0;
    @!%p0 bra issued;
    tcgen05.fence::after_thread_sync;
)";
  for (uint32_t column = 0; column < kColumns; column += 8)
    text += fmt::format(R"(    add.u32 %r7, %r6, {};
    tcgen05.ld.sync.aligned.32x32b.x8.b32 {{%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}}, [%r7];
    tcgen05.wait::ld.sync.aligned;
    mad.wide.u32 %d4, %r21, {}, %d0;
    st.global.v4.u32 [%d4+{}], {{%v0, %v1, %v2, %v3}};
    st.global.v4.u32 [%d4+{}], {{%v4, %v5, %v6, %v7}};
)",
                        column, 4 * kColumns, 4 * column, 4 * column + 16);
  text += "    tcgen05.fence::before_thread_sync;\n" + barrier +
          fmt::format(R"(
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra freed;
    tcgen05.dealloc.cta_group::{}.sync.aligned.b32 %r5, 256;
  freed:
)",
                      g);
  return probe::kernel(text, 2, ".extern .shared .align 1024 .b8 smem[];");
}

probe::Shape shape(uint32_t group, uint32_t image_bytes) {
  return {.grid = {group, 1, 1},
          .block = {128, 1, 1},
          .cluster = {group, 1, 1},
          .dynamic_shared_bytes = image_bytes + 1024};
}

uint32_t initial(uint32_t rank, uint32_t lane, uint32_t column) {
  return rank << 16 | lane << 8 | column;
}

std::vector<std::byte> random_bytes(size_t count, uint64_t seed) {
  probe::Random random(seed);
  std::vector<std::byte> out(count);
  for (std::byte& b : out) b = static_cast<std::byte>(random.next());
  return out;
}

/// Element `i` of 16 of `bits` bits each, packed from the first byte's lowest bit on.
uint32_t packed_element(const std::byte* chunk, uint32_t bits, uint32_t i) {
  uint32_t value = 0;
  for (uint32_t bit = 0; bit < bits; ++bit) {
    const uint32_t at = i * bits + bit;
    value |= (std::to_integer<uint32_t>(chunk[at / 8]) >> at % 8 & 1) << bit;
  }
  return value;
}

void check_copy(const Form& form, Swizzle swizzle, uint32_t group, const std::string& formats = "", uint32_t lane = 0,
                uint32_t column = 4, int seeds = 1) {
  Operand operand;
  operand.rows = std::max(8u, form.rows), operand.element_bytes = 1, operand.swizzle = swizzle;
  operand.gap = 1024;
  const uint32_t bytes = operand.bytes();
  const std::vector<std::byte> image = random_bytes(size_t{group} * bytes, form.rows * 7 + group);
  const std::string work = fmt::format("    add.u32 %r7, %r5, {};\n    tcgen05.cp.cta_group::{}.{}{} [%r7], %d5;\n",
                                       lane << 16 | column, group, form.name, formats);
  std::vector<uint32_t> got =
      probe::everywhere<uint32_t>(program(group, operand.descriptor(), bytes, work), size_t{group} * 128 * kColumns,
                                  {image}, shape(group, bytes), seeds);
  if (got.empty()) return;
  INFO(form.name << formats << " swizzle " << static_cast<int>(swizzle) << " cta_group " << group);
  int wrong = 0;
  for (uint32_t rank = 0; rank < group; ++rank)
    for (uint32_t at = 0; at < 128; ++at)
      for (uint32_t c = 0; c < kColumns; ++c) {
        uint32_t want = initial(rank, at, c);
        const int row = at < lane ? -1 : form.row(at - lane);
        if (row >= 0 && c >= column && c < column + form.row_bytes / 4) {
          want = 0;
          for (uint32_t i = 0; i < 4; ++i) {
            const uint32_t k = (c - column) * 4 + i, r = static_cast<uint32_t>(row);
            const std::byte* chunk = image.data() + size_t{rank} * bytes + operand.address(0, r, k / 16 * 16);
            uint32_t byte = std::to_integer<uint32_t>(chunk[k % 16]);
            if (formats == ".b8x16.b6x16_p32") byte = packed_element(chunk, 6, k % 16);
            if (formats == ".b8x16.b4x16_p64") byte = packed_element(chunk, 4, k % 16) << 2;
            want |= byte << 8 * i;
          }
        }
        const uint32_t value = got[(size_t{rank} * 128 + at) * kColumns + c];
        if (value == want || ++wrong > 3) continue;
        FAIL_CHECK("CTA " << rank << " lane " << at << " column " << c << " is " << probe::hex(value) << ", expected "
                          << probe::hex(want));
      }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("tcgen05.cp: every shape, all swizzles") {
  for (const Form& form : kForms)
    for (Swizzle swizzle : {Swizzle::none, Swizzle::b32, Swizzle::b64, Swizzle::b128}) check_copy(form, swizzle, 1);
}

TEST_CASE("tcgen05.cp of a pair copies in both CTAs, each from its own shared memory") {
  for (const Form& form : kForms) check_copy(form, Swizzle::b128, 2, "", 0, 0, 3);
}

TEST_CASE("tcgen05.cp.4x256b may start at any of the first 32 lanes") {
  for (uint32_t lane : {1u, 31u}) check_copy(kForms[1], Swizzle::none, 1, "", lane);
}

TEST_CASE("tcgen05.cp decompresses 6-bit and 4-bit elements") {
  for (const Form& form : kForms)
    for (const char* formats : {".b8x16.b6x16_p32", ".b8x16.b4x16_p64"}) check_copy(form, Swizzle::b64, 1, formats);
}

TEST_CASE("tcgen05.shift: 31 lanes of 32 take what the next one holds, 8 columns") {
  for (uint32_t group : {1u, 2u})
    for (uint32_t quarter : {0u, 1u, 3u}) {
      const std::string work = fmt::format("    add.u32 %r7, %r5, {};\n    tcgen05.shift.cta_group::{}.down [%r7];\n",
                                           quarter << 21 | 4, group);
      std::vector<uint32_t> got =
          probe::everywhere<uint32_t>(program(group, 0, 1024, work), size_t{group} * 128 * kColumns,
                                      {random_bytes(2048, 1)}, shape(group, 1024), 2);
      REQUIRE_FALSE(got.empty());
      for (uint32_t rank = 0; rank < group; ++rank)
        for (uint32_t lane = 0; lane < 128; ++lane)
          for (uint32_t c = 0; c < kColumns; ++c) {
            const bool moves = lane / 32 == quarter && lane % 32 != 31 && c >= 4 && c < 12;
            REQUIRE(got[(size_t{rank} * 128 + lane) * kColumns + c] == initial(rank, lane + (moves ? 1 : 0), c));
          }
    }
}

TEST_CASE("copies, shifts and copies of four rows by one thread happen in the order of issue, without completion") {
  // 128 rows, each shifted up in its quarter, then the last lane of each quarter filled from four other rows.
  Operand operand;
  operand.rows = 128, operand.element_bytes = 1, operand.swizzle = Swizzle::none;
  const uint32_t bytes = operand.bytes();
  std::vector<std::byte> image = random_bytes(bytes + 1024, 5);
  std::string work = "    tcgen05.cp.cta_group::1.128x256b [%r5], %d5;\n";
  for (uint32_t quarter = 0; quarter < 4; ++quarter)
    work += fmt::format("    add.u32 %r7, %r5, {};\n    tcgen05.shift.cta_group::1.down [%r7];\n", quarter << 21);
  // The four rows: in the 1024 bytes behind the image; their chunks lie where the same descriptor puts rows 0 to 3.
  work += fmt::format(
      "    add.u64 %d6, %d5, {};\n    add.u32 %r7, %r5, {};\n    tcgen05.cp.cta_group::1.4x256b [%r7], %d6;\n", 64 / 16,
      31 << 16);
  std::vector<uint32_t> got = probe::everywhere<uint32_t>(program(1, operand.descriptor(), bytes + 1024, work),
                                                          size_t{128} * kColumns, {image}, shape(1, bytes + 1024), 8);
  REQUIRE_FALSE(got.empty());
  for (uint32_t lane = 0; lane < 128; ++lane)
    for (uint32_t c = 0; c < 8; ++c) {
      const uint32_t from =
          lane % 32 == 31 ? operand.address(0, lane / 32, c * 4) + 64 : operand.address(0, lane + 1, c * 4);
      uint32_t want;
      std::memcpy(&want, image.data() + from, 4);
      REQUIRE(got[size_t{lane} * kColumns + c] == want);
    }
}

TEST_CASE("tcgen05.cp of A, then at once the MMA that reads it") {
  // A: 128 x 16 f16, row r all (r mod 8) + 1; B: 64 x 16 of ones. D = 16 * ((r mod 8) + 1).
  Operand a, b;
  a.rows = 128, a.swizzle = Swizzle::none;
  b.rows = 64, b.swizzle = Swizzle::none, b.base = a.bytes();
  std::vector<std::byte> image(a.bytes() + b.bytes());
  const uint16_t small[] = {0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800};  // 1 to 8
  for (uint32_t k = 0; k < 16; ++k) {
    for (uint32_t r = 0; r < 128; ++r) std::memcpy(&image[a.address(0, r, k)], &small[r % 8], 2);
    for (uint32_t r = 0; r < 64; ++r) std::memcpy(&image[b.address(0, r, k)], &small[0], 2);
  }
  const std::string work = fmt::format(R"(
    add.u32 %r7, %r5, 128;
    tcgen05.cp.cta_group::1.128x256b [%r7], %d5;
    and.b64 %d6, %d5, 0x3FFF;
    add.u64 %d6, %d6, {};
    or.b64 %d6, %d6, {:#x};
    mov.b32 %r9, {:#x};
    tcgen05.mma.cta_group::1.kind::f16 [%r5], [%r7], %d6, %r9, %no;
)",
                                       b.base / 16, b.descriptor(), 0x08100010);
  std::vector<float> got =
      probe::everywhere<float>(program(1, a.descriptor(), static_cast<uint32_t>(image.size()), work),
                               size_t{128} * kColumns, {image}, shape(1, static_cast<uint32_t>(image.size())), 8);
  REQUIRE_FALSE(got.empty());
  for (uint32_t lane = 0; lane < 128; ++lane)
    for (uint32_t c = 0; c < kColumns; ++c)
      REQUIRE(got[size_t{lane} * kColumns + c] == 16.0f * static_cast<float>(lane % 8 + 1));
}

TEST_CASE("tcgen05.cp and shift refuse lanes, columns and sources that do not exist") {
  Operand operand;
  operand.rows = 128, operand.element_bytes = 1, operand.swizzle = Swizzle::none;
  const uint32_t bytes = operand.bytes();
  const auto report = [&](const std::string& work) {
    return probe::failure(program(1, operand.descriptor(), bytes, work), {random_bytes(bytes, 1)}, shape(1, bytes))
        .report;
  };
  CHECK_THAT(report("add.u32 %r7, %r5, 0x10000; tcgen05.cp.cta_group::1.128x256b [%r7], %d5;\n"),
             test::contains("lane 1"));
  CHECK_THAT(report("add.u32 %r7, %r5, 0x200000; tcgen05.cp.cta_group::1.4x256b [%r7], %d5;\n"),
             test::contains("lane 32"));
  CHECK_THAT(report("add.u32 %r7, %r5, 2; tcgen05.cp.cta_group::1.128x128b [%r7], %d5;\n"),
             test::contains("multiple of 4"));
  CHECK_THAT(report("add.u32 %r7, %r5, 256; tcgen05.cp.cta_group::1.128x128b [%r7], %d5;\n"),
             test::contains("not allocated"));
  CHECK_THAT(report("add.u64 %d5, %d5, 0x200; tcgen05.cp.cta_group::1.128x128b [%r5], %d5;\n"),
             test::contains("reads row"));
  CHECK_THAT(report("xor.b64 %d5, %d5, 0xC00000000000; tcgen05.cp.cta_group::1.128x128b [%r5], %d5;\n"),
             test::contains("descriptor of the source"));
  CHECK_THAT(report("add.u32 %r7, %r5, 0x100000; tcgen05.shift.cta_group::1.down [%r7];\n"), test::contains("lane 16"));
}
