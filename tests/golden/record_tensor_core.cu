// Records what wgmma and mma.sync of an sm_90a GPU make of the inputs in tensor_core_inputs.h. Prints
// h200_tensor_core.json.
//   nvcc -std=c++20 -arch=sm_90a record_tensor_core.cu -o record && ./record > h200_tensor_core.json
#include <cstdio>
#include <cstdlib>

#include "tensor_core_inputs.h"

using namespace tensor_core_record;

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

#define WGMMA4(which, text)      \
  if constexpr (kWhich == which) \
  asm volatile("wgmma.mma_async.sync.aligned." text : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]) : "l"(a), "l"(b))
#define WGMMA2(which, text)      \
  if constexpr (kWhich == which) \
  asm volatile("wgmma.mma_async.sync.aligned." text : "+r"(r[0]), "+r"(r[1]) : "l"(a), "l"(b))

template <int kWhich>
__device__ void issue_wgmma(uint32_t (&r)[4], uint64_t a, uint64_t b) {
  WGMMA4(0, "m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;");
  WGMMA2(1, "m64n8k16.f16.f16.f16 {%0, %1}, %2, %3, 1, 1, 1, 0, 0;");
  WGMMA4(2, "m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;");
  WGMMA4(3, "m64n8k8.f32.tf32.tf32 {%0, %1, %2, %3}, %4, %5, 1, 1, 1;");
  WGMMA4(4, "m64n8k32.f32.e4m3.e4m3 {%0, %1, %2, %3}, %4, %5, 1, 1, 1;");
  WGMMA4(5, "m64n8k32.f32.e4m3.e5m2 {%0, %1, %2, %3}, %4, %5, 1, 1, 1;");
  WGMMA4(6, "m64n8k32.f32.e5m2.e4m3 {%0, %1, %2, %3}, %4, %5, 1, 1, 1;");
  WGMMA4(7, "m64n8k32.f32.e5m2.e5m2 {%0, %1, %2, %3}, %4, %5, 1, 1, 1;");
  WGMMA2(8, "m64n8k32.f16.e4m3.e4m3 {%0, %1}, %2, %3, 1, 1, 1;");
  WGMMA2(9, "m64n8k32.f16.e4m3.e5m2 {%0, %1}, %2, %3, 1, 1, 1;");
  WGMMA2(10, "m64n8k32.f16.e5m2.e4m3 {%0, %1}, %2, %3, 1, 1, 1;");
  WGMMA2(11, "m64n8k32.f16.e5m2.e5m2 {%0, %1}, %2, %3, 1, 1, 1;");
  WGMMA4(12, "m64n8k32.s32.s8.s8 {%0, %1, %2, %3}, %4, %5, 1;");
  WGMMA4(13, "m64n8k32.s32.s8.u8 {%0, %1, %2, %3}, %4, %5, 1;");
  WGMMA4(14, "m64n8k32.s32.u8.s8 {%0, %1, %2, %3}, %4, %5, 1;");
  WGMMA4(15, "m64n8k32.s32.u8.u8 {%0, %1, %2, %3}, %4, %5, 1;");
  WGMMA4(16, "m64n8k32.satfinite.s32.s8.s8 {%0, %1, %2, %3}, %4, %5, 1;");
  WGMMA4(17, "m64n8k32.satfinite.s32.u8.u8 {%0, %1, %2, %3}, %4, %5, 1;");
}

