// Tensor copies of clusters: multicast boxes, .cta_group::2 and whose barrier it tells, four rows at a time, maps that
// threads change. PTX ISA, "cp.async.bulk.tensor", ".tile::scatter4 and .tile::gather4 modes", "tensormap.replace".

#include <fmt/format.h>

#include "emulator/units/tensor_map.h"
#include "tests/probes/everywhere.h"

namespace {

using emu::TensorMap;
using emu::TensorMapSwizzle;
using emu::TensorMapType;
using Words = std::vector<uint32_t>;

/// A matrix of 32-bit words whose word is its index; box of `box_columns` x `box_rows`. `address` stays an offset.
TensorMap matrix(uint32_t columns, uint32_t rows, uint32_t box_columns, uint32_t box_rows,
                 TensorMapSwizzle swizzle = TensorMapSwizzle::none) {
  TensorMap map;
  map.type = TensorMapType::uint32;
  map.rank = 2;
  map.dims = {columns, rows, 1, 1, 1};
  map.strides_bytes = {0, uint64_t{columns} * 4, 0, 0, 0};
  map.box = {box_columns, box_rows, 1, 1, 1};
  map.swizzle = swizzle;
  return map;
}

struct Run {
  Words out, tensor;
  std::string report;
  int error = 0;
};

/// p0: `count` words of output; p1: `maps`, of the tensor; p2: the tensor, whose words are 0, 1, 2, ...
Run run_with(const emu::Options& with, const std::string& ptx, size_t count, const std::vector<TensorMap>& maps,
             size_t tensor_words, const probe::Shape& shape) {
  probe::Machine machine(with);
  Words tensor(tensor_words);
  for (size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<uint32_t>(i);
  uint64_t base = machine.buffer(tensor);
  std::vector<std::byte> objects;
  for (TensorMap map : maps) {
    map.address += base;
    emu::TensorMapObject object = emu::encode_tensor_map(map);
    objects.insert(objects.end(), object.begin(), object.end());
  }
  std::vector<uint64_t> parameters{machine.buffer(Words(count, 0xEEEEEEEE)), machine.buffer(objects), base};
  auto fault = machine.launch(ptx, parameters, shape);
  Run run;
  if (fault)
    run.report = fault->report, run.error = fault->error;
  else
    run.out = machine.read<uint32_t>(parameters[0], count), run.tensor = machine.read<uint32_t>(base, tensor_words);
  return run;
}

Run run(const std::string& body, size_t count, const std::vector<TensorMap>& maps, size_t tensor_words,
        const probe::Shape& shape, int seeds = 4) {
  const std::string ptx = probe::kernel(body, 3, ".extern .shared .align 1024 .b8 smem[];");
  Run first;
  bool fresh = true;
  for (const probe::Setting& setting : probe::settings(seeds)) {
    Run got = run_with(setting.options, ptx, count, maps, tensor_words, shape);
    INFO(setting.name << "\n" << ptx);
    if (!got.report.empty()) FAIL(got.report);
    if (fresh) first = got;
    fresh = false;
    REQUIRE(got.out == first.out);
    REQUIRE(got.tensor == first.tensor);
  }
  return first;
}

/// One barrier for `count` arrivals in each CTA, `bytes` of dynamic shared memory cleared; %r0 smem, %r1 thread, %r2
/// rank, %r4 barrier, %d0 the CTA's part of the output, %d1 maps, %p0 thread 0.
std::string start(uint32_t bytes, uint32_t count = 1) {
  return fmt::format(R"(
    .shared .align 8 .b64 full;
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d1, [p1];
    ld.param.u64 %d2, [p2];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r3, %nctaid.x;
    mov.u32 %r1, %ctaid.y;
    mad.lo.u32 %r0, %r1, %r3, %r0;
    mad.wide.u32 %d0, %r0, {0}, %d0;
    mov.u32 %r0, smem;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %cluster_ctarank;
    mov.u32 %r4, full;
    setp.eq.u32 %p0, %r1, 0;
    mov.u32 %r5, 0;
    shl.b32 %r6, %r1, 2;
  clear:
    add.u32 %r7, %r0, %r6;
    st.shared.u32 [%r7], %r5;
    add.u32 %r6, %r6, 128;
    setp.lt.u32 %p1, %r6, {0};
    @%p1 bra clear;
    @%p0 mbarrier.init.shared::cta.b64 [%r4], {1};
    fence.mbarrier_init.release.cluster;
    fence.proxy.async;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)",
                     bytes, count);
}
const std::string kWait = R"(
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 0;
    @!%p1 bra wait;
)";
std::string show(uint32_t bytes) {
  return fmt::format(R"(
    shl.b32 %r6, %r1, 2;
  show:
    add.u32 %r7, %r0, %r6;
    ld.shared.u32 %r8, [%r7];
    cvt.u64.u32 %d3, %r6;
    add.u64 %d3, %d3, %d0;
    st.global.u32 [%d3], %r8;
    add.u32 %r6, %r6, 128;
    setp.lt.u32 %p1, %r6, {};
    @%p1 bra show;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)",
                     bytes);
}

}  // namespace

