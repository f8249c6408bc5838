// What the TMA unit refuses, with the CUDA error that an H200 gives for it and a message that names value and rule.

#include "emulator/machine/trap.h"
#include "emulator/units/tma.h"
#include "tests/catch.h"

using namespace emu;

namespace {

struct Caught {
  FaultCode code{};
  std::string text = "no fault";
};

template <class F>
Caught fault_of(F&& f) {
  try {
    f();
  } catch (const Trap& trap) {
    return {trap.code, trap.what()};
  }
  return {};
}

template <class F>
void check_fault(FaultCode code, const std::vector<std::string>& says, F&& f) {
  const Caught caught = fault_of(f);
  INFO(caught.text);
  CHECK(caught.code == code);
  for (const std::string& part : says) CHECK_THAT(caught.text, test::contains(part));
}

TensorMap matrix(uint64_t address) {
  TensorMap map{.type = TensorMapType::float16, .rank = 2, .address = address};
  map.dims = {256, 128, 1, 1, 1};
  map.strides_bytes = {0, 512, 0, 0, 0};
  map.box = {64, 8, 1, 1, 1};
  return map;
}

tma::Box box(const TensorMap& map, std::initializer_list<int32_t> at, tma::Direction direction = tma::Direction::load) {
  return tma::Box(map, std::vector<int32_t>(at), direction);
}

constexpr auto kStore = tma::Direction::store;
constexpr auto kReduce = tma::Direction::reduce;

}  // namespace

TEST_CASE("the instruction's rank must be the map's") {
  const TensorMap map = matrix(4096);
  check_fault(FaultCode::illegal_instruction, {"3 coordinates", "2 dimensions", ".3d"}, [&] { box(map, {0, 0, 0}); });
  check_fault(FaultCode::illegal_instruction, {"1 coordinates", "2 dimensions"}, [&] { box(map, {0}); });
  CHECK(fault_of([&] { box(map, {0, 0}); }).text == "no fault");
}

TEST_CASE("the innermost coordinate counts 16-byte steps") {
  TensorMap map = matrix(4096);
  check_fault(FaultCode::illegal_instruction, {"innermost coordinate 4", "2 bytes", "multiple of 16"}, [&] {
    box(map, {4, 0});
  });
  check_fault(FaultCode::illegal_instruction, {"innermost coordinate -12"}, [&] { box(map, {-12, 0}); });
  check_fault(FaultCode::illegal_instruction, {"TMA store", "innermost coordinate 7"}, [&] {
    box(map, {7, 0}, kStore);
  });
  CHECK(fault_of([&] { box(map, {8, 0}); }).text == "no fault");
  CHECK(fault_of([&] { box(map, {-8, 0}); }).text == "no fault");
  map.type = TensorMapType::uint8;
  check_fault(FaultCode::illegal_instruction, {"innermost coordinate 8"}, [&] { box(map, {8, 0}); });
  map.type = TensorMapType::float64;
  CHECK(fault_of([&] { box(map, {2, 0}); }).text == "no fault");
  map.type = TensorMapType::u4_align8;
  check_fault(FaultCode::illegal_instruction, {"innermost coordinate 16", "0.5 bytes"}, [&] { box(map, {16, 0}); });
}

TEST_CASE("only loads may begin before the tensor") {
  const TensorMap map = matrix(4096);
  CHECK(fault_of([&] { box(map, {-8, -1}); }).text == "no fault");
  check_fault(FaultCode::illegal_instruction, {"TMA store", "coordinate -1 of dimension 1"}, [&] {
    box(map, {0, -1}, kStore);
  });
  check_fault(FaultCode::illegal_instruction, {"TMA reduction", "coordinate -8 of dimension 0"}, [&] {
    box(map, {-8, 0}, kReduce);
  });
  CHECK(fault_of([&] { box(map, {256, 128}, kStore); }).text == "no fault");
}

