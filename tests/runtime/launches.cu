// Launching kernels: shapes, arguments, shared memory, clusters, attributes; and every launch that is refused, with its
// code.

#include <cstdint>
#include <vector>

#include "check.h"

__global__ void nothing() {}
void not_a_kernel() {}

__global__ void add(const float* a, const float* b, float* sum, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) sum[i] = a[i] + b[i];
}

static void vector_add() {
  constexpr int count = 1000;
  std::vector<float> a(count), b(count), sum(count);
  for (int i = 0; i < count; ++i)
    a[static_cast<size_t>(i)] = static_cast<float>(i), b[static_cast<size_t>(i)] = 0.5f * static_cast<float>(i);
  float *da, *db, *dsum;
  expect_success(cudaMalloc(&da, count * 4));
  expect_success(cudaMalloc(&db, count * 4));
  expect_success(cudaMalloc(&dsum, count * 4));
  expect_success(cudaMemcpy(da, a.data(), count * 4, cudaMemcpyHostToDevice));
  expect_success(cudaMemcpy(db, b.data(), count * 4, cudaMemcpyHostToDevice));
  add<<<8, 128>>>(da, db, dsum, count);
  expect_success(cudaGetLastError());
  expect_success(cudaMemcpy(sum.data(), dsum, count * 4, cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < count; ++i) wrong += sum[static_cast<size_t>(i)] != 1.5f * static_cast<float>(i);
  expect_equal(wrong, 0);
  for (float* p : {da, db, dsum}) expect_success(cudaFree(p));
}

struct alignas(64) Large {
  char first;
  double second;
  int third[20];
};

__global__ void take(char c, double d, Large large, short s, int64_t n, int64_t* out) {
  out[0] = c;
  out[1] = static_cast<int64_t>(d * 2);
  out[2] = large.first;
  out[3] = static_cast<int64_t>(large.second * 4);
  out[4] = large.third[19];
  out[5] = s;
  out[6] = n;
}

static void arguments() {
  int64_t* out;
  expect_success(cudaMallocManaged(&out, 7 * sizeof *out));
  Large large{};
  large.first = 9;
  large.second = 2.25;
  large.third[19] = -77;
  take<<<1, 1>>>(5, 1.5, large, -3, int64_t{1} << 40, out);
  expect_success(cudaGetLastError());
  expect_success(cudaDeviceSynchronize());
  const int64_t wanted[] = {5, 3, 9, 9, -77, -3, int64_t{1} << 40};
  for (int i = 0; i < 7; ++i) expect_equal(out[i], wanted[i]);

  size_t offset = 1, bytes = 0;
  expect_success(cudaFuncGetParamInfo(reinterpret_cast<const void*>(take), 0, &offset, &bytes));
  expect_equal(offset, size_t{0});
  expect_success(cudaFuncGetParamInfo(reinterpret_cast<const void*>(take), 2, &offset, &bytes));
  expect_equal(bytes, sizeof(Large));
  expect_remembered(cudaFuncGetParamInfo(reinterpret_cast<const void*>(take), 6, &offset, &bytes),
                    cudaErrorInvalidValue);
  expect_success(cudaFree(out));
}

__global__ void who_am_i(unsigned* seen) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  seen[block * threads + thread] =
      blockIdx.x + 10 * blockIdx.y + 100 * blockIdx.z + 1000 * threadIdx.x + 10000 * threadIdx.y + 100000 * threadIdx.z;
}

static void shapes() {
  unsigned* seen;
  const dim3 grid(3, 2, 4), block(5, 3, 2);
  expect_success(cudaMallocManaged(&seen, 24 * 30 * sizeof(unsigned)));
  who_am_i<<<grid, block>>>(seen);
  expect_success(cudaGetLastError());
  expect_success(cudaDeviceSynchronize());
  int wrong = 0;
  for (unsigned b = 0; b < 24; ++b)
    for (unsigned t = 0; t < 30; ++t)
      wrong += seen[b * 30 + t] !=
               b % 3 + 10 * (b / 3 % 2) + 100 * (b / 6) + 1000 * (t % 5) + 10000 * (t / 5 % 3) + 100000 * (t / 15);
  expect_equal(wrong, 0);
  expect_success(cudaFree(seen));
}

