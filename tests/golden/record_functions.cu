// Records what special functions give on this GPU, for tests/unit/special_function.cpp: sets of arguments and a digest
// of the values. Exhaustive over mantissas where a function can show them, strided over exponents, random over all
// bits, whole for 16 bits.
//
//   nvcc -std=c++17 -arch=sm_90a record_functions.cu -o record_functions && ./record_functions > h200_functions.json

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define CHECK(call)                                                       \
  do {                                                                    \
    if (cudaError_t error = (call); error != cudaSuccess) {               \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error)); \
      std::exit(1);                                                       \
    }                                                                     \
  } while (0)

#define UNARY(id, text)                                           \
  struct id {                                                     \
    static constexpr const char* name = #id;                      \
    static __device__ uint64_t go(uint64_t a) {                   \
      uint32_t d;                                                 \
      asm volatile(text " %0, %1;" : "=r"(d) : "r"(uint32_t(a))); \
      return d;                                                   \
    }                                                             \
  };
#define BINARY(id, text)                                                                      \
  struct id {                                                                                 \
    static constexpr const char* name = #id;                                                  \
    static __device__ uint64_t go(uint64_t a) {                                               \
      uint32_t d;                                                                             \
      asm volatile(text " %0, %1, %2;" : "=r"(d) : "r"(uint32_t(a)), "r"(uint32_t(a >> 32))); \
      return d;                                                                               \
    }                                                                                         \
  };
// 16 bits: bit 16 of the result says whether the x2 form (value in both halves) disagrees.
#define HALF(id, text, text2)                                                       \
  struct id {                                                                       \
    static constexpr const char* name = #id;                                        \
    static __device__ uint64_t go(uint64_t a) {                                     \
      uint16_t d;                                                                   \
      uint32_t e, other = uint32_t(a & 0xFFFF) << 16 | ((a * 40503 + 17) & 0xFFFF); \
      asm volatile(text " %0, %1;" : "=h"(d) : "h"(uint16_t(a)));                   \
      asm volatile(text2 " %0, %1;" : "=r"(e) : "r"(other));                        \
      return d | uint32_t(e >> 16 != d) << 16;                                      \
    }                                                                               \
  };
// The upper half of an f64 in and out; the lower half of the input is made of it; 64 bits come back.
#define UPPER(id, text, low)                                  \
  struct id {                                                 \
    static constexpr const char* name = #id;                  \
    static __device__ uint64_t go(uint64_t a) {               \
      uint64_t d, in = a << 32 | (low);                       \
      asm volatile(text " %0, %1;" : "=l"(d) : "l"(in));      \
      return d >> 32 | (d & 0xFFFFFFFF ? 0x100000000ull : 0); \
    }                                                         \
  };
#define WIDE(id, text)                                  \
  struct id {                                           \
    static constexpr const char* name = #id;            \
    static __device__ uint64_t go(uint64_t a) {         \
      uint64_t d;                                       \
      asm volatile(text " %0, %1;" : "=l"(d) : "l"(a)); \
      return d;                                         \
    }                                                   \
  };
UNARY(rcp_ftz, "rcp.approx.ftz.f32")
UNARY(rcp, "rcp.approx.f32")
UNARY(sqrt_ftz, "sqrt.approx.ftz.f32")
UNARY(sqrt_, "sqrt.approx.f32")
UNARY(rsqrt_ftz, "rsqrt.approx.ftz.f32")
UNARY(rsqrt_, "rsqrt.approx.f32")
UNARY(sin_ftz, "sin.approx.ftz.f32")
UNARY(sin_, "sin.approx.f32")
UNARY(cos_ftz, "cos.approx.ftz.f32")
UNARY(cos_, "cos.approx.f32")
UNARY(lg2_ftz, "lg2.approx.ftz.f32")
UNARY(lg2_, "lg2.approx.f32")
UNARY(ex2_ftz, "ex2.approx.ftz.f32")
UNARY(ex2_, "ex2.approx.f32")
UNARY(tanh_, "tanh.approx.f32")
BINARY(div_approx, "div.approx.f32")
BINARY(div_approx_ftz, "div.approx.ftz.f32")
BINARY(div_full, "div.full.f32")
BINARY(div_full_ftz, "div.full.ftz.f32")
HALF(ex2_f16, "ex2.approx.f16", "ex2.approx.f16x2")
HALF(tanh_f16, "tanh.approx.f16", "tanh.approx.f16x2")
HALF(ex2_bf16, "ex2.approx.ftz.bf16", "ex2.approx.ftz.bf16x2")
HALF(tanh_bf16, "tanh.approx.bf16", "tanh.approx.bf16x2")
UPPER(rcp64, "rcp.approx.ftz.f64", 0)
UPPER(rcp64_low, "rcp.approx.ftz.f64", 0xFFFFFFFF)
UPPER(rsqrt64, "rsqrt.approx.ftz.f64", 0)
UPPER(rsqrt64_low, "rsqrt.approx.ftz.f64", 0xFFFFFFFF)
WIDE(rsqrt_f64, "rsqrt.approx.f64")

