#include "emulator/runtime/launch.h"

#include <fmt/format.h>

#include <cstring>

#include "emulator/runtime/error.h"

// The error codes are those that an H200 returns for the same launches (driver 580, CUDA 13.0): most of what older
// versions called cudaErrorInvalidConfiguration is cudaErrorInvalidValue there.

namespace emu::runtime {
namespace {

std::string text(const Dim3& dim) {
  return fmt::format("{}x{}x{}", dim.x, dim.y, dim.z);
}
Dim3 to_dim3(const dim3& dim) {
  return {dim.x, dim.y, dim.z};
}

// A launch that passed all checks.
struct Checked {
  Function::Loaded loaded;
  LaunchConfig config;
};

class Checker {
 public:
  Checker(Runtime& runtime, const LaunchRequest& request)
      : runtime_(runtime), request_(request), chip_(runtime.chip()), function_(*request.function) {}

  Checked check() {
    grid_ = to_dim3(request_.grid);
    block_ = to_dim3(request_.block);
    check_limits();
    loaded_ = function_.load(runtime_);
    check_block();
    check_shared();
    check_cluster();
    if (loaded_.kernel->blocks_are_clusters) grid_ = {grid_.x * cluster_.x, grid_.y * cluster_.y, grid_.z * cluster_.z};
    check_residency();
    LaunchConfig config;
    config.grid = grid_;
    config.block = block_;
    config.cluster = cluster_;
    config.explicit_cluster = explicit_cluster_;
    config.dynamic_shared_bytes = static_cast<uint32_t>(request_.dynamic_shared_bytes);
    config.cooperative = request_.cooperative;
    return {std::move(loaded_), config};
  }

 private:
  [[noreturn]] void refuse(cudaError_t code, const std::string& why) const {
    throw ApiError{code, fmt::format("{} not launched ({}): {}", function_.readable_name(), error_name(code), why)};
  }

  void check_limits() const {
    if (grid_.x - 1 >= kMaxGridX || grid_.y - 1 >= kMaxGridYZ || grid_.z - 1 >= kMaxGridYZ)
      refuse(
          cudaErrorInvalidValue,
          fmt::format("a grid of {} blocks; each of x, y, z must be at least 1, and at most {}, {}, {}: move the large "
                      "dimension to x",
                      text(grid_), kMaxGridX, kMaxGridYZ, kMaxGridYZ));
    if (block_.x - 1 >= kMaxThreadsPerBlock || block_.y - 1 >= kMaxThreadsPerBlock || block_.z - 1 >= kMaxBlockZ ||
        block_.count() > kMaxThreadsPerBlock)
      refuse(cudaErrorInvalidValue,
             fmt::format(
                 "a block of {} threads; at least 1x1x1, at most {} in all and {} in z: use more and smaller blocks",
                 text(block_), kMaxThreadsPerBlock, kMaxBlockZ));
  }

  void check_block() const {
    const Dim3& required = loaded_.kernel->required_block;
    if (required.count() > 0 && (block_.x != required.x || block_.y != required.y || block_.z != required.z))
      refuse(cudaErrorInvalidValue,
             fmt::format("a block of {} threads; the kernel was compiled for blocks of exactly {} "
                         "(.reqntid, __block_size__): launch those",
                         text(block_), text(required)));
    const uint32_t most = loaded_.kernel->max_threads_per_block;
    if (block_.count() > most)
      refuse(cudaErrorInvalidValue, fmt::format("a block of {} threads; the kernel was compiled for at most {} "
                                                "(__launch_bounds__): launch fewer or raise the bound",
                                                block_.count(), most));
  }

