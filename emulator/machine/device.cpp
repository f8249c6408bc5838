#include "emulator/machine/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <stdexcept>
#include <utility>

#include "emulator/hazards/findings.h"
#include "emulator/hazards/global_shadow.h"
#include "emulator/machine/address.h"
#include "emulator/machine/align.h"
#include "emulator/machine/code.h"
#include "emulator/machine/decoder.h"
#include "emulator/machine/grid.h"
#include "emulator/ptx/parser.h"
#include "emulator/report/counters_file.h"
#include "emulator/report/trace_file.h"

namespace emu {
namespace {

/// Registers of a kernel whose machine code is not at hand: what its launch bounds allow, at most this.
constexpr uint32_t kAssumedRegisters = 64;

void check_target(const Chip& chip, const ptx::Module& module) {
  std::string_view target = module.target;
  if (!target.starts_with("sm_"))
    throw std::runtime_error(fmt::format("{}: .target {} is not known", module.name, target));
  std::string_view digits = target.substr(3);
  char suffix = digits.empty() ? '\0' : digits.back();
  if (suffix == 'a' || suffix == 'f')
    digits.remove_suffix(1);
  else
    suffix = '\0';
  int arch = std::atoi(std::string(digits).c_str()), own = chip.major * 10 + chip.minor;
  bool fits = suffix == 'a' ? arch == own : suffix == 'f' ? arch / 10 == chip.major && arch <= own : arch <= own;
  if (!fits)
    throw std::runtime_error(
        fmt::format("{}: PTX for {} does not run on {} (compute capability {}.{}): build with -gencode "
                    "arch=compute_{}{},code=compute_{}{}",
                    module.name, target, chip.name, chip.major, chip.minor, own, chip.has_tcgen05 ? "f" : "a", own,
                    chip.has_tcgen05 ? "f" : "a"));
}

}  // namespace

const Kernel* Module::kernel(std::string_view name) const {
  for (const Kernel& kernel : kernels)
    if (kernel.name == name) return &kernel;
  return nullptr;
}

const Variable* Module::variable(std::string_view name) const {
  for (const Variable& variable : variables)
    if (variable.name == name) return &variable;
  return nullptr;
}

Device::Device(const Chip& chip, const Options& options)
    : chip_(chip),
      options_(options),
      memory_(chip.global_memory_bytes),
      findings_(std::make_unique<hazards::Findings>()) {}
Device::~Device() = default;

std::shared_ptr<Module> Device::load(const std::string& ptx, std::string_view identifier,
                                     const std::vector<std::pair<std::string, uint32_t>>& registers) {
  auto code = std::make_shared<ModuleCode>(ptx::parse(ptx, identifier));
  const ptx::Module& parsed = code->module;
  check_target(chip_, parsed);
  auto module = std::make_shared<Module>();
  module->code = code;

  std::vector<uint64_t>& addresses = code->variable_addresses;
  addresses.resize(parsed.variables.size(), 0);
  for (size_t i = 0; i < parsed.variables.size(); ++i) {
    const ptx::Variable& variable = parsed.variables[i];
    if (variable.space != ptx::Space::global && variable.space != ptx::Space::constant) continue;
    if (variable.is_extern)
      throw std::runtime_error(
          fmt::format("{}: variable {} is defined in another translation unit: this program was built with -rdc=true, "
                      "and the emulator does not link device code; build it without -rdc",
                      identifier, variable.name));
    if (variable.bytes == 0) continue;
    std::string what = fmt::format("variable {}", variable.name);
    if (variable.is_managed) {
      constexpr uint64_t kPage = 4096;
      uint64_t bytes = (variable.bytes + kPage - 1) / kPage * kPage;
      std::shared_ptr<void> pages(std::aligned_alloc(kPage, bytes), std::free);
      if (!pages) throw std::bad_alloc();
      memory_.map_host(pages.get(), bytes, what);
      addresses[i] = reinterpret_cast<uint64_t>(pages.get());
      module->host_memory.push_back(std::move(pages));
    } else {
      addresses[i] = memory_.allocate(variable.bytes, what);
    }
    if (!addresses[i])
      throw std::runtime_error(fmt::format("{}: variable {} of {} bytes does not fit the chip's memory", identifier,
                                           variable.name, variable.bytes));
    std::byte* storage = memory_.writing(addresses[i], variable.bytes);
    if (variable.initial.empty())
      std::memset(storage, 0, variable.bytes);
    else
      std::memcpy(storage, variable.initial.data(), variable.initial.size());
    module->variables.push_back({std::string(variable.name), addresses[i], variable.bytes, variable.is_managed});
  }
  for (size_t i = 0; i < parsed.variables.size(); ++i)
    for (const ptx::Relocation& relocation : parsed.variables[i].relocations) {
      if (!relocation.is_function && !addresses[relocation.index])
        throw std::runtime_error(
            fmt::format("{}: variable {} holds the address of shared or local memory, which differs between blocks",
                        identifier, parsed.variables[i].name));
      uint64_t value = relocation.is_function ? code->function_address(relocation.index) : addresses[relocation.index];
      value += static_cast<uint64_t>(relocation.addend);
      if (relocation.mask != ~uint64_t{0}) {
        value &= relocation.mask;
        value >>= __builtin_ctzll(relocation.mask);
      }
      std::memcpy(memory_.writing(addresses[i] + relocation.offset, relocation.bytes), &value, relocation.bytes);
    }

  for (uint32_t index = 0; index < parsed.functions.size(); ++index) {
    const ptx::Function& function = parsed.functions[index];
    if (!function.is_entry || !function.has_code()) continue;
    Kernel kernel;
    kernel.name = function.name;
    for (const ptx::Variable& parameter : function.parameters())
      kernel.parameters.push_back(
          {.offset = parameter.offset, .bytes = static_cast<uint32_t>(parameter.bytes), .align = parameter.align});
    kernel.parameter_bytes = function.entry_parameter_bytes;
    const ptx::Tuning& tuning = function.tuning;
    uint32_t threads = 1024;
    if (auto extent = tuning.reqntid ? tuning.reqntid : tuning.maxntid) threads = extent->x * extent->y * extent->z;
    kernel.max_threads_per_block = std::min(threads, 1024u);
    if (tuning.reqntid) kernel.required_block = {tuning.reqntid->x, tuning.reqntid->y, tuning.reqntid->z};
    if (tuning.reqnctapercluster)
      kernel.required_cluster = {tuning.reqnctapercluster->x, tuning.reqnctapercluster->y, tuning.reqnctapercluster->z};
    kernel.required_explicitly = tuning.reqnctapercluster.has_value();
    kernel.explicit_cluster = tuning.explicitcluster;
    kernel.blocks_are_clusters = tuning.blocksareclusters;
    kernel.max_cluster_rank = tuning.maxclusterrank.value_or(0);
    kernel.registers_per_thread =
        std::min({kAssumedRegisters, tuning.maxnreg.value_or(255),
                  chip_.registers_per_sm / (align_up(threads, 32) * std::max(1u, tuning.minnctapersm.value_or(1)))});
    for (const auto& [name, count] : registers)
      if (name == kernel.name) kernel.registers_per_thread = count;
    kernel.code = std::make_shared<KernelCode>(chip_, code, index);
    kernel.static_shared_bytes = kernel.code->shared().static_end - chip_.shared_reserved_bytes;
    kernel.local_bytes = function.local_frame_bytes;
    module->kernels.push_back(std::move(kernel));
  }
  return module;
}

void Device::print(std::string_view text) {
  std::lock_guard lock(print_mutex_);
  printed_ += text;
}

std::string Device::take_printed() {
  std::lock_guard lock(print_mutex_);
  return std::exchange(printed_, {});
}

void Device::remark(const std::string& text) {
  if (options_.check) findings_->remark(text);
  std::lock_guard lock(print_mutex_);
  ++remarks_[text];
}

uint64_t Device::nanoseconds(uint64_t cycles) const {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(cycles) * 1'000'000 /
                               static_cast<uint64_t>(chip_.clock_khz));
}