#define MMA4(which, text)                                                                                  \
  if constexpr (kWhich == which)                                                                           \
  asm volatile("mma.sync.aligned." text " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3])                                            \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define MMA2(which, text)                                                                  \
  if constexpr (kWhich == which)                                                           \
  asm volatile("mma.sync.aligned." text " {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};" \
               : "+r"(r[0]), "+r"(r[1])                                                    \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <int kWhich>
__device__ void issue_mma(uint32_t (&r)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  MMA4(18, "m16n8k16.row.col.f32.f16.f16.f32");
  MMA2(19, "m16n8k16.row.col.f16.f16.f16.f16");
  MMA4(20, "m16n8k16.row.col.f32.bf16.bf16.f32");
  MMA4(21, "m16n8k8.row.col.f32.tf32.tf32.f32");
  MMA4(22, "m16n8k32.row.col.f32.e4m3.e4m3.f32");
  MMA4(23, "m16n8k32.row.col.f32.e4m3.e5m2.f32");
  MMA4(24, "m16n8k32.row.col.f32.e5m2.e4m3.f32");
  MMA4(25, "m16n8k32.row.col.f32.e5m2.e5m2.f32");
  MMA2(26, "m16n8k32.row.col.f16.e4m3.e4m3.f16");
  MMA2(27, "m16n8k32.row.col.f16.e5m2.e5m2.f16");
  MMA4(28, "m16n8k32.row.col.s32.s8.s8.s32");
  MMA4(29, "m16n8k32.row.col.satfinite.s32.u8.s8.s32");
}

/// One instruction a CTA. `chain`: adds the same products so many times, as a loop over K does: in one group, or with a
/// commit and a wait after each.
template <int kWhich>
__global__ void instruction(const uint32_t* a, const uint32_t* b, uint32_t* d, int chain, bool together) {
  constexpr Kind kKind = kKinds[kWhich];
  constexpr int kBytes = kKind.a == Element::tf32 ? 4 : kKind.a == Element::f16 || kKind.a == Element::bf16 ? 2 : 1;
  constexpr int kDepth = 32 / kBytes, kRows = kKind.wgmma ? 64 : 16;
  constexpr bool kHalf = kKind.d == Result::f16;
  __shared__ alignas(1024) uint8_t a_tile[64 * 32];
  __shared__ alignas(1024) uint8_t b_tile[kColumns * 32];
  a += blockIdx.x * kRows * kDepth;
  b += blockIdx.x * kColumns * kDepth;
  d += blockIdx.x * kRows * kColumns;
  const auto place = [](uint8_t* tile, int rows, int row, int k, uint32_t bits) {
    const int byte = k * kBytes;
    uint8_t* to = tile + byte / 16 * rows * 16 + row * 16 + byte % 16;
    for (int i = 0; i < kBytes; ++i) to[i] = static_cast<uint8_t>(bits >> (8 * i));
  };
  for (int i = threadIdx.x; i < kRows * kDepth; i += blockDim.x) place(a_tile, kRows, i / kDepth, i % kDepth, a[i]);
  for (int i = threadIdx.x; i < kColumns * kDepth; i += blockDim.x)
    place(b_tile, kColumns, i / kDepth, i % kDepth, b[i]);
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();

  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4, column = lane % 4 * 2;
  uint32_t r[4];
  const auto cell = [&](int i) -> uint32_t& { return d[(row + i / 2 * 8) * kColumns + column + i % 2]; };
  for (int i = 0; i < 4; ++i) r[i] = cell(i);
  if (kHalf) r[0] |= r[1] << 16, r[1] = r[2] | r[3] << 16;
  if constexpr (kKind.wgmma) {
    const uint64_t a_desc = descriptor(a_tile, kRows), b_desc = descriptor(b_tile, kColumns);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll 1
    for (int i = 0; i < chain; ++i) {
      issue_wgmma<kWhich>(r, a_desc, b_desc);
      if (!together)
        asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; wgmma.fence.sync.aligned;"
                     : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3])::"memory");
    }
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
                 : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3])::"memory");
  } else {
    const auto word = [&](const uint8_t* tile, int rows, int at_row, int byte) {
      return *reinterpret_cast<const uint32_t*>(tile + byte / 16 * rows * 16 + at_row * 16 + byte % 16);
    };
    uint32_t x[4], y[2];
    for (int i = 0; i < 4; ++i) x[i] = word(a_tile, kRows, lane / 4 + i % 2 * 8, lane % 4 * 4 + i / 2 * 16);
    for (int i = 0; i < 2; ++i) y[i] = word(b_tile, kColumns, lane / 4, lane % 4 * 4 + i * 16);
#pragma unroll 1
    for (int i = 0; i < chain; ++i) issue_mma<kWhich>(r, x, y);
  }
  if (kHalf) r[3] = r[1] >> 16, r[2] = r[1] & 0xFFFF, r[1] = r[0] >> 16, r[0] &= 0xFFFF;
  for (int i = 0; i < 4; ++i) cell(i) = r[i];
}

