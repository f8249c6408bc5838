#pragma once
// What a user can set about a run of the emulator, and the environment variables that carry it into the program.

#include <cstdint>
#include <string>

#include "emulator/machine/chip.h"

namespace emu {

/// When an asynchronous operation reads its sources and shows its result.
enum class Schedule : uint8_t {
  earliest,  ///< both at issue
  latest,    ///< as late as anybody can tell: when every warp waits, or after a long time
  random,    ///< drawn per operation from the seed; CTAs of a cluster do not keep pace
};

struct Options {
  std::string chip = "b200";               ///< LADDER_CHIP
  Schedule schedule = Schedule::earliest;  ///< LADDER_SCHEDULE=earliest | latest | random[:SEED]
  uint64_t seed = 0;
  int sms = 0;                ///< LADDER_SMS: so many of the chip's SMs; 0 = all of them
  int threads = 0;            ///< LADDER_THREADS: host threads; 0 = as many as the machine has
  bool strict = false;        ///< LADDER_STRICT=1
  bool check = false;         ///< LADDER_CHECK=1: hold every access to the hazard rules
  bool other_fill = false;    ///< LADDER_FILL=1: shared and tensor memory start with other contents than else
  std::string check_path;     ///< LADDER_CHECK_FILE: what they found, as JSON, written anew after every launch
  double time_limit_s = 0;    ///< LADDER_TIME_LIMIT: how long a launch may run, in the host's time; 0: for ever
  std::string counters_path;  ///< LADDER_COUNTERS: JSON file written after every launch
  std::string trace_path;     ///< LADDER_TRACE: event log of every launch (text, one line an event)

  /// Throws std::runtime_error naming the variable, its value and what it may be.
  static Options from_environment();

  /// The chip that `chip` and `sms` name.
  Chip emulated_chip() const;
};

}  // namespace emu
