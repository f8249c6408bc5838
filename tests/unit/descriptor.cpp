// Shared-memory matrix descriptors: what the decoder refuses, and that the gather reads element (row, k) where
// CUTLASS's layouts put it. Expectations: tests/golden (CuTe's own descriptor words and layouts, evaluated), the PTX
// ISA's bit table.
#include "emulator/units/descriptor.h"

#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "emulator/machine/trap.h"
#include "emulator/units/descriptor_operand.h"
#include "tests/catch.h"

namespace {

using namespace emu;

nlohmann::json golden(const std::string& file) {
  std::ifstream stream(std::string(SOURCE_FOLDER "/tests/golden/") + file);
  REQUIRE(stream.good());
  return nlohmann::json::parse(stream);
}

uint64_t number(const nlohmann::json& hexadecimal) {
  return std::stoull(hexadecimal.get<std::string>(), nullptr, 16);
}

/// 256 KB of shared memory and a little more, filled so that an element tells where it lies.
struct Memory {
  static constexpr uint32_t bytes = 1 << 19;
  std::vector<std::byte> content = std::vector<std::byte>(bytes);
  SharedWindow window{content.data(), 0, bytes};

  template <class Element>
  void fill(uint32_t base, int shift) {
    for (uint32_t at = 0; at + base + sizeof(Element) <= bytes; at += sizeof(Element)) {
      const auto value = static_cast<Element>(at / sizeof(Element) >> shift);
      std::memcpy(&content[base + at], &value, sizeof(Element));
    }
  }
};

/// Offsets from `base` of the elements that one instruction's gather returned, K fastest.
template <class Element>
std::vector<uint32_t> offsets_read(Memory& memory, uint32_t base, const MatrixDescriptor& descriptor,
                                   const OperandShape& shape) {
  std::vector<uint32_t> offsets(shape.rows * kOperandBytesPerRow / sizeof(Element));
  std::vector<Element> read(offsets.size());
  // An element of 8 or 16 bits cannot hold the whole offset: several readings, 8 or 16 bits of it each time.
  for (int shift = 0; shift < 20; shift += 8 * sizeof(Element)) {
    memory.fill<Element>(base, shift);
    gather_operand(memory.window, descriptor, shape, "A", reinterpret_cast<std::byte*>(read.data()));
    for (size_t i = 0; i < read.size(); ++i) offsets[i] += uint32_t{read[i]} << shift;
  }
  for (uint32_t& offset : offsets) offset *= sizeof(Element);
  return offsets;
}

std::vector<uint32_t> offsets_read(Memory& memory, uint32_t base, const MatrixDescriptor& descriptor,
                                   const OperandShape& shape) {
  switch (element_bytes(shape.type)) {
    case 1:
      return offsets_read<uint8_t>(memory, base, descriptor, shape);
    case 2:
      return offsets_read<uint16_t>(memory, base, descriptor, shape);
    default:
      return offsets_read<uint32_t>(memory, base, descriptor, shape);
  }
}

ElementType element_type(const std::string& name) {
  if (name == "f16") return ElementType::f16;
  if (name == "bf16") return ElementType::bf16;
  if (name == "tf32") return ElementType::tf32;
  REQUIRE(name == "e4m3");
  return ElementType::e4m3;
}

std::string trap_message(uint64_t word, MatrixDescriptor (*decode)(uint64_t, std::string_view)) {
  try {
    decode(word, "B");
  } catch (const Trap& trap) {
    CHECK(trap.code == FaultCode::illegal_instruction);
    CHECK_FALSE(trap.source.empty());
    return trap.what();
  }
  return "";
}

constexpr uint64_t kVersion = uint64_t{1} << 46;

}  // namespace

