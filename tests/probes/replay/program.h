#pragma once
// A probe as the tests dump it: NAME.ptx and NAME.run.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace replay {

/// A tensor map among the bytes of the buffers, by the arguments of cuTensorMapEncodeTiled (as numbers), or of
/// cuTensorMapEncodeIm2col: 256 is added to the rank then, the first boxes are channels and pixels, the others hold the
/// corners, innermost first (the lower in bits 15-0, the upper in 31-16).
struct TensorMapAt {
  uint64_t at;              ///< where among all buffers' bytes
  uint64_t buffer, offset;  ///< what it points to
  uint64_t type, rank, interleave, swizzle, promotion, fill;
  struct {
    uint64_t extent, stride_bytes, box, element_stride;
  } dimension[5];  ///< the innermost has no stride
};
constexpr size_t kTensorMapBytes = 128;

struct Program {
  std::string name, ptx;
  uint64_t grid[3], block[3], cluster[3], shared_bytes;
  uint64_t parameters = 0;      ///< p0, p1, ... point to the first buffers
  std::vector<uint64_t> sizes;  ///< bytes of the buffers
  std::vector<TensorMapAt> maps;
  std::vector<char> before, after;  ///< all buffers, one behind the other; `after` as the emulator left them
  uint64_t error = 0;               ///< the CUDA error in which it ended on the emulator, 0: none
};

/// Throws std::runtime_error when the files are not whole.
Program read_program(const std::filesystem::path& run_file);

/// The line of the program that says what is probed.
std::string instruction(const Program& program);

/// "d of a b c: GPU x, emulator y" for the first `shown` values that differ.
std::string differences(const Program& program, const std::vector<char>& gpu, size_t shown);

}  // namespace replay