std::string Device::take_remarks() {
  std::lock_guard lock(print_mutex_);
  std::string out;
  for (const auto& [text, times] : std::exchange(remarks_, {})) {
    if (!told_.insert(text).second) continue;
    out += fmt::format("========= Emulated {}: note: {}{}\n", chip_.device_name.substr(7, 4), text,
                       times == 1 ? "" : fmt::format(" ({} times)", times));
  }
  return out;
}

int Device::occupancy(const Kernel& kernel, uint32_t threads_per_block, uint32_t dynamic_shared_bytes) const {
  // CUDA programming guide, "Compute Capabilities", and the allocation units of the occupancy calculator: 256 registers
  // per warp, 128 bytes of shared memory.
  uint32_t warps = align_up(threads_per_block, 32) / 32;
  if (warps == 0) return 0;
  uint32_t shared = align_up(chip_.shared_reserved_bytes + kernel.static_shared_bytes + dynamic_shared_bytes, 128);
  if (shared - chip_.shared_reserved_bytes > chip_.shared_per_cta_optin_bytes) return 0;
  uint32_t registers = align_up(std::max(kernel.registers_per_thread, 1u) * 32, 256) * warps;
  uint32_t limit = static_cast<uint32_t>(chip_.ctas_per_sm);
  limit = std::min(limit, static_cast<uint32_t>(chip_.threads_per_sm) / (warps * 32));
  limit = std::min(limit, chip_.shared_per_sm_bytes / shared);
  limit = std::min(limit, chip_.registers_per_sm / registers);
  return static_cast<int>(limit);
}

