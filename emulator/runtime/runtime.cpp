#include "emulator/runtime/runtime.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "emulator/hazards/findings.h"
#include "emulator/machine/trap.h"
#include "emulator/runtime/error.h"
#include "emulator/runtime/message.h"

namespace emu::runtime {

Runtime& Runtime::get() {
  static Runtime& runtime = *new Runtime;
  return runtime;
}

const Options& Runtime::options() {
  if (!options_) {
    try {
      options_ = std::make_unique<Options>(Options::from_environment());
    } catch (const std::exception& error) {
      refuse(error.what());
    }
    chip_ = options_->emulated_chip();
  }
  return *options_;
}

const Chip& Runtime::chip() {
  const std::lock_guard lock(mutex_);
  options();
  return *chip_;
}

Device& Runtime::device() {
  const std::lock_guard lock(mutex_);
  if (!device_) {
    const Options& chosen = options();
    if (const auto objection = registry.objection(*chip_)) refuse(*objection);
    try {
      device_ = std::make_unique<Device>(*chip_, chosen);
    } catch (const std::exception& error) {
      refuse(error.what());
    }
    has_context_.store(true, std::memory_order_release);
  }
  return *device_;
}

std::optional<GlobalMemory::Allocation> Runtime::memory_at(uint64_t address) {
  auto found = device().memory().find_or_reserved(address);
  if (found && graph_memory.missing(found->address)) found.reset();
  return found;
}

std::optional<GlobalMemory::Allocation> Runtime::memory_for(const Stream& stream, uint64_t address) {
  auto found = device().memory().find_or_reserved(address);
  if (found && !streams.captures(stream) && graph_memory.missing(found->address))
    throw ApiError{cudaErrorInvalidValue,
                   fmt::format("nothing is at {:#x} now: memory of a graph is there from a launch "
                               "that allocates it until it is freed",
                               address)};
  return found;
}

void Runtime::show_printed() {
  const std::lock_guard lock(mutex_);
  if (!device_) return;
  const std::string text = device_->take_printed(), remarks = device_->take_remarks(),
                    findings = device_->options().check ? device_->findings().take_text() : "";
  if (!text.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
  if (!remarks.empty()) std::fwrite(remarks.data(), 1, remarks.size(), stderr);
  if (!findings.empty()) std::fwrite(findings.data(), 1, findings.size(), stderr);
}

void Runtime::operation_failed(const std::exception& error) {
  if (const auto* trap = dynamic_cast<const Trap*>(&error))
    return poison({static_cast<int>(trap->code), std::string("emulator: a copy or fill in a stream: ") + error.what()});
  poison({cudaErrorUnknown, std::string("emulator: internal error: ") + error.what()});
}

void Runtime::poison(const Fault& fault) {
  show_printed();
  std::fflush(stdout);
  std::fwrite(fault.report.data(), 1, fault.report.size(), stderr);
  if (!fault.report.ends_with('\n')) std::fputc('\n', stderr);
  int none = cudaSuccess;
  sticky_.compare_exchange_strong(none, fault.error ? fault.error : static_cast<int>(cudaErrorLaunchFailure));
}

void Runtime::reset() {
  queue.wait_all();
  events.forget_all();
  streams.forget_all();
  graphs.forget_all();
  graph_memory.forget_all();
  libraries.forget_all(*this);
  registry.unload_all();
  pools.forget_all();
  settings = {};
  const std::lock_guard lock(mutex_);
  host_memory.release_all(device_.get());
  device_.reset();
  has_context_ = false;
  if (sticky_ != cudaSuccess) sticky_ = cudaErrorDevicesUnavailable;
}

}  // namespace emu::runtime
