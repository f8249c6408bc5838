#include "emulator/machine/chip.h"

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
        // An assumption: two dies of 74 SMs (Chips and Cheese, "Nvidia's B200"), each as four GPCs of at most 20 SMs
        // with whole TPCs. Nobody has published how many SMs each GPC of a B200 has.
        .gpc_sms = {20, 18, 18, 18, 20, 18, 18, 18},
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
        // One of two partitions into GPCs of at most 18 SMs that hold the clusters an H200 says it holds (30 of 4 CTAs,
        // 15 of 8, 7 of 16, at one CTA an SM); which GPC has how many differs from chip to chip.
        .gpc_sms = {18, 18, 18, 18, 18, 16, 16, 10},
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

const Chip* find_chip(std::string_view name) {
  for (const Chip& chip : kChips)
    if (chip.name == name) return &chip;
  return nullptr;
}

std::span<const Chip> all_chips() {
  return kChips;
}

}  // namespace emu
