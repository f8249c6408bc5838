#pragma once
// The chips the emulator can be. Every figure that describes a chip is here, with its source on its line.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace emu {

struct Chip {
  std::string_view name;         ///< as given on the command line
  std::string_view device_name;  ///< what cudaGetDeviceProperties reports
  int major, minor;              ///< compute capability
  int sm_count;
  std::array<uint8_t, 8> gpc_sms;  ///< SMs of each GPC: a cluster stays within one; their sum is sm_count
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

/// nullptr when there is no such chip.
const Chip* find_chip(std::string_view name);
std::span<const Chip> all_chips();

}  // namespace emu
