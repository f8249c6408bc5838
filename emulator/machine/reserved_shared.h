#pragma once
// The kilobyte at the bottom of a CTA's shared memory belongs to the system. One part of it is open to programs: the
// cooperative groups of CUDA's headers keep there how warps of a block meet, from %reserved_smem_offset_1 on.

#include <cstdint>

namespace emu {

inline constexpr uint32_t kGroupsOffset = 0;   ///< on an H200, whose %reserved_smem_offset_end is behind it
inline constexpr uint32_t kGroupsBytes = 288;  ///< cooperative_groups/details/memory.h; zeros at first, as on an H200

/// A CTA is given shared memory in multiples of this (an H200: accesses up to the next multiple pass, those after it
/// fault).
inline constexpr uint32_t kSharedGranule = 128;

}  // namespace emu
