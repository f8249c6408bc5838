#pragma once
// step04's study: what the rung changed at once, taken apart. The rung went from 16-byte columns to 128-byte rows, from
// 16 to 64 of K a stage, and from no swizzle to one; here each is a parameter, and the parts of the kernel run alone.
// On Hopper the rungs before and behind it are parameters, too: does a change help before the swizzle, or behind it?

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/device_choice.h"
#include "common/harness/rung.h"
#include "common/layout/operand_tile.h"
#include "step06_multicast/cluster_shape.h"

constexpr int kStudyTileM = 128, kStudyTileN = 256;  // of D, for each CTA
constexpr int kMostTileK = 64, kMmaK = 16;
constexpr int kMostStages = 16;
constexpr int kRingBytes = 192 * 1024;  // at most; beside it there is room for the barriers

/// How a K tile of an operand lies in shared memory, and in how many boxes it gets there.
enum class Arrangement {
  columns,      ///< columns of 16 bytes, no swizzle: all of them are one 3-D box
  boxes,        ///< the same bytes in the same places, a 2-D box for each column
  rows,         ///< the rows of the tile one after the other, no swizzle: one box; no MMA can read it
  swizzle_32b,  ///< rows of 32 bytes, swizzled: a box for every 16 of K
  swizzle_64b,  ///< rows of 64 bytes, swizzled: a box for every 32 of K
  swizzle_128b  ///< rows of 128 bytes, swizzled: one box
};

inline constexpr std::array kArrangements{Arrangement::columns,     Arrangement::boxes,
                                          Arrangement::rows,        Arrangement::swizzle_32b,
                                          Arrangement::swizzle_64b, Arrangement::swizzle_128b};

/// Which parts of the kernel run.
enum class Part {
  full,     ///< D = A B^T
  load,     ///< the loads and the ring: a checksum of what arrives
  mma,      ///< the MMAs, over and over on what the ring was filled with first
  epilogue  ///< from tensor memory, or registers, to D: a pattern
};

inline constexpr std::array kParts{Part::full, Part::load, Part::mma, Part::epilogue};

/// Who loads.
enum class Roles {
  apart,    ///< a warp that does nothing else, as from step03 on
  together  ///< a thread of those that multiply, as in step02
};

struct Configuration {
  Arrangement arrangement;
  int tile_k;
  int stages;
  Roles roles = Roles::apart;
  ClusterShape cluster = {.m = 1, .n = 1, .multicast = true};  ///< whose CTAs load for each other, as in step06

  ladder::Swizzle swizzle() const;
  /// Bytes of K that lie side by side: the width of a row of shared memory, and of a box.
  int row_bytes() const;
  int boxes_of_an_operand() const { return arrangement == Arrangement::columns ? 1 : tile_k * 2 / row_bytes(); }
  int stage_bytes() const { return (kStudyTileM + kStudyTileN) * tile_k * 2; }
  int in_flight_bytes() const { return stages * stage_bytes(); }
  /// The operand's tile as an MMA reads it.
  ladder::OperandTile tile(int rows) const;
  /// Where element (row, k) lies in an operand's tile of so many rows.
  uint32_t offset(int rows, int row, int k) const;
};

/// Why this cannot run on such a chip, with the way out; nothing if it can.
std::optional<std::string> obstacle(const Configuration& configuration, Part part, ladder::Family family);

/// The sizes of ring to compare for a K tile: 4 stages, and as many as put kRingBytes in flight, like 4 of the widest.
std::vector<int> stage_counts(int tile_k);

const char* name_of(Arrangement arrangement);
const char* name_of(Part part);
const char* name_of(Roles roles);

/// `2x1`: two tiles down, one across. Throws UserError where `text` is none of kClusters.
ClusterShape cluster_of(const std::string& text);
inline constexpr std::array kClusters{"1x1", "2x1", "1x2", "2x2"};

/// Checksums of one CTA: of each lane of the warp that adds them up.
constexpr int kChecksumLanes = 32;
/// Of a K tile, word i of the stage counts 2 i + 1 times; what was there before is multiplied by this.
constexpr uint32_t kChecksumFactor = 0x9E3779B1;

/// What the epilogue alone stores, exact in every type.
constexpr float epilogue_pattern(int64_t row, int64_t column) {
  return static_cast<float>((row * 37 + column * 11) % 2039);
}

/// Launch on gemm.stream and return without waiting. in is f16, out f16 or f32. With `verify`, the loads are summed
/// up in `checksums` (kChecksumLanes for each CTA) and the epilogue stores its pattern; without, a part does nothing
/// but its own work, to be timed.
void launch_study(const Configuration& configuration, Part part, const ladder::Gemm& gemm, uint32_t* checksums,
                  bool verify);  // study.cu
void launch_study_hopper(const Configuration& configuration, Part part, const ladder::Gemm& gemm, uint32_t* checksums,
                         bool verify);  // hopper_study.cu

/// The study as one more rung, for the benchmark: `arrangement=128B,part=load` and the like, to be timed.
ladder::Rung swizzle_study();
