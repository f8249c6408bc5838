// Allocating, copying, filling: what is done, what is refused, and with which code.

#include <cstdint>
#include <vector>

#include "check.h"

constexpr size_t kBytes = size_t{1} << 20;

static std::vector<unsigned char> pattern(size_t bytes, unsigned seed) {
  std::vector<unsigned char> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>(seed + i * 7 + (i >> 8));
  return data;
}

static void copies() {
  const auto data = pattern(kBytes, 1);
  std::vector<unsigned char> back(kBytes);
  unsigned char *a, *b;
  expect_success(cudaMalloc(&a, kBytes));
  expect_success(cudaMalloc(&b, kBytes));
  expect(reinterpret_cast<uintptr_t>(a) % 256 == 0, "cudaMalloc aligns to 256 bytes");
  expect_success(cudaMemcpy(a, data.data(), kBytes, cudaMemcpyHostToDevice));
  expect_success(cudaMemcpy(b, a, kBytes, cudaMemcpyDeviceToDevice));
  expect_success(cudaMemcpy(back.data(), b, kBytes, cudaMemcpyDeviceToHost));
  expect(back == data, "there and back by way of two device buffers");
  expect_success(cudaMemset(b + 100, 0x5a, 50));
  expect_success(cudaMemcpy(back.data(), b, kBytes, cudaMemcpyDefault));
  for (size_t i = 0; i < 300; ++i) expect_equal(back[i], i >= 100 && i < 150 ? 0x5a : data[i]);

  // The side that a kind puts on the device must be there; the other may be anywhere.
  unsigned char* host = back.data();
  expect_remembered(cudaMemcpy(a, host, 10, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  expect_remembered(cudaMemcpy(host, a, 10, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect_remembered(cudaMemcpy(host, host + 100, 10, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  expect_success(cudaMemcpy(a, b, 10, cudaMemcpyHostToDevice));
  expect_success(cudaMemcpy(a, host, 10, cudaMemcpyHostToHost));
  expect_success(cudaMemcpy(host, host + 100, 10, cudaMemcpyDefault));
  expect_remembered(cudaMemcpy(a, host, 10, static_cast<cudaMemcpyKind>(9)), cudaErrorInvalidMemcpyDirection);

  // Every byte must be somebody's.
  expect_remembered(cudaMemcpy(a + kBytes - 8, host, 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect_remembered(cudaMemcpy(nullptr, host, 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect_remembered(cudaMemcpy(a, nullptr, 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect_success(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
  expect_remembered(cudaMemset(host, 0, 10), cudaErrorInvalidValue);
  expect_remembered(cudaMemset(a, 0, kBytes + 1), cudaErrorInvalidValue);
  expect_remembered(cudaMemset(nullptr, 0, 1), cudaErrorInvalidValue);
  expect_success(cudaMemset(nullptr, 0, 0));

  expect_remembered(cudaFree(host), cudaErrorInvalidValue);
  expect_remembered(cudaFree(a + 256), cudaErrorInvalidValue);
  expect_success(cudaFree(a));
  expect_remembered(cudaFree(a), cudaErrorInvalidValue);
  expect_success(cudaFree(b));
  expect_remembered(cudaMemcpy(host, b, 10, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  if (emulated()) expect_remembered(cudaMemcpy(host, b, 10, cudaMemcpyDefault), cudaErrorInvalidValue);
  expect_success(cudaFree(nullptr));
}

static void sizes() {
  void* p = reinterpret_cast<void*>(123);
  expect_success(cudaMalloc(&p, 0));
  expect(p == nullptr, "nothing for no bytes");
  expect_remembered(cudaMalloc(static_cast<void**>(nullptr), 10), cudaErrorInvalidValue);
  expect_remembered(cudaMalloc(&p, size_t{1} << 50), cudaErrorMemoryAllocation);
  expect(p == nullptr, "a failed allocation leaves null");

  size_t free_before = 0, free_with = 0, total = 0;
  expect_success(cudaMemGetInfo(&free_before, &total));
  expect(total > (size_t{100} << 30) && free_before <= total, "a chip's memory");
  expect_success(cudaMalloc(&p, size_t{64} << 20));
  expect_success(cudaMemGetInfo(&free_with, nullptr));
  expect(free_before - free_with >= size_t{64} << 20, "an allocation takes its bytes");
  expect_success(cudaFree(p));
}

static void rows() {
  constexpr size_t width = 37, height = 11;
  const auto data = pattern(width * height, 3);
  unsigned char* device;
  size_t pitch = 0;
  expect_success(cudaMallocPitch(&device, &pitch, width, height));
  expect_equal(pitch, size_t{512});
  expect_success(cudaMemset2D(device, pitch, 0xee, pitch, height));
  expect_success(cudaMemcpy2D(device, pitch, data.data(), width, width, height, cudaMemcpyHostToDevice));
  std::vector<unsigned char> whole(pitch * height), back(width * height);
  expect_success(cudaMemcpy(whole.data(), device, whole.size(), cudaMemcpyDeviceToHost));
  bool rows_right = true, rest_untouched = true;
  for (size_t y = 0; y < height; ++y)
    for (size_t x = 0; x < pitch; ++x) {
      const unsigned char byte = whole[y * pitch + x];
      (x < width ? rows_right : rest_untouched) &= byte == (x < width ? data[y * width + x] : 0xee);
    }
  expect(rows_right, "cudaMemcpy2D puts each row at its pitch");
  expect(rest_untouched, "cudaMemcpy2D leaves what is between rows");
  expect_success(cudaMemcpy2DAsync(back.data(), width, device, pitch, width, height, cudaMemcpyDeviceToHost, nullptr));
  expect_success(cudaDeviceSynchronize());
  expect(back == data, "and back");

  expect_remembered(cudaMemcpy2D(device, width - 1, data.data(), width, width, height, cudaMemcpyHostToDevice),
                    cudaErrorInvalidPitchValue);
  expect_remembered(cudaMemcpy2D(device, pitch, data.data(), width - 1, width, height, cudaMemcpyHostToDevice),
                    cudaErrorInvalidPitchValue);
  expect_remembered(cudaMemset2D(device, width - 1, 0, width, height), cudaErrorInvalidValue);
  expect_remembered(cudaMemset2D(device, pitch, 0, pitch, height + 5000), cudaErrorInvalidValue);
  expect_success(cudaFree(device));

  // A box of 5 x 4 x 3 bytes out of a volume of 16 x 8 x 6.
  const auto volume = pattern(16 * 8 * 6, 9);
  cudaPitchedPtr box;
  expect_success(cudaMalloc3D(&box, make_cudaExtent(5, 4, 3)));
  cudaMemcpy3DParms what{};
  what.srcPtr = make_cudaPitchedPtr(const_cast<unsigned char*>(volume.data()), 16, 16, 8);
  what.srcPos = make_cudaPos(2, 1, 3);
  what.dstPtr = box;
  what.extent = make_cudaExtent(5, 4, 3);
  what.kind = cudaMemcpyHostToDevice;
  expect_success(cudaMemcpy3D(&what));
  std::vector<unsigned char> out(5 * 4 * 3);
  cudaMemcpy3DParms home{};
  home.srcPtr = box;
  home.dstPtr = make_cudaPitchedPtr(out.data(), 5, 5, 4);
  home.extent = what.extent;
  home.kind = cudaMemcpyDeviceToHost;
  expect_success(cudaMemcpy3D(&home));
  for (size_t z = 0; z < 3; ++z)
    for (size_t y = 0; y < 4; ++y)
      for (size_t x = 0; x < 5; ++x) expect_equal(out[(z * 4 + y) * 5 + x], volume[((z + 3) * 8 + y + 1) * 16 + x + 2]);
  expect_success(cudaFree(box.ptr));
}

__global__ void add_one(int* values, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] += 1;
}

static void host_memory() {
  int *pinned, *managed;
  expect_success(cudaMallocHost(&pinned, 4096));
  expect_success(cudaMallocManaged(&managed, 4096));
  int* registered = static_cast<int*>(aligned_alloc(4096, 8192));
  expect_success(cudaHostRegister(registered, 8192, cudaHostRegisterDefault));
  for (int* memory : {pinned, managed, registered}) {
    for (int i = 0; i < 100; ++i) memory[i] = i * i;
    add_one<<<1, 128>>>(memory, 100);
    expect_success(cudaGetLastError());
    expect_success(cudaDeviceSynchronize());
    int wrong = 0;
    for (int i = 0; i < 100; ++i) wrong += memory[i] != i * i + 1;
    expect_equal(wrong, 0);
  }
  void* seen = nullptr;
  expect_success(cudaHostGetDevicePointer(&seen, registered + 3, 0));
  expect(seen == registered + 3, "host memory has one address for both");
  unsigned flags = 0;
  expect_success(cudaHostGetFlags(&flags, pinned));
  expect_equal(flags, unsigned{cudaHostAllocMapped});
  int local = 0;
  expect_remembered(cudaHostGetDevicePointer(&seen, &local, 0), cudaErrorInvalidValue);
  expect_remembered(cudaHostGetFlags(&flags, &local), cudaErrorInvalidValue);

  expect_remembered(cudaHostRegister(registered, 8192, 0), cudaErrorHostMemoryAlreadyRegistered);
  expect_remembered(cudaHostRegister(registered + 1024, 8192, 0), cudaErrorHostMemoryAlreadyRegistered);
  expect_remembered(cudaHostUnregister(registered + 1024), cudaErrorInvalidValue);
  expect_success(cudaHostUnregister(registered));
  expect_remembered(cudaHostUnregister(registered), cudaErrorHostMemoryNotRegistered);
  expect_remembered(cudaHostRegister(nullptr, 8192, 0), cudaErrorInvalidValue);
  expect_remembered(cudaHostRegister(registered, 0, 0), cudaErrorInvalidValue);
  free(registered);

  expect_remembered(cudaFree(pinned), cudaErrorInvalidValue);
  expect_remembered(cudaFreeHost(managed), cudaErrorInvalidValue);
  expect_remembered(cudaFreeHost(&local), cudaErrorInvalidValue);
  expect_success(cudaFreeHost(pinned));
  expect_remembered(cudaFreeHost(pinned), cudaErrorInvalidValue);
  expect_success(cudaFreeHost(nullptr));
  expect_success(cudaFree(managed));
  void* p;
  expect_remembered(cudaMallocManaged(&p, 16, 7), cudaErrorInvalidValue);
  expect_remembered(cudaHostAlloc(&p, 16, 0x55), cudaErrorInvalidValue);
}

__device__ int variable[4];

static void attributes() {
  char *device, *pinned, *managed, *pooled;
  static char plain[16];
  void* symbol = nullptr;
  expect_success(cudaMalloc(&device, 1000));
  expect_success(cudaMallocHost(&pinned, 1000));
  expect_success(cudaMallocManaged(&managed, 1000));
  expect_success(cudaMallocAsync(reinterpret_cast<void**>(&pooled), 1000, nullptr));
  expect_success(cudaGetSymbolAddress(&symbol, variable));
  struct Expected {
    void* pointer;
    cudaMemoryType type;
    bool on_device, on_host;
  };
  const Expected all[] = {
      {device, cudaMemoryTypeDevice, true, false},
      {device + 999, cudaMemoryTypeDevice, true, false},
      {device + 1000, cudaMemoryTypeUnregistered, false, true},
      {pinned + 5, cudaMemoryTypeHost, true, true},
      {managed, cudaMemoryTypeManaged, true, true},
      {pooled, cudaMemoryTypeDevice, true, false},
      {symbol, cudaMemoryTypeDevice, true, false},
      {plain, cudaMemoryTypeUnregistered, false, true},
  };
  for (const Expected& expected : all) {
    cudaPointerAttributes found;
    expect_success(cudaPointerGetAttributes(&found, expected.pointer));
    expect_equal(static_cast<int>(found.type), static_cast<int>(expected.type));
    expect_equal(found.device, expected.on_device ? 0 : cudaInvalidDeviceId);
    expect(found.devicePointer == (expected.on_device ? expected.pointer : nullptr), "device pointer");
    expect(found.hostPointer == (expected.on_host ? expected.pointer : nullptr), "host pointer");
  }
  expect_remembered(cudaPointerGetAttributes(nullptr, device), cudaErrorInvalidValue);
  expect_success(cudaFreeAsync(pooled, nullptr));
  expect_success(cudaFree(managed));
  expect_success(cudaFreeHost(pinned));
  expect_success(cudaFree(device));
}

static void pools() {
  void* p = nullptr;
  expect_success(cudaMallocAsync(&p, 1000, nullptr));
  expect_success(cudaMemsetAsync(p, 1, 1000, nullptr));
  expect_success(cudaFreeAsync(p, nullptr));
  expect_remembered(cudaFreeAsync(p, nullptr), cudaErrorInvalidValue);
  expect_success(cudaFreeAsync(nullptr, nullptr));
  expect_success(cudaMallocAsync(&p, 1000, nullptr));
  expect_success(cudaFree(p));  // also allowed
  expect_success(cudaMalloc(&p, 1000));
  expect_success(cudaFreeAsync(p, nullptr));
  expect_remembered(cudaMallocAsync(&p, size_t{1} << 50, nullptr), cudaErrorMemoryAllocation);
  expect_success(cudaDeviceSynchronize());

  cudaMemPool_t pool;
  expect_success(cudaDeviceGetDefaultMemPool(&pool, 0));
  int enabled = 0;
  uint64_t bytes = 1;
  expect_success(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &enabled));
  expect_equal(enabled, 1);
  expect_success(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &bytes));
  expect_equal(bytes, uint64_t{0});
  bytes = UINT64_MAX;
  expect_success(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &bytes));
  bytes = 0;
  expect_success(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &bytes));
  expect_equal(bytes, UINT64_MAX);
}

int main() {
  copies();
  sizes();
  rows();
  host_memory();
  attributes();
  pools();
  return result();
}
