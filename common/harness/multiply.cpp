#include "common/harness/multiply.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <bit>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "common/harness/canary.h"
#include "common/harness/counters.h"
#include "common/harness/cuda_error.h"
#include "common/harness/device_matrix.h"
#include "common/harness/inputs.h"
#include "common/harness/memory_limits.h"
#include "common/harness/npy.h"
#include "common/harness/parallel.h"
#include "common/harness/user_error.h"

namespace ladder {
namespace {

class Stopwatch {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// Throws UserError where a finite element has no finite neighbour in `type`. `path`: of its file.
HostMatrix rounded(HostMatrix matrix, DType type, const std::string& path) {
  if (matrix.type() == type) return matrix;
  HostMatrix result(matrix.rows(), matrix.cols(), type);
  parallel_for(matrix.size(), 1 << 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      result.row16(0)[i] = static_cast<uint16_t>(from_f32(type, matrix.row32(0)[i]));
    }
  });
  for (int64_t row = 0; row < matrix.rows(); ++row) {
    for (int64_t col = 0; col < matrix.cols(); ++col) {
      const uint32_t given = matrix.bits(row, col);
      if (!is_finite_f32(given) || is_finite_f32(to_f32(type, result.bits(row, col)))) continue;
      throw UserError(fmt::format("{}: element [{}][{}] is {}, beyond what {} can hold; {}", path, row, col,
                                  std::bit_cast<float>(given), name_of(type),
                                  type == DType::f16 ? "take --dtype bf16, or scale the matrix" : "scale the matrix"));
    }
  }
  return result;
}

struct Operands {
  HostMatrix a, b;
};

Operands make_inputs(const Options& options) {
  const Shape& shape = options.shape;
  if (options.input == Input::file) {
    Operands files{rounded(read_npy(options.a_path), options.in, options.a_path),
                   rounded(read_npy(options.b_path), options.in, options.b_path)};
    if (options.check) {
      require_finite(files.a, options.a_path);
      require_finite(files.b, options.b_path);
    }
    return files;
  }
  Operands made{HostMatrix(shape.m, shape.k, options.in), HostMatrix(shape.n, shape.k, options.in)};
  switch (options.input) {
    case Input::integer: {
      const IntegerRange range = integer_range(shape.k, options.out);
      fill_integer(made.a, options.seed, Stream::matrix_a, range);
      fill_integer(made.b, options.seed, Stream::matrix_b, range);
      break;
    }
    case Input::position: {
      const PositionCode code(shape, options.seed);
      code.fill_a(made.a);
      code.fill_b(made.b);
      break;
    }
    case Input::random:
    case Input::file:
      fill_random(made.a, options.seed, Stream::matrix_a);
      fill_random(made.b, options.seed, Stream::matrix_b);
      break;
  }
  return made;
}

void describe_device(RunRecord& record) {
  check(cudaSetDevice(0), "cudaSetDevice");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  record.device_name = properties.name;
  record.major = properties.major;
  record.minor = properties.minor;
  record.sm_count = properties.multiProcessorCount;
  check(cudaDriverGetVersion(&record.driver_version), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&record.runtime_version), "cudaRuntimeGetVersion");
}

void check_device_memory(const Options& options) {
  size_t free_bytes = 0, total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  const uint64_t bands = 3 * device_bytes(0);
  check_memory(matrices_bytes(options.shape, options.in, options.out) + bands, free_bytes, "of device memory",
               "A, B and D with their guard bands");
}

void note(std::vector<std::string>& faults, const std::optional<std::string>& fault) {
  if (fault) faults.push_back(*fault);
}

}  // namespace

RunRecord multiply(const Rung& rung, const Options& options, bool emulated, const KernelClock& clock) {
  Stopwatch total, watch;
  RunRecord record;
  record.rung = rung.name;
  record.options = options;
  record.emulated = emulated;
  if (const char* chip = std::getenv("LADDER_CHIP"); emulated && chip != nullptr) record.chip = chip;
  describe_device(record);
  const Family family = record.major == 9 ? Family::hopper : Family::blackwell;
  const Variant variant = choose_variant(rung, family, options.variant);
  record.variant = variant.name;
  check_device_memory(options);

  const Operands inputs = make_inputs(options);
  DeviceMatrix a(inputs.a.size_bytes(), "A", 0), b(inputs.b.size_bytes(), "B", 1);
  const size_t d_bytes = static_cast<size_t>(options.shape.m * options.shape.n) * bytes_of(options.out);
  DeviceMatrix d(d_bytes, "D", 2);
  a.upload(inputs.a);
  b.upload(inputs.b);
  d.fill(kPoisonByte);
  const Gemm gemm{.m = options.shape.m,
                  .n = options.shape.n,
                  .k = options.shape.k,
                  .in = options.in,
                  .out = options.out,
                  .a = a.data(),
                  .b = b.data(),
                  .d = d.data(),
                  .stream = nullptr};
  check(cudaDeviceSynchronize(), "preparing the matrices");
  const Planned planned = variant.planned(gemm);
  record.plan = planned.text;
  record.inputs_s = watch.lap();

  clock.begin();
  planned.launch(gemm);
  check(cudaDeviceSynchronize(), "running the kernel");
  clock.end();
  record.kernel_s = watch.lap();
  if (emulated) record.counters = last_counters();

  HostMatrix result(options.shape.m, options.shape.n, options.out);
  const auto look = [&] {
    d.download(result);
    for (const DeviceMatrix* matrix : {&a, &b, &d}) note(record.faults, matrix->damage());
    note(record.faults, a.change_from(inputs.a));
    note(record.faults, b.change_from(inputs.b));
  };
  look();
  record.scan = scan(result);
  if (record.scan.unwritten > 0 && !options.check) {
    record.faults.push_back(fmt::format("{} of {} outputs were never written", record.scan.unwritten, result.size()));
  }
  record.d_hash = hash_of(result);
  if (options.check) {
    record.check = check_product(
        inputs.a, inputs.b, result,
        {.input = options.input, .seed = options.seed, .tile = {.m = rung.tile_m, .n = rung.tile_n, .k = rung.tile_k}});
  }
  record.check_s = watch.lap();
  if (!options.out_path.empty()) write_npy(options.out_path, result);
  if (options.bench) {
    const auto launch = [&] { planned.launch(gemm); };
    d.fill(kPoisonByte);
    record.benchmark = emulated ? benchmark_emulated(launch) : benchmark_gpu(launch, clock);
    // A kernel may be right once and then wrong: by a phase, an allocation, a workspace that it left behind.
    look();
    if (hash_of(result) != record.d_hash) {
      record.faults.push_back("the last timed launch left other bits in D than the first launch");
    }
  }
  record.total_s = total.lap();
  return record;
}

}  // namespace ladder