template <int kWhich>
void record(bool& first) {
  constexpr Kind kKind = kKinds[kWhich];
  for (int kind = 0; kind < kClassCount; ++kind) {
    std::vector<uint32_t> a, b, old;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      const fused_sums::Instruction one = make(kWhich, kind, repeat);
      a.insert(a.end(), one.a.begin(), one.a.end());
      b.insert(b.end(), one.b.begin(), one.b.end());
      old.insert(old.end(), one.d.begin(), one.d.end());
    }
    uint32_t *device_a, *device_b, *device_d;
    CHECK(cudaMalloc(&device_a, a.size() * 4));
    CHECK(cudaMalloc(&device_b, b.size() * 4));
    CHECK(cudaMalloc(&device_d, old.size() * 4));
    CHECK(cudaMemcpy(device_a, a.data(), a.size() * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_b, b.data(), b.size() * 4, cudaMemcpyHostToDevice));
    std::vector<uint32_t> d(old.size());
    const auto run = [&](int chain, bool together) {
      CHECK(cudaMemcpy(device_d, old.data(), old.size() * 4, cudaMemcpyHostToDevice));
      instruction<kWhich><<<kRepeats, kKind.wgmma ? 128 : 32>>>(device_a, device_b, device_d, chain, together);
      CHECK(cudaGetLastError());
      CHECK(cudaMemcpy(d.data(), device_d, d.size() * 4, cudaMemcpyDeviceToHost));
      uint64_t hash = 0;
      for (uint32_t word : d) hash = fused_sums::checksum(hash, word);
      return static_cast<unsigned long long>(hash);
    };
    const auto chained = run(4, true), apart = run(4, false), single = run(1, true);
    std::printf("%s    [\"%s\", \"%s\", \"0x%016llx\", \"0x%016llx\", \"0x%016llx\", [", first ? "" : ",\n", kKind.name,
                class_name(kind), single, chained, apart);
    first = false;
    for (int i = 0; i < 12; ++i) std::printf("%s\"0x%08x\"", i ? ", " : "", d[i * 10]);
    std::printf("]]");
    CHECK(cudaFree(device_a));
    CHECK(cudaFree(device_b));
    CHECK(cudaFree(device_d));
  }
}

template <int... kWhich>
void record_all(std::integer_sequence<int, kWhich...>) {
  bool first = true;
  (record<kWhich>(first), ...);
}

int main() {
  cudaDeviceProp chip{};
  CHECK(cudaGetDeviceProperties(&chip, 0));
  int driver = 0;
  CHECK(cudaDriverGetVersion(&driver));
  std::printf(
      "{\n  \"header\": {\n    \"what\": \"D of wgmma (m64n8, 32 bytes of K) and mma.sync (m16n8) on the inputs that "
      "tensor_core_inputs.h makes\",\n    \"source\": \"measured: %s, sm_%d%d, driver API %d\",\n",
      chip.name, chip.major, chip.minor, driver);
  std::printf(
      "    \"obtained\": \"record_tensor_core.cu\",\n    \"checksum\": \"h = 0; for each 32-bit word of D (an f16 D: "
      "its 16 bits), row by row, instruction by instruction: h = (h * 1000003 + word) mod 2^64\",\n"
      "    \"columns\": [\"instruction\", \"class\", \"checksum\", \"checksum when the same products are added four "
      "times, in one group\", \"the same with a wait after each\", \"words 0, 10, 20, ... of the first D\"]\n  },\n"
      "  \"rows\": [\n");
  record_all(std::make_integer_sequence<int, kKindCount>{});
  std::printf("\n  ]\n}\n");
}
