#include "emulator/runtime/queue.h"

namespace emu::runtime {
namespace {
thread_local bool is_worker = false, learned_of_an_end = false;
}

bool& Queue::learned() {
  return learned_of_an_end;
}

bool Queue::inside() {
  return is_worker;
}

Ticket Queue::push(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(started_, true)) std::thread([this] { this->work(); }).detach();
  pending_.push_back(std::move(work));
  issued_.notify_one();
  return ++last_;
}

void Queue::wait(Ticket ticket) {
  if (!done(ticket)) {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return done(ticket); });
  }
  on_waited_();
}

void Queue::wait_all() {
  Ticket last = 0;
  {
    const std::lock_guard lock(mutex_);
    last = last_;
  }
  wait(last);
}

void Queue::drop_pending() {
  if (inside()) return;
  ending_ = true;
  {
    const std::lock_guard lock(mutex_);
    for (auto& work : pending_) work = [] {};
  }
  wait_all();
}

void Queue::work() {
  is_worker = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    issued_.wait(lock, [&] { return !pending_.empty(); });
    auto work = std::move(pending_.front());
    pending_.pop_front();
    lock.unlock();
    try {
      work();
    } catch (const std::exception& error) {
      on_exception_(error);
    }
    work = nullptr;  // frees what it captured before anyone learns that it ended
    lock.lock();
    finished_.store(finished_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    ended_.notify_all();
  }
}

}  // namespace emu::runtime
