#pragma once
// The host side of an exhibit: `<exhibit> broken | fixed [--bounded] [--runs N]` runs one of the twins and compares
// what it leaves with what is right, value by value. One line a run:
//   result: right
//   result: wrong (N of M values; first at i: got x, expected y)
//   result: launch failed: <cudaError name>
// Exit status 0 when every run was right, 1 when one was not, 2 for a command line that says nothing.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace museum {

struct Shape {
  unsigned ctas = 1;
  unsigned threads = 128;
  unsigned cluster = 1;  ///< CTAs per cluster
  unsigned dynamic_shared_bytes = 0;
};

class Exhibit {
 public:
  Exhibit(int argc, char** argv);

  const bool& broken = broken_;
  /// How often a wait whose point is that it hangs may ask: 0, for ever, unless --bounded is given.
  uint32_t tries() const;

  /// Global memory that holds `words` when a run begins.
  template <class T>
  T* memory(const std::vector<T>& words) {
    return static_cast<T*>(add_memory(words.data(), words.size() * sizeof(T)));
  }
  /// Global memory of `count` words that no result has: it begins as 0xCD bytes.
  template <class T>
  T* output(size_t count) {
    output_ = memory(std::vector<uint32_t>(count, 0xCDCDCDCD));
    return reinterpret_cast<T*>(output_);
  }
  /// The map of a row-major matrix of f32 in global memory, and of the boxes in which TMA moves it.
  CUtensorMap tensor_map(const void* matrix, uint64_t rows, uint64_t columns, uint32_t box_rows, uint32_t box_columns,
                         CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE) const;

  /// What each run launches.
  template <class... P>
  void launches(void (*kernel)(P...), Shape shape, std::type_identity_t<P>... arguments) {
    kernel_ = reinterpret_cast<const void*>(kernel);
    shape_ = shape;
    (add_argument(&arguments, sizeof arguments), ...);
  }

  /// Runs it, and compares the output. Returns the exit status.
  int compare(const std::vector<uint32_t>& expected);
  int compare(const std::vector<float>& expected);

 private:
  struct Memory {
    void* device;
    std::vector<std::byte> initial;
  };

  void* add_memory(const void* words, size_t bytes);
  void add_argument(const void* value, size_t bytes);
  bool launch();
  template <class T>
  int compare_words(const std::vector<T>& expected);

  bool broken_ = false, bounded_ = false;
  int runs_ = 1;
  const void* kernel_ = nullptr;
  Shape shape_;
  std::vector<std::vector<std::byte>> arguments_;
  std::vector<Memory> memory_;
  void* output_ = nullptr;
};

/// `count` numbers without a pattern, the same ones every time.
std::vector<uint32_t> numbers(size_t count);

}  // namespace museum