TEST_CASE("gather_operand reads every element where CuTe's layouts put it") {
  std::map<std::tuple<int, std::string, std::string, int, int, std::string>, uint64_t> checksums;
  const auto layouts = golden("cutlass_smem_layouts.json");
  for (const auto& row : layouts["checksums"]) {
    checksums[{row[0], row[1], row[2], row[3], row[4], row[5]}] = number(row[7]);
  }
  Memory memory;
  size_t tiles = 0;
  const auto descriptors = golden("cutlass_smem_descriptors.json");
  for (const auto& row : descriptors["rows"]) {
    const ElementType type = element_type(row[0]);
    const std::string major = row[1], mode = row[2], order = row[5];
    const int rows = row[3], depth = row[4];
    const uint32_t base = row[6];
    const int width = 8 * static_cast<int>(element_bytes(type)), step = static_cast<int>(elements_per_step(type));
    const uint64_t expected = checksums.at({width, major, mode, rows, depth, order});
    const OperandShape shape{static_cast<uint32_t>(rows), type, major == "K" ? Major::k : Major::mn};
    for (const auto& [column, decode] :
         {std::pair(7, &decode_tcgen05_matrix_descriptor), std::pair(8, &decode_wgmma_matrix_descriptor)}) {
      const auto& words = row[column];
      if (words.empty()) continue;  // wgmma has no 32B atom
      INFO(row.dump().substr(0, 100));
      REQUIRE(words.size() == static_cast<size_t>(depth / step));
      std::vector<uint32_t> tile(static_cast<size_t>(rows) * depth);
      for (int s = 0; s < depth / step; ++s) {
        const auto offsets = offsets_read(memory, base, decode(number(words[s]), "A"), shape);
        for (int r = 0; r < rows; ++r) {
          for (int k = 0; k < step; ++k) tile[r * depth + s * step + k] = offsets[r * step + k];
        }
      }
      uint64_t checksum = 0;
      for (uint32_t offset : tile) checksum = checksum * 1000003 + offset;
      REQUIRE(checksum == expected);
      ++tiles;
    }
  }
  CHECK(tiles > 1200);
}

TEST_CASE("chunk_address and for_each_piece agree with the gather") {
  Memory memory;
  for (uint32_t base : {0u, 4096u}) {
    for (Major major : {Major::k, Major::mn}) {
      for (uint64_t layout : {0, 2, 4, 6}) {
        const uint64_t word =
            kVersion | layout << 61 | uint64_t{1024 >> 4} << 32 | uint64_t{8192 >> 4} << 16 | base >> 4;
        const MatrixDescriptor descriptor = decode_tcgen05_matrix_descriptor(word, "A");
        const OperandShape shape{64, ElementType::f16, major};
        const auto offsets = offsets_read(memory, base, descriptor, shape);
        std::vector<bool> in_gather(Memory::bytes), in_pieces(Memory::bytes);
        for (uint32_t offset : offsets) in_gather[base + offset] = in_gather[base + offset + 1] = true;
        uint64_t first = Memory::bytes, last = 0, total = 0;
        for_each_piece(descriptor, shape, [&](uint64_t address, uint64_t bytes) {
          for (uint64_t at = address; at < address + bytes; ++at) in_pieces[at] = true;
          first = std::min(first, address);
          last = std::max(last, address + bytes - 1);
          total += bytes;
        });
        CHECK(total == 64 * kOperandBytesPerRow);
        CHECK(in_gather == in_pieces);
        const ByteExtent extent = operand_extent(descriptor, shape);
        CHECK(extent.first == first);
        CHECK(extent.last == last);
        const uint32_t chunk = 5;
        const uint32_t row = major == Major::k ? chunk / 2 : chunk % 8 * 8,
                       k = major == Major::k ? chunk % 2 * 8 : chunk / 8;
        CHECK(chunk_address(descriptor, shape, chunk) == base + offsets[row * 16 + k]);
      }
    }
  }
}

TEST_CASE("a base offset moves the swizzle pattern to the tile's start") {
  // A tile laid out by the pattern of its own start, which is 128 * b past a 1024-byte boundary.
  Memory memory;
  for (uint32_t b = 0; b < 8; ++b) {
    const uint32_t tile = 2048 + 128 * b;
    const uint64_t fields = uint64_t{b} << 49 | uint64_t{1024 >> 4} << 32 | tile >> 4;
    for (const auto& descriptor : {decode_tcgen05_matrix_descriptor(kVersion | uint64_t{2} << 61 | fields, "A"),
                                   decode_wgmma_matrix_descriptor(uint64_t{1} << 62 | fields, "A")}) {
      const auto offsets = offsets_read(memory, tile, descriptor, {64, ElementType::f16, Major::k});
      for (uint32_t r = 0; r < 64; ++r) {
        for (uint32_t k = 0; k < 16; ++k) {
          const uint32_t chunk = (k / 8) ^ (r % 8);
          REQUIRE(offsets[r * 16 + k] == r * 128 + chunk * 16 + k % 8 * 2);
        }
      }
    }
  }
}

