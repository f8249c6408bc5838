// Global memory: allocation, the door, and what it says when there is nothing behind it.

#include "emulator/machine/global_memory.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "emulator/machine/trap.h"
#include "tests/catch.h"

using namespace emu;

namespace {

std::string fault_at(const GlobalMemory& memory, uint64_t address, uint64_t bytes, Access access = Access::read) {
  try {
    memory.door(address, bytes, access);
  } catch (const Trap& trap) {
    CHECK(trap.code == FaultCode::illegal_address);
    return trap.what();
  }
  return "no fault";
}

uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_CASE("allocations are aligned, apart, and hold the fresh pattern") {
  GlobalMemory memory(uint64_t{1} << 30);
  std::vector<std::pair<uint64_t, uint64_t>> all;
  for (const uint64_t bytes : {1u, 22u, 512u, 513u, 70'000u, 1u << 20, (1u << 20) + 1, 5u, (3u << 20) + 5}) {
    const uint64_t address = memory.allocate(bytes);
    REQUIRE(address != 0);
    CHECK(address % (bytes > 1u << 20 ? 2u << 20 : 512) == 0);
    for (const auto& [other, size] : all) CHECK((address + bytes <= other || other + size <= address));
    all.emplace_back(address, bytes);
    const std::byte* content = memory.reading(address, bytes);
    CHECK(std::all_of(content, content + bytes, [](std::byte b) { return b == std::byte{0xCD}; }));
    // Aligned alike on both sides, so that atomics work on the storage.
    CHECK(reinterpret_cast<uintptr_t>(content) % 512 == 0);
  }
  // Every allocation has bytes of its own.
  for (size_t i = 0; i < all.size(); ++i)
    std::memset(memory.writing(all[i].first, all[i].second), static_cast<int>(i), all[i].second);
  for (size_t i = 0; i < all.size(); ++i) {
    const std::byte* content = memory.reading(all[i].first, all[i].second);
    CHECK(std::all_of(content, content + all[i].second, [&](std::byte b) { return b == static_cast<std::byte>(i); }));
  }
}

TEST_CASE("capacity is what it says") {
  GlobalMemory memory(1 << 20);
  CHECK(memory.capacity_bytes() == 1 << 20);
  CHECK(memory.allocate(0) == 0);
  CHECK(memory.allocate((1 << 20) + 1) == 0);
  const uint64_t half = memory.allocate(1 << 19);
  REQUIRE(half != 0);
  CHECK(memory.used_bytes() == 1 << 19);
  CHECK(memory.allocate((1 << 19) + 1) == 0);
  CHECK(memory.allocate(1 << 19) != 0);
  CHECK(memory.allocate(1) == 0);
  CHECK(memory.release(half));
  CHECK(memory.used_bytes() == 1 << 19);
  CHECK(memory.allocate(1 << 18) != 0);
}

TEST_CASE("addresses come round again when the range has been used up") {
  GlobalMemory memory(1 << 20);
  std::vector<uint64_t> kept;
  for (int i = 0; i < 3000; ++i) {
    const uint64_t a = memory.allocate(1000);
    REQUIRE(a != 0);
    if (i % 500 == 0) {
      kept.push_back(a);
    } else {
      REQUIRE(memory.release(a));
    }
  }
  for (const uint64_t a : kept) CHECK(memory.release(a));
  CHECK(memory.used_bytes() == 0);
  // All is one range again.
  const uint64_t whole = memory.allocate(1 << 20);
  CHECK(whole != 0);
}

TEST_CASE("what was freed just now is not handed out again at once") {
  GlobalMemory memory(1 << 20);
  const uint64_t a = memory.allocate(4096);
  CHECK(memory.release(a));
  const uint64_t b = memory.allocate(4096);
  CHECK(b != a);
  CHECK_THAT(fault_at(memory, a, 4), test::contains("use after free"));
}

TEST_CASE("release wants the start of a live allocation") {
  GlobalMemory memory(1 << 20);
  const uint64_t a = memory.allocate(4096);
  CHECK_FALSE(memory.release(a + 512));
  CHECK_FALSE(memory.release(0));
  CHECK_FALSE(memory.release(a - 512));
  CHECK(memory.release(a));
  CHECK_FALSE(memory.release(a));
}

TEST_CASE("a reservation is an address at which bytes come and go") {
  GlobalMemory memory(1 << 20);
  const uint64_t a = memory.reserve(5000, "reserved");
  REQUIRE(a != 0);
  CHECK(memory.used_bytes() == 0);
  CHECK(memory.find(a) == nullptr);
  REQUIRE(memory.find_or_reserved(a + 4999).has_value());
  CHECK(memory.find_or_reserved(a + 4999)->address == a);
  CHECK_THAT(fault_at(memory, a + 8, 4), test::contains("nothing is there now, 8 bytes into reserved"));
  for (int round = 0; round < 3; ++round) {
    REQUIRE(memory.allocate_reserved(a));
    CHECK_FALSE(memory.allocate_reserved(a));
    CHECK(*memory.reading(a, 1) == std::byte{0xCD});
    *memory.writing(a, 1) = std::byte{1};
    REQUIRE(memory.release(a));
    CHECK_THAT(fault_at(memory, a, 4), test::contains("use after free"));
    // Nobody else is given its address, though all addresses are gone through.
    for (int i = 0; i < 2000; ++i) {
      const uint64_t other = memory.allocate(4096);
      REQUIRE((other != 0 && other != a));
      REQUIRE(memory.release(other));
    }
  }
  // Given up while bytes are there: they stay until they are released.
  REQUIRE(memory.allocate_reserved(a));
  memory.give_up(a);
  CHECK(fault_at(memory, a, 5000) == "no fault");
  CHECK(memory.release(a));
  CHECK_FALSE(memory.allocate_reserved(a));
  CHECK(memory.used_bytes() == 0);

  const uint64_t b = memory.reserve(1 << 20, "as large as the memory");
  REQUIRE(b != 0);
  const uint64_t c = memory.allocate(512);
  CHECK_FALSE(memory.allocate_reserved(b));
  memory.release(c);
  CHECK(memory.allocate_reserved(b));
}

TEST_CASE("find knows what an address belongs to") {
  GlobalMemory memory(1 << 20);
  const uint64_t a = memory.allocate(1000, "first"), b = memory.allocate(2000, "second");
  REQUIRE(memory.find(a + 999) != nullptr);
  CHECK(memory.find(a + 999)->what == "first");
  CHECK(memory.find(a + 1000) == nullptr);
  CHECK(memory.find(a - 1) == nullptr);
  CHECK(memory.find(b)->address == b);
  CHECK(memory.find(b)->bytes == 2000);
  CHECK_FALSE(memory.find(b)->host);
  CHECK(memory.find(b)->storage == memory.reading(b, 1));
  memory.release(b);
  CHECK(memory.find(b) == nullptr);
}

TEST_CASE("the door refuses, naming address, size, neighbour and distance") {
  GlobalMemory memory(1 << 24);
  const uint64_t a = memory.allocate(1000, "cudaMalloc of A"), b = memory.allocate(64, "cudaMalloc of B");
  char start_a[32], past[32];
  std::snprintf(start_a, sizeof start_a, "[%#lx", static_cast<unsigned long>(a));
  std::snprintf(past, sizeof past, "%#lx", static_cast<unsigned long>(a + 1000));

  CHECK(fault_at(memory, a, 1000) == "no fault");
  CHECK_THAT(fault_at(memory, a + 1000, 16),
             test::contains("read of 16 bytes") && test::contains(past) && test::contains("0 bytes past the end") &&
                 test::contains("cudaMalloc of A") && test::contains(start_a) && test::contains("1000 bytes"));
  CHECK_THAT(fault_at(memory, a + 1100, 1, Access::write),
             test::contains("write of 1 byte ") && test::contains("100 bytes past"));
  CHECK_THAT(fault_at(memory, a + 990, 16, Access::atomic), test::contains("atomic operation") &&
                                                                test::contains("the first 10 lie in cudaMalloc of A") &&
                                                                test::contains("other 6"));
  CHECK_THAT(fault_at(memory, b - 100, 4), test::contains("100 bytes before") && test::contains("cudaMalloc of B"));
  CHECK_THAT(fault_at(memory, a, ~uint64_t{0}), test::contains("run past its end"));
  CHECK_THAT(fault_at(memory, 0, 4), test::contains("null pointer"));
  CHECK_THAT(fault_at(memory, 0x18, 8), test::contains("null pointer"));
  const int on_the_host = 0;
  CHECK_THAT(fault_at(memory, reinterpret_cast<uint64_t>(&on_the_host), 4),
             test::contains("host memory") && test::contains("cudaMalloc"));

  memory.release(a);
  CHECK_THAT(fault_at(memory, a + 24, 4),
             test::contains("use after free") && test::contains("24 bytes into cudaMalloc of A"));
  memory.release(b);
  CHECK_THAT(fault_at(memory, a + 5000, 4), test::contains("nothing is allocated"));
}

TEST_CASE("the word around the last bytes is there, and nothing else behind them") {
  GlobalMemory memory(1 << 20);
  const uint64_t a = memory.allocate(6, "short");
  CHECK(memory.door(a + 4, 4, Access::atomic) != nullptr);
  CHECK_THAT(fault_at(memory, a + 4, 3), test::contains("run past its end"));
  CHECK_THAT(fault_at(memory, a, 8), test::contains("run past its end"));
  CHECK_THAT(fault_at(memory, a + 5, 4), test::contains("run past its end"));
  CHECK_THAT(fault_at(memory, a + 8, 4), test::contains("global address"));
}

TEST_CASE("neighbours are never reached by running over an end") {
  GlobalMemory memory(1 << 24);
  for (int i = 0; i < 8; ++i) memory.allocate(512);
  const uint64_t a = memory.allocate(512);
  memory.allocate(512);
  for (uint64_t past = 0; past < 100'000; past += 512) REQUIRE(fault_at(memory, a + 512 + past, 16) != "no fault");
}

TEST_CASE("what was let through before a release is not let through after it") {
  GlobalMemory memory(1 << 24);
  for (int i = 0; i < 100; ++i) {
    const uint64_t a = memory.allocate(4096), b = memory.allocate(4096);
    REQUIRE(fault_at(memory, a, 4096) == "no fault");
    REQUIRE(fault_at(memory, b, 4096) == "no fault");
    memory.release(a);
    REQUIRE(fault_at(memory, a, 1) != "no fault");
    REQUIRE(fault_at(memory, b, 4096) == "no fault");
    memory.release(b);
  }
}

TEST_CASE("two memories do not answer for each other") {
  auto one = std::make_unique<GlobalMemory>(1 << 24);
  const uint64_t a = one->allocate(4096);
  REQUIRE(fault_at(*one, a, 16) == "no fault");
  GlobalMemory other(1 << 24);
  CHECK(fault_at(other, a, 16) != "no fault");
  CHECK(fault_at(*one, a, 16) == "no fault");
  one.reset();
  // The same range may be handed out again.
  GlobalMemory third(1 << 24);
  CHECK(fault_at(third, a, 16) != "no fault");
}

TEST_CASE("host memory is reached at its own address while it is mapped") {
  GlobalMemory memory(1 << 20);
  std::vector<std::byte> pinned(5000, std::byte{7});
  const auto address = reinterpret_cast<uint64_t>(pinned.data());
  memory.map_host(pinned.data(), pinned.size(), "cudaMallocHost");
  CHECK(memory.reading(address + 10, 100) == pinned.data() + 10);
  *memory.writing(address + 4999, 1) = std::byte{9};
  CHECK(pinned.back() == std::byte{9});
  CHECK(memory.find(address)->host);
  CHECK(memory.used_bytes() == 0);
  CHECK_THAT(fault_at(memory, address + 5000, 8),
             test::contains("0 bytes past the end") && test::contains("cudaMallocHost"));
  CHECK_FALSE(memory.release(address));
  CHECK_THROWS_WITH(memory.map_host(pinned.data() + 100, 8, "cudaHostRegister"), test::contains("mapped already"));
  CHECK_THROWS_WITH(memory.map_host(pinned.data() - 8, 16, "cudaHostRegister"), test::contains("mapped already"));
  CHECK_THROWS_WITH(memory.map_host(pinned.data(), 0, "cudaHostRegister"), test::contains("empty"));
  memory.unmap_host(pinned.data());
  CHECK_THAT(fault_at(memory, address, 8), test::contains("use after free") && test::contains("cudaMallocHost"));
  CHECK(memory.find(address) == nullptr);
  memory.map_host(pinned.data() + 64, 8, "kernel parameters");
  memory.unmap_host(pinned.data() + 64, false);
  CHECK_THAT(fault_at(memory, address + 64, 8), !test::contains("kernel parameters"));
}

TEST_CASE("a device address is no host pointer") {
  GlobalMemory memory(1 << 20);
  const uint64_t a = memory.allocate(4096);
  const pid_t child = fork();
  if (child == 0) {
    // Without the test framework's handlers: the read itself must kill.
    signal(SIGSEGV, SIG_DFL);
    const volatile char* pointer = reinterpret_cast<const char*>(a);
    const char byte = *pointer;
    _exit(byte == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGSEGV);
}

TEST_CASE("a huge allocation shows the pattern but commits only what is written") {
  GlobalMemory memory(uint64_t{64} << 30);
  const uint64_t before = resident_bytes();
  const uint64_t bytes = (uint64_t{20} << 30) + 123;
  const uint64_t a = memory.allocate(bytes);
  REQUIRE(a != 0);
  std::mt19937_64 random(3);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t at = random() % bytes;
    if (*memory.reading(a + at, 1) != std::byte{0xCD}) FAIL("no pattern at " << at);
  }
  CHECK(*memory.reading(a + bytes - 1, 1) == std::byte{0xCD});
  // Writes stay where they are made, though the pattern's pages repeat.
  for (uint64_t at = 0; at < bytes; at += uint64_t{1} << 30) *memory.writing(a + at, 1) = std::byte{1};
  for (uint64_t at = 0; at < bytes; at += uint64_t{1} << 29) {
    CHECK(*memory.reading(a + at, 1) == (at % (uint64_t{1} << 30) == 0 ? std::byte{1} : std::byte{0xCD}));
  }
  CHECK(resident_bytes() - before < uint64_t{64} << 20);
  CHECK(memory.release(a));
}

TEST_CASE("many threads read while others allocate and release") {
  GlobalMemory memory(uint64_t{1} << 28);
  std::vector<uint64_t> lasting;
  for (uint32_t i = 0; i < 12; ++i) {
    lasting.push_back(memory.allocate(4096));
    std::memset(memory.writing(lasting.back(), 4096), static_cast<int>(i), 4096);
  }
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&, t] {
      std::mt19937 random(t);
      while (!stop) {
        const uint32_t i = random() % lasting.size(), at = random() % 4096;
        if (*memory.reading(lasting[i] + at, 1) != static_cast<std::byte>(i)) ++wrong;
      }
    });
  }
  // Not many: readers that never pause let a writer in by chance only.
  for (int i = 0; i < 300; ++i) {
    const uint64_t a = memory.allocate(1 + i * 370);
    std::memset(memory.writing(a, 1), 0xFF, 1);
    memory.release(a);
  }
  stop = true;
  for (auto& reader : readers) reader.join();
  CHECK(wrong == 0);
}
