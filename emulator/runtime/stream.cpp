#include "emulator/runtime/stream.h"

#include <algorithm>
#include <utility>

#include "emulator/runtime/error.h"

namespace emu::runtime {
namespace {
thread_local cudaStreamCaptureMode mode_of_thread = cudaStreamCaptureModeGlobal;
}

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
  const auto found = live_.find(handle);
  if (found == live_.end()) throw ApiError{cudaErrorInvalidResourceHandle};
  if (const auto capture = found->second->capture) {
    capture->valid = false;
    if (capture->origin == found->second.get()) leave(capture);
    std::erase(capture->streams, found->second.get());
  }
  live_.erase(found);
}

Ticket Streams::submit(Stream& stream, std::function<void()> work, NodeDescription what) {
  const std::lock_guard lock(mutex_);
  if (stream.capture) {
    if (!stream.capture->valid) throw ApiError{cudaErrorStreamCaptureInvalidated};
    stream.tail = {stream.capture->graph->add(std::move(what), std::move(work), stream.tail)};
    return 0;
  }
  if (stream.legacy) refuse_beside_blocking();
  stream.last = queue_.push(std::move(work));
  if (stream.blocking()) last_blocking_ = stream.last;
  return stream.last;
}

Ticket Streams::last_of(const Stream& stream) const {
  const std::lock_guard lock(mutex_);
  return stream.legacy ? last_blocking_ : stream.last;
}

Capture* Streams::capture_of_blocking_streams() const {
  for (const auto& capture : captures_)
    if (std::ranges::any_of(capture->streams, &Stream::blocking)) return capture.get();
  return nullptr;
}

// Work in the legacy stream waits for that of all blocking streams, which is not to happen now.
void Streams::refuse_beside_blocking() {
  Capture* capture = capture_of_blocking_streams();
  if (!capture) return;
  capture->valid = false;
  throw ApiError{cudaErrorStreamCaptureImplicit};
}

bool Streams::beside_blocking_capture(const Stream& stream) const {
  const std::lock_guard lock(mutex_);
  return stream.legacy && capture_of_blocking_streams();
}

cudaStreamCaptureMode Streams::exchange_capture_mode(cudaStreamCaptureMode mode) {
  return std::exchange(mode_of_thread, mode);
}

void Streams::refuse_unsafe_call() {
  const std::lock_guard lock(mutex_);
  bool refused = false;
  for (const auto& capture : captures_) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool forbids =
        own ? capture->mode != cudaStreamCaptureModeRelaxed : capture->mode == cudaStreamCaptureModeGlobal;
    const bool heeded =
        own ? mode_of_thread != cudaStreamCaptureModeRelaxed : mode_of_thread == cudaStreamCaptureModeGlobal;
    if (!forbids || !heeded) continue;
    capture->valid = false;
    refused = true;
  }
  if (refused) throw ApiError{cudaErrorStreamCaptureUnsupported};
}

bool Streams::captures(const Stream& stream) const {
  const std::lock_guard lock(mutex_);
  return stream.capture != nullptr;
}

void Streams::refuse_while_capturing(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  if (stream.legacy) refuse_beside_blocking();
  if (!stream.capture) return;
  stream.capture->valid = false;
  throw ApiError{cudaErrorStreamCaptureUnsupported};
}

void Streams::refuse_while_capturing() {
  const std::lock_guard lock(mutex_);
  if (captures_.empty()) return;
  for (const auto& capture : captures_) capture->valid = false;
  throw ApiError{cudaErrorStreamCaptureUnsupported};
}

void Streams::begin_capture(Stream& stream, cudaStreamCaptureMode mode, std::shared_ptr<Graph> graph,
                            std::vector<GraphNode*> needs) {
  const std::lock_guard lock(mutex_);
  if (stream.legacy) throw ApiError{cudaErrorStreamCaptureUnsupported};
  if (stream.capture) throw ApiError{cudaErrorIllegalState};
  auto capture = std::make_shared<Capture>();
  capture->graph = std::move(graph);
  capture->origin = &stream;
  capture->streams = {&stream};
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->id = next_capture_++;
  captures_.push_back(capture);
  stream.capture = std::move(capture);
  stream.tail = std::move(needs);
}

