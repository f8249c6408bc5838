#include "step04_swizzle/study_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "common/harness/check.h"
#include "common/harness/dtype.h"

using namespace ladder;

namespace {

/// The first `first_k` columns over and over, so that there are `k`; zeros where the matrix has no such column.
HostMatrix repeated(const HostMatrix& matrix, int64_t first_k, int64_t k) {
  HostMatrix result(matrix.rows(), k, matrix.type());
  for (int64_t row = 0; row < matrix.rows(); ++row) {
    for (int64_t column = 0; column < k; ++column) {
      const int64_t source = column % first_k;
      result.row16(row)[column] = source < matrix.cols() ? matrix.row16(row)[source] : uint16_t{0};
    }
  }
  return result;
}

int64_t tiles(int64_t extent, int64_t tile) {
  return (extent + tile - 1) / tile;
}

std::string fault_of_epilogue(const HostMatrix& d) {
  for (int64_t row = 0; row < d.rows(); ++row) {
    for (int64_t column = 0; column < d.cols(); ++column) {
      const uint32_t expected = from_f32(d.type(), std::bit_cast<uint32_t>(epilogue_pattern(row, column)));
      if (d.bits(row, column) == expected) continue;
      return fmt::format("D[{}][{}] has bits {:#x}, not {:#x}", row, column, d.bits(row, column), expected);
    }
  }
  return "";
}

}  // namespace

std::string StudyCheck::fault_of(const Configuration& configuration, Part part, const HostMatrix& d) {
  if (part == Part::epilogue) return fault_of_epilogue(d);
  // The MMAs alone get the K of one filling of the ring again and again.
  const int64_t k = tiles(a_.cols(), configuration.tile_k) * configuration.tile_k;
  const int64_t first_k = part == Part::mma ? std::min<int64_t>(k, configuration.stages * configuration.tile_k) : k;
  const auto [known, is_new] = known_.try_emplace({first_k, k, hash_of(d)});
  if (is_new) {
    const CheckResult result = check_product(repeated(a_, first_k, k), repeated(b_, first_k, k), d,
                                             {.tile = {kStudyTileM, kStudyTileN, configuration.tile_k}});
    if (!result.passed) known->second = fmt::format("{}\n  {}", result.summary, fmt::join(result.pattern, "\n  "));
  }
  return known->second;
}

uint32_t StudyCheck::checksum(const Configuration& configuration, int64_t tile_m, int64_t tile_n) const {
  std::vector<uint32_t> stage(static_cast<size_t>(configuration.stage_bytes()) / 4);
  const auto place = [&](const HostMatrix& matrix, int rows, int64_t first_row, int64_t first_k, uint32_t begin) {
    for (int row = 0; row < rows; ++row) {
      for (int k = 0; k < configuration.tile_k; k += 2) {  // columns come in pairs: K is a multiple of 8
        const bool inside = first_row + row < matrix.rows() && first_k + k < matrix.cols();
        const uint16_t* pair = inside ? matrix.row16(first_row + row) + first_k + k : nullptr;
        stage[(begin + configuration.offset(rows, row, k)) / 4] =
            inside ? uint32_t{pair[0]} | uint32_t{pair[1]} << 16 : 0;
      }
    }
  };
  const auto a_bytes = static_cast<uint32_t>(kStudyTileM * configuration.tile_k * 2);
  uint32_t sum = 0;
  for (int64_t first_k = 0; first_k < a_.cols(); first_k += configuration.tile_k) {
    place(a_, kStudyTileM, tile_m * kStudyTileM, first_k, 0);
    place(b_, kStudyTileN, tile_n * kStudyTileN, first_k, a_bytes);
    sum *= kChecksumFactor;
    for (uint32_t i = 0; i < stage.size(); ++i) sum += stage[i] * (2 * i + 1);
  }
  return sum;
}

std::string StudyCheck::fault_of(const Configuration& configuration, const std::vector<uint32_t>& checksums) const {
  const int64_t m_tiles = tiles(a_.rows(), kStudyTileM), n_tiles = tiles(b_.rows(), kStudyTileN);
  for (int64_t cta = 0; cta < m_tiles * n_tiles; ++cta) {
    const auto lanes = checksums.begin() + static_cast<std::ptrdiff_t>(cta * kChecksumLanes);
    const uint32_t sum = std::accumulate(lanes, lanes + kChecksumLanes, uint32_t{0});
    const uint32_t expected = checksum(configuration, cta % m_tiles, cta / m_tiles);
    if (sum != expected) return fmt::format("CTA {} sums up {:#x}, not {:#x}", cta, sum, expected);
  }
  return "";
}
