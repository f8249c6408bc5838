// Im2col: columns of pixels through a tensor map of cuTensorMapEncodeIm2col. PTX ISA, "im2col mode". Here the walk is
// written from the definition of a convolution's input matrix: row i is the pixel under the filter's tap (the offsets)
// when its corner stands at the i-th place of the bounding box, counted on from the first. An H200's record decides.

#include <fmt/format.h>

#include <cstring>

#include "emulator/units/tensor_map.h"
#include "tests/probes/everywhere.h"

namespace {

using emu::TensorMap;
using emu::TensorMapSwizzle;

constexpr uint32_t kShared = 40 * 1024, kTensorElements = 16 * 1024;

uint16_t element(uint64_t i) {
  return static_cast<uint16_t>(i * 40503 >> 2);
}

struct Column {
  TensorMap map;
  std::vector<int> at, offsets;
  uint32_t row_bytes() const { return map.box[0] * 2; }
  uint32_t pitch() const { return std::max(row_bytes(), emu::swizzle_span_bytes(map.swizzle)); }
  uint32_t bytes() const { return row_bytes() * map.box[1]; }

  /// Element (channel, pixel of the column) as its place in the tensor, or -1 outside.
  int64_t place(uint32_t channel, uint32_t pixel) const {
    const uint32_t rank = map.rank;
    // Places of a dimension between its corners, in steps.
    std::array<int64_t, 5> counts{};
    auto last = [&](uint32_t d) { return static_cast<int64_t>(map.dims[d]) - 1 + map.upper[d - 1]; };
    std::vector<int64_t> corner(at.begin(), at.end());
    uint64_t left = pixel;
    for (uint32_t d = 1; d + 1 < rank; ++d) {
      const int64_t step = map.element_strides[d];
      // The walk may begin off the grid of steps from the lower corner: the first turn is shorter.
      const int64_t rest = (last(d) - corner[d]) / step + 1, turn = (last(d) - map.lower[d - 1]) / step + 1;
      counts[d] = static_cast<int64_t>(left) < rest ? 0 : 1 + (static_cast<int64_t>(left) - rest) / turn;
      corner[d] = static_cast<int64_t>(left) < rest
                      ? corner[d] + static_cast<int64_t>(left) * step
                      : map.lower[d - 1] + (static_cast<int64_t>(left) - rest) % turn * step;
      left = static_cast<uint64_t>(counts[d]);
    }
    corner[rank - 1] += static_cast<int64_t>(left) * map.element_strides[rank - 1];
    uint64_t bytes = 0;
    for (uint32_t d = 0; d < rank; ++d) {
      int64_t position = corner[d] + (d == 0 ? channel : d + 1 < rank && !offsets.empty() ? offsets[d - 1] : 0);
      if (position < 0 || position >= static_cast<int64_t>(map.dims[d])) return -1;
      bytes += static_cast<uint64_t>(position) * (d == 0 ? 2 : map.strides_bytes[d]);
    }
    return static_cast<int64_t>(bytes / 2);
  }