bool Streams::under_way(const std::shared_ptr<Capture>& capture) const {
  return std::ranges::find(captures_, capture) != captures_.end();
}

void Streams::leave(const std::shared_ptr<Capture>& capture) {
  for (Stream* stream : capture->streams) {
    stream->capture = nullptr;
    stream->tail.clear();
  }
  std::erase(captures_, capture);
}

void Streams::end_capture(Stream& stream, std::shared_ptr<Graph>& graph) {
  const std::lock_guard lock(mutex_);
  const auto capture = stream.capture;
  if (!capture) throw ApiError{cudaErrorIllegalState};
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
    throw ApiError{cudaErrorStreamCaptureWrongThread};
  if (capture->origin != &stream) {
    capture->valid = false;
    throw ApiError{cudaErrorStreamCaptureUnmatched};
  }
  graph = capture->graph;
  // Everything that other streams were given must come before what the origin would do next.
  std::vector<GraphNode*> reached = stream.tail;
  for (size_t i = 0; i < reached.size(); ++i)
    for (GraphNode* need : reached[i]->needs)
      if (std::ranges::find(reached, need) == reached.end()) reached.push_back(need);
  bool joined = true;
  for (const Stream* other : capture->streams)
    for (GraphNode* node : other->tail) joined &= std::ranges::find(reached, node) != reached.end();
  const bool valid = capture->valid;
  leave(capture);
  if (!valid) throw ApiError{cudaErrorStreamCaptureInvalidated};
  if (!joined) throw ApiError{cudaErrorStreamCaptureUnjoined};
}

Streams::State Streams::capture_of(const Stream& stream) const {
  const std::lock_guard lock(mutex_);
  return {stream.capture, stream.tail};
}

void Streams::set_tail(Stream& stream, std::vector<GraphNode*> nodes, bool add) {
  const std::lock_guard lock(mutex_);
  if (!stream.capture) throw ApiError{cudaErrorIllegalState};
  if (!stream.capture->valid) throw ApiError{cudaErrorStreamCaptureInvalidated};
  if (!add) stream.tail.clear();
  for (GraphNode* node : nodes)
    if (std::ranges::find(stream.tail, node) == stream.tail.end()) stream.tail.push_back(node);
}

void Streams::join(Stream& stream, const std::shared_ptr<Capture>& capture, const std::vector<GraphNode*>& nodes) {
  const std::lock_guard lock(mutex_);
  if (!under_way(capture)) throw ApiError{cudaErrorInvalidValue};
  if (stream.legacy && !stream.capture) throw ApiError{cudaErrorCapturedEvent};
  if (stream.capture && stream.capture != capture) {
    stream.capture->valid = capture->valid = false;
    throw ApiError{cudaErrorStreamCaptureMerge};
  }
  if (!stream.capture) {
    stream.capture = capture;
    capture->streams.push_back(&stream);
  }
  for (GraphNode* node : nodes)
    if (std::ranges::find(stream.tail, node) == stream.tail.end()) stream.tail.push_back(node);
}

void Streams::refuse_event_of(const std::shared_ptr<Capture>& capture) const {
  const std::lock_guard lock(mutex_);
  if (capture) throw ApiError{under_way(capture) ? cudaErrorCapturedEvent : cudaErrorInvalidValue};
}

void Streams::refuse_wait_for_event_of(const std::shared_ptr<Capture>& capture) {
  {
    const std::lock_guard lock(mutex_);
    if (capture) capture->valid = false;
  }
  refuse_event_of(capture);
}

void Streams::refuse_outside_work(Stream& stream) {
  const std::lock_guard lock(mutex_);
  if (!stream.capture) return;
  stream.capture->valid = false;
  throw ApiError{cudaErrorStreamCaptureIsolation};
}

void Streams::forget_all() {
  const std::lock_guard lock(mutex_);
  while (!captures_.empty()) leave(std::shared_ptr(captures_.back()));
  live_.clear();
  ++generation_;
}

}  // namespace emu::runtime
