#pragma once
// Small PTX programs run on the emulated device, so that a test can say what one instruction does.
//
// What a program leaves in its buffers must be what an H200 left there, as tests/golden/h200_probes.json records it
// (tests/golden/README.md); a program that is not in the record is not held to it.
//
// With LADDER_PROBE_TEXTS=<folder> in the environment every program's text is also written there: passing it through
// ptxas shows that the tests speak valid PTX (check_ptx.py). With LADDER_PROBE_DUMP=<folder> the program and its
// buffers before and after: running it on a GPU shows what the emulator and the chip disagree on, and makes the record
// (replay/main.cpp).

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "emulator/machine/device.h"
#include "tests/catch.h"

namespace probe {

/// `body` in a kernel of its own. Its parameters: .u64 p0, p1, ... (`parameters` of them). Registers that every body
/// may use: %p<8>, %h<16> (16 bits), %r<32>, %d<16> (64 bits), %q<4> (128 bits). `module_scope`: declarations before
/// it.
std::string kernel(const std::string& body, int parameters, const std::string& module_scope = "",
                   const std::string& target = "sm_100a");

struct Shape {
  emu::Dim3 grid{1, 1, 1}, block{32, 1, 1}, cluster{1, 1, 1};
  uint32_t dynamic_shared_bytes = 0;
  /// Why an H200 is not expected to leave the same: what the ISA leaves open, or where the emulator says more than
  /// silicon does. Such a program still goes through ptxas, but it is neither replayed on a GPU nor held to the record.
  const char* apart = nullptr;
};

/// A device with buffers, on which programs run one after the other.
class Machine {
 public:
  explicit Machine(const emu::Options& options = {});
  emu::Device& device() { return *device_; }

  /// Address of a new buffer that holds `values`.
  template <class T>
  uint64_t buffer(const std::vector<T>& values) {
    uint64_t address = device_->memory().allocate(std::max<size_t>(1, values.size() * sizeof(T)), "probe");
    buffer_bytes_[address] = values.size() * sizeof(T);
    if (!values.empty())
      std::memcpy(device_->memory().writing(address, values.size() * sizeof(T)), values.data(),
                  values.size() * sizeof(T));
    return address;
  }
  template <class T>
  std::vector<T> read(uint64_t address, size_t count) {
    std::vector<T> values(count);
    std::memcpy(values.data(), device_->memory().reading(address, count * sizeof(T)), count * sizeof(T));
    return values;
  }

  /// Runs PTX text (a whole module with the entry `probe`). `valid`: whether ptxas should take it, too.
  std::optional<emu::Fault> launch(const std::string& ptx, const std::vector<uint64_t>& parameters,
                                   const Shape& shape = {}, bool valid = true);

 private:
  std::vector<std::byte> contents(const std::vector<uint64_t>& buffers);

  std::unique_ptr<emu::Device> device_;
  std::map<uint64_t, size_t> buffer_bytes_;  // by address
};

/// Runs `body` and returns `count` values of T that it left at p0; a second buffer with `input` is at p1. Fails the
/// test on a fault.
template <class T>
std::vector<T> run(const std::string& body, size_t count, const std::vector<uint64_t>& input = {},
                   const Shape& shape = {}) {
  Machine machine;
  std::vector<uint64_t> parameters{machine.buffer(std::vector<T>(count)), machine.buffer(input)};
  std::optional<emu::Fault> fault = machine.launch(kernel(body, 2), parameters, shape);
  if (fault) FAIL(fault->report);
  return machine.read<T>(parameters[0], count);
}

/// The report of the fault in which `body` ends; fails the test when it ends well. Parameters as of run().
std::string fault(const std::string& body, const Shape& shape = {}, int* error = nullptr);
/// The same for a body that ptxas would refuse too, which is therefore not dumped.
std::string refusal(const std::string& body);

/// One instruction (or a few) on many values. `text` reads %a, %b, %c and writes %d, registers of the given widths.
struct Operation {
  std::string text;
  int result_bits;
  std::vector<int> source_bits;
  const char* apart = nullptr;  ///< Shape::apart
};

/// d for each tuple of sources. Every operation runs twice: with whole warps, and with some lanes inactive; both must
/// agree, and inactive lanes must keep their registers.
std::vector<uint64_t> evaluate(const Operation& operation, const std::vector<std::vector<uint64_t>>& sources);

/// evaluate() for values of C++ types, compared bit by bit with `expected(a, b, ...)`.
template <class D, class... S, class F>
void check(const std::string& text, F&& expected, const std::vector<std::type_identity_t<S>>&... sources);

// ---- values ---------------------------------------------------------------------------------------------------------

template <class T>
uint64_t bits(T value) {
  uint64_t out = 0;
  std::memcpy(&out, &value, sizeof(T));
  return out;
}
template <class T>
T value(uint64_t bits) {
  T out;
  std::memcpy(&out, &bits, sizeof(T));
  return out;
}
template <class T>
std::vector<uint64_t> all_bits(const std::vector<T>& values) {
  std::vector<uint64_t> out;
  for (const T& v : values) out.push_back(bits(v));
  return out;
}

/// Values at which a type's arithmetic has corners, and `random` others.
template <class T>
std::vector<T> corners(int random, uint64_t seed = 1);

/// All pairs (and triples) of a list, as parallel lists.
template <class T>
std::pair<std::vector<T>, std::vector<T>> pairs(const std::vector<T>& list) {
  std::pair<std::vector<T>, std::vector<T>> out;
  for (const T& a : list)
    for (const T& b : list) {
      out.first.push_back(a);
      out.second.push_back(b);
    }
  return out;
}

/// SplitMix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t x = state_ += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
  }

 private:
  uint64_t state_;
};