TEST_CASE("a swizzled tile is read by the absolute address wherever it starts") {
  // fast.cu's kernels have tiles at multiples of 128 bytes, and their results on an H200 are those of aligned ones; so
  // have examples of CuTe DSL for tcgen05. TMA puts the 16-byte chunk c of the row at address a at chunk
  // c ^ (a / 128 % 8).
  Memory memory;
  for (uint32_t b = 0; b < 8; ++b) {
    const uint32_t tile = 2048 + 128 * b;
    const uint64_t fields = uint64_t{1024 >> 4} << 32 | tile >> 4;
    for (const auto& descriptor : {decode_tcgen05_matrix_descriptor(kVersion | uint64_t{2} << 61 | fields, "A"),
                                   decode_wgmma_matrix_descriptor(uint64_t{1} << 62 | fields, "A")}) {
      const auto offsets = offsets_read(memory, tile, descriptor, {64, ElementType::f16, Major::k});
      for (uint32_t r = 0; r < 64; ++r) {
        for (uint32_t k = 0; k < 16; ++k) {
          const uint32_t chunk = (k / 8) ^ ((tile / 128 + r) % 8);
          REQUIRE(offsets[r * 16 + k] == r * 128 + chunk * 16 + k % 8 * 2);
        }
      }
    }
  }
}

TEST_CASE("the tcgen05 form: what the decoder refuses") {
  const auto message = [](uint64_t word) { return trap_message(word, decode_tcgen05_matrix_descriptor); };
  const uint64_t good = 0x4000404000000040;  // 128B, SBO 1024, start 0x400
  REQUIRE(message(good).empty());
  CHECK_THAT(message(good ^ kVersion), test::contains("B is 0x4000004000000040: bits 46-48 are 0b000"));
  CHECK_THAT(message(good | kVersion << 1), test::contains("bits 46-48 are 0b011"));
  for (int layout : {3, 5, 7}) {
    const uint64_t word = (good & ~(uint64_t{7} << 61)) | static_cast<uint64_t>(layout) << 61;
    CHECK_THAT(message(word), test::contains("layout " + std::to_string(layout) + " (bits 61-63) does not exist"));
  }
  for (int bit : {14, 15, 30, 31, 53, 56, 60}) {
    CHECK_THAT(message(good | uint64_t{1} << bit), test::contains("must be zero"));
  }
  CHECK_THAT(message(good | uint64_t{1} << 52), test::contains("sm_103a"));
  // An address put in unshifted: 0x400 becomes 0x4000, which is not a multiple of 1024 bytes any more or runs into
  // bit 14.
  CHECK_THAT(message(0x4000404000000000 | 0x4400), test::contains("bits 14-15 must be zero"));
}

TEST_CASE("a base offset that contradicts the tile's start is refused") {
  const auto message = [](uint64_t word) { return trap_message(word, decode_tcgen05_matrix_descriptor); };
  const uint64_t b128 = 0x4000404000000000, b64 = 0x8000402000000000, b32 = 0xC000401000000000,
                 none = 0x0000400800000000;
  const auto start = [](uint64_t bytes) { return bytes >> 4; };
  const auto base = [](uint64_t offset) { return offset << 49; };
  CHECK(message(b128 | start(1024 + 128)).empty());
  CHECK(message(b128 | start(512) | base(4)).empty());
  CHECK_THAT(message(b128 | start(512) | base(3)),
             test::contains("512 bytes into a 1024-byte period of the 128B swizzle"));
  CHECK_THAT(message(b128 | start(1024) | base(4)), test::contains("base offset (bits 49-51) is 4"));
  CHECK(message(b64 | start(256)).empty());
  CHECK_THAT(message(b64 | start(256) | base(1)),
             test::contains("256 bytes into a 512-byte period of the 64B swizzle"));
  CHECK(message(b32 | start(128)).empty());
  CHECK_THAT(message(b32 | start(256) | base(1)), test::contains("0 bytes into a 256-byte period of the 32B swizzle"));
  CHECK(message(none | start(16)).empty());
  for (uint64_t step : {32, 64, 96}) CHECK(message(b128 | start(2048 + step)).empty());  // K steps inside an atom
}

