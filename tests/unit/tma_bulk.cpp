// Plain bulk copies and reductions (cp.async.bulk, cp.reduce.async.bulk).

#include <algorithm>
#include <random>
#include <thread>

#include "emulator/machine/trap.h"
#include "emulator/units/tma.h"
#include "tests/catch.h"
#include "tests/unit/tma_model.h"

using namespace emu;

namespace {

template <class F>
void check_fault(FaultCode code, const std::vector<std::string>& says, F&& f) {
  try {
    f();
    FAIL_CHECK("no fault");
  } catch (const Trap& trap) {
    INFO(trap.what());
    CHECK(trap.code == code);
    for (const std::string& part : says) CHECK_THAT(std::string(trap.what()), test::contains(part));
  }
}

struct Fixture {
  Fixture() {
    base = memory.allocate(4096);
    std::copy(global.begin(), global.end(), memory.writing(base, 4096));
  }
  std::vector<std::byte> now() const { return {memory.reading(base, 4096), memory.reading(base, 4096) + 4096}; }
  std::mt19937_64 random{11};
  GlobalMemory memory{1 << 20};
  uint64_t base;
  std::vector<std::byte> global = test::random_bytes(random, 4096), shared = test::random_bytes(random, 4096);
  tma::Window window{shared.data(), 4096};
};

}  // namespace

TEST_CASE("bulk copies move the bytes they name and no others") {
  Fixture f;
  for (const auto& [global, shared, bytes] :
       {std::array{0u, 0u, 16u}, {16u, 4080u, 16u}, {112u, 48u, 2000u}, {0u, 0u, 4096u}, {64u, 64u, 0u}}) {
    std::vector<std::byte> expected = f.shared;
    std::copy_n(f.global.begin() + global, bytes, expected.begin() + shared);
    std::vector<std::byte> at_once = f.shared, staged = f.shared, staging(bytes);
    tma::bulk_load(f.memory, f.base + global, {at_once.data(), 4096}, shared, bytes);
    CHECK(at_once == expected);
    tma::bulk_read_global(f.memory, f.base + global, staging);
    tma::bulk_write_shared({staged.data(), 4096}, shared, staging);
    CHECK(staged == expected);

    expected = f.global;
    std::copy_n(f.shared.begin() + shared, bytes, expected.begin() + global);
    tma::bulk_store(f.window, shared, f.memory, f.base + global, bytes);
    CHECK(f.now() == expected);
    std::copy(f.global.begin(), f.global.end(), f.memory.writing(f.base, 4096));
    tma::bulk_read_shared(f.window, shared, staging);
    tma::bulk_write_global(f.memory, f.base + global, staging);
    CHECK(f.now() == expected);
    std::copy(f.global.begin(), f.global.end(), f.memory.writing(f.base, 4096));
  }
}

TEST_CASE("bulk copies count 16 bytes") {
  CHECK_NOTHROW(tma::check_bulk(0x1010, 0x2000, 48));
  check_fault(FaultCode::misaligned_address, {"destination address 0x1008", "8 past"},
              [] { tma::check_bulk(0x1008, 0x2000, 48); });
  check_fault(FaultCode::misaligned_address, {"source address 0x2004"}, [] { tma::check_bulk(0x1000, 0x2004, 48); });
  check_fault(FaultCode::misaligned_address, {"size", "0x18"}, [] { tma::check_bulk(0x1000, 0x2000, 24); });
}

