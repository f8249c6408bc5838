#pragma once
// The mbarrier object: a 64-bit word in shared memory. Bits as an H200 holds them (isa-facts 5.1, read off the chip):
// 63 phase parity, 62-43 2^20 - pending, 41-21 completed minus expected bytes (two's complement), 20-1 2^20 - expected
// arrivals. Rules: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".

#include <cstdint>

#include "emulator/machine/trap.h"

namespace emu::mbarrier {

inline constexpr int64_t kMaxCount = (1 << 20) - 1;  ///< arrivals, and bytes either way

/// How reports call a copy's bytes among the signals of a barrier; all others are arrivals, or counts set by threads.
inline constexpr const char* kBytesOfACopy = "bytes of a copy";

/// What the object refuses. The report adds which barrier it is and what happened to it.
struct Fault : Trap {
  using Trap::Trap;
};

struct State {
  uint32_t parity = 0;   ///< of the running phase
  int64_t pending = 0;   ///< arrivals still missing
  int64_t expected = 0;  ///< arrivals the next phase starts with
  int64_t tx_bytes = 0;  ///< bytes expected and not yet there

  static State decode(uint64_t word);
  uint64_t encode() const;
};

/// By how much the bytes that the barrier misses grow (negative: shrink) as its word becomes another; a phase ends when
/// it misses none.
int64_t tx_change(uint64_t before, uint64_t after);

uint64_t init(uint32_t count);       ///< throws Trap unless 1 <= count <= kMaxCount
bool plausible(uint64_t word);       ///< could a live barrier look like this?
void need_plausible(uint64_t word);  ///< throws Fault where it could not

struct Outcome {
  uint64_t word;
  bool completed;  ///< the phase ended
};
/// Each throws Fault (launch failure, as on an H200) where a count leaves its range.
Outcome arrive(uint64_t word, uint32_t count, bool drop = false);
uint64_t expect_arrival(uint64_t word);  ///< the running phase waits for one more
Outcome expect_tx(uint64_t word, uint32_t bytes);
Outcome complete_tx(uint64_t word, uint32_t bytes);
Outcome arrive_expect_tx(uint64_t word, uint32_t bytes, bool drop = false);

/// True once the phase of this parity is over, i.e. the running phase has the other one.
inline bool phase_done(uint64_t word, uint32_t parity) {
  return static_cast<uint32_t>(word >> 63) != (parity & 1);
}
/// The same for a state token returned by an arrive.
inline bool state_done(uint64_t word, uint64_t token) {
  return (word >> 63) != (token >> 63);
}

}  // namespace emu::mbarrier
