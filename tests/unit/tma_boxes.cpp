// Boxes against a model that moves one element at a time: loads and stores, at once and through staging.

#include <algorithm>
#include <set>

#include "emulator/machine/trap.h"
#include "emulator/units/tma.h"
#include "tests/catch.h"
#include "tests/unit/tma_model.h"

using namespace emu;

namespace {

constexpr uint32_t kWindowBytes = 32768;
constexpr uint32_t kCanaryBytes = 4096;

// A window between canaries.
struct GuardedWindow {
  explicit GuardedWindow(const std::vector<std::byte>& content)
      : bytes(kCanaryBytes + content.size() + kCanaryBytes, std::byte{0xA5}),
        size(static_cast<uint32_t>(content.size())) {
    std::copy(content.begin(), content.end(), bytes.begin() + kCanaryBytes);
  }
  tma::Window window() { return {bytes.data() + kCanaryBytes, size}; }
  std::vector<std::byte> content() const { return {bytes.begin() + kCanaryBytes, bytes.end() - kCanaryBytes}; }
  bool canaries_alive() const {
    const auto alive = [](std::byte b) { return b == std::byte{0xA5}; };
    return std::all_of(bytes.begin(), bytes.begin() + kCanaryBytes, alive) &&
           std::all_of(bytes.end() - kCanaryBytes, bytes.end(), alive);
  }
  std::vector<std::byte> bytes;
  uint32_t size;
};

// Global memory with a case's tensor in it, laid into one allocation.
struct Placed {
  Placed(test::RandomCase& c, std::mt19937_64& random) : content(test::random_bytes(random, c.global_bytes)) {
    base = memory.allocate(c.global_bytes);
    std::copy(content.begin(), content.end(), memory.writing(base, c.global_bytes));
    c.map.address += base;
  }
  std::byte at(uint64_t address) const { return content.at(address - base); }
  std::vector<std::byte> now() const {
    const std::byte* bytes = memory.reading(base, content.size());
    return {bytes, bytes + content.size()};
  }
  GlobalMemory memory{uint64_t{1} << 24};
  uint64_t base;
  std::vector<std::byte> content;
};

std::string describe(const test::RandomCase& c) {
  const tma::Box box(c.map, c.coordinates, tma::Direction::load);
  return box.describe() + ", swizzle " + std::string(name_of(c.map.swizzle)) + ", at shared " +
         std::to_string(c.shared_address);
}

}  // namespace

TEST_CASE("loads put every element of a box where the rules say, and touch nothing else") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 3000; ++i) {
    test::RandomCase c = test::random_case(random, true, kWindowBytes);
    const Placed placed(c, random);
    const std::vector<std::byte> before = test::random_bytes(random, kWindowBytes);
    std::vector<std::byte> expected = before;
    test::load_model(
        c.map, c.coordinates, c.shared_address, [&](uint64_t a) { return placed.at(a); }, expected);
    INFO("case " << i << ": " << describe(c));

    const tma::Box box(c.map, c.coordinates, tma::Direction::load);
    GuardedWindow at_once(before);
    tma::load(box, placed.memory, at_once.window(), c.shared_address);
    REQUIRE(at_once.canaries_alive());
    REQUIRE(at_once.content() == expected);

    // In two steps: what is read is settled at the first, whatever happens to global memory before the second.
    GuardedWindow staged(before);
    std::vector<std::byte> staging(box.bytes() + 64, std::byte{0x5A});
    tma::gather(box, placed.memory, std::span(staging).first(box.bytes()));
    REQUIRE(std::all_of(staging.end() - 64, staging.end(), [](std::byte b) { return b == std::byte{0x5A}; }));
    auto& memory = const_cast<GlobalMemory&>(placed.memory);
    std::fill_n(memory.writing(placed.base, c.global_bytes), c.global_bytes, std::byte{0x77});
    tma::place(box, std::span(staging).first(box.bytes()), staged.window(), c.shared_address);
    REQUIRE(staged.canaries_alive());
    REQUIRE(staged.content() == expected);
  }
}

TEST_CASE("stores write the box's elements inside the tensor, and nothing else") {
  std::mt19937_64 random(2);
  for (int i = 0; i < 3000; ++i) {
    test::RandomCase c = test::random_case(random, false, kWindowBytes);
    Placed placed(c, random);
    const std::vector<std::byte> content = test::random_bytes(random, kWindowBytes);
    std::vector<std::byte> expected = placed.content;
    test::store_model(c.map, c.coordinates, c.shared_address, content,
                      [&](uint64_t address, std::byte value) { expected.at(address - placed.base) = value; });
    INFO("case " << i << ": " << describe(c));

    const tma::Box box(c.map, c.coordinates, tma::Direction::store);
    GuardedWindow source(content);
    tma::store(box, source.window(), c.shared_address, placed.memory);
    REQUIRE(placed.now() == expected);
    REQUIRE(source.content() == content);

    // In two steps: what is written is settled at the first.
    std::copy(placed.content.begin(), placed.content.end(), placed.memory.writing(placed.base, placed.content.size()));
    std::vector<std::byte> staging(box.bytes());
    tma::collect(box, source.window(), c.shared_address, staging);
    std::fill(source.bytes.begin(), source.bytes.end(), std::byte{0x33});
    tma::scatter(box, staging, placed.memory);
    REQUIRE(placed.now() == expected);
  }
}