TEST_CASE("shared addresses are 128-byte aligned, and boxes end within the window") {
  TensorMap map = matrix(4096);
  const tma::Box b = box(map, {0, 0});  // 1024 bytes
  check_fault(FaultCode::misaligned_address, {"0x440", "128 bytes", "64 past"}, [&] {
    b.check_shared(0x440, {nullptr, 4096});
  });
  check_fault(FaultCode::misaligned_address, {"0x410"}, [&] { b.check_shared(0x410, {nullptr, 4096}); });
  CHECK(fault_of([&] { b.check_shared(4096 - 1024, {nullptr, 4096}); }).text == "no fault");
  check_fault(FaultCode::illegal_address, {"1024 bytes", "0xc80", "128 bytes past", "4096"}, [&] {
    b.check_shared(0xC80, {nullptr, 4096});
  });
  check_fault(FaultCode::illegal_address, {"window of 512"}, [&] { b.check_shared(0, {nullptr, 512}); });
  check_fault(FaultCode::illegal_address, {"0xffffff80"}, [&] { b.check_shared(0xFFFF'FF80, {nullptr, 4096}); });

  // Under swizzle a narrow box takes whole spans.
  map.box[0] = 8;
  map.swizzle = TensorMapSwizzle::b128;
  const tma::Box narrow = box(map, {0, 0});
  CHECK(narrow.bytes() == 128);
  CHECK(narrow.footprint_bytes() == 1024);
  check_fault(FaultCode::illegal_address, {"8 rows, 128 bytes apart"}, [&] {
    narrow.check_shared(0xC80, {nullptr, 4096});
  });

  GlobalMemory memory(1 << 20);
  map.address = memory.allocate(1 << 16);
  std::vector<std::byte> bytes(4096);
  const tma::Window window{bytes.data(), 4096};
  std::vector<std::byte> staging(128);
  const tma::Box load = box(map, {0, 0}), store = box(map, {0, 0}, kStore);
  check_fault(FaultCode::illegal_address, {"TMA load"}, [&] { tma::load(load, memory, window, 0xC80); });
  check_fault(FaultCode::illegal_address, {"TMA load"}, [&] { tma::place(load, staging, window, 0xC80); });
  check_fault(FaultCode::illegal_address, {"TMA store"}, [&] { tma::store(store, window, 0xC80, memory); });
  check_fault(FaultCode::illegal_address, {"TMA store"}, [&] { tma::collect(store, window, 0xC80, staging); });
}

TEST_CASE("a tensor that promises more than was allocated faults at its first missing row") {
  GlobalMemory memory(1 << 20);
  // 128 rows of 512 bytes are promised, 100 are there.
  const uint64_t base = memory.allocate(100 * 512, "cudaMalloc of A");
  const TensorMap map = matrix(base);
  std::vector<std::byte> bytes(8192);
  const tma::Window window{bytes.data(), 8192};
  CHECK(fault_of([&] { tma::load(box(map, {0, 92}), memory, window, 0); }).text == "no fault");
  check_fault(FaultCode::illegal_address,
              {"TMA load", "box at (0, 93)", "FLOAT16", "(256, 128)", "0 bytes past the end", "cudaMalloc of A"}, [&] {
                tma::load(box(map, {0, 93}), memory, window, 0);
              });
  check_fault(FaultCode::illegal_address, {"TMA store", "box at (64, 99)", "write of 128 bytes"}, [&] {
    tma::store(box(map, {64, 99}, kStore), window, 0, memory);
  });
  TensorMap floats = map;
  floats.type = TensorMapType::float32;
  floats.box[0] = 32;
  std::vector<std::byte> staging(1024);
  check_fault(FaultCode::illegal_address, {"TMA reduction", "atomic operation of 128 bytes"}, [&] {
    tma::reduce(box(floats, {0, 99}, kReduce), tma::Reduction::add, staging, memory);
  });
  memory.release(base);
  check_fault(FaultCode::illegal_address, {"use after free", "cudaMalloc of A"}, [&] {
    tma::load(box(map, {0, 0}), memory, window, 0);
  });
}

TEST_CASE("a box far outside, where addresses wrap, faults like any other that nobody owns") {
  GlobalMemory memory(1 << 20);
  TensorMap map = matrix(~uint64_t{0xFFF});
  map.dims = {256, uint64_t{1} << 32, 1, 1, 1};
  map.strides_bytes[1] = (uint64_t{1} << 40) - 16;
  std::vector<std::byte> staging(1024);
  check_fault(FaultCode::illegal_address, {"belongs to no allocation"}, [&] {
    tma::gather(box(map, {0, INT32_MAX}), memory, staging);
  });
}

TEST_CASE("a store may spill over the tensor's end up to 16 bytes, but never out of the allocation") {
  // 11 halves: 22 bytes, a store writes 32 where they are somebody's. So does an H200 (tests/golden/h200_tma.json).
  GlobalMemory memory(1 << 20);
  TensorMap map{.type = TensorMapType::float16, .rank = 1};
  map.dims[0] = 11;
  map.box[0] = 16;
  std::vector<std::byte> bytes(256, std::byte{0x11});
  const tma::Window window{bytes.data(), 256};
  for (const uint64_t size : {22, 28, 32, 64}) {
    map.address = memory.allocate(size);
    tma::store(box(map, {0}, kStore), window, 0, memory);
    const std::byte* after = memory.reading(map.address, size);
    for (uint64_t i = 0; i < size; ++i) {
      INFO("byte " << i << " of " << size);
      CHECK(after[i] == (i < 22 || (size >= 32 && i < 32) ? std::byte{0x11} : std::byte{0xCD}));
    }
  }
}

TEST_CASE("directions and types that do not go together are refused") {
  TensorMap map = matrix(4096);
  map.swizzle = TensorMapSwizzle::b128_atom32_flip8;
  CHECK(fault_of([&] { box(map, {0, 0}); }).text == "no fault");
  check_fault(FaultCode::illegal_instruction, {"128B_ATOM_32B_FLIP_8B", "loads only"}, [&] {
    box(map, {0, 0}, kStore);
  });
  map = matrix(4096);
  map.type = TensorMapType::u4_align8;
  check_fault(FaultCode::illegal_instruction, {"4 and 6 bits"}, [&] { box(map, {0, 0}, kReduce); });
  map.type = TensorMapType::u6_align16;
  check_fault(FaultCode::illegal_instruction, {"4 and 6 bits"}, [&] { box(map, {0, 0}, kReduce); });
  check_fault(FaultCode::illegal_instruction, {"coordinate 64", "32 bytes"}, [&] { box(map, {64, 0}); });
  map.type = TensorMapType::u4_align16;
  check_fault(FaultCode::illegal_instruction, {"16U4_ALIGN16B is for loads only"}, [&] { box(map, {0, 0}, kStore); });

  // Interleave: coordinates count slices, of any number.
  map = matrix(4096);
  map.interleave = TensorMapInterleave::bytes16;
  map.rank = 3;
  CHECK(fault_of([&] { box(map, {3, 1, 0}); }).text == "no fault");
  check_fault(FaultCode::illegal_instruction, {"coordinate -1 of dimension 1"}, [&] { box(map, {0, -1, 0}, kStore); });
}

TEST_CASE("reductions exist for some types only") {
  TensorMap map = matrix(4096);
  map.type = TensorMapType::uint8;
  check_fault(FaultCode::illegal_instruction, {".add", "UINT8"}, [&] {
    tma::check_reduction(box(map, {0, 0}, kReduce), tma::Reduction::add);
  });
  map.type = TensorMapType::float32;
  check_fault(FaultCode::illegal_instruction, {".max", "FLOAT32"}, [&] {
    tma::check_reduction(box(map, {0, 0}, kReduce), tma::Reduction::max);
  });
  CHECK(fault_of([&] { tma::check_reduction(box(map, {0, 0}, kReduce), tma::Reduction::add); }).text == "no fault");
}
