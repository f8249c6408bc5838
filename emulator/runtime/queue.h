#pragma once
// The device's execution queue: one worker thread runs operations in the order in which they were issued, whatever
// their stream. Every order that CUDA's streams and events ask for is kept, since each of them only ever asks that
// something issued earlier also ends earlier; what is given up is overlap, which a program may hope for but not rely
// on.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace emu::runtime {

/// Operations are numbered from 1 in the order of issue; 0 stands for "nothing", which has always ended.
using Ticket = uint64_t;

class Queue {
 public:
  /// `on_exception`: told of what an operation threw; the queue goes on. `on_waited`: called by each thread that has
  /// waited for operations.
  Queue(std::function<void(const std::exception&)> on_exception, std::function<void()> on_waited)
      : on_exception_(std::move(on_exception)), on_waited_(std::move(on_waited)) {}

  Ticket push(std::function<void()> work);

  bool done(Ticket ticket) const {
    const bool ended = ticket <= finished_.load(std::memory_order_acquire);
    learned() = learned() || ended;
    return ended;
  }
  void wait(Ticket ticket);
  void wait_all();

  /// For the end of the process: forgets what has not begun and waits for what has.
  void drop_pending();

  /// The process is about to end: an operation that waits for the host should not.
  bool ending() const { return ending_; }

  /// True on the worker thread, i.e. inside an operation.
  static bool inside();
  /// Whether this thread has seen an operation to have ended since it last set this to false: who has, is told how.
  static bool& learned();

 private:
  void work();

  const std::function<void(const std::exception&)> on_exception_;
  const std::function<void()> on_waited_;
  std::mutex mutex_;
  std::condition_variable issued_, ended_;
  std::deque<std::function<void()>> pending_;
  Ticket last_ = 0;
  std::atomic<Ticket> finished_ = 0;
  std::atomic<bool> ending_ = false;
  bool started_ = false;
};

}  // namespace emu::runtime
