#pragma once
// From a request to run a kernel to an operation in the queue: the rules that CUDA checks at the call, each with a line
// that says what was asked, what the limit is and what to do.

#include <span>

#include "emulator/runtime/launch_request.h"
#include "emulator/runtime/runtime.h"

namespace emu::runtime {

/// The kernel behind a host address or a handle. Throws cudaErrorInvalidDeviceFunction for null and
/// cudaErrorInvalidResourceHandle for anything unknown, as an H200's runtime does.
Function& find_function(Runtime& runtime, const void* what);

/// `arguments`: one pointer per parameter. Throws ApiError.
void launch(Runtime& runtime, const LaunchRequest& request, void** arguments, Stream& stream);

/// Same, with the parameters packed as the kernel wants them (the driver API's CU_LAUNCH_PARAM_BUFFER_POINTER).
void launch_packed(Runtime& runtime, const LaunchRequest& request, std::span<const std::byte> parameters,
                   Stream& stream);

/// CTAs of the kernel that an SM holds, 0 when it cannot be launched so.
int blocks_per_sm(Runtime& runtime, const Function& function, int threads_per_block, size_t dynamic_shared_bytes);

inline constexpr uint32_t kMaxThreadsPerBlock = 1024, kMaxBlockZ = 64;
inline constexpr uint32_t kMaxGridX = 2147483647, kMaxGridYZ = 65535;
/// What a CTA may have without asking for more, static and dynamic together. CUDA programming guide, "Technical
/// Specifications".
inline constexpr uint32_t kSharedWithoutAsking = 48 * 1024;

}  // namespace emu::runtime