  std::string coordinates() const {
    std::string text;
    for (int c : at) text += (text.empty() ? "" : ", ") + std::to_string(c);
    return "{" + text + "}";
  }
  std::string offset_list() const {
    std::string text;
    for (int c : offsets) text += (text.empty() ? "" : ", ") + std::to_string(c);
    return "{" + text + "}";
  }
};

/// f16 tensor, innermost dimension first; the strides leave `gap` bytes behind each row.
Column column(std::vector<uint64_t> dims, std::vector<int> lower, std::vector<int> upper, uint32_t channels,
              uint32_t pixels, std::vector<int> at, std::vector<int> offsets,
              TensorMapSwizzle swizzle = TensorMapSwizzle::none) {
  Column c;
  c.map.type = emu::TensorMapType::float16;
  c.map.rank = static_cast<uint32_t>(dims.size());
  c.map.im2col = true;
  c.map.swizzle = swizzle;
  c.map.box = {channels, pixels, 1, 1, 1};
  uint64_t stride = (dims[0] * 2 + 15) / 16 * 16;
  for (size_t d = 0; d < dims.size(); ++d) {
    c.map.dims[d] = dims[d];
    if (d > 0) c.map.strides_bytes[d] = stride, stride *= dims[d];
  }
  for (size_t d = 0; d < lower.size(); ++d) c.map.lower[d] = lower[d], c.map.upper[d] = upper[d];
  c.at = std::move(at);
  c.offsets = std::move(offsets);
  return c;
}

std::vector<uint8_t> object_of(TensorMap map, uint64_t base) {
  map.address = base;
  const emu::TensorMapObject object = emu::encode_tensor_map(map);
  std::vector<uint8_t> out(128);
  std::memcpy(out.data(), object.data(), 128);
  return out;
}

const std::string kStart = R"(
    .shared .align 8 .b64 full;
    .reg .b32 %v<4>;
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d1, [p1];
    mov.u32 %r0, smem;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p0, %r1, 0;
    @%p0 mbarrier.init.shared::cta.b64 [full], 1;
)";

std::string kernel(const std::string& body, int parameters) {
  return probe::kernel(body, parameters, ".extern .shared .align 1024 .b8 smem[];");
}

/// All of shared memory, 0xAA before, as a load leaves it.
void check_load(const Column& c, int seeds = 2) {
  const std::string body = kStart + fmt::format(R"(
    shl.b32 %r2, %r1, 4;
    mov.b32 %v0, 0xAAAAAAAA;
  clear:
    add.u32 %r3, %r0, %r2;
    st.shared.v4.b32 [%r3], {{%v0, %v0, %v0, %v0}};
    add.u32 %r2, %r2, 2048;
    setp.lt.u32 %p1, %r2, {0};
    @%p1 bra clear;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], {1};
    @%p0 cp.async.bulk.tensor.{2}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r0], [%d1, {3}], [full], {4};
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
    setp.lt.u32 %p1, %r2, {0};
    @%p1 bra show;
)",
                                                kShared, c.bytes(), c.map.rank, c.coordinates(), c.offset_list());
  std::vector<uint8_t> want(kShared, 0xAA);
  for (uint32_t pixel = 0; pixel < c.map.box[1]; ++pixel)
    for (uint32_t channel = 0; channel < c.map.box[0]; ++channel) {
      const int64_t place = c.place(channel, pixel);
      const uint16_t value = place >= 0 ? element(static_cast<uint64_t>(place))
                                        : static_cast<uint16_t>(c.map.fill == emu::TensorMapFill::nan ? 0x7FF7 : 0);
      const uint32_t at = emu::swizzled(c.map.swizzle, pixel * c.pitch() + channel * 2);
      std::memcpy(want.data() + at, &value, 2);
    }
  for (const auto& [name, with] : probe::settings(seeds)) {
    probe::Machine machine(with);
    std::vector<uint16_t> tensor(kTensorElements);
    for (size_t i = 0; i < tensor.size(); ++i) tensor[i] = element(i);
    const uint64_t base = machine.buffer(tensor);
    std::vector<uint64_t> parameters{machine.buffer(std::vector<uint8_t>(kShared)),
                                     machine.buffer(object_of(c.map, base))};
    auto fault = machine.launch(kernel(body, 2), parameters, {.block = {128, 1, 1}, .dynamic_shared_bytes = kShared});
    INFO(name << "\n" << body);
    if (fault) FAIL(fault->report);
    const std::vector<uint8_t> got = machine.read<uint8_t>(parameters[0], kShared);
    for (size_t i = 0; i < kShared; ++i)
      if (got[i] != want[i]) FAIL("byte " << i << " is " << int{got[i]} << ", expected " << int{want[i]});
  }
}

