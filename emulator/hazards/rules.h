#pragma once
// What the checker looks for: one row a rule, with the words that every finding of it begins and ends with.

#include <cstdint>
#include <string_view>

namespace emu::hazards {

enum class Rank : uint8_t {
  error,  ///< some order that silicon can take gives wrong bits, a hang or a trap
  rule,   ///< the ISA text demands it; the assembler or the chip supplies it today
  note,
};
const char* name(Rank rank);

enum class Rule : uint8_t {
  read_too_early,
  overwrite_too_early,
  write_write,
  proxy_fence,
  weak_order,
  warp_sync,
  tcgen05_fence,
  uninitialised,
  barrier_init,
  barrier_init_fence,
  barrier_reuse,
  barrier_overwritten,
  barrier_bytes,
  barrier_behind,
  peer_not_started,
  peer_gone,
  pair_dealloc,
  bulk_store_wait,
  constant_load,
  bulk_load_wait,
  commit_thread,
  wgmma_wait,
  swizzle_alignment,
};
inline constexpr size_t kRules = 23;

struct RuleTraits {
  std::string_view id;     ///< "read-too-early": in reports, for tests and filters
  Rank rank;               ///< unless a finding says otherwise
  std::string_view title;  ///< one line
  std::string_view fix;    ///< the usual one
  std::string_view source;
  std::string_view sees;    ///< for docs/hazards.md
  std::string_view misses;  ///< what of it the checker cannot see
};
const RuleTraits& traits(Rule rule);

}  // namespace emu::hazards