TEST_CASE("bulk copies stay in their memories") {
  Fixture f;
  check_fault(FaultCode::illegal_address, {"32 bytes", "0xff0", "16 bytes past", "4096"},
              [&] { tma::bulk_load(f.memory, f.base, f.window, 4080, 32); });
  check_fault(FaultCode::illegal_address, {"0xfffffff0"},
              [&] { tma::bulk_store(f.window, 0xFFFF'FFF0, f.memory, f.base, 32); });
  check_fault(FaultCode::illegal_address, {"read of 32 bytes", "the first 16 lie in"},
              [&] { tma::bulk_load(f.memory, f.base + 4080, f.window, 0, 32); });
  check_fault(FaultCode::illegal_address, {"write of 32 bytes"},
              [&] { tma::bulk_store(f.window, 0, f.memory, f.base + 4096, 32); });
  std::vector<std::byte> staging(32);
  check_fault(FaultCode::illegal_address, {"atomic operation of 32 bytes"}, [&] {
    tma::bulk_reduce_global(f.memory, f.base + 4080, tma::Reduction::add, tma::ReductionType::u32, staging);
  });
  check_fault(FaultCode::illegal_address, {"16 bytes past"},
              [&] { tma::bulk_reduce_shared(f.window, 4080, tma::Reduction::add, tma::ReductionType::u32, staging); });
}

TEST_CASE("bulk reductions exist as the ISA lists them") {
  using tma::Reduction;
  using tma::ReductionType;
  // PTX ISA, cp.reduce.async.bulk: operations and types to shared::cluster and to global.
  const std::map<Reduction, std::vector<ReductionType>> to_shared = {
      {Reduction::add, {ReductionType::u32, ReductionType::s32, ReductionType::u64}},
      {Reduction::min, {ReductionType::u32, ReductionType::s32}},
      {Reduction::max, {ReductionType::u32, ReductionType::s32}},
      {Reduction::inc, {ReductionType::u32}},
      {Reduction::dec, {ReductionType::u32}},
      {Reduction::bit_and, {ReductionType::b32}},
      {Reduction::bit_or, {ReductionType::b32}},
      {Reduction::bit_xor, {ReductionType::b32}},
  };
  const std::vector<ReductionType> ordered = {ReductionType::u32, ReductionType::s32, ReductionType::u64,
                                              ReductionType::s64, ReductionType::f16, ReductionType::bf16};
  const std::map<Reduction, std::vector<ReductionType>> to_global = {
      {Reduction::add,
       {ReductionType::u32, ReductionType::s32, ReductionType::u64, ReductionType::f32, ReductionType::f64,
        ReductionType::f16, ReductionType::bf16}},
      {Reduction::min, ordered},
      {Reduction::max, ordered},
      {Reduction::inc, {ReductionType::u32}},
      {Reduction::dec, {ReductionType::u32}},
      {Reduction::bit_and, {ReductionType::b32, ReductionType::b64}},
      {Reduction::bit_or, {ReductionType::b32, ReductionType::b64}},
      {Reduction::bit_xor, {ReductionType::b32, ReductionType::b64}},
  };
  for (const bool shared : {false, true}) {
    for (const auto& [reduction, types] : shared ? to_shared : to_global) {
      for (int t = 0; t <= static_cast<int>(ReductionType::f64); ++t) {
        const auto type = static_cast<ReductionType>(t);
        INFO((shared ? "shared" : "global") << " " << static_cast<int>(reduction) << " " << t);
        if (std::count(types.begin(), types.end(), type)) {
          CHECK_NOTHROW(tma::check_bulk_reduction(reduction, type, shared));
        } else {
          check_fault(FaultCode::illegal_instruction, {"does not exist"},
                      [&] { tma::check_bulk_reduction(reduction, type, shared); });
        }
      }
    }
  }
}

TEST_CASE("bulk reductions to another CTA's shared memory") {
  Fixture f;
  const uint32_t operands[4] = {5, 0, 7, 0xFFFF'FFFF};
  const auto run = [&](tma::Reduction reduction, std::array<uint32_t, 4> old) {
    std::memcpy(f.shared.data() + 64, old.data(), 16);
    const std::vector<std::byte> before = f.shared;
    tma::bulk_reduce_shared(f.window, 64, reduction, tma::ReductionType::u32, std::as_bytes(std::span(operands)));
    CHECK(std::equal(before.begin(), before.begin() + 64, f.shared.begin()));
    CHECK(std::equal(before.begin() + 80, before.end(), f.shared.begin() + 80));
    std::memcpy(old.data(), f.shared.data() + 64, 16);
    return old;
  };
  using Values = std::array<uint32_t, 4>;
  CHECK(run(tma::Reduction::add, {1, 2, 3, 4}) == Values{6, 2, 10, 3});
  CHECK(run(tma::Reduction::max, {1, 2, 9, 4}) == Values{5, 2, 9, 0xFFFF'FFFF});
  // inc: 0 once the operand is reached; dec: the operand at 0 or from beyond it.
  CHECK(run(tma::Reduction::inc, {4, 3, 7, 8}) == Values{5, 0, 0, 9});
  CHECK(run(tma::Reduction::dec, {0, 3, 9, 8}) == Values{5, 0, 7, 7});
}

TEST_CASE("reductions from several threads lose nothing") {
  GlobalMemory memory(1 << 20);
  const uint64_t base = memory.allocate(1024);
  std::fill_n(memory.writing(base, 1024), 1024, std::byte{0});
  const std::vector<uint32_t> ones(256, 1);
  TensorMap map{.type = TensorMapType::uint32, .rank = 1, .address = base};
  map.dims[0] = map.box[0] = 256;
  constexpr int kRounds = 2000;
  const auto work = [&] {
    const tma::Box box(map, std::array<int32_t, 1>{0}, tma::Direction::reduce);
    for (int i = 0; i < kRounds; ++i) tma::reduce(box, tma::Reduction::add, std::as_bytes(std::span(ones)), memory);
  };
  std::thread first(work), second(work);
  first.join();
  second.join();
  for (int i = 0; i < 256; ++i) {
    uint32_t sum;
    std::memcpy(&sum, memory.reading(base + 4 * i, 4), 4);
    CHECK(sum == 2 * kRounds);
  }
}
