// What one tcgen05.mma costs the emulator, part by part and on each instruction set: 128 x 256, K = 16 (tf32: 8).
//   tensor_core_benchmark
#include <hwy/highway.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "emulator/units/descriptor_operand.h"
#include "emulator/units/tensor_core.h"
#include "emulator/units/tensor_core_exact.h"

namespace {

using namespace emu;

/// Microseconds of one call: the best of several batches.
double microseconds(const std::function<void()>& body) {
  double best = 1e9;
  for (int batch = 0; batch < 20; ++batch) {
    constexpr int calls = 50;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) body();
    const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count() / calls);
  }
  return best;
}

std::vector<std::byte> normal_bytes(ElementType type, size_t bytes) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  std::vector<std::byte> result(bytes);
  for (size_t at = 0; at < bytes; at += element_bytes(type)) {
    const float value = normal(random);
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (type == ElementType::bf16) bits >>= 16;
    if (type == ElementType::f16) bits = float_to_f16(value);
    std::memcpy(&result[at], &bits, element_bytes(type));
  }
  return result;
}

}  // namespace

int main() {
  constexpr uint32_t rows = 128, columns = 256;
  std::vector<std::vector<uint32_t>> lanes(rows, std::vector<uint32_t>(512));
  std::vector<uint32_t*> d;
  for (auto& lane : lanes) d.push_back(lane.data());
  static PackedOperand a, b;

  std::vector<std::byte> shared(1 << 16), dense(columns * kOperandBytesPerRow);
  const SharedWindow window{shared.data(), 0, 1 << 16};
  const auto gather = [&](uint64_t high_word, uint64_t leading, Major major) {
    const auto descriptor = decode_tcgen05_matrix_descriptor(high_word << 32 | leading >> 4 << 16, "B");
    return microseconds([&] {
      gather_operand(window, descriptor, {rows, ElementType::f16, major}, "A", dense.data());
      gather_operand(window, descriptor, {columns, ElementType::f16, major}, "B", dense.data());
    });
  };
  std::printf("gather A and B, K-major:   no swizzle %.2f us, 128B %.2f us\n", gather(0x00004008, 4096, Major::k),
              gather(0x40004040, 0, Major::k));
  std::printf("gather A and B, MN-major:  no swizzle %.2f us, 128B %.2f us\n", gather(0x00004008, 4096, Major::mn),
              gather(0x40004040, 2048, Major::mn));

  for (ElementType type : {ElementType::f16, ElementType::bf16, ElementType::tf32}) {
    const auto bytes = normal_bytes(type, columns * kOperandBytesPerRow);
    for (int bit = 0; bit < 63; ++bit) {
      const int64_t target = int64_t{1} << bit;
      hwy::SetSupportedTargetsForTest(0);
      if ((target & HWY_TARGETS & hwy::SupportedTargets()) == 0) continue;
      hwy::SetSupportedTargetsForTest(target);
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
      const double pack = microseconds([&] {
        a.pack(type, rows, bytes.data());
        b.pack(type, columns, bytes.data());
      });
      for (auto& lane : lanes) std::fill(lane.begin(), lane.end(), 0);
      if (target == HWY_STATIC_TARGET && hwy::TargetName(target) == std::string("SCALAR"))
        continue;  // the exact form: slow
      const double multiply = microseconds([&] { fused_multiply_add(a, b, {}, d); });
      std::printf("%-5s %-6s pack %5.2f us, multiply %6.2f us = %.3f ns per output\n", name(type),
                  hwy::TargetName(target), pack, multiply, multiply * 1000 / (rows * columns));
    }
  }
}
