#include "emulator/machine/mbarrier.h"

#include <fmt/format.h>

namespace emu::mbarrier {
namespace {

constexpr uint64_t kField20 = (uint64_t{1} << 20) - 1;
// cp.async.mbarrier.arrive raises the arrivals of the running phase beyond what the next starts with: by a few of each
// thread in a kernel that makes sense. A word with more is none that this machine wrote.
constexpr int64_t kMostExtra = 16 * 1024;
constexpr const char* kSource = "PTX ISA, mbarrier object: contents and ranges; faults seen on an H200";

Outcome settle(State state) {
  if (state.pending < 0)
    throw Fault(FaultKind::barrier_overflow,
                fmt::format("mbarrier arrive beyond its count by {}: every arrival needs its share of the count that "
                            "mbarrier.init gave the phase (now {})",
                            -state.pending, state.expected),
                kSource);
  if (state.tx_bytes > kMaxCount || state.tx_bytes < -kMaxCount)
    throw Fault(
        FaultKind::barrier_overflow,
        fmt::format("mbarrier transaction count {} bytes is out of range -{}..{}: split the copies over phases or "
                    "barriers",
                    state.tx_bytes, kMaxCount, kMaxCount),
        kSource);
  bool completed = state.pending == 0 && state.tx_bytes == 0;
  if (completed) {
    state.parity ^= 1;
    state.pending = state.expected;
  }
  return {state.encode(), completed};
}

}  // namespace

State State::decode(uint64_t word) {
  State state;
  state.parity = static_cast<uint32_t>(word >> 63);
  state.pending = ((int64_t{1} << 20) - static_cast<int64_t>((word >> 43) & kField20)) & static_cast<int64_t>(kField20);
  state.expected = ((int64_t{1} << 20) - static_cast<int64_t>((word >> 1) & kField20)) & static_cast<int64_t>(kField20);
  int64_t done_minus_expected = static_cast<int64_t>(word << 22) >> 43;  // bits 41-21, sign extended
  state.tx_bytes = -done_minus_expected;
  return state;
}

uint64_t State::encode() const {
  uint64_t word = uint64_t{parity} << 63;
  word |= (static_cast<uint64_t>((int64_t{1} << 20) - pending) & kField20) << 43;
  word |= (static_cast<uint64_t>(-tx_bytes) & ((uint64_t{1} << 21) - 1)) << 21;
  word |= (static_cast<uint64_t>((int64_t{1} << 20) - expected) & kField20) << 1;
  return word;
}

int64_t tx_change(uint64_t before, uint64_t after) {
  return State::decode(after).tx_bytes - State::decode(before).tx_bytes;
}

bool plausible(uint64_t word) {
  if (word == 0 || (word & 1) || ((word >> 42) & 1)) return false;
  State state = State::decode(word);
  return state.pending <= state.expected + kMostExtra || state.expected == 0;
}

void need_plausible(uint64_t word) {
  if (!plausible(word))
    throw Fault(
        FaultKind::barrier_invalid,
        fmt::format("the 64-bit word {:#018x} is no mbarrier: mbarrier.init has not been seen by now, the memory was "
                    "overwritten, or the address is not the barrier's",
                    word),
        "PTX ISA, mbarrier.init: operations need an initialised object");
}

uint64_t init(uint32_t count) {
  if (count < 1 || count > kMaxCount)
    throw Trap(FaultCode::launch_failure,
               fmt::format("mbarrier.init with count {}: it must be 1..{}", count, kMaxCount),
               "PTX ISA, mbarrier.init");
  State state{.parity = 0, .pending = count, .expected = count, .tx_bytes = 0};
  return state.encode();
}

Outcome arrive(uint64_t word, uint32_t count, bool drop) {
  need_plausible(word);
  State state = State::decode(word);
  state.pending -= count;
  if (drop) state.expected -= count;
  return settle(state);
}

uint64_t expect_arrival(uint64_t word) {
  need_plausible(word);
  State state = State::decode(word);
  if (++state.pending > kMaxCount)
    throw Fault(FaultKind::barrier_overflow,
                fmt::format("cp.async.mbarrier.arrive without .noinc raises the count beyond {}", kMaxCount), kSource);
  return state.encode();
}

Outcome expect_tx(uint64_t word, uint32_t bytes) {
  need_plausible(word);
  State state = State::decode(word);
  state.tx_bytes += bytes;
  return settle(state);
}

Outcome complete_tx(uint64_t word, uint32_t bytes) {
  need_plausible(word);
  State state = State::decode(word);
  state.tx_bytes -= bytes;
  return settle(state);
}

Outcome arrive_expect_tx(uint64_t word, uint32_t bytes, bool drop) {
  need_plausible(word);
  State state = State::decode(word);
  state.tx_bytes += bytes;
  if (state.tx_bytes > kMaxCount) return settle(state);
  state.pending -= 1;
  if (drop) state.expected -= 1;
  return settle(state);
}

}  // namespace emu::mbarrier