  void check_shared() const {
    const uint32_t fixed = loaded_.kernel->static_shared_bytes;
    const uint32_t limit = function_.dynamic_shared_limit(*loaded_.kernel);
    if (request_.dynamic_shared_bytes <= limit) return;
    const uint32_t most = chip_.shared_per_cta_optin_bytes - std::min(fixed, chip_.shared_per_cta_optin_bytes);
    const std::string way_out =
        request_.dynamic_shared_bytes <= most
            ? fmt::format(
                  "ask for more with cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, {})",
                  request_.dynamic_shared_bytes)
            : fmt::format("the chip's limit is {} beside the kernel's {} static bytes", most, fixed);
    refuse(cudaErrorInvalidValue, fmt::format("{} bytes of dynamic shared memory; the kernel may have {}: {}",
                                              request_.dynamic_shared_bytes, limit, way_out));
  }

  void check_cluster() {
    const Dim3 compiled = loaded_.kernel->required_cluster;
    Dim3 required = function_.required_cluster;
    if (compiled.count() > 1) required = compiled;
    const bool has_required = required.count() > 0 && (compiled.count() > 1 || function_.required_cluster.count() > 0);
    explicit_cluster_ = request_.cluster_given || has_required || loaded_.kernel->required_explicitly;

    cluster_ = {};
    if (request_.cluster_given) {
      cluster_ = request_.cluster;
      if (has_required && (cluster_.x != required.x || cluster_.y != required.y || cluster_.z != required.z))
        refuse(
            cudaErrorInvalidClusterSize,
            fmt::format("clusters of {} asked for; the kernel requires {} (__cluster_dims__): ask for that or for none",
                        text(cluster_), text(required)));
    } else if (has_required) {
      cluster_ = required;
    }
    if (cluster_.count() == 0)
      refuse(cudaErrorInvalidClusterSize,
             fmt::format("clusters of {} blocks; each dimension must be at least 1", text(cluster_)));
    const auto most =
        static_cast<uint64_t>(function_.non_portable_cluster ? chip_.max_cluster : chip_.max_cluster_portable);
    if (cluster_.count() > most)
      refuse(
          cudaErrorInvalidClusterSize,
          fmt::format("clusters of {} = {} blocks; at most {}{}", text(cluster_), cluster_.count(), most,
                      function_.non_portable_cluster ? " on this chip"
                                                     : fmt::format(", or {} after cudaFuncSetAttribute(kernel, "
                                                                   "cudaFuncAttributeNonPortableClusterSizeAllowed, 1)",
                                                                   chip_.max_cluster)));
    const uint32_t rank = loaded_.kernel->max_cluster_rank;
    if (rank && cluster_.count() > rank)
      refuse(cudaErrorInvalidClusterSize,
             fmt::format("clusters of {} = {} blocks; the kernel was compiled for at most {} (the third argument of "
                         "__launch_bounds__)",
                         text(cluster_), cluster_.count(), rank));
    if (loaded_.kernel->explicit_cluster && !explicit_cluster_)
      refuse(cudaErrorInvalidClusterSize,
             "the kernel must be launched in clusters (.explicitcluster) and no cluster dimension was given: pass "
             "cudaLaunchAttributeClusterDimension to cudaLaunchKernelEx");
    if (!loaded_.kernel->blocks_are_clusters && (grid_.x % cluster_.x || grid_.y % cluster_.y || grid_.z % cluster_.z))
      refuse(cudaErrorInvalidClusterSize,
             fmt::format(
                 "a grid of {} blocks in clusters of {}; each dimension must be a multiple of the cluster's: round the "
                 "grid up and let the surplus blocks do nothing",
                 text(grid_), text(cluster_)));
  }

