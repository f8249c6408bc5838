// The TMA unit, and the model that the other tests hold it against, against what an H200 did
// (tests/golden/h200_tma.json).

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "emulator/machine/trap.h"
#include "emulator/units/tma.h"
#include "tests/catch.h"
#include "tests/unit/tma_model.h"

using namespace emu;

namespace {

constexpr uint32_t kGlobalBytes = 2 << 20;
constexpr uint32_t kWindowStart = 2048, kWindowBytes = 65536;

const nlohmann::json& golden() {
  static const nlohmann::json data = [] {
    std::ifstream file(SOURCE_FOLDER "/tests/golden/h200_tma.json");
    return nlohmann::json::parse(file);
  }();
  return data;
}

// splitmix64, as the recording program filled memory.
std::vector<std::byte> words_from(uint64_t state, size_t bytes) {
  std::vector<std::byte> out(bytes);
  for (size_t at = 0; at < bytes; at += 8) {
    state += 0x9E3779B97F4A7C15;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    z ^= z >> 31;
    std::memcpy(&out[at], &z, 8);
  }
  return out;
}

std::string fnv(std::span<const std::byte> bytes) {
  uint64_t hash = 1469598103934665603;
  for (const std::byte byte : bytes) hash = (hash ^ std::to_integer<uint64_t>(byte)) * 1099511628211;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

struct Recorded {
  explicit Recorded(const nlohmann::json& row)
      : seed(row[0]),
        coordinates(row[9]),
        shared_address(row[10]),
        hash(row[11]),
        global(words_from(seed ^ 0x1111, kGlobalBytes)) {
    map.type = static_cast<TensorMapType>(row[1].get<int>());
    map.address = row[2];
    map.rank = static_cast<uint32_t>(row[3].size());
    for (uint32_t d = 0; d < map.rank; ++d) {
      map.dims[d] = row[3][d];
      if (d > 0) map.strides_bytes[d] = row[4][d - 1];
      map.box[d] = row[5][d];
      if (d > 0 || row.size() > 13) map.element_strides[d] = row[6][d];
    }
    if (row.size() > 13) map.interleave = static_cast<TensorMapInterleave>(row[13].get<int>());
    map.swizzle = static_cast<TensorMapSwizzle>(row[7].get<int>());
    map.fill = static_cast<TensorMapFill>(row[8].get<int>());
    // The window from its byte 0 on; what lies before the recorded part is nobody's.
    window.resize(kWindowStart);
    const auto rest = words_from(seed ^ 0x2222, kWindowBytes);
    window.insert(window.end(), rest.begin(), rest.end());
  }
  uint64_t seed;
  TensorMap map;
  std::vector<int32_t> coordinates;
  uint32_t shared_address;
  std::string hash;
  std::vector<std::byte> global, window;
};

std::string hash_of_window(const std::vector<std::byte>& window) {
  return fnv(std::span(window).subspan(kWindowStart));
}

}  // namespace

TEST_CASE("loads leave the shared memory that an H200's leave") {
  REQUIRE(golden()["loads"].size() == 300);
  for (const auto& row : golden()["loads"]) {
    Recorded r(row);
    INFO("seed " << r.seed);
    std::vector<std::byte> model = r.window;
    test::load_model(
        r.map, r.coordinates, r.shared_address, [&](uint64_t a) { return r.global.at(a); }, model);
    CHECK(hash_of_window(model) == r.hash);

    GlobalMemory memory(16 << 20);
    const uint64_t base = memory.allocate(kGlobalBytes);
    std::copy(r.global.begin(), r.global.end(), memory.writing(base, kGlobalBytes));
    r.map.address += base;
    tma::load(tma::Box(r.map, r.coordinates, tma::Direction::load), memory,
              {r.window.data(), static_cast<uint32_t>(r.window.size())}, r.shared_address);
    CHECK(hash_of_window(r.window) == r.hash);
  }
}

TEST_CASE("stores leave the global memory that an H200's leave") {
  REQUIRE(golden()["stores"].size() == 300);
  for (const auto& row : golden()["stores"]) {
    Recorded r(row);
    INFO("seed " << r.seed);
    GlobalMemory memory(16 << 20);
    const uint64_t base = memory.allocate(kGlobalBytes);
    std::copy(r.global.begin(), r.global.end(), memory.writing(base, kGlobalBytes));

    test::store_model(r.map, r.coordinates, r.shared_address, r.window,
                      [&](uint64_t address, std::byte value) { r.global.at(address) = value; });
    CHECK(fnv(r.global) == r.hash);

    r.map.address += base;
    tma::store(tma::Box(r.map, r.coordinates, tma::Direction::store),
               {r.window.data(), static_cast<uint32_t>(r.window.size())}, r.shared_address, memory);
    CHECK(fnv({memory.reading(base, kGlobalBytes), kGlobalBytes}) == r.hash);
  }
}

namespace {

// The 16 values that were paired with each other, by element type.
uint64_t special_value(TensorMapType type, int i) {
  constexpr uint16_t kHalf[16] = {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x3c00, 0xbc00,
                                  0x3c01, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e01, 0xfd55, 0x1234};
  constexpr uint16_t kBfloat[16] = {0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x0080, 0x3f80, 0xbf80,
                                    0x3f81, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc1, 0xff91, 0x1234};
  constexpr uint32_t kFloat[16] = {0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x00800000,
                                   0x3f800000, 0xbf800000, 0x3f800001, 0x7f7fffff, 0xff7fffff, 0x7f800000,
                                   0xff800000, 0x7fc01234, 0xff812345, 0x12345678};
  constexpr uint64_t kDouble[16] = {0,
                                    0x8000000000000000,
                                    1,
                                    0x8000000000000001,
                                    0x000fffffffffffff,
                                    0x0010000000000000,
                                    0x3ff0000000000000,
                                    0xbff0000000000000,
                                    0x3ff0000000000001,
                                    0x7fefffffffffffff,
                                    0xffefffffffffffff,
                                    0x7ff0000000000000,
                                    0xfff0000000000000,
                                    0x7ff8000000001234,
                                    0xfff0123456789abc,
                                    0x123456789abcdef0};
  constexpr uint64_t kInteger[16] = {0,
                                     1,
                                     2,
                                     5,
                                     0x7f,
                                     0x80,
                                     0xff,
                                     0x7fff,
                                     0x8000,
                                     0xffff,
                                     0x7fffffff,
                                     0x80000000,
                                     0xffffffff,
                                     0x7fffffffffffffff,
                                     0x8000000000000000,
                                     0xffffffffffffffff};
  switch (type) {
    case TensorMapType::float16:
      return kHalf[i];
    case TensorMapType::bfloat16:
      return kBfloat[i];
    case TensorMapType::float32:
    case TensorMapType::float32_ftz:
    case TensorMapType::tfloat32:
    case TensorMapType::tfloat32_ftz:
      return kFloat[i];
    case TensorMapType::float64:
      return kDouble[i];
    default:
      return kInteger[i];
  }
}

template <class Value>
Value named(const std::string& name, std::initializer_list<const char*> names) {
  int i = 0;
  for (const char* candidate : names) {
    if (name == candidate) return static_cast<Value>(i);
    ++i;
  }
  throw std::runtime_error("no " + name);
}

tma::Reduction reduction_named(const std::string& name) {
  return named<tma::Reduction>(name, {"add", "min", "max", "inc", "dec", "and", "or", "xor"});
}

}  // namespace

TEST_CASE("reductions give the values and the faults that an H200 gives") {
  int results = 0, faults = 0;
  for (const auto& row : golden()["reductions"]) {
    const auto type = static_cast<TensorMapType>(row[1].get<int>());
    const std::string operation = row[2];
    INFO(row[0] << " " << name_of(type) << " " << operation);
    const uint32_t size = element_bits(type) / 8;
    GlobalMemory memory(1 << 20);
    const uint64_t base = memory.allocate(256 * size);
    std::vector<std::byte> operands(256 * size);
    for (int i = 0; i < 256; ++i) {
      const uint64_t old = special_value(type, i / 16), operand = special_value(type, i % 16);
      std::memcpy(memory.writing(base + i * size, size), &old, size);
      std::memcpy(&operands[i * size], &operand, size);
    }
    const auto reduce = [&] {
      if (row[0] == "tensor") {
        TensorMap map{.type = type, .rank = 1, .address = base};
        map.dims[0] = map.box[0] = 256;
        tma::reduce(tma::Box(map, std::array<int32_t, 1>{0}, tma::Direction::reduce), reduction_named(operation),
                    operands, memory);
      } else {
        const size_t dot = operation.find('.');
        const auto element = named<tma::ReductionType>(
            operation.substr(dot + 1), {"u32", "s32", "u64", "s64", "b32", "b64", "f16", "bf16", "f32", "f64"});
        tma::bulk_reduce_global(memory, base, reduction_named(operation.substr(0, dot)), element, operands);
      }
    };
    if (row[3].is_number()) {
      ++faults;
      try {
        reduce();
        FAIL_CHECK("no fault");
      } catch (const Trap& trap) {
        CHECK(static_cast<int>(trap.code) == row[3].get<int>());
      }
      continue;
    }
    ++results;
    reduce();
    std::istringstream expected(row[3].get<std::string>());
    for (int i = 0; i < 256; ++i) {
      std::string word;
      expected >> word;
      uint64_t got = 0;
      std::memcpy(&got, memory.reading(base + i * size, size), size);
      INFO(std::hex << special_value(type, i / 16) << " and " << special_value(type, i % 16));
      CHECK(got == std::stoull(word, nullptr, 16));
    }
  }
  CHECK(results > 50);
  CHECK(faults > 50);
}

TEST_CASE("reductions of whole boxes leave the global memory that an H200's leave") {
  REQUIRE(golden()["reduced boxes"].size() == 200);
  for (const auto& row : golden()["reduced boxes"]) {
    Recorded r(row);
    INFO("seed " << r.seed << ", " << name_of(r.map.type) << " " << row[12]);
    GlobalMemory memory(16 << 20);
    const uint64_t base = memory.allocate(kGlobalBytes);
    std::copy(r.global.begin(), r.global.end(), memory.writing(base, kGlobalBytes));
    r.map.address += base;
    const tma::Box box(r.map, r.coordinates, tma::Direction::reduce);
    std::vector<std::byte> staging(box.bytes());
    tma::collect(box, {r.window.data(), static_cast<uint32_t>(r.window.size())}, r.shared_address, staging);
    tma::reduce(box, reduction_named(row[12]), staging, memory);
    CHECK(fnv({memory.reading(base, kGlobalBytes), kGlobalBytes}) == r.hash);
  }
}

TEST_CASE("interleaved boxes move as an H200 moves them") {
  REQUIRE(golden()["interleaved"].size() == 91);
  for (const auto& row : golden()["interleaved"]) {
    Recorded r(row);
    INFO("seed " << r.seed << ", " << row[14] << " " << row[12]);
    GlobalMemory memory(16 << 20);
    const uint64_t base = memory.allocate(kGlobalBytes);
    std::copy(r.global.begin(), r.global.end(), memory.writing(base, kGlobalBytes));
    const tma::Window window{r.window.data(), static_cast<uint32_t>(r.window.size())};
    TensorMap map = r.map;
    map.address += base;
    if (row[14] == "load") {
      std::vector<std::byte> model = r.window;
      test::load_model(
          r.map, r.coordinates, r.shared_address, [&](uint64_t a) { return r.global.at(a); }, model);
      CHECK(hash_of_window(model) == r.hash);
      tma::load(tma::Box(map, r.coordinates, tma::Direction::load), memory, window, r.shared_address);
      CHECK(hash_of_window(r.window) == r.hash);
      continue;
    }
    if (row[14] == "store") {
      test::store_model(r.map, r.coordinates, r.shared_address, r.window,
                        [&](uint64_t address, std::byte value) { r.global.at(address) = value; });
      CHECK(fnv(r.global) == r.hash);
      tma::store(tma::Box(map, r.coordinates, tma::Direction::store), window, r.shared_address, memory);
    } else {
      const tma::Box box(map, r.coordinates, tma::Direction::reduce);
      std::vector<std::byte> staging(box.bytes());
      tma::collect(box, window, r.shared_address, staging);
      tma::reduce(box, reduction_named(row[12]), staging, memory);
    }
    CHECK(fnv({memory.reading(base, kGlobalBytes), kGlobalBytes}) == r.hash);
  }
}