TEST_CASE("the wgmma form: what the decoder refuses") {
  const auto message = [](uint64_t word) { return trap_message(word, decode_wgmma_matrix_descriptor); };
  REQUIRE(message(0x4000004000000040).empty());
  CHECK_THAT(message(0x4000404000000040), test::contains("Bit 46 belongs to the tcgen05 form"));
  for (int bit : {14, 31, 52, 61})
    CHECK_THAT(message(0x4000004000000040 | uint64_t{1} << bit), test::contains("must be zero"));
  CHECK(decode_wgmma_matrix_descriptor(0x8000002000000040, "A").swizzle == OperandSwizzle::b64);
}

TEST_CASE("an operand that reaches outside the CTA's shared memory is refused with its first and last byte") {
  std::vector<std::byte> content(8192), out(128 * kOperandBytesPerRow);
  const auto message = [&](uint64_t word, const OperandShape& shape, uint32_t begin = 0) -> std::string {
    try {
      gather_operand({content.data(), begin, 8192}, decode_tcgen05_matrix_descriptor(word, "B"), shape, "B",
                     out.data());
    } catch (const Trap& trap) {
      return trap.what();
    }
    return "";
  };
  const OperandShape shape{128, ElementType::f16, Major::k};
  // No swizzle, two columns of 128 x 16 bytes: LBO 2048, SBO 128.
  const uint64_t word = kVersion | uint64_t{8} << 32 | uint64_t{128} << 16;
  CHECK(message(word | 4096 >> 4, shape).empty());
  CHECK_THAT(message(word | 4112 >> 4, shape), test::contains("from shared address 0x1010 to 0x200f"));
  CHECK_THAT(message(word | 4112 >> 4, shape), test::contains("this CTA has 0x0 to 0x1fff"));
  CHECK(message(word | 1024 >> 4, shape, 1024).empty());
  CHECK_THAT(message(word | 1008 >> 4, shape, 1024), test::contains("from shared address 0x3f0 to"));
  // Offsets in bytes, not >> 4: sixteen times as far.
  CHECK_THAT(message(kVersion | uint64_t{128} << 32 | uint64_t{2048} << 16, shape),
             test::contains("leading offset 32768, stride offset 2048"));
  // The last rows of a 128B tile end exactly with the memory.
  const uint64_t swizzled = kVersion | uint64_t{2} << 61 | uint64_t{64} << 32;
  CHECK(message(swizzled, {64, ElementType::f16, Major::k}).empty());
  CHECK_THAT(message(swizzled | 1024 >> 4, {64, ElementType::f16, Major::k}), test::contains("to 0x23"));
}

TEST_CASE("modes that a type does not have are refused") {
  const auto message = [](uint64_t layout, const OperandShape& shape) -> std::string {
    try {
      check_operand(decode_tcgen05_matrix_descriptor(kVersion | layout << 61, "A"), shape, "A");
    } catch (const Trap& trap) {
      return trap.what();
    }
    return "";
  };
  CHECK(message(1, {64, ElementType::tf32, Major::mn}).empty());
  CHECK_THAT(message(2, {64, ElementType::tf32, Major::mn}), test::contains("layout 1"));
  CHECK_THAT(message(1, {64, ElementType::f16, Major::mn}), test::contains("for tf32 alone"));
  CHECK_THAT(message(1, {64, ElementType::tf32, Major::k}), test::contains("no source gives"));
  for (uint64_t layout : {0, 2, 4, 6}) {
    CHECK(message(layout, {64, ElementType::f16, Major::mn}).empty());
    CHECK(message(layout, {64, ElementType::tf32, Major::k}).empty());
  }
}
