#pragma once
// Streams: which operation each of them issued last. The queue keeps the order; a stream only knows what to wait for.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "emulator/runtime/cuda_api.h"
#include "emulator/runtime/graph.h"
#include "emulator/runtime/queue.h"

namespace emu::runtime {

struct Stream {
  uint64_t id = 0;
  unsigned flags = cudaStreamDefault;  ///< or cudaStreamNonBlocking
  int priority = 0;
  Ticket last = 0;  ///< guarded by Streams
  bool legacy = false;
  std::map<cudaLaunchAttributeID, cudaLaunchAttributeValue> attributes;  ///< as set by the program
  std::shared_ptr<Capture> capture;  ///< null: it does not capture. Guarded by Streams, as the next one
  std::vector<GraphNode*> tail;      ///< what its next node will need
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

  /// In a stream that captures, `work` becomes the node that `what` describes, and the ticket is 0.
  Ticket submit(Stream& stream, std::function<void()> work, NodeDescription what = {});

  /// What "all work in this stream" means. The legacy default stream waits for the work of all blocking streams.
  Ticket last_of(const Stream& stream) const;

  void forget_all();  ///< cudaDeviceReset

  // ---- capture

  /// The calling thread's, of cudaThreadExchangeStreamCaptureMode. Returns the one before.
  static cudaStreamCaptureMode exchange_capture_mode(cudaStreamCaptureMode mode);
  /// Throws cudaErrorStreamCaptureUnsupported, and breaks the capture, when one that is under way forbids this thread
  /// potentially unsafe calls: its own unless relaxed, another thread's when global, as far as its mode heeds them.
  void refuse_unsafe_call();

  bool captures(const Stream& stream) const;
  /// For what has to wait for a stream, or would have to: not while it captures, which breaks the capture.
  void refuse_while_capturing(const Stream& stream);
  /// Whether it is the legacy stream, and a stream that waits for it captures. Work in it would break that capture.
  bool beside_blocking_capture(const Stream& stream) const;
  /// The same for what has to wait for the whole device.
  void refuse_while_capturing();
  /// New nodes go into `graph`, the first after `needs`.
  void begin_capture(Stream& stream, cudaStreamCaptureMode mode, std::shared_ptr<Graph> graph,
                     std::vector<GraphNode*> needs);
  /// `graph`: what was captured, also when that is no good; null when nothing ended.
  void end_capture(Stream& stream, std::shared_ptr<Graph>& graph);
  struct State {
    std::shared_ptr<Capture> capture;
    std::vector<GraphNode*> tail;
  };
  State capture_of(const Stream& stream) const;
  void set_tail(Stream& stream, std::vector<GraphNode*> nodes, bool add);
  /// The stream's next node will need these, too; a stream that does not capture begins to, with them. Throws
  /// cudaErrorInvalidValue when that capture is over.
  void join(Stream& stream, const std::shared_ptr<Capture>& capture, const std::vector<GraphNode*>& nodes);
  /// For what asks whether an event of `capture`, if it is of one, is reached, which it never is: throws
  /// cudaErrorCapturedEvent or, when that capture is over, cudaErrorInvalidValue.
  void refuse_event_of(const std::shared_ptr<Capture>& capture) const;
  /// The same of what would wait for it, which breaks the capture.
  void refuse_wait_for_event_of(const std::shared_ptr<Capture>& capture);
  /// For an event that was recorded outside of the capture.
  void refuse_outside_work(Stream& stream);

 private:
  // These need mutex_.
  bool under_way(const std::shared_ptr<Capture>& capture) const;
  void leave(const std::shared_ptr<Capture>& capture);
  Capture* capture_of_blocking_streams() const;
  void refuse_beside_blocking();
  Queue& queue_;
  mutable std::mutex mutex_;
  std::map<cudaStream_t, std::shared_ptr<Stream>> live_;
  std::shared_ptr<Stream> legacy_;
  Ticket last_blocking_ = 0;  // issued by any blocking stream
  std::vector<std::shared_ptr<Capture>> captures_;
  uint64_t next_id_ = 1, next_capture_ = 1;
  uint64_t generation_ = 1;  // of the context: a per-thread stream belongs to one
};

}  // namespace emu::runtime