TEST_CASE("cluster: boxes shared along the rows and columns of a 2x2 cluster") {
  // A: rows 8 * y of 32 columns, sent half by half to the CTAs of the same y; B likewise to those of the same x.
  // Each CTA loads one half (4 rows) of each box and multicasts it. Masks as CUTLASS makes them.
  const std::string body = start(2048) + R"(
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 2048;
    mov.u32 %r9, %cluster_ctaid.x;
    mov.u32 %r10, %cluster_ctaid.y;
    shl.b32 %r11, %r10, 3;
    shl.b32 %r12, %r9, 2;
    add.u32 %r11, %r11, %r12;
    mov.u32 %r13, %ctaid.y;
    shr.u32 %r13, %r13, 1;
    shl.b32 %r13, %r13, 4;
    add.u32 %r11, %r11, %r13;
    shl.b32 %r14, %r10, 1;
    mov.u32 %r15, 3;
    shl.b32 %r15, %r15, %r14;
    cvt.u16.u32 %h0, %r15;
    shl.b32 %r16, %r9, 9;
    add.u32 %r16, %r16, %r0;
    @%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r16], [%d1, {0, %r11}], [%r4], %h0;
    shl.b32 %r17, %r9, 3;
    shl.b32 %r18, %r10, 2;
    add.u32 %r17, %r17, %r18;
    mov.u32 %r15, 5;
    shl.b32 %r15, %r15, %r9;
    cvt.u16.u32 %h0, %r15;
    shl.b32 %r16, %r10, 9;
    add.u32 %r16, %r16, %r0;
    @%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r16+1024], [%d1, {32, %r17}], [%r4], %h0;
)" + kWait + show(2048);
  Run got = run(body, 8 * 512, {matrix(64, 32, 32, 4, TensorMapSwizzle::b128)}, 64 * 32,
                {.grid = {2, 4, 1}, .block = {32, 1, 1}, .cluster = {2, 2, 1}, .dynamic_shared_bytes = 2048});
  for (uint32_t y = 0; y < 4; ++y)
    for (uint32_t x = 0; x < 2; ++x)
      for (uint32_t row = 0; row < 16; ++row)
        for (uint32_t column = 0; column < 32; ++column) {
          uint32_t from_row = row < 8 ? y * 8 + row : x * 8 + row - 8, from_column = row < 8 ? column : 32 + column;
          uint32_t chunk = (column / 4) ^ (row % 8);
          REQUIRE(got.out[(y * 2 + x) * 512 + row * 32 + chunk * 4 + column % 4] == from_row * 64 + from_column);
        }
}

