// What ordinary library code costs on the emulated chip: thrust sorts N random keys and sums them up, and the host
// checks both. Prints the seconds of each.

#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

template <class F>
static double seconds(F f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

int main(int count, char** arguments) {
  const size_t n = count > 1 ? std::stoul(arguments[1]) : 1 << 20;
  std::vector<uint32_t> keys(n);
  std::mt19937 random(1);
  std::generate(keys.begin(), keys.end(), std::ref(random));
  thrust::device_vector<uint32_t> on_device = keys;

  uint64_t sum = 0;
  const double reduction = seconds([&] { sum = thrust::reduce(on_device.begin(), on_device.end(), uint64_t{0}); });
  const double sort = seconds([&] { thrust::sort(on_device.begin(), on_device.end()); });
  std::vector<uint32_t> sorted(n);
  thrust::copy(on_device.begin(), on_device.end(), sorted.begin());

  const bool right_sum = sum == std::accumulate(keys.begin(), keys.end(), uint64_t{0});
  std::sort(keys.begin(), keys.end());
  const bool right_order = sorted == keys;
  std::printf("%zu keys: sum %s in %.2f s, sort %s in %.2f s\n", n, right_sum ? "right" : "WRONG", reduction,
              right_order ? "right" : "WRONG", sort);
  return right_sum && right_order ? 0 : 1;
}
