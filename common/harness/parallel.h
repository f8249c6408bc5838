#pragma once
// A loop split evenly over the machine's threads.

#include <algorithm>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace ladder {

inline int worker_count() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Calls body(begin, end, worker) for consecutive parts of [0, count), each at least `grain` long save the last, on up
/// to worker_count() threads; `worker` is below worker_count(). Returns when all are done; rethrows the first
/// exception.
template <class Body>
void parallel_for(int64_t count, int64_t grain, const Body& body) {
  const int64_t parts = std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, worker_count());
  std::vector<std::exception_ptr> failures(static_cast<size_t>(parts));
  const auto part = [&](int64_t index) {
    try {
      const int64_t begin = count / parts * index + std::min(index, count % parts);
      const int64_t end = count / parts * (index + 1) + std::min(index + 1, count % parts);
      if (begin < end) body(begin, end, static_cast<int>(index));
    } catch (...) {
      failures[static_cast<size_t>(index)] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (int64_t index = 1; index < parts; ++index) threads.emplace_back(part, index);
  part(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace ladder