/// A cluster's CTAs run on different SMs of one GPC.
int Device::max_clusters(int ctas_per_sm, uint64_t cluster_ctas) const {
  uint64_t clusters = 0, per_sm = static_cast<uint64_t>(ctas_per_sm);
  if (cluster_ctas == 1) return chip_.sm_count * ctas_per_sm;
  for (uint64_t sms : chip_.gpc_sms)
    if (sms >= cluster_ctas) clusters += sms * per_sm / cluster_ctas;
  return static_cast<int>(clusters);
}

std::optional<Fault> Device::launch(const Kernel& kernel, const LaunchConfig& config,
                                    std::span<const std::byte> parameters) {
  if (occupancy(kernel, static_cast<uint32_t>(config.block.count()), config.dynamic_shared_bytes) == 0)
    throw std::invalid_argument(fmt::format("{}: a block of {} threads with {} bytes of shared memory fits no SM",
                                            pretty_name(kernel.name), config.block.count(),
                                            kernel.static_shared_bytes + config.dynamic_shared_bytes));
  Grid grid(*this, kernel, config, parameters);
  // %globaltimer goes on from launch to launch, and is near the host's clock: programs give kernels deadlines by that.
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  grid.started_ns =
      std::max(last_end_ns_, static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()));
  std::optional<Fault> fault = grid.run();
  last_end_ns_ = grid.started_ns + nanoseconds(grid.counters().last_clock);
  if (fault) findings_->fault(*fault, grid.program.pretty_name, options_.schedule);
  if (!options_.check_path.empty() && !fault)
    findings_->output(grid.program.pretty_name, grid.global_shadow->fingerprint(memory_));
  if (!options_.check_path.empty()) std::ofstream(options_.check_path) << findings_->json();
  if (!options_.counters_path.empty()) append_counters(options_.counters_path, grid);
  if (!options_.trace_path.empty()) append_trace(options_.trace_path, grid);
  return fault;
}

}  // namespace emu
