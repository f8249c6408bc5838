#pragma once
// The chips the emulator can be. Every figure that describes a chip is here, with its source on its line.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace emu {

struct Chip {
  std::string_view name;         ///< as given on the command line
  std::string_view device_name;  ///< what cudaGetDeviceProperties reports
  int major, minor;              ///< compute capability
  int sm_count;
  /// SMs of each GPC (0: no more): a cluster stays within one. A lone pair of SMs counts as one of its own.
  std::array<uint8_t, 12> gpc_sms;
  uint64_t global_memory_bytes;
  uint64_t l2_bytes;
  int clock_khz;
  int memory_clock_khz, memory_bus_bits;
  uint32_t shared_per_sm_bytes;         ///< all CTAs of an SM together
  uint32_t shared_per_cta_optin_bytes;  ///< most a CTA can have, static plus dynamic
  uint32_t shared_reserved_bytes;       ///< per CTA, at the bottom of its window
  uint32_t registers_per_sm;
  int threads_per_sm, ctas_per_sm;
  int max_cluster_portable, max_cluster;
  bool has_tcgen05, has_wgmma;
};

/// The GPC of each SM, by %smid: pairs of SMs are numbered GPC by GPC in turn, the lone pairs last (so on an H200).
std::vector<uint32_t> gpc_of_sms(const Chip& chip);

/// The same chip, but of its SMs only the first `sms` (an even number), GPC by GPC.
Chip with_sms(Chip chip, int sms);

/// nullptr when there is no such chip.
const Chip* find_chip(std::string_view name);
std::span<const Chip> all_chips();

}  // namespace emu
