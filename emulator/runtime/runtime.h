#pragma once
// The state of this process's emulated device, as the CUDA runtime has it: one device, one context.

#include <atomic>
#include <memory>
#include <mutex>

#include "emulator/machine/device.h"
#include "emulator/runtime/event.h"
#include "emulator/runtime/graph.h"
#include "emulator/runtime/graph_memory.h"
#include "emulator/runtime/host_memory.h"
#include "emulator/runtime/library.h"
#include "emulator/runtime/pool.h"
#include "emulator/runtime/queue.h"
#include "emulator/runtime/registry.h"
#include "emulator/runtime/settings.h"
#include "emulator/runtime/stream.h"

namespace emu::runtime {

class Runtime {
 public:
  /// Never destroyed: programs call the runtime from their own destructors, and the worker thread may still be about.
  static Runtime& get();

  /// The emulated chip; reads the environment at the first call. Ends the process (exit status 2) when that names no
  /// chip.
  const Chip& chip();

  /// The device. The first call makes the context, and is where a program is refused that has no PTX for the chip.
  Device& device();

  /// cuInit. What the runtime is asked does it too, but for its version and the texts of errors.
  void initialise_driver() { driver_initialised_.store(true, std::memory_order_release); }
  bool driver_initialised() const { return driver_initialised_.load(std::memory_order_acquire); }

  bool has_context() const { return has_context_.load(std::memory_order_acquire); }

  /// What is at `address` as far as calls have been issued: memory of a graph is there from the issue of the launch
  /// that allocates it to the issue of what frees it.
  std::optional<GlobalMemory::Allocation> memory_at(uint64_t address);
  /// The same for an operation in `stream`. Throws cudaErrorInvalidValue for memory of a graph that is not there,
  /// unless the operation is a node: it may be there at each launch.
  std::optional<GlobalMemory::Allocation> memory_for(const Stream& stream, uint64_t address);

  /// Held by what loads code and what runs it.
  std::mutex& code_mutex() { return code_mutex_; }

  Queue queue{[this](const std::exception& error) { operation_failed(error); }, [this] { show_printed(); }};
  Streams streams{queue};
  Events events{queue, streams};
  Graphs graphs;
  GraphMemory graph_memory;
  Registry registry;
  Libraries libraries;
  HostMemory host_memory;
  Pools pools;
  Settings settings;

  /// What kernels have printed goes to stdout, as CUDA lets it whenever the host waits for the device.
  void show_printed();

  /// A kernel faulted: from now on every call that needs the context returns this error.
  void poison(const Fault& fault);
  /// What a call that needs the context must return; cudaSuccess when all is well.
  cudaError_t sticky_error() const { return static_cast<cudaError_t>(sticky_.load(std::memory_order_acquire)); }

  /// cudaDeviceReset. After a fault the device stays unusable, as an H200 does.
  void reset();

 private:
  Runtime() = default;
  void operation_failed(const std::exception& error);
  const Options& options();

  std::mutex mutex_, code_mutex_;
  std::unique_ptr<Options> options_;
  std::optional<Chip> chip_;
  std::unique_ptr<Device> device_;
  std::atomic<bool> has_context_ = false, driver_initialised_ = false;
  std::atomic<int> sticky_ = cudaSuccess;
};

}  // namespace emu::runtime
