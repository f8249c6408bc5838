// cp.async.bulk.tensor and cp.async.bulk, loads: what a thread finds in shared memory after the barrier's phase has
// ended. PTX ISA, "cp.async.bulk.tensor", "Swizzling modes"; bytes counted, fill and clipping as an H200 does it. The
// expected bytes are worked out element by element from the map's definition.

#include <fmt/format.h>

#include "emulator/units/tensor_map.h"
#include "tests/probes/everywhere.h"

namespace {

using emu::TensorMap;
using emu::TensorMapSwizzle;
using emu::TensorMapType;

constexpr uint32_t kTensorBytes = 1 << 16, kShared = 32768;

uint8_t tensor_byte(uint64_t at) {
  return static_cast<uint8_t>(at * 7 + (at >> 8) * 13 + 1);
}

uint32_t swizzle(TensorMapSwizzle mode, uint32_t a) {
  switch (mode) {
    case TensorMapSwizzle::none:
      return a;
    case TensorMapSwizzle::b32:
      return a ^ (a >> 3 & 0x10);
    case TensorMapSwizzle::b64:
      return a ^ (a >> 3 & 0x30);
    case TensorMapSwizzle::b128:
      return a ^ (a >> 3 & 0x70);
    case TensorMapSwizzle::b128_atom32:
      return a ^ (a >> 2 & 0x60);
    case TensorMapSwizzle::b128_atom32_flip8:
      return a ^ (a >> 2 & 0x60) ^ (a >> 4 & 0x08);
    case TensorMapSwizzle::b128_atom64:
      return a ^ (a >> 1 & 0x40);
  }
  return a;
}

struct Copy {
  TensorMap map;  ///< address: offset in the tensor buffer
  std::vector<int> at;
  uint32_t shared = 0;  ///< offset in dynamic shared memory

