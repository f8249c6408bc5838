#pragma once
// NumPy's .npy files, as far as matrices need them: two dimensions, C order, little endian.
// Format: numpy.lib.format, versions 1.0, 2.0 and 3.0.

#include <cstdint>
#include <filesystem>
#include <string>

#include "common/harness/matrix.h"

namespace ladder {

/// bf16 has no NumPy type: its bits travel as uint16 ("<u2").
struct NpyHeader {
  int64_t rows = 0, cols = 0;
  DType type = DType::f16;
  int64_t data_offset = 0;  ///< of the first element, in bytes
};

/// Reads and checks everything but the elements. Throws UserError naming the file, what is wrong with it and, where
/// there is one, the NumPy call that mends it.
NpyHeader read_npy_header(const std::filesystem::path& path);

/// The whole matrix, in the file's own type. Throws UserError.
HostMatrix read_npy(const std::filesystem::path& path);

/// A version 1.0 file. Throws UserError when the file cannot be written.
void write_npy(const std::filesystem::path& path, const HostMatrix& matrix);

}  // namespace ladder
