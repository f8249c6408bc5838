#include "emulator/machine/chip.h"

#include <algorithm>
#include <array>

namespace emu {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kMiB = uint64_t{1} << 20;

constexpr std::array<Chip, 2> kChips = {{
    {
        .name = "b200",
        .device_name = "NVIDIA B200 (emulated)",
        .major = 10,
        .minor = 0,
        .sm_count = 148,  // pytorch/ao 4002 (public thread)
        // An assumption, in the manner of the H200: on a B300, which has as many SMs, clusters of 4 or 8 cannot use SMs
        // 142-147 (ademeure/QuickRunCUDA, b300_clean notes): three lone pairs.
        .gpc_sms = {16, 18, 18, 18, 18, 18, 18, 18, 2, 2, 2, 0},
        .global_memory_bytes = 180 * kGiB,    // 180 to 192 GB by system, NVIDIA data sheets
        .l2_bytes = 126 * kMiB + 512 * 1024,  // pytorch/ao 4002
        .clock_khz = 1'965'000,               // SemiAnalysis microbench-blackwell
        .memory_clock_khz = 3'996'000,        // with the bus width: 7.67 TB/s, SemiAnalysis
        .memory_bus_bits = 7680,
        .shared_per_sm_bytes = 228 * 1024,         // CUDA programming guide, technical specifications, 10.0
        .shared_per_cta_optin_bytes = 227 * 1024,  // same
        .shared_reserved_bytes = 1024,             // same; seen in addresses on an H200
        .registers_per_sm = 65536,                 // same
        .threads_per_sm = 2048,                    // same
        .ctas_per_sm = 32,                         // same
        .max_cluster_portable = 8,                 // same
        .max_cluster = 16,                         // same
        .has_tcgen05 = true,
        .has_wgmma = false,
    },
    {
        .name = "h200",
        .device_name = "NVIDIA H200 (emulated)",
        .major = 9,
        .minor = 0,
        .sm_count = 132,  // read off an H200
        // Read off an H200 by which %smid share a cluster, and the only sizes that give what
        // cudaOccupancyMaxActiveClusters answers there for every cluster size and occupancy. Other H200s may differ.
        .gpc_sms = {8, 16, 16, 16, 16, 16, 18, 18, 2, 2, 2, 2},
        .global_memory_bytes = 150'109'880'320,    // read off an H200: cudaMemGetInfo, driver 580
        .l2_bytes = 60 * kMiB,                     // read off an H200: cudaDevAttrL2CacheSize (data sheets say 50 MB)
        .clock_khz = 1'980'000,                    // boost clock, data sheet
        .memory_clock_khz = 3'201'000,             // read off an H200; with the bus width: 4.8 TB/s
        .memory_bus_bits = 6016,                   // read off an H200
        .shared_per_sm_bytes = 228 * 1024,         // CUDA programming guide, technical specifications, 9.0
        .shared_per_cta_optin_bytes = 227 * 1024,  // same
        .shared_reserved_bytes = 1024,             // read off an H200: own shared variables start at 0x400
        .registers_per_sm = 65536,                 // programming guide
        .threads_per_sm = 2048,                    // same
        .ctas_per_sm = 32,                         // same
        .max_cluster_portable = 8,                 // same
        .max_cluster = 16,                         // same; runs on an H200
        .has_tcgen05 = false,
        .has_wgmma = true,
    },
}};

}  // namespace

std::vector<uint32_t> gpc_of_sms(const Chip& chip) {
  constexpr uint32_t kPair = 2;
  std::vector<uint32_t> out;
  const uint32_t most = *std::max_element(chip.gpc_sms.begin(), chip.gpc_sms.end());
  for (uint32_t done = 0; done < most; done += kPair)
    for (uint32_t gpc = 0; gpc < chip.gpc_sms.size(); ++gpc)
      if (chip.gpc_sms[gpc] > std::max(done, kPair)) out.insert(out.end(), kPair, gpc);
  for (uint32_t gpc = 0; gpc < chip.gpc_sms.size(); ++gpc)
    if (chip.gpc_sms[gpc] == kPair) out.insert(out.end(), kPair, gpc);
  return out;
}

Chip with_sms(Chip chip, int sms) {
  chip.sm_count = sms;
  for (uint8_t& gpc : chip.gpc_sms) {
    gpc = static_cast<uint8_t>(std::min<int>(gpc, sms));
    sms -= gpc;
  }
  return chip;
}

const Chip* find_chip(std::string_view name) {
  for (const Chip& chip : kChips)
    if (chip.name == name) return &chip;
  return nullptr;
}

std::span<const Chip> all_chips() {
  return kChips;
}

}  // namespace emu