TEST_CASE("cluster: with .cta_group::2 both CTAs of a pair tell the even one's barrier") {
  // The even CTA's barrier awaits the bytes of both; the address names it by clearing bit 24. Two pairs; both orders of
  // the modifiers.
  for (const char* spelling :
       {"cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2"}) {
    const std::string body = start(512) + R"(
    and.b32 %r9, %r2, 1;
    setp.eq.u32 %p2, %r9, 0;
    and.pred %p3, %p0, %p2;
    @%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 1024;
    and.b32 %r10, %r4, 0xFEFFFFFF;
    shl.b32 %r11, %r2, 2;
    @%p0 )" + spelling + R"( [%r0], [%d1, {0, %r11}], [%r10];
    @!%p2 bra told;
)" + kWait + R"(
    setp.lt.u32 %p3, %r1, 1;
    or.b32 %r12, %r4, 0x1000000;
    @%p3 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12];
    bra.uni seen;
  told:
  odd:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r4], 0;
    @!%p1 bra odd;
  seen:
)" + show(512);
    Run got = run(body, 4 * 128, {matrix(32, 16, 32, 4)}, 512,
                  {.grid = {4, 1, 1}, .block = {32, 1, 1}, .cluster = {4, 1, 1}, .dynamic_shared_bytes = 512});
    for (uint32_t i = 0; i < 512; ++i) REQUIRE(got.out[i] == i);
  }
}

TEST_CASE("cluster: a multicast with .cta_group::2 tells one CTA of each pair") {
  // Rank 0 sends to ranks 0, 1 and 3 of 4 and names a barrier of an odd CTA: 1 gets both its own bytes and rank 0's.
  const std::string body = start(256) + R"(
    setp.eq.u32 %p2, %r2, 1;
    and.pred %p3, %p0, %p2;
    @%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 512;
    setp.eq.u32 %p4, %r2, 3;
    and.pred %p3, %p0, %p4;
    @%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 256;
    setp.eq.u32 %p5, %r2, 0;
    and.pred %p3, %p0, %p5;
    or.b32 %r9, %r4, 0x1000000;
    mov.u16 %h0, 11;
    @%p3 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2 [%r0], [%d1, {4, 1}], [%r9], %h0;
    or.pred %p6, %p2, %p4;
    @!%p6 bra over;
)" + kWait + R"(
  over:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)" + show(256);
  Run got = run(body, 4 * 64, {matrix(32, 16, 16, 4)}, 512,
                {.grid = {4, 1, 1}, .block = {32, 1, 1}, .cluster = {4, 1, 1}, .dynamic_shared_bytes = 256});
  for (uint32_t cta = 0; cta < 4; ++cta)
    for (uint32_t i = 0; i < 64; ++i) REQUIRE(got.out[cta * 64 + i] == (cta == 2 ? 0 : (1 + i / 16) * 32 + 4 + i % 16));
}

TEST_CASE("cluster: .cta_group::2 with a barrier in another pair, or in a cluster without pairs") {
  const std::string copy =
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2 [%r0], [%d1, {0, 0}], "
      "[%r9];\n";
  const std::string far = start(512) +
                          "    mapa.shared::cluster.u32 %r9, %r4, 2;\n    setp.eq.and.u32 %p2, %r2, 0, %p0;\n"
                          "    @%p2 " +
                          copy + show(512);
  const std::string module = ".extern .shared .align 1024 .b8 smem[];";
  Run got = run_with({}, probe::kernel(far, 3, module), 512, {matrix(32, 16, 32, 4)}, 512,
                     {.grid = {4, 1, 1}, .block = {32, 1, 1}, .cluster = {4, 1, 1}, .dynamic_shared_bytes = 512});
  CHECK(got.error == 715);
  CHECK(got.report.find("in the same CTA or its peer") != std::string::npos);
  const std::string odd = start(512) + "    mov.u32 %r9, %r4;\n    @%p0 " + copy + show(512);
  got = run_with({}, probe::kernel(odd, 3, module), 384, {matrix(32, 16, 32, 4)}, 512,
                 {.grid = {3, 1, 1}, .block = {32, 1, 1}, .cluster = {3, 1, 1}, .dynamic_shared_bytes = 512});
  CHECK(got.error == 715);
  CHECK(got.report.find("CTA pairs need an even number") != std::string::npos);
}