__global__ void reverse(int* values) {
  extern __shared__ int stage[];
  stage[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = stage[blockDim.x - 1 - threadIdx.x];
}

__global__ void fixed(int* out) {
  __shared__ int stage[8192];
  stage[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  if (out) out[threadIdx.x] = stage[threadIdx.x ^ 1];
}

template <class Launch>
static void expect_refused(cudaError_t wanted, Launch launch,
                           const std::source_location& at = std::source_location::current()) {
  launch();
  expect_error(cudaGetLastError(), wanted, at);
  expect_error(cudaDeviceSynchronize(), cudaSuccess, at);  // nothing ran, nothing is broken
}

static void shared_memory() {
  int* values;
  expect_success(cudaMallocManaged(&values, 1024 * sizeof(int)));
  for (int i = 0; i < 1024; ++i) values[i] = i;
  reverse<<<1, 1024, 48 * 1024>>>(values);
  expect_success(cudaGetLastError());
  expect_success(cudaDeviceSynchronize());
  int wrong = 0;
  for (int i = 0; i < 1024; ++i) wrong += values[i] != 1023 - i;
  expect_equal(wrong, 0);

  expect_refused(cudaErrorInvalidValue, [=] { reverse<<<1, 32, 48 * 1024 + 1>>>(values); });
  expect_success(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448));
  reverse<<<1, 32, 232448>>>(values);
  expect_success(cudaGetLastError());
  expect_success(cudaDeviceSynchronize());
  expect_refused(cudaErrorInvalidValue, [=] { reverse<<<1, 32, 232449>>>(values); });
  expect_remembered(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 232449),
                    cudaErrorInvalidValue);
  expect_remembered(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, -1),
                    cudaErrorInvalidValue);

  // Static shared memory counts against the same limits.
  fixed<<<1, 32, 16 * 1024>>>(values);
  expect_success(cudaGetLastError());
  expect_success(cudaDeviceSynchronize());
  expect_equal(values[6], 7);
  expect_refused(cudaErrorInvalidValue, [] { fixed<<<1, 32, 16 * 1024 + 1>>>(nullptr); });
  expect_remembered(cudaFuncSetAttribute(fixed, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448 - 32768 + 1),
                    cudaErrorInvalidValue);
  expect_success(cudaFuncSetAttribute(fixed, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448 - 32768));
  expect_success(cudaFree(values));
}

__global__ void __launch_bounds__(128) bounded(int* out) {
  if (out) *out = 1;
}

static void limits() {
  expect_refused(cudaErrorInvalidValue, [] { nothing<<<1, 1025>>>(); });
  expect_refused(cudaErrorInvalidValue, [] { nothing<<<1, dim3(1, 1, 65)>>>(); });
  expect_refused(cudaErrorInvalidValue, [] { nothing<<<1, dim3(33, 32, 1)>>>(); });
  expect_refused(cudaErrorInvalidValue, [] { nothing<<<1, 0>>>(); });
  expect_refused(cudaErrorInvalidValue, [] { nothing<<<0, 1>>>(); });
  expect_refused(cudaErrorInvalidValue, [] { nothing<<<dim3(1, 65536), 1>>>(); });
  expect_refused(cudaErrorInvalidValue, [] { nothing<<<0x80000000u, 1>>>(); });
  expect_refused(cudaErrorInvalidValue, [] { bounded<<<1, 129>>>(nullptr); });

  int* out = nullptr;
  void* given[] = {&out};
  const auto kernel = reinterpret_cast<const void*>(bounded);
  expect_success(cudaLaunchKernel(kernel, dim3(1), dim3(1), given, 0, nullptr));
  expect_remembered(cudaLaunchKernel(kernel, dim3(1), dim3(1), nullptr, 0, nullptr), cudaErrorInvalidValue);
  expect_remembered(cudaLaunchKernel(static_cast<const void*>(nullptr), dim3(1), dim3(1), given, 0, nullptr),
                    cudaErrorInvalidDeviceFunction);
  expect_remembered(cudaLaunchKernel(reinterpret_cast<const void*>(not_a_kernel), dim3(1), dim3(1), given, 0, nullptr),
                    cudaErrorInvalidResourceHandle);
  cudaKernel_t handle;
  cudaFunction_t function;
  expect_success(cudaGetKernel(&handle, kernel));
  expect_success(cudaLaunchKernel(static_cast<const void*>(handle), dim3(1), dim3(1), given, 0, nullptr));
  expect_success(cudaGetFuncBySymbol(&function, kernel));
  expect_success(cudaLaunchKernel(static_cast<const void*>(function), dim3(1), dim3(1), given, 0, nullptr));
  expect_remembered(cudaGetKernel(&handle, reinterpret_cast<const void*>(not_a_kernel)),
                    cudaErrorInvalidDeviceFunction);
  const char* name = nullptr;
  expect_success(cudaFuncGetName(&name, kernel));
  expect(name && std::strcmp(name, "_Z7boundedPi") == 0, "a kernel's name is its mangled one");
  expect_success(cudaDeviceSynchronize());
}