std::string hex(uint64_t value);

// ---- implementation of templates ------------------------------------------------------------------------------------

template <class D, class... S, class F>
void check(const std::string& text, F&& expected, const std::vector<std::type_identity_t<S>>&... sources) {
  std::vector<uint64_t> got =
      evaluate({text, static_cast<int>(sizeof(D) * 8), {static_cast<int>(sizeof(S) * 8)...}}, {all_bits(sources)...});
  size_t shown = 0;
  for (size_t i = 0; i < got.size() && shown < 5; ++i) {
    uint64_t want = bits(static_cast<D>(expected(sources[i]...)));
    if (want == got[i]) continue;
    ++shown;
    std::string values;
    ((values += " " + hex(bits(sources[i]))), ...);
    FAIL_CHECK(text << " of" << values << " gives " << hex(got[i]) << ", expected " << hex(want));
  }
  CHECK(shown == 0);
}

template <class T>
std::vector<T> corners(int random, uint64_t seed) {
  std::vector<T> out;
  Random generator(seed);
  if constexpr (std::is_floating_point_v<T>) {
    constexpr int kMantissa = sizeof(T) == 4 ? 23 : 52;
    constexpr uint64_t kSign = uint64_t{1} << (sizeof(T) * 8 - 1);
    constexpr uint64_t kInfinity = (kSign - 1) >> kMantissa << kMantissa;
    constexpr uint64_t kOne = kInfinity >> 1 & ~((uint64_t{1} << kMantissa) - 1);
    std::vector<uint64_t> magnitudes{0,
                                     1,
                                     2,
                                     (uint64_t{1} << kMantissa) - 1,
                                     uint64_t{1} << kMantissa,
                                     (uint64_t{1} << kMantissa) + 1,
                                     kInfinity - 1,
                                     kInfinity,
                                     kInfinity | 1 | uint64_t{1} << (kMantissa - 1),
                                     kOne,
                                     kOne + 1,
                                     kOne - 1,
                                     kOne + (uint64_t{3} << (kMantissa - 1)),
                                     kOne - (uint64_t{1} << kMantissa)};
    for (uint64_t magnitude : magnitudes)
      for (uint64_t sign : {uint64_t{0}, kSign}) out.push_back(value<T>(magnitude | sign));
    for (int i = 0; i < random; ++i) {
      uint64_t bits = generator.next();
      // Half of them near one another, so that sums cancel and align.
      if (i % 2) bits = (bits & ~kInfinity) | (kOne + (((bits >> 3) % 9) << kMantissa) - (uint64_t{4} << kMantissa));
      out.push_back(value<T>(bits));
    }
  } else {
    using U = std::make_unsigned_t<T>;
    constexpr U kTop = static_cast<U>(U{1} << (sizeof(T) * 8 - 1));
    for (U v : {U{0},
                U{1},
                U{2},
                U{3},
                U{5},
                U{7},
                U{8},
                U{15},
                U{16},
                U{24},
                U{31},
                U{32},
                U{33},
                U{63},
                U{64},
                U{127},
                U{128},
                U{255},
                static_cast<U>(kTop - 1),
                kTop,
                static_cast<U>(kTop + 1),
                static_cast<U>(-1),
                static_cast<U>(-2),
                static_cast<U>(-3)})
      out.push_back(static_cast<T>(v));
    for (int i = 0; i < random; ++i) {
      uint64_t bits = generator.next();
      out.push_back(static_cast<T>(bits >> (i % 4 == 3 ? generator.next() % 64 : 0)));
    }
  }
  return out;
}

}  // namespace probe