/// The tensor as a store of shared memory (its words count up) leaves it, or adding them to zeros.
void check_store(const Column& c, bool adds) {
  const std::string body =
      kStart + fmt::format(R"(
    shl.b32 %r2, %r1, 1;
  number:
    add.u32 %r3, %r0, %r2;
    shr.u32 %r4, %r2, 1;
    cvt.u16.u32 %h0, %r4;
    st.shared.u16 [%r3], %h0;
    add.u32 %r2, %r2, 256;
    setp.lt.u32 %p1, %r2, {0};
    @%p1 bra number;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%p0 cp{1}.async.bulk.tensor.{2}d.global.shared::cta{3}.im2col_no_offs.bulk_group [%d1, {4}], [%r0];
    @%p0 cp.async.bulk.commit_group;
    @%p0 cp.async.bulk.wait_group 0;
)",
                           kShared, adds ? ".reduce" : "", c.map.rank, adds ? ".add" : "", c.coordinates());
  for (const auto& [name, with] : probe::settings(2)) {
    probe::Machine machine(with);
    std::vector<uint16_t> tensor(kTensorElements);
    for (size_t i = 0; i < tensor.size(); ++i) tensor[i] = adds ? 0 : element(i);
    std::vector<uint64_t> parameters{machine.buffer(tensor), 0};
    parameters[1] = machine.buffer(object_of(c.map, parameters[0]));
    auto fault = machine.launch(kernel(body, 2), parameters, {.block = {128, 1, 1}, .dynamic_shared_bytes = kShared});
    INFO(name << "\n" << body);
    if (fault) FAIL(fault->report);
    std::vector<uint16_t> want = tensor;
    for (uint32_t pixel = 0; pixel < c.map.box[1]; ++pixel)
      for (uint32_t channel = 0; channel < c.map.box[0]; ++channel)
        if (const int64_t place = c.place(channel, pixel); place >= 0)
          want[static_cast<size_t>(place)] =
              static_cast<uint16_t>(emu::swizzled(c.map.swizzle, pixel * c.pitch() + channel * 2) / 2);
    CHECK(machine.read<uint16_t>(parameters[0], kTensorElements) == want);
  }
}

probe::Ending fault_of(TensorMap map, const std::string& instruction) {
  const std::string body =
      kStart + "    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;\n    @%p0 " + instruction + "\n";
  probe::Machine machine;
  const uint64_t base = machine.buffer(std::vector<uint16_t>(kTensorElements));
  std::vector<uint64_t> parameters{machine.buffer(std::vector<uint8_t>(16)), machine.buffer(object_of(map, base))};
  auto fault = machine.launch(kernel(body, 2), parameters, {.dynamic_shared_bytes = kShared});
  REQUIRE(fault);
  return {.bytes = {}, .report = fault->report, .error = fault->error};
}

}  // namespace

TEST_CASE("im2col: a column of pixels, walked through width, height, depth and images") {
  // A 3 x 3 filter with padding 1 over 6 x 5 pixels, each of its taps in turn.
  for (int h = 0; h < 3; ++h)
    for (int w = 0; w < 3; ++w) check_load(column({16, 6, 5, 3}, {-1, -1}, {-1, -1}, 16, 64, {0, -1, -1, 0}, {w, h}));
  check_load(column({24, 20, 4}, {-2}, {-2}, 16, 40, {8, 5, 1}, {3}));
  check_load(column({16, 4, 3, 3, 2}, {-1, 0, 1}, {0, -1, 0}, 8, 50, {8, 2, 1, 1, 0}, {1, 0, 1}));
}

TEST_CASE("im2col: steps between pixels, beginning on and off their grid") {
  Column c = column({16, 9, 8, 3}, {-1, -1}, {-1, -1}, 16, 40, {0, -1, -1, 0}, {2, 1});
  c.map.element_strides = {1, 2, 2, 1, 1};
  check_load(c);
  c.at = {0, 2, 3, 0};
  check_load(c);
  c.map.element_strides = {1, 3, 1, 2, 1};
  check_load(c);
}

