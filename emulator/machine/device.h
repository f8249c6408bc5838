#pragma once
// The emulated device as the runtime sees it: memory, modules of PTX, launches.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/machine/chip.h"
#include "emulator/machine/device_heap.h"
#include "emulator/machine/fault.h"
#include "emulator/machine/global_memory.h"
#include "emulator/machine/options.h"

namespace emu {
namespace hazards {
class Findings;
}

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

struct LaunchConfig {
  Dim3 grid, block, cluster;      ///< cluster 1x1x1: none, unless
  bool explicit_cluster = false;  ///< clusters were asked for, if only of one CTA
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
};

class KernelCode;
class ModuleCode;

/// One .entry of a module, with what the runtime must know of it.
struct Kernel {
  std::string name;  ///< mangled
  struct Parameter {
    uint32_t offset = 0, bytes = 0, align = 1;
  };
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t static_shared_bytes = 0;
  uint32_t local_bytes = 0;           ///< per thread
  uint32_t registers_per_thread = 0;  ///< from machine code beside the PTX when there is any, else a stated assumption
  uint32_t max_threads_per_block = 1024;
  Dim3 required_block{0, 0, 0};      ///< .reqntid, else 0x0x0
  Dim3 required_cluster;             ///< .reqnctapercluster, else 1x1x1
  bool required_explicitly = false;  ///< .reqnctapercluster: the launch need not ask for clusters
  bool explicit_cluster = false;     ///< .explicitcluster: but somebody must
  bool blocks_are_clusters = false;  ///< .blocksareclusters: a launch counts its grid in clusters
  uint32_t max_cluster_rank = 0;     ///< .maxclusterrank: most CTAs of a cluster; 0: no such limit
  std::shared_ptr<KernelCode> code;
};

struct Variable {
  std::string name;
  uint64_t address = 0, bytes = 0;
  bool managed = false;  ///< in host memory, at an address that host and device share
};

class Module {
 public:
  const Kernel* kernel(std::string_view name) const;      ///< nullptr when absent
  const Variable* variable(std::string_view name) const;  ///< .global and .const variables; nullptr when absent
  std::vector<Kernel> kernels;
  std::vector<Variable> variables;
  std::shared_ptr<const ModuleCode> code;
  std::vector<std::shared_ptr<void>> host_memory;  ///< of managed variables
};

class Device {
 public:
  Device(const Chip& chip, const Options& options);
  ~Device();

  const Chip& chip() const { return chip_; }
  const Options& options() const { return options_; }
  GlobalMemory& memory() { return memory_; }

  /// Parses and decodes PTX text, places its variables in global memory. Throws std::runtime_error with file, line and
  /// reason. `registers`: register count per kernel name where machine code was found beside the PTX.
  std::shared_ptr<Module> load(const std::string& ptx, std::string_view identifier,
                               const std::vector<std::pair<std::string, uint32_t>>& registers = {});

  /// What kernels print: in the order in which they do, kept until somebody takes it.
  void print(std::string_view text);
  std::string take_printed();

  /// What went well here and on the chip, but by luck: kept with its count until somebody takes it, a line each. What
  /// has been taken before is not told again, however many launches bring it.
  void remark(const std::string& text);
  std::string take_remarks();

  /// What the hazard rules have found.
  hazards::Findings& findings() { return *findings_; }

  /// How long so many cycles of the chip's clock take.
  uint64_t nanoseconds(uint64_t cycles) const;

  /// The heap of malloc() and free() in kernels. Its size is fixed when it is first used.
  DeviceHeap& heap() { return heap_; }

  /// CTAs of `kernel` that an SM can hold at once (cudaOccupancyMaxActiveBlocksPerMultiprocessor); 0: does not fit.
  int occupancy(const Kernel& kernel, uint32_t threads_per_block, uint32_t dynamic_shared_bytes) const;

  /// Clusters of `cluster_ctas` CTAs that the chip can hold at once when an SM holds `ctas_per_sm` of them.
  int max_clusters(int ctas_per_sm, uint64_t cluster_ctas) const;

  /// Runs the grid to its end. `parameters` holds kernel.parameter_bytes bytes. The caller has checked limits
  /// (block size, shared memory, cluster); nothing is returned when all went well.
  std::optional<Fault> launch(const Kernel& kernel, const LaunchConfig& config, std::span<const std::byte> parameters);

 private:
  const Chip chip_;
  Options options_;
  GlobalMemory memory_;
  DeviceHeap heap_{memory_};
  std::mutex print_mutex_;
  std::string printed_;
  std::map<std::string, uint64_t> remarks_;
  std::set<std::string> told_;
  std::unique_ptr<hazards::Findings> findings_;
  uint64_t last_end_ns_ = 0;  // when the last grid ended, by %globaltimer
};

}  // namespace emu