TEST_CASE("a box counts its whole self, and names the bytes it touches") {
  std::mt19937_64 random(3);
  for (int i = 0; i < 1500; ++i) {
    test::RandomCase c = test::random_case(random, true, kWindowBytes);
    uint64_t bytes = 0, inside = 0;
    std::multiset<uint64_t> global;
    std::set<uint32_t> shared;
    test::for_each_element(c.map, c.coordinates, c.shared_address, false, [&](const test::ElementModel& element) {
      bytes += element.bytes;
      for (uint32_t b = 0; b < element.bytes; ++b) {
        shared.insert(test::swizzle_model(c.map.swizzle, element.shared + b));
        if (element.inside) global.insert(element.global + b);
      }
      inside += element.inside ? element.bytes : 0;
    });
    INFO("case " << i << ": " << describe(c));
    const tma::Box box(c.map, c.coordinates, tma::Direction::load);
    REQUIRE(box.bytes() == bytes);
    REQUIRE(box.rows() * box.row_bytes() == bytes);
    REQUIRE(box.global_bytes() == inside);

    std::multiset<uint64_t> visited_global;
    box.visit_global([&](uint64_t address, uint64_t length) {
      REQUIRE(length > 0);
      for (uint64_t b = 0; b < length; ++b) visited_global.insert(address + b);
    });
    REQUIRE(visited_global == global);
    std::set<uint32_t> visited_shared;
    uint64_t visited_bytes = 0;
    box.visit_shared(c.shared_address, [&](uint32_t address, uint32_t length) {
      REQUIRE(length > 0);
      visited_bytes += length;
      for (uint32_t b = 0; b < length; ++b) visited_shared.insert(address + b);
    });
    REQUIRE(visited_shared == shared);
    REQUIRE(visited_bytes == shared.size());
  }
}

TEST_CASE("rows that lie in one piece are visited in one piece") {
  TensorMap map{.type = TensorMapType::float16, .rank = 2, .address = 4096};
  map.dims = {64, 100, 1, 1, 1};
  map.strides_bytes = {0, 128, 0, 0, 0};
  map.box = {64, 8, 1, 1, 1};
  const tma::Box box(map, std::array<int32_t, 2>{0, 10}, tma::Direction::load);
  std::vector<std::pair<uint64_t, uint64_t>> pieces;
  box.visit_global([&](uint64_t address, uint64_t bytes) { pieces.emplace_back(address, bytes); });
  CHECK(pieces == std::vector<std::pair<uint64_t, uint64_t>>{{4096 + 10 * 128, 1024}});
}

// Four-bit values, packed: two elements a byte, so bytes of half the coordinates.
TEST_CASE("packed 4-bit tensors move like bytes of two elements each") {
  GlobalMemory memory(1 << 20);
  std::mt19937_64 random(4);
  const std::vector<std::byte> content = test::random_bytes(random, 4096);
  const uint64_t base = memory.allocate(content.size());
  std::copy(content.begin(), content.end(), memory.writing(base, content.size()));
  TensorMap nibbles{.type = TensorMapType::u4_align8, .swizzle = TensorMapSwizzle::b64, .rank = 2, .address = base};
  nibbles.dims = {250, 30, 1, 1, 1};
  nibbles.strides_bytes = {0, 128, 0, 0, 0};
  nibbles.box = {96, 16, 1, 1, 1};
  TensorMap bytes = nibbles;
  bytes.type = TensorMapType::uint8;
  bytes.dims[0] = 125;
  bytes.box[0] = 48;
  const std::vector<std::byte> before = test::random_bytes(random, 8192);
  for (const auto& [x, y] : {std::pair{0, 0}, {32, 5}, {192, 20}, {-64, -3}}) {
    std::vector<std::byte> expected = before;
    test::load_model(
        bytes, {x / 2, y}, 1024, [&](uint64_t a) { return content.at(a - base); }, expected);
    GuardedWindow got(before);
    const tma::Box box(nibbles, std::array<int32_t, 2>{x, y}, tma::Direction::load);
    tma::load(box, memory, got.window(), 1024);
    CHECK(box.bytes() == 48 * 16);
    CHECK(got.content() == expected);
    CHECK(got.canaries_alive());
  }
}