TEST_CASE("im2col: outside the tensor is the fill, behind the last image too") {
  check_load(column({20, 5, 4, 2}, {-3, -3}, {3, 3}, 16, 120, {16, 6, 5, 1}, {0, 0}));
  check_load(column({16, 5, 4, 2}, {0, 0}, {0, 0}, 16, 60, {0, 0, 0, 1}, {0, 0}));
  Column c = column({20, 5, 4, 2}, {-1, -1}, {0, 0}, 32, 30, {0, -1, 2, 0}, {0, 2});
  c.map.fill = emu::TensorMapFill::nan;
  check_load(c);
}

TEST_CASE("im2col: swizzles, rows full and narrow") {
  check_load(column({64, 6, 5, 3}, {-1, -1}, {-1, -1}, 16, 64, {16, 0, 0, 0}, {1, 1}, TensorMapSwizzle::b32));
  check_load(column({64, 6, 5, 3}, {-1, -1}, {-1, -1}, 32, 64, {32, 0, 0, 0}, {1, 1}, TensorMapSwizzle::b64));
  check_load(column({64, 6, 5, 3}, {-1, -1}, {-1, -1}, 64, 128, {0, -1, 0, 0}, {1, 2}, TensorMapSwizzle::b128));
  check_load(column({64, 6, 5, 3}, {-1, -1}, {-1, -1}, 16, 64, {16, 0, 0, 0}, {0, 1}, TensorMapSwizzle::b128));
}

TEST_CASE("im2col: stores and reductions go through the whole tensor") {
  check_store(column({16, 6, 5, 3}, {0, 0}, {0, 0}, 16, 40, {0, 3, 1, 0}, {}), false);
  check_store(column({64, 6, 5, 2}, {0, 0}, {0, 0}, 64, 70, {0, 0, 0, 0}, {}, TensorMapSwizzle::b128), false);
  check_store(column({16, 20, 4}, {0}, {0}, 8, 30, {8, 7, 2}, {}), false);
  check_store(column({16, 4, 3, 3, 2}, {0, 0, 0}, {0, 0, 0}, 16, 50, {0, 0, 0, 0, 0}, {}), false);
  check_store(column({16, 6, 5, 3}, {0, 0}, {0, 0}, 16, 40, {0, 3, 1, 0}, {}), true);
}

TEST_CASE("im2col: what an H200 refuses") {
  const std::string load =
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r0], [%d1, {0, W, 0, 0}], "
      "[full], {0, 0};";
  auto at = [&](const std::string& w) { return std::string(load).replace(load.find('W'), 1, w); };
  const Column c = column({16, 6, 5, 2}, {-1, -1}, {-1, -1}, 16, 8, {}, {});
  for (const char* w : {"-2", "5"}) {
    const probe::Ending ending = fault_of(c.map, at(w));
    CHECK(ending.error == 715);
    CHECK_THAT(ending.report, test::contains("inside the bounding box, -1 to 4"));
  }
  // The map's mode and the instruction's.
  TensorMap tiled = c.map;
  tiled.im2col = false;
  tiled.box = {16, 8, 1, 1, 1};
  CHECK(fault_of(tiled, at("0")).error == 715);
  const probe::Ending ending = fault_of(
      c.map,
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%d1, {0, 0, 0, 0}], "
      "[full];");
  CHECK(ending.error == 715);
  CHECK_THAT(ending.report, test::contains("cuTensorMapEncodeIm2col"));
  // A store through a box that is not the tensor.
  const probe::Ending store = fault_of(
      c.map, "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%d1, {0, 0, 0, 0}], [%r0];");
  CHECK(store.error == 715);
  CHECK_THAT(store.report, test::contains("they must be 0"));
}
