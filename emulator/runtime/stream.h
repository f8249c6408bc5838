#pragma once
// Streams: which operation each of them issued last. The queue keeps the order; a stream only knows what to wait for.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "emulator/runtime/cuda_api.h"
#include "emulator/runtime/queue.h"

namespace emu::runtime {

struct Stream {
  uint64_t id = 0;
  unsigned flags = cudaStreamDefault;  ///< or cudaStreamNonBlocking
  int priority = 0;
  Ticket last = 0;  ///< guarded by Streams
  bool legacy = false;
  std::map<cudaLaunchAttributeID, cudaLaunchAttributeValue> attributes;  ///< as set by the program
  bool blocking() const { return flags != cudaStreamNonBlocking; }
};

/// Lowest and highest priority, as on an H200.
inline constexpr int kLowestPriority = 0, kHighestPriority = -5;

class Streams {
 public:
  explicit Streams(Queue& queue);

  /// The stream behind a handle: 0 and cudaStreamLegacy are the legacy default stream, cudaStreamPerThread the calling
  /// thread's own. Throws cudaErrorInvalidResourceHandle for a handle that create did not return.
  std::shared_ptr<Stream> find(cudaStream_t handle);

  cudaStream_t create(unsigned flags, int priority);
  void destroy(cudaStream_t handle);

  Ticket submit(Stream& stream, std::function<void()> work);

  /// What "all work in this stream" means. The legacy default stream waits for the work of all blocking streams.
  Ticket last_of(const Stream& stream) const;

  void forget_all();  ///< cudaDeviceReset

 private:
  Queue& queue_;
  mutable std::mutex mutex_;
  std::map<cudaStream_t, std::shared_ptr<Stream>> live_;
  std::shared_ptr<Stream> legacy_;
  Ticket last_blocking_ = 0;  // issued by any blocking stream
  uint64_t next_id_ = 1;
  uint64_t generation_ = 1;  // of the context: a per-thread stream belongs to one
};

}  // namespace emu::runtime
