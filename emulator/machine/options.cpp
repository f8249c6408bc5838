#include "emulator/machine/options.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>

namespace emu {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// The whole number in `text`, a part of what the variable holds.
uint64_t number(const char* name, std::string_view text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw std::runtime_error(std::string(name) + "=" + std::string(variable(name)) + ": '" + std::string(text) +
                             "' is no whole number, 0 or more");
  return value;
}

/// Seconds, with a fraction where one is wanted.
double seconds(const char* name) {
  const std::string_view text = variable(name);
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= 0) || !std::isfinite(value))
    throw std::runtime_error(std::string(name) + "=" + std::string(text) + ": expected seconds, 0 or more");
  return value;
}

/// A file that every launch appends to or that is written anew: it must be possible now, not only when work is done.
std::string writable(const char* name) {
  std::string path{variable(name)};
  if (!path.empty() && !std::ofstream(path, std::ios::app))
    throw std::runtime_error(std::string(name) + "=" + path + ": cannot be written (" + std::strerror(errno) + ")");
  return path;
}

}  // namespace

Options Options::from_environment() {
  Options options;
  if (auto chip = variable("LADDER_CHIP"); !chip.empty()) {
    if (!find_chip(chip)) {
      std::string names;
      for (const Chip& known : all_chips()) names += (names.empty() ? "" : ", ") + std::string(known.name);
      throw std::runtime_error("LADDER_CHIP=" + std::string(chip) + ": no such chip; the emulator can be: " + names);
    }
    options.chip = chip;
  }
  if (auto schedule = variable("LADDER_SCHEDULE"); !schedule.empty()) {
    std::string_view kind = schedule.substr(0, schedule.find(':'));
    if (schedule == "earliest") {
      options.schedule = Schedule::earliest;
    } else if (schedule == "latest") {
      options.schedule = Schedule::latest;
    } else if (kind == "random") {
      options.schedule = Schedule::random;
      if (kind.size() < schedule.size()) options.seed = number("LADDER_SCHEDULE", schedule.substr(kind.size() + 1));
    } else {
      throw std::runtime_error("LADDER_SCHEDULE=" + std::string(schedule) +
                               ": expected earliest, latest, random or random:SEED");
    }
  }
  if (auto sms = variable("LADDER_SMS"); !sms.empty()) {
    const uint64_t count = number("LADDER_SMS", sms), all = static_cast<uint64_t>(find_chip(options.chip)->sm_count);
    if (count < 2 || count > all || count % 2)
      throw std::runtime_error("LADDER_SMS=" + std::string(sms) +
                               ": SMs come in pairs; expected an even number from 2 to " + std::to_string(all) +
                               ", which are all of the chip's");
    options.sms = static_cast<int>(count);
  }
  if (auto threads = variable("LADDER_THREADS"); !threads.empty()) {
    uint64_t count = number("LADDER_THREADS", threads);
    if (count > 256) throw std::runtime_error("LADDER_THREADS=" + std::string(threads) + ": at most 256 host threads");
    options.threads = static_cast<int>(count);
  }
  if (auto strict = variable("LADDER_STRICT"); !strict.empty()) {
    if (strict != "0" && strict != "1")
      throw std::runtime_error("LADDER_STRICT=" + std::string(strict) + ": expected 0 or 1");
    options.strict = strict == "1";
  }
  if (auto check = variable("LADDER_CHECK"); !check.empty()) {
    if (check != "0" && check != "1")
      throw std::runtime_error("LADDER_CHECK=" + std::string(check) + ": expected 0 or 1");
    options.check = check == "1";
  }
  if (auto fill = variable("LADDER_FILL"); !fill.empty()) {
    if (fill != "0" && fill != "1") throw std::runtime_error("LADDER_FILL=" + std::string(fill) + ": expected 0 or 1");
    options.other_fill = fill == "1";
  }
  options.check_path = writable("LADDER_CHECK_FILE");
  options.check = options.check || !options.check_path.empty();
  if (!variable("LADDER_TIME_LIMIT").empty()) options.time_limit_s = seconds("LADDER_TIME_LIMIT");
  options.counters_path = writable("LADDER_COUNTERS");
  options.trace_path = writable("LADDER_TRACE");
  return options;
}

Chip Options::emulated_chip() const {
  const Chip& whole = *find_chip(chip);
  return sms == 0 ? whole : with_sms(whole, sms);
}

}  // namespace emu