__global__ void ranks(unsigned* out) {
  unsigned rank, size, id;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(id));
  if (threadIdx.x == 0) out[blockIdx.x] = rank + 100 * size + 10000 * id;
}

__global__ void __cluster_dims__(2, 1, 1) paired(unsigned* out) {
  unsigned size;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  if (out && threadIdx.x == 0) out[blockIdx.x] = size;
}

template <class Kernel>
static cudaError_t launch_clusters(Kernel kernel, unsigned blocks, unsigned cluster, unsigned* out,
                                   bool cooperative = false) {
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = 32;
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim.x = cluster;
  attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
  attributes[1].id = cudaLaunchAttributeCooperative;
  attributes[1].val.cooperative = cooperative;
  config.attrs = attributes;
  config.numAttrs = cooperative ? 2 : 1;
  return cudaLaunchKernelEx(&config, kernel, out);
}

static void clusters() {
  unsigned* out;
  expect_success(cudaMallocManaged(&out, 64 * sizeof(unsigned)));
  expect_success(launch_clusters(ranks, 12, 4, out));
  expect_success(cudaDeviceSynchronize());
  for (unsigned i = 0; i < 12; ++i) expect_equal(out[i], i % 4 + 400 + 10000 * (i / 4));
  expect_success(launch_clusters(ranks, 3, 3, out));
  expect_success(cudaDeviceSynchronize());

  const cudaError_t size = cudaErrorInvalidClusterSize;
  expect_refused(size, [=] { launch_clusters(ranks, 3, 2, out); });
  expect_refused(size, [=] { launch_clusters(ranks, 9, 9, out); });
  expect_refused(size, [=] { launch_clusters(ranks, 4, 0, out); });
  expect_success(cudaFuncSetAttribute(ranks, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  expect_success(launch_clusters(ranks, 16, 16, out));
  expect_success(cudaDeviceSynchronize());
  expect_equal(out[15], 15u + 1600u);
  expect_refused(size, [=] { launch_clusters(ranks, 17, 17, out); });

  paired<<<4, 32>>>(out);
  expect_success(cudaGetLastError());
  expect_success(cudaDeviceSynchronize());
  expect_equal(out[3], 2u);
  expect_success(launch_clusters(paired, 4, 2, out));
  expect_refused(size, [=] { paired<<<3, 32>>>(out); });
  expect_refused(size, [=] { launch_clusters(paired, 4, 4, out); });
  expect_refused(size, [=] { launch_clusters(paired, 4, 1, out); });
  cudaFuncAttributes attributes;
  expect_success(cudaFuncGetAttributes(&attributes, paired));
  expect_equal(attributes.clusterDimMustBeSet, 1);
  expect_equal(attributes.requiredClusterWidth, 2);
  expect_remembered(cudaFuncSetAttribute(paired, cudaFuncAttributeRequiredClusterWidth, 4), cudaErrorInvalidValue);

  // The same, asked for at run time.
  for (const auto which : {cudaFuncAttributeRequiredClusterHeight, cudaFuncAttributeRequiredClusterDepth})
    expect_success(cudaFuncSetAttribute(nothing, which, 1));
  expect_success(cudaFuncSetAttribute(nothing, cudaFuncAttributeRequiredClusterWidth, 2));
  nothing<<<2, 32>>>();
  expect_success(cudaGetLastError());
  expect_refused(size, [] { nothing<<<3, 32>>>(); });
  expect_success(cudaDeviceSynchronize());
  expect_success(cudaFree(out));
}

// Each block waits for all others, which only ends when they are all there at once.
__global__ void meet(unsigned* arrived, unsigned* seen) {
  if (threadIdx.x != 0) return;
  atomicAdd(arrived, 1u);
  unsigned now;
  do now = atomicAdd(arrived, 0u);
  while (now < gridDim.x);
  seen[blockIdx.x] = now;
}

static void cooperative() {
  unsigned* memory;
  expect_success(cudaMallocManaged(&memory, 100 * sizeof(unsigned)));
  std::memset(memory, 0, 100 * sizeof(unsigned));
  unsigned* seen = memory + 1;
  void* given[] = {&memory, &seen};
  const auto kernel = reinterpret_cast<const void*>(meet);
  expect_success(cudaLaunchCooperativeKernel(kernel, dim3(20), dim3(64), given, 0, nullptr));
  expect_success(cudaDeviceSynchronize());
  for (int i = 0; i < 20; ++i) expect_equal(seen[i], 20u);

  int per_sm = 0, sms = 0;
  expect_success(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, meet, 64, 0));
  expect_success(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  expect_remembered(
      cudaLaunchCooperativeKernel(kernel, dim3(static_cast<unsigned>(per_sm * sms + 1)), dim3(64), given, 0, nullptr),
      cudaErrorCooperativeLaunchTooLarge);
  expect_success(cudaFree(memory));
}

static void attributes_of_launches() {
  cudaLaunchConfig_t config{};
  config.gridDim = 1;
  config.blockDim = 32;
  cudaLaunchAttribute attribute[1];
  config.attrs = attribute;
  config.numAttrs = 1;
  int* out = nullptr;
  attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute[0].val.programmaticStreamSerializationAllowed = 1;
  expect_success(cudaLaunchKernelEx(&config, bounded, out));
  attribute[0].id = cudaLaunchAttributeIgnore;
  expect_success(cudaLaunchKernelEx(&config, bounded, out));
  attribute[0].id = cudaLaunchAttributePriority;
  attribute[0].val.priority = -1;
  expect_success(cudaLaunchKernelEx(&config, bounded, out));
  attribute[0].id = static_cast<cudaLaunchAttributeID>(999);
  expect_remembered(cudaLaunchKernelEx(&config, bounded, out), cudaErrorInvalidValue);
  expect_success(cudaDeviceSynchronize());
}

static void questions() {
  cudaFuncAttributes found;
  expect_success(cudaFuncGetAttributes(&found, fixed));
  expect_equal(found.sharedSizeBytes, size_t{32768});
  expect_equal(found.maxThreadsPerBlock, 1024);
  expect_equal(found.maxDynamicSharedSizeBytes, 232448 - 32768);  // as set above
  expect_equal(found.preferredShmemCarveout, -1);
  expect(found.numRegs > 0 && found.numRegs <= 255, "a register count");
  expect_success(cudaFuncGetAttributes(&found, bounded));
  expect_equal(found.maxThreadsPerBlock, 128);
  expect_equal(found.maxDynamicSharedSizeBytes, 49152);
  expect_equal(found.clusterDimMustBeSet, 0);
  expect_remembered(cudaFuncGetAttributes(&found, not_a_kernel), cudaErrorInvalidResourceHandle);
  expect_remembered(cudaFuncSetAttribute(bounded, static_cast<cudaFuncAttribute>(99), 1), cudaErrorInvalidValue);
  expect_remembered(cudaFuncSetAttribute(bounded, cudaFuncAttributeClusterDimMustBeSet, 1), cudaErrorInvalidValue);
  expect_remembered(cudaFuncSetAttribute(bounded, cudaFuncAttributePreferredSharedMemoryCarveout, 101),
                    cudaErrorInvalidValue);

  int blocks = -1;
  expect_success(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 32, 0));
  expect_equal(blocks, 32);  // CTAs per SM
  expect_success(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 128, 0));
  expect_equal(blocks, 16);  // threads per SM
  expect_success(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reverse, 128, 100000));
  expect_equal(blocks, 2);  // shared memory per SM
  expect_success(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 2048, 0));
  expect_equal(blocks, 0);
  expect_success(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 32, 100000));
  expect_equal(blocks, 0);
  expect_remembered(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 0, 0), cudaErrorInvalidValue);
  size_t bytes = 0;
  expect_success(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, bounded, 2, 128));
  expect_equal(bytes, size_t{49152});
  expect_success(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, bounded, 8, 128));
  expect_equal(bytes, size_t{29184});

  cudaLaunchConfig_t config{};
  config.gridDim = 200;
  config.blockDim = 128;
  config.dynamicSmemBytes = 200000;
  cudaLaunchAttribute attribute[1];
  attribute[0].id = cudaLaunchAttributeClusterDimension;
  attribute[0].val.clusterDim.x = 2;
  attribute[0].val.clusterDim.y = attribute[0].val.clusterDim.z = 1;
  config.attrs = attribute;
  config.numAttrs = 1;
  int clusters = -1, sms = 0, most = 0;
  expect_success(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  expect_success(cudaOccupancyMaxActiveClusters(&clusters, reverse, &config));
  expect_equal(clusters, sms / 2);
  config.numAttrs = 0;
  expect_success(cudaOccupancyMaxPotentialClusterSize(&most, reverse, &config));
  expect_equal(most, 8);
}

int main() {
  vector_add();
  arguments();
  shapes();
  shared_memory();
  limits();
  clusters();
  cooperative();
  attributes_of_launches();
  questions();
  return result();
}
