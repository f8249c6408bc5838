#pragma once
// How much memory a run needs and how much there is: known before anything is allocated.

#include <cstdint>
#include <filesystem>

#include "common/harness/dtype.h"
#include "common/harness/shapes.h"

namespace ladder {

/// Bytes of A, B and D together, without padding; saturates instead of overflowing.
uint64_t matrices_bytes(const Shape& shape, DType in, DType out);

/// Bytes that can be allocated on this machine now: the kernel's MemAvailable, or less where a control group (a
/// container) allows less. `root` is "/" except in tests. UINT64_MAX where the system does not say.
uint64_t available_host_memory(const std::filesystem::path& root = "/");

/// Throws UserError unless `needed` bytes fit into `available`. `place`: "of host memory". `why`: what they are for.
void check_memory(uint64_t needed, uint64_t available, const char* place, const char* why);

}  // namespace ladder
