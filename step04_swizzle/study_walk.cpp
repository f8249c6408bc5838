#include "step04_swizzle/study_walk.h"

#include "common/harness/tensor_map.h"

using namespace ladder;

CUtensorMap study_map(const Configuration& configuration, const void* base, int64_t rows, int64_t k, int box_rows) {
  const uint64_t row_bytes = static_cast<uint64_t>(k) * 2;
  const auto rows_of_map = static_cast<uint64_t>(rows);
  if (configuration.arrangement == Arrangement::columns) {
    constexpr uint32_t kColumnK = 8;
    const uint64_t dims[] = {kColumnK, rows_of_map, static_cast<uint64_t>(k) / kColumnK};
    const uint64_t strides_bytes[] = {row_bytes, kColumnK * 2};
    const uint32_t box[] = {kColumnK, static_cast<uint32_t>(box_rows), configuration.tile_k / kColumnK};
    return make_tensor_map(DType::f16, base, dims, strides_bytes, box, CU_TENSOR_MAP_SWIZZLE_NONE);
  }
  const uint64_t dims[] = {static_cast<uint64_t>(k), rows_of_map};
  const uint64_t strides_bytes[] = {row_bytes};
  const uint32_t box[] = {static_cast<uint32_t>(configuration.row_bytes()) / 2, static_cast<uint32_t>(box_rows)};
  return make_tensor_map(DType::f16, base, dims, strides_bytes, box,
                         static_cast<CUtensorMapSwizzle>(configuration.swizzle()));
}

Walk walk_of(const Configuration& configuration, Family family) {
  const OperandTile a = configuration.tile(kStudyTileM), b = configuration.tile(kStudyTileN);
  const int a_slice = kStudyTileM / configuration.cluster.a_sharers();
  const int b_slice = kStudyTileN / configuration.cluster.b_sharers();
  const auto row_bytes = static_cast<uint32_t>(configuration.row_bytes());
  const bool hopper = family == Family::hopper;
  Walk walk{.stages = configuration.stages,
            .stage_bytes = configuration.stage_bytes(),
            .a_bytes = static_cast<int>(a.bytes()),
            .tile_k = configuration.tile_k,
            .boxes = configuration.boxes_of_an_operand(),
            .box_k = configuration.row_bytes() / 2,
            .three_dimensions = configuration.arrangement == Arrangement::columns,
            .a_box_bytes = kStudyTileM * row_bytes,
            .b_box_bytes = kStudyTileN * row_bytes,
            .a_slice_bytes = static_cast<uint32_t>(a_slice) * row_bytes,
            .b_slice_bytes = static_cast<uint32_t>(b_slice) * row_bytes,
            .a_slice = a_slice,
            .b_slice = b_slice,
            .a_descriptor = hopper ? a.wgmma_descriptor(0) : a.tcgen05_descriptor(0),
            .b_descriptor = hopper ? b.wgmma_descriptor(0) : b.tcgen05_descriptor(0),
            .mmas = configuration.tile_k / kMmaK,
            .a_steps = {},
            .b_steps = {}};
  for (uint32_t mma = 0; mma < static_cast<uint32_t>(walk.mmas); ++mma) {
    walk.a_steps[mma] = a.plain_offset(0, mma * kMmaK);
    walk.b_steps[mma] = b.plain_offset(0, mma * kMmaK);
  }
  return walk;
}
