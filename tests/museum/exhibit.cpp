#include "tests/museum/exhibit.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "common/harness/launch.h"
#include "common/harness/tensor_map.h"

namespace museum {
namespace {

constexpr uint32_t kTries = 1u << 14;  // as in exhibit.cuh

[[noreturn]] void explain(const char* program) {
  std::fprintf(stderr,
               "usage: %s broken | fixed [--bounded] [--runs N]\n"
               "  --bounded  waits that would never end give up, and the launch fails\n"
               "  --runs N   N launches; none after one that failed\n",
               program);
  std::exit(2);
}

void print(uint32_t value) {
  std::printf("%u", value);
}
void print(float value) {
  std::printf("%g", static_cast<double>(value));
}

}  // namespace

Exhibit::Exhibit(int argc, char** argv) {
  const std::string_view twin = argc > 1 ? argv[1] : "";
  if (twin != "broken" && twin != "fixed") explain(argv[0]);
  broken_ = twin == "broken";
  for (int i = 2; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--bounded") {
      bounded_ = true;
    } else if (option == "--runs" && i + 1 < argc) {
      runs_ = std::atoi(argv[++i]);
    } else {
      explain(argv[0]);
    }
  }
  if (runs_ < 1) explain(argv[0]);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // who ends a run that hangs still gets the lines of those before it
}

uint32_t Exhibit::tries() const {
  return bounded_ ? kTries : 0;
}

void* Exhibit::add_memory(const void* words, size_t bytes) {
  const auto* const first = static_cast<const std::byte*>(words);
  memory_.push_back({nullptr, {first, first + bytes}});
  ladder::check(cudaMalloc(&memory_.back().device, bytes), "cudaMalloc");
  return memory_.back().device;
}

void Exhibit::add_argument(const void* value, size_t bytes) {
  const auto* const first = static_cast<const std::byte*>(value);
  arguments_.emplace_back(first, first + bytes);
}

CUtensorMap Exhibit::tensor_map(const void* matrix, uint64_t rows, uint64_t columns, uint32_t box_rows,
                                uint32_t box_columns, CUtensorMapSwizzle swizzle) const {
  const uint64_t dims[] = {columns, rows}, strides_bytes[] = {columns * 4};
  const uint32_t box[] = {box_columns, box_rows};
  return ladder::make_tensor_map(ladder::DType::f32, matrix, dims, strides_bytes, box, swizzle);
}

bool Exhibit::launch() {
  std::vector<void*> pointers;
  for (auto& argument : arguments_) pointers.push_back(argument.data());
  cudaError_t code = cudaSuccess;
  try {
    ladder::launch_pointers(kernel_,
                            {.grid = shape_.ctas,
                             .block = shape_.threads,
                             .cluster = shape_.cluster,
                             .dynamic_shared_bytes = shape_.dynamic_shared_bytes},
                            pointers.data());
    code = cudaDeviceSynchronize();
  } catch (const ladder::CudaError& error) {
    code = error.code();
  }
  if (code == cudaSuccess) return true;
  std::printf("result: launch failed: %s%s\n", cudaGetErrorName(code),
              code == cudaErrorAssert ? " (a wait gave up)" : "");
  return false;
}

template <class T>
int Exhibit::compare_words(const std::vector<T>& expected) {
  bool right = true;
  std::vector<T> got(expected.size());
  for (int run = 0; run < runs_; ++run) {
    for (const Memory& memory : memory_) {
      ladder::check(cudaMemcpy(memory.device, memory.initial.data(), memory.initial.size(), cudaMemcpyDefault),
                    "filling global memory");
    }
    if (!launch()) return 1;
    ladder::check(cudaMemcpy(got.data(), output_, got.size() * sizeof(T), cudaMemcpyDefault), "fetching the output");
    size_t wrong = 0, first = 0;
    for (size_t i = got.size(); i-- > 0;) {
      if (std::memcmp(&got[i], &expected[i], sizeof(T)) != 0) ++wrong, first = i;
    }
    if (wrong == 0) {
      std::printf("result: right\n");
      continue;
    }
    std::printf("result: wrong (%zu of %zu values; first at %zu: got ", wrong, got.size(), first);
    print(got[first]);
    std::printf(", expected ");
    print(expected[first]);
    std::printf(")\n");
    right = false;
  }
  return right ? 0 : 1;
}

int Exhibit::compare(const std::vector<uint32_t>& expected) {
  return compare_words(expected);
}
int Exhibit::compare(const std::vector<float>& expected) {
  return compare_words(expected);
}

std::vector<uint32_t> numbers(size_t count) {
  std::vector<uint32_t> words(count);
  uint32_t state = 12345;
  for (uint32_t& word : words) word = state = state * 1664525 + 1013904223;
  return words;
}

}  // namespace museum