TEST_CASE("tile::gather4: four rows by their numbers, swizzled as one box, zeros outside, to one CTA or several") {
  for (auto [swizzle, columns] : {std::pair{TensorMapSwizzle::none, 16u}, std::pair{TensorMapSwizzle::b128, 32u},
                                  std::pair{TensorMapSwizzle::b64, 16u}, std::pair{TensorMapSwizzle::b32, 8u}}) {
    const uint32_t bytes = 2 * 4 * columns * 4;
    // Rows 9, 2, 40 (outside), 2, then rows 0 to 3, to both CTAs.
    const std::string body = start(bytes) +
                             fmt::format(R"(
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], {0};
    setp.eq.and.u32 %p2, %r2, 0, %p0;
    mov.u16 %h0, 3;
    mov.u32 %r9, 9;
    mov.u32 %r10, 40;
    @%p2 cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes.multicast::cluster [%r0], [%d1, {{4, %r9, 2, %r10, 2}}], [%r4], %h0;
    setp.eq.and.u32 %p2, %r2, 1, %p0;
    mapa.shared::cluster.u32 %r11, %r0, 0;
    @%p2 cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes [%r11+{1}], [%d1, {{0, 0, 1, 2, 3}}], [%r4];
    @%p2 cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes.cta_group::1 [%r0+{1}], [%d1, {{0, 0, 1, 2, 3}}], [%r4];
    cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%d1, {{0, 0, 1, 2, 3}}];
)",
                                         bytes, bytes / 2) +
                             kWait + show(bytes);
    Run got = run(body, 2 * bytes / 4, {matrix(48, 20, columns, 1, swizzle)}, 48 * 20,
                  {.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}, .dynamic_shared_bytes = bytes}, 3);
    const uint32_t rows[] = {9, 2, 40, 2, 0, 1, 2, 3};
    for (uint32_t cta = 0; cta < 2; ++cta)
      for (uint32_t row = 0; row < 8; ++row)
        for (uint32_t column = 0; column < columns; ++column) {
          uint32_t at = row * columns * 4 + column * 4;  // smem is 1024-byte aligned: the offset has the address's bits
          uint32_t bits = swizzle == TensorMapSwizzle::b128  ? 0x70
                          : swizzle == TensorMapSwizzle::b64 ? 0x30
                          : swizzle == TensorMapSwizzle::b32 ? 0x10
                                                             : 0;
          at ^= at >> 3 & bits;
          uint32_t want = rows[row] < 20 ? rows[row] * 48 + column + (row < 4 ? 4 : 0) : 0;
          REQUIRE(got.out[cta * bytes / 4 + at / 4] == want);
        }
  }
}

TEST_CASE("tile::scatter4: four rows to where their numbers say, those outside dropped") {
  const std::string body = start(512) + R"(
    shl.b32 %r6, %r1, 2;
  fill:
    add.u32 %r7, %r0, %r6;
    add.u32 %r8, %r6, 100000;
    st.shared.u32 [%r7], %r8;
    add.u32 %r6, %r6, 128;
    setp.lt.u32 %p1, %r6, 512;
    @%p1 bra fill;
    fence.proxy.async.shared::cta;
    bar.warp.sync 0xFFFFFFFF;
    @%p0 cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%d1, {8, 3, 25, 19, 0}], [%r0];
    @%p0 cp.async.bulk.commit_group;
    @%p0 cp.async.bulk.wait_group 0;
)" + show(512);
  Run got = run(body, 128, {matrix(48, 20, 32, 1, TensorMapSwizzle::b128)}, 48 * 20,
                {.grid = {1, 1, 1}, .block = {32, 1, 1}, .dynamic_shared_bytes = 512});
  const uint32_t rows[] = {3, 25, 19, 0};
  Words want(48 * 20);
  for (uint32_t i = 0; i < want.size(); ++i) want[i] = i;
  for (uint32_t r = 0; r < 4; ++r)
    for (uint32_t column = 0; column < 32 && rows[r] < 20; ++column)
      want[rows[r] * 48 + 8 + column] = 100000 + r * 128 + ((column / 4) ^ r) * 16 + column % 4 * 4;
  CHECK(got.tensor == want);
}