  uint32_t element_bytes() const { return emu::element_bits(map.type) / 8; }
  uint32_t bytes() const {
    uint32_t count = element_bytes();
    for (uint32_t d = 0; d < map.rank; ++d) count *= map.box[d];
    return count;
  }
};

std::string coordinates(const std::vector<int>& at) {
  std::string text = "{";
  for (size_t i = 0; i < at.size(); ++i) text += (i ? ", " : "") + std::to_string(at[i]);
  return text + "}";
}

/// Dynamic shared memory (0xAA before, 1024-aligned) as the copies leave it.
std::vector<uint8_t> expected(const std::vector<Copy>& copies) {
  std::vector<uint8_t> out(kShared, 0xAA);
  for (const Copy& copy : copies) {
    const TensorMap& map = copy.map;
    uint32_t es = copy.element_bytes(), row = map.box[0] * es, pitch = row;
    if (map.swizzle == TensorMapSwizzle::b32) pitch = 32;
    if (map.swizzle == TensorMapSwizzle::b64) pitch = 64;
    if (map.swizzle >= TensorMapSwizzle::b128) pitch = 128;
    uint32_t index[5] = {}, rows = copy.bytes() / row;
    for (uint32_t r = 0; r < rows; ++r) {
      for (uint32_t i = 0; i < row; ++i) {
        index[0] = i / es;
        bool inside = true;
        uint64_t from = map.address + i % es;
        for (uint32_t d = 0; d < map.rank; ++d) {
          int64_t position = int64_t{copy.at[d]} + index[d];
          inside = inside && position >= 0 && position < static_cast<int64_t>(map.dims[d]);
          from += static_cast<uint64_t>(position) * (d == 0 ? es : map.strides_bytes[d]);
        }
        out[swizzle(map.swizzle, copy.shared + r * pitch + i)] = inside ? tensor_byte(from) : 0;
      }
      for (uint32_t d = 1; d < 5 && ++index[d] == map.box[d]; ++d) index[d] = 0;
    }
  }
  return out;
}

/// All copies on one barrier, by thread 0 (or each by a lane of its own), then 128 threads show shared memory.
void check(std::vector<Copy> copies, bool lanes = false, int seeds = 3, const char* destination = "shared::cluster") {
  uint32_t total = 0;
  for (const Copy& copy : copies) total += copy.bytes();
  std::string body = fmt::format(R"(
    .shared .align 8 .b64 full;
    .reg .b32 %v<4>;
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d1, [p1];
    mov.u32 %r0, smem;
    mov.u32 %r1, %tid.x;
    mov.b32 %v0, 0xAAAAAAAA;
    shl.b32 %r2, %r1, 4;
  clear:
    add.u32 %r3, %r0, %r2;
    st.shared.v4.b32 [%r3], {{%v0, %v0, %v0, %v0}};
    add.u32 %r2, %r2, 2048;
    setp.lt.u32 %p0, %r2, {0};
    @%p0 bra clear;
    setp.eq.u32 %p0, %r1, 0;
    @%p0 mbarrier.init.shared::cta.b64 [full], 1;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], {1};
)",
                                 kShared, total);
  if (lanes) {
    // Lane i issues copy i; all copies have the same rank.
    body += "    setp.lt.u32 %p1, %r1, " + std::to_string(copies.size()) + ";\n    mad.wide.u32 %d2, %r1, 128, %d1;\n";
    for (size_t d = 0; d < copies[0].at.size(); ++d) {
      body += fmt::format("    mov.u32 %r{}, 0;\n", 10 + d);
      for (size_t i = 0; i < copies.size(); ++i)
        body += fmt::format("    setp.eq.u32 %p2, %r1, {};\n    @%p2 mov.u32 %r{}, {};\n", i, 10 + d, copies[i].at[d]);
    }
    body += "    mov.u32 %r4, 0;\n";
    for (size_t i = 0; i < copies.size(); ++i)
      body += fmt::format("    setp.eq.u32 %p2, %r1, {};\n    @%p2 mov.u32 %r4, {};\n", i, copies[i].shared);
    std::string list;
    for (size_t d = 0; d < copies[0].at.size(); ++d) list += fmt::format("{}%r{}", d ? ", " : "", 10 + d);
    body += fmt::format(
        "    add.u32 %r4, %r4, %r0;\n    @%p1 cp.async.bulk.tensor.{}d.{}.global.tile.mbarrier::complete_tx::bytes "
        "[%r4], [%d2, {{{}}}], [full];\n",
        copies[0].map.rank, destination, list);
  } else {
    body += "    @!%p0 bra issued;\n";
    for (size_t i = 0; i < copies.size(); ++i)
      body += fmt::format(
          "    add.u64 %d2, %d1, {};\n    cp.async.bulk.tensor.{}d.{}.global.mbarrier::complete_tx::bytes "
          "[%r0+{}], [%d2, {}], [full];\n",
          128 * i, copies[i].map.rank, destination, copies[i].shared, coordinates(copies[i].at));
    body += "  issued:\n";
  }
  body += fmt::format(R"(
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], 0;
    @!%p1 bra wait;
    shl.b32 %r2, %r1, 4;
  show:
    add.u32 %r3, %r0, %r2;
    ld.shared.v4.b32 {{%v0, %v1, %v2, %v3}}, [%r3];
    cvt.u64.u32 %d2, %r2;
    add.u64 %d2, %d2, %d0;
    st.global.v4.b32 [%d2], {{%v0, %v1, %v2, %v3}};
    add.u32 %r2, %r2, 2048;
    setp.lt.u32 %p0, %r2, {};
    @%p0 bra show;
)",
                      kShared);
  const std::string ptx = probe::kernel(body, 2, ".extern .shared .align 1024 .b8 smem[];");
  const std::vector<uint8_t> want = expected(copies);
  for (const auto& [name, with] : probe::settings(seeds)) {
    probe::Machine machine(with);
    std::vector<uint8_t> tensor(kTensorBytes), maps;
    for (size_t i = 0; i < tensor.size(); ++i) tensor[i] = tensor_byte(i);
    uint64_t base = machine.buffer(tensor);
    for (const Copy& copy : copies) {
      TensorMap map = copy.map;
      map.address += base;
      emu::TensorMapObject object = emu::encode_tensor_map(map);
      for (std::byte b : object) maps.push_back(std::to_integer<uint8_t>(b));
    }
    std::vector<uint64_t> parameters{machine.buffer(std::vector<uint8_t>(kShared)), machine.buffer(maps)};
    auto fault = machine.launch(ptx, parameters, {.block = {128, 1, 1}, .dynamic_shared_bytes = kShared});
    INFO(name << "\n" << ptx);
    if (fault) FAIL(fault->report);
    std::vector<uint8_t> got = machine.read<uint8_t>(parameters[0], kShared);
    for (size_t i = 0; i < kShared; ++i)
      if (got[i] != want[i]) FAIL("byte " << i << " is " << int{got[i]} << ", expected " << int{want[i]});
  }
}

Copy copy_of(TensorMapType type, std::vector<uint64_t> dims, std::vector<uint64_t> strides, std::vector<uint32_t> box,
             std::vector<int> at, TensorMapSwizzle mode = TensorMapSwizzle::none, uint32_t shared = 0) {
  Copy copy;
  copy.map.type = type;
  copy.map.rank = static_cast<uint32_t>(dims.size());
  copy.map.swizzle = mode;
  for (size_t d = 0; d < dims.size(); ++d) {
    copy.map.dims[d] = dims[d];
    copy.map.box[d] = box[d];
    if (d) copy.map.strides_bytes[d] = strides[d - 1];
  }
  copy.at = std::move(at);
  copy.shared = shared;
  return copy;
}

}  // namespace

TEST_CASE("cp.async.bulk.tensor: one to five dimensions") {
  const auto f16 = TensorMapType::float16;
  check({copy_of(f16, {1000}, {}, {64}, {24})});
  check({copy_of(f16, {100, 60}, {208}, {32, 20}, {16, 7})});
  check({copy_of(f16, {40, 12, 9}, {80, 960}, {16, 5, 4}, {8, 3, 2})});
  check({copy_of(TensorMapType::uint8, {32, 6, 5, 4}, {32, 192, 960}, {16, 3, 2, 3}, {16, 1, 2, 0})});
  check({copy_of(TensorMapType::float32, {8, 4, 4, 3, 3}, {32, 128, 512, 1536}, {4, 2, 3, 2, 2}, {4, 1, 0, 1, 1})});
}