/// SplitMix64 (Steele, Lea, Flood 2014), the value after `i` steps.
__host__ __device__ inline uint64_t splitmix(uint64_t i) {
  uint64_t x = (i + 1) * 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

/// Argument i of a set: start + i * stride, or without a stride SplitMix64's value start + i. Of two operands the
/// second is the upper half.
template <class Op>
__global__ void run(uint64_t start, uint64_t stride, uint64_t count, uint64_t* out) {
  uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) out[i] = Op::go(stride ? start + i * stride : splitmix(start + i));
}

const char* separator = "";

template <class Op>
void record(uint64_t start, uint64_t stride, uint64_t count) {
  uint64_t* device;
  CHECK(cudaMalloc(&device, count * 8));
  run<Op><<<unsigned((count + 127) / 128), 128>>>(start, stride, count, device);
  CHECK(cudaGetLastError());
  std::vector<uint64_t> values(count);
  CHECK(cudaMemcpy(values.data(), device, count * 8, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(device));
  uint64_t digest = 0xCBF29CE484222325ull;  // FNV-1a, a 64-bit value at a time
  for (uint64_t value : values) digest = (digest ^ value) * 0x100000001B3ull;
  std::printf("%s\n  [\"%s\", \"%llx\", \"%llx\", \"%llx\", \"%016llx\"]", separator, Op::name,
              (unsigned long long)start, (unsigned long long)stride, (unsigned long long)count,
              (unsigned long long)digest);
  separator = ",";
}

int main() {
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  std::printf(
      "{\n\"label\": \"measured\",\n\"what\": \"results of special functions, as digests; columns: function, start, "
      "stride, count (hexadecimal), digest (record_functions.cu)\",\n\"chip\": \"%s\",\n\"sets\": [",
      properties.name);
  constexpr uint64_t M = 1 << 23;
  record<rcp_ftz>(0x3F800000, 1, M);
  record<rsqrt_ftz>(0x3F800000, 1, 2 * M);
  record<sqrt_ftz>(0x3F800000, 1, 2 * M);
  record<lg2_ftz>(0x3F000000, 1, 2 * M);
  record<lg2_ftz>(0x40000000, 1, M);
  record<lg2_ftz>(0x3E800000, 1, M);
  record<lg2_ftz>(0x44800000, 8, M / 8);
  record<lg2_ftz>(0x3D800000, 8, M / 8);
  record<lg2_ftz>(0x0D800000, 8, M / 8);
  record<lg2_ftz>(0x00000000, 0x3007, 0x7F800000 / 0x3007);
  record<ex2_ftz>(0x3F800000, 1, M);
  record<ex2_ftz>(0x3F000000, 1, M);
  record<ex2_ftz>(0x3E800000, 1, M);
  record<ex2_ftz>(0xBF800000, 2, M / 2);
  record<ex2_ftz>(0xBF000000, 2, M / 2);
  record<ex2_ftz>(0x3E000000, 4, M / 4);
  record<ex2_ftz>(0x3D800000, 8, M / 8);
  record<ex2_ftz>(0x39800000, 8, M / 8);
  record<ex2_ftz>(0xBD800000, 8, M / 8);
  record<ex2_ftz>(0xB9800000, 8, M / 8);
  record<ex2_ftz>(0x40800000, 8, M / 8);
  record<ex2_ftz>(0x42000000, 8, M / 8);
  record<ex2_ftz>(0x42800000, 8, M / 8);
  record<ex2_ftz>(0xC2800000, 8, M / 8);
  record<ex2_ftz>(0xC3000000, 8, M / 8);
  record<ex2_ftz>(0x00000000, 0x6007, 0x7F800000 / 0x6007);
  record<ex2_ftz>(0x80000000, 0x6007, 0x7F800000 / 0x6007);
  record<ex2_>(0xC2FC0000 - 0x8000, 1, 0x1A8000);
  record<sin_ftz>(0x3F000000, 1, 2 * M);
  record<sin_ftz>(0x3E800000, 1, M);
  record<sin_ftz>(0x40000000, 2, M / 2);
  record<sin_ftz>(0x40800000, 4, M / 4);
  record<sin_ftz>(0xBF800000, 8, M / 8);
  record<sin_ftz>(0x3E000000, 2, M / 2);
  record<sin_ftz>(0x3D000000, 8, M / 8);
  record<sin_ftz>(0x3A800000, 8, M / 8);
  record<sin_ftz>(0x35800000, 8, M / 8);
  record<sin_ftz>(0x42000000, 8, M / 8);
  record<sin_ftz>(0x44800000, 8, M / 8);
  record<sin_ftz>(0x47800000, 8, M / 8);
  record<sin_ftz>(0x49800000, 16, M / 16);
  record<sin_ftz>(0x4B000000, 16, M / 16);
  record<cos_ftz>(0x3F000000, 2, M);
  record<cos_ftz>(0x3E800000, 2, M / 2);
  record<cos_ftz>(0x40000000, 2, M / 2);
  record<cos_ftz>(0x40800000, 4, M / 4);
  record<cos_ftz>(0xBF800000, 8, M / 8);
  record<cos_ftz>(0x3E000000, 8, M / 8);
  record<cos_ftz>(0x3A800000, 8, M / 8);
  record<cos_ftz>(0x44800000, 8, M / 8);
  record<cos_ftz>(0x47800000, 8, M / 8);
  record<tanh_>(0x3F000000, 1, M);
  for (int e = -14; e <= 4; ++e) record<tanh_>(uint64_t(127 + e) << 23, 8, M / 8);
  record<tanh_>(0x00000000, 0x6007, 0x7F800000 / 0x6007);

  // Every form over the whole range of bits.
  constexpr uint64_t N = 1 << 17;
  record<rcp_ftz>(1ull << 40, 0, N);
  record<rcp>(2ull << 40, 0, N);
  record<sqrt_ftz>(3ull << 40, 0, N);
  record<sqrt_>(4ull << 40, 0, N);
  record<rsqrt_ftz>(5ull << 40, 0, N);
  record<rsqrt_>(6ull << 40, 0, N);
  record<sin_ftz>(7ull << 40, 0, N);
  record<sin_>(8ull << 40, 0, N);
  record<cos_ftz>(9ull << 40, 0, N);
  record<cos_>(10ull << 40, 0, N);
  record<lg2_ftz>(11ull << 40, 0, N);
  record<lg2_>(12ull << 40, 0, N);
  record<ex2_ftz>(13ull << 40, 0, N);
  record<ex2_>(14ull << 40, 0, N);
  record<tanh_>(15ull << 40, 0, N);
  record<div_approx>(16ull << 40, 0, N);
  record<div_approx_ftz>(17ull << 40, 0, N);
  record<div_full>(18ull << 40, 0, N);
  record<div_full_ftz>(19ull << 40, 0, N);
  // Subnormals and the small, then the large and what is no number.
  record<rcp>(0, 61, 0x01000000 / 61);
  record<sqrt_>(0, 61, 0x01000000 / 61);
  record<rsqrt_>(0, 61, 0x01000000 / 61);
  record<lg2_>(0, 61, 0x01000000 / 61);
  record<tanh_>(0, 61, 0x01000000 / 61);
  record<sin_>(0, 61, 0x04000000 / 61);
  record<cos_>(0, 61, 0x01000000 / 61);
  record<rcp>(0x7D000000, 61, 0x03000000 / 61);
  record<rcp_ftz>(0x7D000000, 61, 0x03000000 / 61);

  // 16 bits, whole; f64 by upper halves.
  record<ex2_f16>(0, 1, 65536);
  record<tanh_f16>(0, 1, 65536);
  record<ex2_bf16>(0, 1, 65536);
  record<tanh_bf16>(0, 1, 65536);
  record<rcp64>(0x3FF00000, 1, 1 << 20);
  record<rcp64_low>(0x3FF00000, 64, 1 << 14);
  record<rsqrt64>(0x3FF00000, 1, 1 << 21);
  record<rsqrt64_low>(0x3FF00000, 64, 1 << 15);
  record<rcp64>(0x00000000, 0x4011, 0x100000000ull / 0x4011);
  record<rcp64_low>(0x00000000, 0x24011, 0x100000000ull / 0x24011);
  record<rsqrt64>(0x00000000, 0x4011, 0x100000000ull / 0x4011);
  record<rsqrt64_low>(0x00000000, 0x24011, 0x100000000ull / 0x24011);
  record<rcp64>(0x00000000, 0x101, 0x400000 / 0x101);
  record<rcp64>(0x7FA00000, 0x101, 0x600000 / 0x101);
  record<rcp64_low>(0x7FEFFF00, 1, 0x200);
  record<rsqrt64_low>(0x7FEFFF00, 1, 0x200);
  record<rsqrt_f64>(20ull << 40, 0, 1 << 15);
  std::printf("\n]\n}\n");
}
