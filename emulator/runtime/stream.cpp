#include "emulator/runtime/stream.h"

#include <algorithm>

#include "emulator/runtime/error.h"

namespace emu::runtime {

Streams::Streams(Queue& queue) : queue_(queue), legacy_(std::make_shared<Stream>()) {
  legacy_->id = next_id_++;
  legacy_->legacy = true;
}

std::shared_ptr<Stream> Streams::find(cudaStream_t handle) {
  struct OfThread {
    uint64_t generation = 0;
    std::shared_ptr<Stream> stream;
  };
  thread_local OfThread of_thread;

  const std::lock_guard lock(mutex_);
  if (handle == nullptr || handle == cudaStreamLegacy) return legacy_;
  if (handle == cudaStreamPerThread) {
    if (of_thread.generation != generation_) {
      of_thread = {generation_, std::make_shared<Stream>()};
      of_thread.stream->id = next_id_++;
    }
    return of_thread.stream;
  }
  const auto found = live_.find(handle);
  if (found == live_.end()) throw ApiError{cudaErrorInvalidResourceHandle};
  return found->second;
}

cudaStream_t Streams::create(unsigned flags, int priority) {
  if (flags != cudaStreamDefault && flags != cudaStreamNonBlocking) throw ApiError{cudaErrorInvalidValue};
  auto stream = std::make_shared<Stream>();
  stream->flags = flags;
  stream->priority = std::clamp(priority, kHighestPriority, kLowestPriority);
  const auto handle = reinterpret_cast<cudaStream_t>(stream.get());
  const std::lock_guard lock(mutex_);
  stream->id = next_id_++;
  live_.emplace(handle, std::move(stream));
  return handle;
}

void Streams::destroy(cudaStream_t handle) {
  // Work that is under way goes on; only the name is gone.
  const std::lock_guard lock(mutex_);
  if (live_.erase(handle) == 0) throw ApiError{cudaErrorInvalidResourceHandle};
}

Ticket Streams::submit(Stream& stream, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  stream.last = queue_.push(std::move(work));
  if (stream.blocking()) last_blocking_ = stream.last;
  return stream.last;
}

Ticket Streams::last_of(const Stream& stream) const {
  const std::lock_guard lock(mutex_);
  return stream.legacy ? last_blocking_ : stream.last;
}

void Streams::forget_all() {
  const std::lock_guard lock(mutex_);
  live_.clear();
  ++generation_;
}

}  // namespace emu::runtime
