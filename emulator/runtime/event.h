#pragma once
// Events. An event's time is the host's wall clock (std::chrono::steady_clock) at which the worker came to it: an
// emulated kernel's "duration" says how long the emulation took, never how long a GPU would take.

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>

#include "emulator/runtime/cuda_api.h"
#include "emulator/runtime/stream.h"

namespace emu::runtime {

class Events {
 public:
  explicit Events(Queue& queue, Streams& streams) : queue_(queue), streams_(streams) {}

  cudaEvent_t create(unsigned flags);
  void destroy(cudaEvent_t handle);

  /// `as_node`: where the stream captures, a node that records the event at each launch, instead of a mark in the
  /// capture. Likewise make_wait.
  void record(cudaEvent_t handle, Stream& stream, bool as_node = false);
  // These and elapsed_ms are refused for an event of a capture (Streams::refuse_event_of); the first two are what a
  // capture forbids, too (Streams::refuse_unsafe_call).
  bool done(cudaEvent_t handle);  ///< true for an event that was never recorded
  void wait(cudaEvent_t handle);
  void make_wait(Stream& stream, cudaEvent_t handle, bool as_node = false);
  /// Throws cudaErrorInvalidResourceHandle for events without a time, cudaErrorNotReady for events not reached yet.
  float elapsed_ms(cudaEvent_t start, cudaEvent_t end);

  void forget_all();

 private:
  using Clock = std::chrono::steady_clock;
  struct Recorded {
    Ticket ticket = 0;
    Clock::time_point time;  // valid once the ticket is done
    // In a stream that captured: what whoever waits for the event will need.
    std::shared_ptr<Capture> capture;
    std::vector<GraphNode*> nodes;
  };
  struct Event {
    unsigned flags = 0;
    std::shared_ptr<Recorded> recorded;  // the latest; null before the first
  };

  std::shared_ptr<Recorded> recorded(cudaEvent_t handle);
  std::shared_ptr<Recorded> recorded_to_wait_for(cudaEvent_t handle);
  Event& find(cudaEvent_t handle);  // needs mutex_

  Queue& queue_;
  Streams& streams_;
  std::mutex mutex_;
  std::map<cudaEvent_t, std::unique_ptr<Event>> live_;
};

}  // namespace emu::runtime
