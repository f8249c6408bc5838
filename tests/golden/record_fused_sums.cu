// Records what the tensor cores of an sm_90a GPU make of the inputs in fused_sum_inputs.h: one wgmma per instruction, A
// and B in shared memory without swizzle. Prints h200_fused_sums.json.
//   nvcc -std=c++20 -arch=sm_90a record_fused_sums.cu -o record && ./record > h200_fused_sums.json
#include <cstdio>
#include <cstdlib>

#include "fused_sum_inputs.h"

using namespace fused_sums;

#define CHECK(call)                                                       \
  do {                                                                    \
    if (cudaError_t error = (call); error != cudaSuccess) {               \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error)); \
      std::exit(1);                                                       \
    }                                                                     \
  } while (0)

/// No swizzle, K-major: columns of 16 bytes of K, each rows x 16 bytes.
__device__ uint64_t descriptor(const void* tile, uint32_t rows) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
  return uint64_t{(address & 0x3FFFF) >> 4} | uint64_t{rows * 16 >> 4} << 16 | uint64_t{128 >> 4} << 32;
}

template <Type type>
__global__ void instruction(const uint32_t* a, const uint32_t* b, uint32_t* d) {
  constexpr int kDepth = type == Type::tf32 ? 8 : 16;
  __shared__ alignas(1024) uint8_t a_tile[kRows * 32];
  __shared__ alignas(1024) uint8_t b_tile[kColumns * 32];
  a += blockIdx.x * kRows * kDepth;
  b += blockIdx.x * kColumns * kDepth;
  d += blockIdx.x * kRows * kColumns;
  const auto place = [](uint8_t* tile, int rows, int row, int k, uint32_t bits) {
    const int byte = k * (32 / kDepth);
    uint8_t* to = tile + byte / 16 * rows * 16 + row * 16 + byte % 16;
    if (kDepth == 8)
      *reinterpret_cast<uint32_t*>(to) = bits;
    else
      *reinterpret_cast<uint16_t*>(to) = static_cast<uint16_t>(bits);
  };
  for (int i = threadIdx.x; i < kRows * kDepth; i += 128) place(a_tile, kRows, i / kDepth, i % kDepth, a[i]);
  for (int i = threadIdx.x; i < kColumns * kDepth; i += 128) place(b_tile, kColumns, i / kDepth, i % kDepth, b[i]);
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();

  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4, column = lane % 4 * 2;
  uint32_t r[4];
  const auto cell = [&](int i) -> uint32_t& { return d[(row + i / 2 * 8) * kColumns + column + i % 2]; };
  for (int i = 0; i < 4; ++i) r[i] = cell(i);
  const uint64_t a_desc = descriptor(a_tile, kRows), b_desc = descriptor(b_tile, kColumns);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  if constexpr (type == Type::f16_to_f16) {
    uint32_t h[2] = {r[0] | r[1] << 16, r[2] | r[3] << 16};
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, %2, %3, 1, 1, 1, 0, 0;"
                 : "+r"(h[0]), "+r"(h[1])
                 : "l"(a_desc), "l"(b_desc));
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
                 : "+r"(h[0]), "+r"(h[1])::"memory");
    for (int i = 0; i < 4; ++i) r[i] = h[i / 2] >> i % 2 * 16 & 0xFFFF;
  } else {
    float f[4];
    for (int i = 0; i < 4; ++i) f[i] = __uint_as_float(r[i]);
#define WGMMA(shape, types, transposes)                                                                                \
  asm volatile("wgmma.mma_async.sync.aligned." shape ".f32." types " {%0, %1, %2, %3}, %4, %5, 1, 1, 1" transposes ";" \
               : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3])                                                        \
               : "l"(a_desc), "l"(b_desc))
    if constexpr (type == Type::f16) WGMMA("m64n8k16", "f16.f16", ", 0, 0");
    if constexpr (type == Type::bf16) WGMMA("m64n8k16", "bf16.bf16", ", 0, 0");
    if constexpr (type == Type::tf32) WGMMA("m64n8k8", "tf32.tf32", "");
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
                 : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3])::"memory");
    for (int i = 0; i < 4; ++i) r[i] = __float_as_uint(f[i]);
  }
  for (int i = 0; i < 4; ++i) cell(i) = r[i];
}

template <Type type>
void record(int kind, bool last) {
  std::vector<uint32_t> a, b, d;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const Instruction one = make(kind, type, repeat);
    a.insert(a.end(), one.a.begin(), one.a.end());
    b.insert(b.end(), one.b.begin(), one.b.end());
    d.insert(d.end(), one.d.begin(), one.d.end());
  }
  uint32_t *device_a, *device_b, *device_d;
  CHECK(cudaMalloc(&device_a, a.size() * 4));
  CHECK(cudaMalloc(&device_b, b.size() * 4));
  CHECK(cudaMalloc(&device_d, d.size() * 4));
  CHECK(cudaMemcpy(device_a, a.data(), a.size() * 4, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_b, b.data(), b.size() * 4, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_d, d.data(), d.size() * 4, cudaMemcpyHostToDevice));
  instruction<type><<<kRepeats, 128>>>(device_a, device_b, device_d);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(d.data(), device_d, d.size() * 4, cudaMemcpyDeviceToHost));
  uint64_t hash = 0;
  for (uint32_t word : d) hash = checksum(hash, word);
  std::printf("    [\"%s\", \"%s\", \"0x%016llx\", [", name(type), kClasses[kind],
              static_cast<unsigned long long>(hash));
  for (int i = 0; i < 24; ++i) std::printf("%s\"0x%08x\"", i ? ", " : "", d[i * 21]);
  std::printf("]]%s\n", last ? "" : ",");
  CHECK(cudaFree(device_a));
  CHECK(cudaFree(device_b));
  CHECK(cudaFree(device_d));
}

int main() {
  cudaDeviceProp chip{};
  CHECK(cudaGetDeviceProperties(&chip, 0));
  int driver = 0;
  CHECK(cudaDriverGetVersion(&driver));
  std::printf(
      "{\n  \"header\": {\n    \"what\": \"D of single wgmma instructions (m64n8k16, tf32 m64n8k8) on the inputs that "
      "fused_sum_inputs.h makes\",\n    \"source\": \"measured: %s, sm_%d%d, driver API %d\",\n",
      chip.name, chip.major, chip.minor, driver);
  std::printf(
      "    \"obtained\": \"record_fused_sums.cu\",\n    \"checksum\": \"h = 0; for each 32-bit word of D (an f16 D: "
      "its 16 bits), "
      "row by row, instruction by instruction: h = (h * 1000003 + word) mod 2^64\",\n"
      "    \"columns\": [\"type\", \"class\", \"checksum\", \"words 0, 21, 42, ... of the first instruction's D\"]\n  "
      "},\n  \"rows\": [\n");
  for (int kind = 0; kind < kClassCount; ++kind) {
    record<Type::f16>(kind, false);
    record<Type::bf16>(kind, false);
    record<Type::tf32>(kind, false);
    record<Type::f16_to_f16>(kind, kind + 1 == kClassCount);
  }
  std::printf("  ]\n}\n");
}
