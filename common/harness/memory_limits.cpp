#include "common/harness/memory_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "common/harness/user_error.h"

namespace ladder {
namespace {

constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();

/// The first number of a file; nothing when it holds none ("max" in a control group).
std::optional<uint64_t> read_number(const std::filesystem::path& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

uint64_t available_to_the_system(const std::filesystem::path& root) {
  std::ifstream file(root / "proc/meminfo");
  std::string key, unit;
  uint64_t kilobytes = 0;
  while (file >> key >> kilobytes) {
    if (key == "MemAvailable:") return kilobytes * 1024;
    std::getline(file, unit);
  }
  return kUnknown;
}

/// What the control group at `folder` still allows; its file cache does not count, the kernel gives that up.
uint64_t available_to_group(const std::filesystem::path& folder, const char* limit_name, const char* usage_name) {
  const auto limit = read_number(folder / limit_name), usage = read_number(folder / usage_name);
  if (!limit || !usage) return kUnknown;
  uint64_t cache = 0;
  std::ifstream statistics(folder / "memory.stat");
  std::string key;
  uint64_t value = 0;
  while (statistics >> key >> value) {
    if (key == "inactive_file" || key == "active_file") cache += value;
  }
  const uint64_t used = *usage - std::min(*usage, cache);
  return *limit - std::min(*limit, used);
}

/// Version 2 ("0::/path" in /proc/self/cgroup) and version 1 ("N:memory:/path"); every group on the way to the root
/// may set a limit, and inside a container the path is often that of the host, so the root is looked at in any case.
uint64_t available_to_control_groups(const std::filesystem::path& root) {
  uint64_t available = kUnknown;
  const auto walk = [&](std::filesystem::path folder, const std::filesystem::path& top, const char* limit,
                        const char* usage) {
    for (int depth = 0; depth < 64; ++depth) {
      available = std::min(available, available_to_group(folder, limit, usage));
      if (folder == top || !folder.has_parent_path()) return;
      folder = folder.parent_path();
    }
  };
  std::ifstream file(root / "proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::filesystem::path group = std::filesystem::path(line.substr(second + 1)).relative_path();
    if (controllers.empty()) {
      const auto top = root / "sys/fs/cgroup";
      walk(group.empty() ? top : top / group, top, "memory.max", "memory.current");
      available = std::min(available, available_to_group(top, "memory.max", "memory.current"));
    } else if (controllers == "memory") {
      const auto top = root / "sys/fs/cgroup/memory";
      walk(group.empty() ? top : top / group, top, "memory.limit_in_bytes", "memory.usage_in_bytes");
      available = std::min(available, available_to_group(top, "memory.limit_in_bytes", "memory.usage_in_bytes"));
    }
  }
  return available;
}

std::string readable(uint64_t bytes) {
  const double mebibytes = static_cast<double>(bytes) / (1 << 20);
  return mebibytes < 1024 ? fmt::format("{:.0f} MiB", mebibytes) : fmt::format("{:.1f} GiB", mebibytes / 1024);
}

}  // namespace

uint64_t matrices_bytes(const Shape& shape, DType in, DType out) {
  using Wide = unsigned __int128;
  const Wide m = static_cast<Wide>(shape.m), n = static_cast<Wide>(shape.n), k = static_cast<Wide>(shape.k);
  const Wide bytes = (m * k + n * k) * bytes_of(in) + m * n * bytes_of(out);
  return bytes > kUnknown ? kUnknown : static_cast<uint64_t>(bytes);
}

uint64_t available_host_memory(const std::filesystem::path& root) {
  return std::min(available_to_the_system(root), available_to_control_groups(root));
}

void check_memory(uint64_t needed, uint64_t available, const char* place, const char* why) {
  if (needed <= available) return;
  throw UserError(fmt::format("this needs {} {} ({}) and {} are available; take a smaller shape", readable(needed),
                              place, why, readable(available)));
}

}  // namespace ladder