TEST_CASE("cp.async.bulk.tensor: every swizzle, at every place within its period, rows full and narrow") {
  struct Mode {
    TensorMapSwizzle mode;
    uint32_t span;
  };
  for (const Mode& m : {Mode{TensorMapSwizzle::b32, 32}, Mode{TensorMapSwizzle::b64, 64},
                        Mode{TensorMapSwizzle::b128, 128}, Mode{TensorMapSwizzle::b128_atom32, 128},
                        Mode{TensorMapSwizzle::b128_atom32_flip8, 128}, Mode{TensorMapSwizzle::b128_atom64, 128}})
    for (uint32_t width : {m.span, m.span / 2}) {
      std::vector<Copy> copies;
      // The pattern is one of the absolute address: tiles that start inside a period are permuted accordingly.
      for (uint32_t i = 0; i < 4; ++i)
        copies.push_back(copy_of(TensorMapType::float16, {512, 64}, {1024}, {width / 2, 20},
                                 {static_cast<int>(i * 8), static_cast<int>(i)}, m.mode, i * 8192 + i * 128));
      check(copies, false, 1);
    }
}

TEST_CASE("cp.async.bulk.tensor: what lies outside the tensor is zero, and counted") {
  const auto f16 = TensorMapType::float16;
  check({copy_of(f16, {50, 20}, {112}, {32, 8}, {40, 15})});                        // past both ends
  check({copy_of(f16, {50, 20}, {112}, {32, 8}, {-16, -3})});                       // before both starts
  check({copy_of(f16, {50, 20}, {112}, {32, 8}, {800, 500})});                      // wholly outside
  check({copy_of(f16, {53, 20}, {112}, {64, 4}, {0, 2}, TensorMapSwizzle::b128)});  // cut at the element
}

TEST_CASE("cp.async.bulk.tensor: the address inside the CTA may be named as shared::cta") {
  check({copy_of(TensorMapType::float16, {100, 60}, {208}, {32, 20}, {16, 7})}, false, 1, "shared::cta");
}

TEST_CASE("cp.async.bulk.tensor: several active lanes are several copies") {
  std::vector<Copy> copies;
  for (int i = 0; i < 6; ++i)
    copies.push_back(copy_of(TensorMapType::float16, {256, 64}, {512}, {32, 8}, {8 * i, 5 * i}, TensorMapSwizzle::b64,
                             static_cast<uint32_t>(i) * 1024));
  check(copies, true, 6);
}

TEST_CASE("cp.async.bulk: plain copies of multiples of 16 bytes, none included") {
  // Thread 0 copies 16, 4096, 0 and 208 bytes.
  const std::string ptx = probe::kernel(R"(
    .shared .align 8 .b64 full;
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d1, [p1];
    mov.u32 %r0, smem;
    mov.u32 %r2, 0;
  clear:
    add.u32 %r3, %r0, %r2;
    st.shared.b32 [%r3], 0xAAAAAAAA;
    add.u32 %r2, %r2, 4;
    setp.lt.u32 %p0, %r2, 8400;
    @%p0 bra clear;
    fence.proxy.async.shared::cta;
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 4320;
    mov.u32 %r1, 208;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%d1], 16, [full];
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r0+16], [%d1+48], 4096, [full];
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0+8192], [%d1+112], %r1, [full];
    mov.u32 %r1, 0;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0+64], [%d1+128], %r1, [full];
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], 0;
    @!%p1 bra wait;
    mov.u32 %r2, 0;
  show:
    add.u32 %r3, %r0, %r2;
    ld.shared.b32 %r4, [%r3];
    cvt.u64.u32 %d2, %r2;
    add.u64 %d2, %d2, %d0;
    st.global.b32 [%d2], %r4;
    add.u32 %r2, %r2, 4;
    setp.lt.u32 %p0, %r2, 8400;
    @%p0 bra show;
)",
                                        2, ".extern .shared .align 1024 .b8 smem[];");
  std::vector<uint8_t> source(8192);
  for (size_t i = 0; i < source.size(); ++i) source[i] = tensor_byte(i);
  std::vector<uint8_t> got = probe::everywhere<uint8_t>(ptx, 8400, {probe::bytes_of(source)},
                                                        {.block = {1, 1, 1}, .dynamic_shared_bytes = 8448});
  for (size_t i = 0; i < 16; ++i) CHECK(got[i] == source[i]);
  for (size_t i = 0; i < 4096; ++i) REQUIRE(got[16 + i] == source[48 + i]);
  for (size_t i = 0; i < 208; ++i) CHECK(got[8192 + i] == source[112 + i]);
  for (size_t i = 4112; i < 8192; ++i) REQUIRE(got[i] == 0xAA);
}
