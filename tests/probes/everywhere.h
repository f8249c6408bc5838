#pragma once
// A correct program gives one result, whatever the schedule and however many host threads run it. These helpers run a
// probe under all of them and hold the results together.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/probes/probe.h"

namespace probe {

struct Setting {
  std::string name;
  emu::Options options;
};

inline emu::Options options(emu::Schedule schedule, uint64_t seed = 0, int threads = 1) {
  emu::Options out;
  out.schedule = schedule;
  out.seed = seed;
  out.threads = threads;
  return out;
}

/// earliest and latest with one host thread and with two, then `seeds` random schedules.
inline std::vector<Setting> settings(int seeds) {
  std::vector<Setting> out;
  for (int threads : {1, 2}) {
    std::string with = threads == 1 ? "" : ", 2 host threads";
    out.push_back({"earliest" + with, options(emu::Schedule::earliest, 0, threads)});
    out.push_back({"latest" + with, options(emu::Schedule::latest, 0, threads)});
  }
  for (int seed = 1; seed <= seeds; ++seed)
    out.push_back(
        {"random:" + std::to_string(seed), options(emu::Schedule::random, static_cast<uint64_t>(seed), 1 + seed % 2)});
  return out;
}

/// What a launch leaves behind: the bytes at p0, or the report of its fault.
struct Ending {
  std::vector<std::byte> bytes;
  std::string report;
  int error = 0;
  std::string remarks = {};  ///< what it did by luck
  bool operator==(const Ending&) const = default;
};

/// p0: `count` bytes of 0xEE; p1, p2, ...: buffers that start with `inputs`. `valid`: whether ptxas takes it and a GPU
/// would leave the same.
inline Ending launch_with(const emu::Options& with, const std::string& ptx, size_t count,
                          const std::vector<std::vector<std::byte>>& inputs, const Shape& shape, bool valid = true) {
  Machine machine(with);
  std::vector<uint64_t> parameters{machine.buffer(std::vector<std::byte>(count, std::byte{0xEE}))};
  for (const auto& input : inputs) parameters.push_back(machine.buffer(input));
  std::optional<emu::Fault> fault = machine.launch(ptx, parameters, shape, valid);
  Ending ending;
  if (fault)
    ending.report = fault->report, ending.error = fault->error;
  else
    ending.bytes = machine.read<std::byte>(parameters[0], count);
  ending.remarks = machine.device().take_remarks();
  return ending;
}

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> out(values.size() * sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}
template <class T>
std::vector<T> values_of(const std::vector<std::byte>& bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

/// Runs `ptx` (a module) under every setting and returns the `count` values of T at p0 on which all agree; fails the
/// test at the first that differs.
template <class T>
std::vector<T> everywhere(const std::string& ptx, size_t count, const std::vector<std::vector<std::byte>>& inputs = {},
                          const Shape& shape = {}, int seeds = 8) {
  std::vector<T> first;
  bool fresh = true;
  for (const Setting& setting : settings(seeds)) {
    Ending ending = launch_with(setting.options, ptx, count * sizeof(T), inputs, shape);
    if (!ending.report.empty()) {
      FAIL(setting.name << ":\n" << ending.report << ptx);
      return {};
    }
    std::vector<T> values = values_of<T>(ending.bytes);
    if (fresh) {
      first = values;
      fresh = false;
      continue;
    }
    for (size_t i = 0; i < count; ++i)
      if (values[i] != first[i]) {
        FAIL(setting.name << ": value " << i << " is " << values[i] << ", with earliest " << first[i] << "\n" << ptx);
        return first;
      }
  }
  return first;
}

/// In how many of `seeds` random schedules the program ends otherwise than `good` (a fault included).
inline int noticed(const std::string& ptx, const std::vector<std::byte>& good,
                   const std::vector<std::vector<std::byte>>& inputs, const Shape& shape, int seeds = 16) {
  int count = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    Ending ending =
        launch_with(options(emu::Schedule::random, static_cast<uint64_t>(seed)), ptx, good.size(), inputs, shape);
    count += ending.bytes != good;
  }
  return count;
}

/// The fault that a program ends in, under `options`; fails the test when it ends well.
inline Ending failure(const std::string& ptx, const std::vector<std::vector<std::byte>>& inputs = {},
                      const Shape& shape = {}, const emu::Options& with = {}) {
  Ending ending = launch_with(with, ptx, 4096, inputs, shape);
  if (ending.report.empty()) FAIL("the program was expected to fault:\n" << ptx);
  return ending;
}

}  // namespace probe