// Triton's map of ragged parts: row r of a part of n rows is at index 2^30 - n + r of the rows, so that what lies
// behind the part is outside; two further dimensions, one of them at the part's end, bring the address back modulo
// 2^64.
TEST_CASE("addresses wrap at 64 bits") {
  GlobalMemory memory(1 << 20);
  std::mt19937_64 random(6);
  const std::vector<std::byte> content = test::random_bytes(random, 64 * 32);
  const uint64_t base = memory.allocate(content.size());
  std::copy(content.begin(), content.end(), memory.writing(base, content.size()));
  constexpr int32_t kMost = 1 << 30;
  TensorMap map{.type = TensorMapType::uint8, .rank = 4, .address = base};
  map.dims = {32, kMost, 0x7FFF'0000, 0x7FFF'0000, 1};
  map.strides_bytes = {0, 32, 32, (uint64_t{1} << 36) - 32, 0};
  map.box = {32, 8, 1, 1, 1};
  for (const uint32_t end : {5u, 20u, 64u}) {
    const std::array<int32_t, 4> at{0, kMost - 5, static_cast<int32_t>(end), kMost};
    std::vector<std::byte> expected(8 * 32);
    std::copy_n(content.begin() + (end - 5) * 32, 5 * 32, expected.begin());
    std::vector<std::byte> staging(expected.size());
    tma::gather(tma::Box(map, at, tma::Direction::load), memory, staging);
    CHECK(staging == expected);
    tma::scatter(tma::Box(map, at, tma::Direction::store), test::random_bytes(random, 8 * 32), memory);
    CHECK(std::equal(content.begin(), content.begin() + (end - 5) * 32, memory.reading(base, content.size())));
    CHECK(std::equal(content.begin() + end * 32, content.end(),
                     memory.reading(base + end * 32, content.size() - end * 32)));
    CHECK(!std::equal(expected.begin(), expected.begin() + 5 * 32, memory.reading(base + (end - 5) * 32, 5 * 32)));
    std::copy(content.begin(), content.end(), memory.writing(base, content.size()));
  }
}

TEST_CASE("coordinates at the ends of 32 bits fill the box") {
  GlobalMemory memory(1 << 20);
  TensorMap map{.type = TensorMapType::float16, .rank = 3, .address = memory.allocate(1 << 16)};
  map.fill = TensorMapFill::nan;
  map.dims = {64, 16, 4, 1, 1};
  map.strides_bytes = {0, 128, 2048, 0, 0};
  map.box = {64, 8, 2, 1, 1};
  map.element_strides = {1, 8, 1, 1, 1};
  std::vector<std::byte> fill(2 * 128);
  for (size_t i = 0; i < fill.size(); ++i) fill[i] = i % 2 ? std::byte{0x7F} : std::byte{0xF7};
  for (const std::array<int32_t, 3>& at : {std::array<int32_t, 3>{INT32_MIN, 0, 0},
                                           {0, INT32_MIN, 0},
                                           {0, 0, INT32_MIN},
                                           {INT32_MAX - 7, 0, 0},
                                           {0, INT32_MAX, 0},
                                           {0, 0, INT32_MAX}}) {
    const tma::Box box(map, at, tma::Direction::load);
    std::vector<std::byte> staging(box.bytes());
    tma::gather(box, memory, staging);
    CHECK(box.global_bytes() == 0);
    CHECK(staging == fill);
  }
}

TEST_CASE("a tensor may lie across several allocations, row by row") {
  GlobalMemory memory(1 << 24);
  std::mt19937_64 random(5);
  std::vector<uint64_t> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(memory.allocate(4096));
  const uint64_t apart = parts[1] - parts[0];
  for (int i = 1; i < 4; ++i) REQUIRE(parts[i] - parts[i - 1] == apart);
  for (const uint64_t part : parts) {
    const std::vector<std::byte> content = test::random_bytes(random, 4096);
    std::copy(content.begin(), content.end(), memory.writing(part, 4096));
  }
  TensorMap map{.type = TensorMapType::uint32, .swizzle = TensorMapSwizzle::b128, .rank = 3, .address = parts[0]};
  map.dims = {30, 8, 4, 1, 1};
  map.strides_bytes = {0, 512, apart, 0, 0};
  map.box = {32, 8, 4, 1, 1};
  const std::vector<int32_t> at{0, 1, 0};
  const std::vector<std::byte> before = test::random_bytes(random, 16384);
  std::vector<std::byte> expected = before;
  test::load_model(
      map, at, 2048, [&](uint64_t a) { return *memory.reading(a, 1); }, expected);
  GuardedWindow got(before);
  tma::load(tma::Box(map, at, tma::Direction::load), memory, got.window(), 2048);
  CHECK(got.content() == expected);

  // And back, into other bytes.
  GuardedWindow source(test::random_bytes(random, 16384));
  std::vector<std::vector<std::byte>> after(4);
  for (int i = 0; i < 4; ++i) after[i].assign(memory.reading(parts[i], 4096), memory.reading(parts[i], 4096) + 4096);
  test::store_model(map, at, 2048, source.content(), [&](uint64_t address, std::byte value) {
    after.at((address - parts[0]) / apart).at((address - parts[0]) % apart) = value;
  });
  tma::store(tma::Box(map, at, tma::Direction::store), source.window(), 2048, memory);
  for (int i = 0; i < 4; ++i) {
    CHECK(std::vector<std::byte>(memory.reading(parts[i], 4096), memory.reading(parts[i], 4096) + 4096) == after[i]);
  }
}