TEST_CASE("tile::gather4: a map whose box has several rows, or of three dimensions") {
  const std::string body = start(512) + R"(
    @%p0 cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r0], [%d1, {0, 0, 1, 2, 3}], [%r4];
)";
  const std::string ptx = probe::kernel(body, 3, ".extern .shared .align 1024 .b8 smem[];");
  const probe::Shape shape{.block = {32, 1, 1}, .dynamic_shared_bytes = 512};
  Run got = run_with({}, ptx, 1, {matrix(48, 20, 32, 4)}, 960, shape);
  CHECK(got.error == 715);
  CHECK(got.report.find("whose box has 4 rows: encode it with a box of one row") != std::string::npos);
  TensorMap cube = matrix(48, 20, 32, 1);
  cube.rank = 3;
  cube.strides_bytes[2] = 48 * 20 * 4;
  got = run_with({}, ptx, 1, {cube}, 960, shape);
  CHECK(got.error == 715);
  CHECK(got.report.find("3 dimensions") != std::string::npos);
}

namespace {

/// Thread 0 clears a map: its bytes are nobody's business.
std::string forget(const std::string& map) {
  std::string text = "    mov.u64 %d7, 0;\n";
  for (int at = 0; at < 128; at += 16)
    text += fmt::format("    @%p0 st.global.v2.u64 [{}+{}], {{%d7, %d7}};\n", map, at);
  return text;
}

/// A load of the box at (0, 1) through the second map, after `change` made it of what it was.
Run changed(const std::string& change, const TensorMap& from, uint32_t bytes, const std::string& dimensions = "2d",
            const std::string& at = "{0, 1}") {
  const std::string body = start(2048) + "    @!%p0 bra changed;\n    add.u64 %d4, %d1, 128;\n" + change +
                           fmt::format(R"(
    fence.proxy.tensormap::generic.release.gpu;
    fence.proxy.tensormap::generic.acquire.gpu [%d4], 128;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], {};
    cp.async.bulk.tensor.{}.shared::cta.global.mbarrier::complete_tx::bytes [%r0], [%d4, {}], [%r4];
  changed:
)",
                                       bytes, dimensions, at) +
                           kWait + forget("%d4") + show(2048);
  return run(body, 512, {from, from}, 2048, {.block = {32, 1, 1}, .dynamic_shared_bytes = 2048}, 2);
}

Run plain(const TensorMap& map, uint32_t bytes, const std::string& dimensions = "2d",
          const std::string& at = "{0, 1}") {
  return changed("", map, bytes, dimensions, at);
}

}  // namespace

