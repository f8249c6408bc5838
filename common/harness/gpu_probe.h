#pragma once
// Is there a GPU? Asked of the driver itself, which may be absent, so that it works on any machine and before a CUDA
// runtime has been chosen.

#include <filesystem>
#include <optional>
#include <string>

namespace ladder {

struct Gpu {
  std::string name;
  int major = 0, minor = 0;  ///< compute capability
  int driver_version = 0;    ///< of CUDA: 13000 for 13.0
};

/// "13.0" for 13000.
std::string cuda_version_text(int version);

struct GpuProbe {
  std::optional<Gpu> gpu;  ///< the first one, which is the one a CUDA program gets
  std::string why_not;     ///< a clause for a person: "no NVIDIA driver is installed"
};

/// Opens libcuda.so.1, but never the emulator's, which lies in `emulator_folder`. Initialises CUDA in this process, so
/// call it only where the process is replaced afterwards.
GpuProbe probe_gpu(const std::filesystem::path& emulator_folder);

}  // namespace ladder