TEST_CASE("padded elements: 16 packed ones in each 16 bytes of shared memory, padding untouched and not counted") {
  // cuda.h, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B and 16U6_ALIGN16B. 384 x 9 elements, boxes of 128 x 5.
  constexpr uint32_t kShared = 2048;
  for (const uint32_t bits : {4u, 6u})
    for (const TensorMapSwizzle swizzle :
         {TensorMapSwizzle::none, TensorMapSwizzle::b128, TensorMapSwizzle::b128_atom32})
      for (const auto& [x, y] : {std::pair{0, 0}, {128, 3}, {256, 6}, {-128, -2}, {384, 0}}) {
        std::mt19937_64 random(bits);
        TensorMap map;
        map.type = bits == 4 ? TensorMapType::u4_align16 : TensorMapType::u6_align16;
        map.rank = 2;
        map.swizzle = swizzle;
        map.dims = {384, 9, 1, 1, 1};
        map.box = {128, 5, 1, 1, 1};
        map.strides_bytes[1] = 384 * bits / 8 + 32;
        const uint64_t total = 9 * map.strides_bytes[1];
        GlobalMemory memory{uint64_t{1} << 24};
        map.address = memory.allocate(total);
        const std::vector<std::byte> tensor = test::random_bytes(random, total);
        std::copy(tensor.begin(), tensor.end(), memory.writing(map.address, total));
        auto bit = [](const std::vector<std::byte>& bytes, uint64_t at) {
          return std::to_integer<uint32_t>(bytes[at / 8]) >> at % 8 & 1;
        };
        const std::vector<std::byte> before = test::random_bytes(random, 16384);
        const tma::Box box(map, std::array{x, y}, tma::Direction::load);
        CHECK(box.bytes() == 5 * 128 * bits / 8);
        std::vector<std::byte> expected = before;
        for (uint32_t row = 0; row < 5; ++row)
          for (uint32_t i = 0; i < 128 * bits; ++i) {
            const int64_t px = x + static_cast<int64_t>(i / bits), py = y + static_cast<int64_t>(row);
            const bool inside = px >= 0 && px < 384 && py >= 0 && py < 9;
            const uint32_t value = inside ? bit(tensor, static_cast<uint64_t>(py) * map.strides_bytes[1] * 8 +
                                                            static_cast<uint64_t>(px) * bits + i % bits)
                                          : 0;
            // Bit i of the row lies in chunk i / (16 elements), at the same place from its begin.
            const uint32_t chunk = i / (16 * bits), in_chunk = i % (16 * bits);
            const uint32_t at = swizzled(swizzle, kShared + row * 128 + chunk * 16 + in_chunk / 8);
            expected[at] =
                (expected[at] & ~(std::byte{1} << in_chunk % 8)) | (static_cast<std::byte>(value) << in_chunk % 8);
          }
        GuardedWindow loaded(before);
        tma::load(box, memory, loaded.window(), kShared);
        INFO(bits << " bits, swizzle " << name_of(swizzle) << ", at " << x << ", " << y);
        CHECK(loaded.canaries_alive());
        CHECK(loaded.content() == expected);
        if (bits == 4 || x < 0) continue;
        // And back: what was loaded is stored over zeros.
        std::fill_n(memory.writing(map.address, total), total, std::byte{0});
        const tma::Box back(map, std::array{x, y}, tma::Direction::store);
        tma::store(back, loaded.window(), kShared, memory);
        for (uint64_t row = 0; row < 9; ++row)
          for (uint64_t i = 0; i < 384 * 6; ++i) {
            const bool in_box = static_cast<int64_t>(row) >= y && static_cast<int64_t>(row) < y + 5 &&
                                static_cast<int64_t>(i / 6) >= x && static_cast<int64_t>(i / 6) < x + 128;
            const uint64_t at = row * map.strides_bytes[1] * 8 + i;
            const uint32_t stored = std::to_integer<uint32_t>(*memory.reading(map.address + at / 8, 1)) >> at % 8 & 1;
            if (stored != (in_box ? bit(tensor, at) : 0)) FAIL("bit " << i << " of row " << row << " is " << stored);
          }
      }
}
