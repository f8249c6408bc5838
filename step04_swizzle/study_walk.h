#pragma once
// What a layout means to the study's kernels, and the maps by which TMA makes it. Steps are runtime values and the
// loops over boxes and MMAs runtime loops, so that one kernel does for all layouts; an MMA takes the tensor core far
// longer than the few instructions before it.

#include <cuda.h>

#include <cstdint>

#include "step04_swizzle/study.h"

struct Walk {
  int stages, stage_bytes, a_bytes;                                   // a_bytes: of A's tile, behind which B's lies
  int tile_k, boxes, box_k;                                           // boxes of an operand, and K from one to the next
  bool three_dimensions;                                              // the maps are {8, rows, k / 8}, not {k, rows}
  uint32_t a_box_bytes, b_box_bytes;                                  // from one box to the next
  uint32_t a_slice_bytes, b_slice_bytes;                              // of a box, from one sharer's rows to the next's
  int a_slice, b_slice;                                               // rows of a box that a CTA loads
  uint64_t a_descriptor, b_descriptor;                                // of a tile at address 0
  int mmas;                                                           // of a stage
  uint32_t a_steps[kMostTileK / kMmaK], b_steps[kMostTileK / kMmaK];  // bytes from the tile's start to each MMA's K
};

Walk walk_of(const Configuration& configuration, ladder::Family family);

/// The map of a row-major rows x k matrix, whose boxes have `box_rows`. What lies outside is filled with zeros.
CUtensorMap study_map(const Configuration& configuration, const void* base, int64_t rows, int64_t k, int box_rows);