  void check_residency() const {
    const int blocks = runtime_.device().occupancy(*loaded_.kernel, static_cast<uint32_t>(block_.count()),
                                                   static_cast<uint32_t>(request_.dynamic_shared_bytes));
    if (blocks == 0)
      refuse(
          cudaErrorLaunchOutOfResources,
          fmt::format(
              "{} threads with {} registers each and {} bytes of shared memory do not fit on an SM ({} registers, {} "
              "bytes): use fewer threads or __launch_bounds__",
              block_.count(), loaded_.kernel->registers_per_thread,
              loaded_.kernel->static_shared_bytes + request_.dynamic_shared_bytes, chip_.registers_per_sm,
              chip_.shared_per_sm_bytes));
    const uint64_t clusters = static_cast<uint64_t>(runtime_.device().max_clusters(blocks, cluster_.count()));
    if (clusters == 0)
      refuse(cudaErrorInvalidClusterSize,
             fmt::format("clusters of {} blocks; no GPC of this chip has so many SMs", cluster_.count()));
    const uint64_t resident = clusters * cluster_.count();
    if (request_.cooperative && grid_.count() > resident)
      refuse(cudaErrorCooperativeLaunchTooLarge,
             fmt::format(
                 "{} blocks in a cooperative launch; all must be resident at once, and {} SMs hold {} each: launch at "
                 "most {}",
                 grid_.count(), chip_.sm_count, blocks, resident));
  }

  Runtime& runtime_;
  const LaunchRequest& request_;
  const Chip& chip_;
  const Function& function_;
  Dim3 grid_, block_, cluster_;
  bool explicit_cluster_ = false;
  Function::Loaded loaded_{};
};

void enqueue(Runtime& runtime, const LaunchRequest& request, Checked checked, std::vector<std::byte> parameters,
             Stream& stream) {
  Device& device = runtime.device();
  NodeDescription what;
  if (runtime.streams.captures(stream)) {
    what.type = cudaGraphNodeTypeKernel;
    what.launch = request;
    what.parameters = parameters;
  }
  const auto run = [&runtime, &device, checked = std::move(checked), parameters = std::move(parameters)] {
    if (runtime.sticky_error() != cudaSuccess) return;
    const std::lock_guard lock(runtime.code_mutex());
    if (const auto fault = device.launch(*checked.loaded.kernel, checked.config, parameters)) runtime.poison(*fault);
  };
  runtime.streams.submit(stream, run, std::move(what));
}

}  // namespace

Function& find_function(Runtime& runtime, const void* what) {
  if (!what) throw ApiError{cudaErrorInvalidDeviceFunction};
  Function* function = runtime.registry.function(what);
  if (!function)
    throw ApiError{
        cudaErrorInvalidResourceHandle,
        "launch of something that is no kernel: neither a registered __global__ function nor a handle of one"};
  return *function;
}

void launch(Runtime& runtime, const LaunchRequest& request, void** arguments, Stream& stream) {
  runtime.device();
  Checked checked = Checker(runtime, request).check();
  const Kernel& kernel = *checked.loaded.kernel;
  std::vector<std::byte> parameters(kernel.parameter_bytes);
  if (!kernel.parameters.empty() && !arguments) throw ApiError{cudaErrorInvalidValue};
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const Kernel::Parameter& parameter = kernel.parameters[i];
    std::memcpy(parameters.data() + parameter.offset, arguments[i], parameter.bytes);
  }
  enqueue(runtime, request, std::move(checked), std::move(parameters), stream);
}

void launch_packed(Runtime& runtime, const LaunchRequest& request, std::span<const std::byte> packed, Stream& stream) {
  runtime.device();
  Checked checked = Checker(runtime, request).check();
  std::vector<std::byte> parameters(checked.loaded.kernel->parameter_bytes);
  if (packed.size() < parameters.size()) throw ApiError{cudaErrorInvalidValue};
  std::memcpy(parameters.data(), packed.data(), parameters.size());
  enqueue(runtime, request, std::move(checked), std::move(parameters), stream);
}

int blocks_per_sm(Runtime& runtime, const Function& function, int threads_per_block, size_t dynamic_shared_bytes) {
  const auto loaded = function.load(runtime);
  const auto threads = static_cast<uint32_t>(threads_per_block);
  if (threads > std::min(kMaxThreadsPerBlock, loaded.kernel->max_threads_per_block)) return 0;
  if (dynamic_shared_bytes > function.dynamic_shared_limit(*loaded.kernel)) return 0;
  return runtime.device().occupancy(*loaded.kernel, threads, static_cast<uint32_t>(dynamic_shared_bytes));
}

}  // namespace emu::runtime
