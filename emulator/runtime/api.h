#pragma once
// What every exported function has in common.

#include <exception>
#include <new>
#include <string>

#include "emulator/machine/trap.h"
#include "emulator/runtime/cuda_api.h"
#include "emulator/runtime/error.h"
#include "emulator/runtime/message.h"
#include "emulator/runtime/runtime.h"

namespace emu::runtime {

/// After a fault on the device, calls that need the context return its error, as they do on an H200; the others go on.
/// `no_capture`: the context, and that no capture of a stream is under way that forbids what CUDA calls potentially
/// unsafe: what is done at once and not in a stream, so that no graph would do it (Streams::refuse_unsafe_call).
enum class Needs { context, no_capture, nothing };

/// Runs the body of an exported function and turns what it throws into the function's error code.
template <class Body>
cudaError_t answer(Needs needs, Body&& body) noexcept {
  try {
    if (Queue::inside()) return remember(cudaErrorNotPermitted);  // a host function may not call CUDA
    Runtime& runtime = Runtime::get();
    runtime.initialise_driver();
    if (needs != Needs::nothing && runtime.sticky_error() != cudaSuccess) return remember(runtime.sticky_error());
    if (needs == Needs::no_capture) runtime.streams.refuse_unsafe_call();
    Queue::learned() = false;
    body(runtime);
    // A fault of what the body has only just issued is not the body's error, however quick it was.
    return needs != Needs::nothing && Queue::learned() ? remember(runtime.sticky_error()) : cudaSuccess;
  } catch (const ApiError& error) {
    if (!error.line.empty()) say(error.line);
    return remember(error.code);
  } catch (const std::bad_alloc&) {
    return remember(cudaErrorMemoryAllocation);
  } catch (const std::exception& error) {
    say(std::string("internal error: ") + error.what());
    return remember(cudaErrorUnknown);
  }
}

template <class Body>
cudaError_t answer(Body&& body) noexcept {
  return answer(Needs::context, static_cast<Body&&>(body));
}

inline void require(bool fine, cudaError_t otherwise = cudaErrorInvalidValue) {
  if (!fine) throw ApiError{otherwise};
}

/// There is one device, number 0.
inline void require_device(int device) {
  require(device == 0, cudaErrorInvalidDevice);
}

/// The stream that a function with the suffix _ptsz or _ptds means by 0.
inline cudaStream_t per_thread(cudaStream_t stream) {
  return stream ? stream : cudaStreamPerThread;
}

}  // namespace emu::runtime