TEST_CASE("tensormap.replace: a map changed field by field is the map that has these fields") {
  TensorMap from = matrix(64, 16, 16, 4);
  TensorMap to = from;
  to.address = 256;
  to.dims = {40, 9, 1, 1, 1};
  to.strides_bytes = {0, 192, 0, 0, 0};
  to.box = {32, 5, 1, 1, 1};
  to.element_strides = {1, 2, 1, 1, 1};
  Run got = changed(R"(
    add.u64 %d5, %d2, 256;
    tensormap.replace.tile.global_address.global.b1024.b64 [%d4], %d5;
    mov.u32 %r9, 40;
    tensormap.replace.tile.global_dim.global.b1024.b32 [%d4], 0, %r9;
    tensormap.replace.tile.global_dim.global.b1024.b32 [%d4], 1, 9;
    mov.u64 %d6, 192;
    tensormap.replace.tile.global_stride.global.b1024.b64 [%d4], 0, %d6;
    tensormap.replace.tile.box_dim.global.b1024.b32 [%d4], 0, 32;
    tensormap.replace.tile.box_dim.b1024.b32 [%d4], 1, 5;
    tensormap.replace.tile.element_stride.global.b1024.b32 [%d4], 1, 2;
)",
                    from, 32 * 3 * 4);
  CHECK(got.out == plain(to, 32 * 3 * 4).out);
  CHECK(got.out[0] == 64 + 48);  // row 1 of the new map

  // Type, swizzle and its atoms, fill, in the numbers of the ISA's table.
  to = from;
  to.type = TensorMapType::bfloat16;
  to.swizzle = TensorMapSwizzle::b128_atom32;
  to.fill = emu::TensorMapFill::nan;
  to.box = {64, 4, 1, 1, 1};
  got = changed(R"(
    tensormap.replace.tile.elemtype.global.b1024.b32 [%d4], 10;
    tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%d4], 3;
    tensormap.replace.tile.swizzle_atomicity.global.b1024.b32 [%d4], 1;
    tensormap.replace.tile.fill_mode.global.b1024.b32 [%d4], 1;
    tensormap.replace.tile.box_dim.global.b1024.b32 [%d4], 0, 64;
)",
                from, 64 * 4 * 2, "2d", "{32, 14}");
  CHECK(got.out == plain(to, 64 * 4 * 2, "2d", "{32, 14}").out);

  to = from;
  to.rank = 3;
  to.dims = {64, 4, 4, 1, 1};
  to.strides_bytes = {0, 256, 1024, 0, 0};
  to.box = {16, 2, 3, 1, 1};
  to.swizzle = TensorMapSwizzle::b64;
  got = changed(R"(
    tensormap.replace.tile.rank.global.b1024.b32 [%d4], 2;
    tensormap.replace.tile.global_dim.global.b1024.b32 [%d4], 1, 4;
    tensormap.replace.tile.global_dim.global.b1024.b32 [%d4], 2, 4;
    mov.u64 %d6, 1024;
    tensormap.replace.tile.global_stride.global.b1024.b64 [%d4], 1, %d6;
    tensormap.replace.tile.box_dim.global.b1024.b32 [%d4], 1, 2;
    tensormap.replace.tile.box_dim.global.b1024.b32 [%d4], 2, 3;
    tensormap.replace.tile.interleave_layout.global.b1024.b32 [%d4], 0;
    tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%d4], 2;
)",
                from, 16 * 2 * 3 * 4, "3d", "{4, 1, 0}");
  CHECK(got.out == plain(to, 16 * 2 * 3 * 4, "3d", "{4, 1, 0}").out);

  // Out of zeros, as a compiler makes a map that no host encoded.
  to = from;
  to.type = TensorMapType::float32;
  to.swizzle = TensorMapSwizzle::b64;
  got = changed(forget("%d4") + R"(
    tensormap.replace.tile.global_address.global.b1024.b64 [%d4], %d2;
    tensormap.replace.tile.rank.global.b1024.b32 [%d4], 1;
    tensormap.replace.tile.box_dim.global.b1024.b32 [%d4], 0, 16;
    tensormap.replace.tile.box_dim.global.b1024.b32 [%d4], 1, 4;
    tensormap.replace.tile.global_dim.global.b1024.b32 [%d4], 0, 64;
    tensormap.replace.tile.global_dim.global.b1024.b32 [%d4], 1, 16;
    mov.u64 %d6, 256;
    tensormap.replace.tile.global_stride.global.b1024.b64 [%d4], 0, %d6;
    tensormap.replace.tile.element_stride.global.b1024.b32 [%d4], 0, 1;
    tensormap.replace.tile.element_stride.global.b1024.b32 [%d4], 1, 1;
    tensormap.replace.tile.elemtype.global.b1024.b32 [%d4], 7;
    tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%d4], 2;
    tensormap.replace.tile.fill_mode.global.b1024.b32 [%d4], 0;
)",
                from, 256);
  CHECK(got.out == plain(to, 256).out);
}

