#include "emulator/runtime/event.h"

#include "emulator/runtime/error.h"

namespace emu::runtime {

cudaEvent_t Events::create(unsigned flags) {
  constexpr unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
  const bool interprocess_with_time = (flags & cudaEventInterprocess) && !(flags & cudaEventDisableTiming);
  if ((flags & ~known) || interprocess_with_time) throw ApiError{cudaErrorInvalidValue};
  auto event = std::make_unique<Event>();
  event->flags = flags;
  const auto handle = reinterpret_cast<cudaEvent_t>(event.get());
  const std::lock_guard lock(mutex_);
  live_.emplace(handle, std::move(event));
  return handle;
}

void Events::destroy(cudaEvent_t handle) {
  const std::lock_guard lock(mutex_);
  if (live_.erase(handle) == 0) throw ApiError{cudaErrorInvalidResourceHandle};
}

Events::Event& Events::find(cudaEvent_t handle) {
  const auto found = live_.find(handle);
  if (found == live_.end()) throw ApiError{cudaErrorInvalidResourceHandle};
  return *found->second;
}

std::shared_ptr<Events::Recorded> Events::recorded(cudaEvent_t handle) {
  const std::lock_guard lock(mutex_);
  return find(handle).recorded;
}

void Events::record(cudaEvent_t handle, Stream& stream, bool as_node) {
  const std::lock_guard lock(mutex_);
  Event& event = find(handle);
  const Streams::State state = streams_.capture_of(stream);
  if (state.capture && as_node) {
    streams_.submit(stream, {}, {.type = cudaGraphNodeTypeEventRecord, .event = handle});
    return;
  }
  auto recorded = std::make_shared<Recorded>();
  if (state.capture) {
    if (!state.capture->valid) throw ApiError{cudaErrorStreamCaptureInvalidated};
    recorded->capture = state.capture;
    recorded->nodes = state.tail;
  } else {
    recorded->ticket = streams_.submit(stream, [recorded] { recorded->time = Clock::now(); });
  }
  event.recorded = std::move(recorded);
}

std::shared_ptr<Events::Recorded> Events::recorded_to_wait_for(cudaEvent_t handle) {
  auto latest = recorded(handle);
  if (latest) streams_.refuse_wait_for_event_of(latest->capture);
  streams_.refuse_unsafe_call();
  return latest;
}

bool Events::done(cudaEvent_t handle) {
  const auto latest = recorded_to_wait_for(handle);
  return !latest || queue_.done(latest->ticket);
}

void Events::wait(cudaEvent_t handle) {
  const auto latest = recorded_to_wait_for(handle);
  if (latest) queue_.wait(latest->ticket);
}

void Events::make_wait(Stream& stream, cudaEvent_t handle, bool as_node) {
  const auto latest = recorded(handle);
  if (latest && latest->capture) return streams_.join(stream, latest->capture, latest->nodes);
  if (streams_.captures(stream)) {
    if (!as_node) streams_.refuse_outside_work(stream);
    streams_.submit(stream, {}, {.type = cudaGraphNodeTypeWaitEvent, .event = handle});
    return;
  }
  // The record was issued before, so the queue reaches it first; the stream must only not count as idle until then.
  if (latest) streams_.submit(stream, [] {});
}

float Events::elapsed_ms(cudaEvent_t start, cudaEvent_t end) {
  std::shared_ptr<Recorded> from, to;
  {
    const std::lock_guard lock(mutex_);
    const Event& first = find(start);
    const Event& second = find(end);
    if (((first.flags | second.flags) & cudaEventDisableTiming) || !first.recorded || !second.recorded)
      throw ApiError{cudaErrorInvalidResourceHandle};
    from = first.recorded;
    to = second.recorded;
  }
  streams_.refuse_event_of(from->capture);
  streams_.refuse_event_of(to->capture);
  if (!queue_.done(from->ticket) || !queue_.done(to->ticket)) throw ApiError{cudaErrorNotReady};
  return std::chrono::duration<float, std::milli>(to->time - from->time).count();
}

void Events::forget_all() {
  const std::lock_guard lock(mutex_);
  live_.clear();
}

}  // namespace emu::runtime