TEST_CASE("tensormap.cp_fenceproxy: a map changed in shared memory and copied to global memory") {
  const std::string body = start(2048) + R"(
    .shared .align 128 .b32 map[32];
    shl.b32 %r9, %r1, 2;
    mov.u32 %r10, map;
    add.u32 %r11, %r10, %r9;
    cvt.u64.u32 %d4, %r9;
    add.u64 %d4, %d4, %d1;
    ld.global.u32 %r12, [%d4];
    st.shared.u32 [%r11], %r12;
    bar.warp.sync 0xFFFFFFFF;
    @%p0 tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r10], 1, 7;
    bar.warp.sync 0xFFFFFFFF;
    add.u64 %d5, %d1, 128;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d5], [%r10], 128;
    fence.proxy.tensormap::generic.acquire.gpu [%d5], 128;
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 448;
    @%p0 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r0], [%d5, {0, 1}], [%r4];
)" + kWait + forget("%d5") +
                           show(2048);
  TensorMap from = matrix(64, 16, 16, 4), to = from;
  to.box[1] = 7;
  Run got = run(body, 512, {from, from}, 2048, {.block = {32, 1, 1}, .dynamic_shared_bytes = 2048}, 2);
  CHECK(got.out == plain(to, 448).out);
}

TEST_CASE("tensormap.replace: values that no map has, and fields that do not go together") {
  struct Bad {
    std::string line, why;
    const char* apart = nullptr;
  };
  for (const Bad& bad :
       {Bad{"mov.u64 %d6, 200; tensormap.replace.tile.global_stride.global.b1024.b64 [%d4], 0, %d6;",
            "a multiple of 16 below 2^40", "an H200 drops the low four bits of a stride"},
        Bad{"tensormap.replace.tile.rank.global.b1024.b32 [%d4], 5;", "the rank less one, 0 to 4"},
        Bad{"tensormap.replace.tile.box_dim.global.b1024.b32 [%d4], 0, 257;", "1 to 256"},
        Bad{"tensormap.replace.tile.box_dim.global.b1024.b32 [%d4], 0, 3;", "as tensormap.replace left it"},
        Bad{"tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%d4], 1;", "as tensormap.replace left it"}}) {
    const std::string body = start(2048) + "    @!%p0 bra over;\n    add.u64 %d4, %d1, 128;\n    " + bad.line + R"(
    cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r0], [%d4, {0, 1}], [%r4];
  over:
)";
    TensorMap from = matrix(64, 16, 16, 4);
    Run got = run_with({}, probe::kernel(body, 3, ".extern .shared .align 1024 .b8 smem[];"), 1, {from, from}, 2048,
                       {.block = {32, 1, 1}, .dynamic_shared_bytes = 2048, .apart = bad.apart});
    INFO(bad.line << "\n" << got.report);
    CHECK(got.error == 715);
    CHECK(got.report.find(bad.why) != std::string::npos);
  }
}

TEST_CASE("cluster: CTAs that end with their stores under way") {
  const std::string body = R"(
    .shared .align 128 .b32 data[64];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %cluster_ctarank;
    mov.u32 %r3, data;
    mad.lo.u32 %r4, %r1, 8, %r3;
    mad.lo.u32 %r5, %r2, 1000, %r1;
    add.u32 %r6, %r5, 100;
    st.shared.v2.u32 [%r4], {%r5, %r6};
    fence.proxy.async.shared::cta;
    bar.sync 0;
    ld.param.u64 %d0, [p0];
    mad.wide.u32 %d0, %r2, 256, %d0;
    setp.ne.u32 %p0, %r1, 0;
    @%p0 exit;
    cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r3], 256;
    cp.async.bulk.commit_group;
)";
  std::vector<uint32_t> want;
  for (uint32_t rank = 0; rank < 2; ++rank)
    for (uint32_t i = 0; i < 32; ++i) {
      want.push_back(rank * 1000 + i);
      want.push_back(rank * 1000 + i + 100);
    }
  CHECK(probe::everywhere<uint32_t>(probe::kernel(body, 1), 128, {},
                                    {.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}}) == want);
}
