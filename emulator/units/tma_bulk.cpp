// Plain bulk copies: cp.async.bulk between global memory and shared windows.

#include <fmt/format.h>

#include <cstring>

#include "emulator/machine/trap.h"
#include "emulator/units/tma.h"

namespace emu::tma {
namespace {

constexpr auto kSource = "PTX ISA, cp.async.bulk";
constexpr uint64_t kGranule = 16;

}  // namespace

void check_bulk(uint64_t destination, uint64_t source, uint64_t bytes) {
  const auto check = [](std::string_view what, uint64_t value) {
    if (value % kGranule == 0) return;
    throw Trap(FaultCode::misaligned_address,
               fmt::format("bulk copy: {} {:#x} must be a multiple of 16 bytes; it is {} past one", what, value,
                           value % kGranule),
               kSource);
  };
  check("destination address", destination);
  check("source address", source);
  check("size", bytes);
}

void check_first(uint32_t address, const Window& window, std::string_view what) {
  if (address >= window.first) return;
  throw Trap(FaultCode::illegal_address,
             fmt::format("{}: shared address {:#x} lies in the first {} bytes of the CTA's shared memory, which the "
                         "system keeps for itself",
                         what, address, window.first),
             "PTX ISA, shared state space");
}

void check_shared_range(uint32_t address, uint64_t bytes, const Window& window) {
  if (bytes) check_first(address, window, "bulk copy");
  if (bytes <= window.size && address <= window.size - bytes) return;
  throw Trap(FaultCode::illegal_address,
             fmt::format("bulk copy: {} bytes of shared memory from {:#x} end {} bytes past the CTA's window of {}",
                         bytes, address, address + bytes - window.size, window.size),
             kSource);
}

void bulk_read_global(const GlobalMemory& memory, uint64_t address, std::span<std::byte> to) {
  if (!to.empty()) std::memcpy(to.data(), memory.reading(address, to.size()), to.size());
}

void bulk_write_global(GlobalMemory& memory, uint64_t address, std::span<const std::byte> from) {
  if (!from.empty()) std::memcpy(memory.writing(address, from.size()), from.data(), from.size());
}

void bulk_read_shared(Window window, uint32_t address, std::span<std::byte> to) {
  check_shared_range(address, to.size(), window);
  if (!to.empty()) std::memcpy(to.data(), window.bytes + address, to.size());
}

void bulk_write_shared(Window window, uint32_t address, std::span<const std::byte> from) {
  check_shared_range(address, from.size(), window);
  if (!from.empty()) std::memcpy(window.bytes + address, from.data(), from.size());
}

void bulk_load(const GlobalMemory& memory, uint64_t source, Window window, uint32_t destination, uint64_t bytes) {
  check_shared_range(destination, bytes, window);
  bulk_read_global(memory, source, {window.bytes + destination, bytes});
}

void bulk_store(Window window, uint32_t source, GlobalMemory& memory, uint64_t destination, uint64_t bytes) {
  check_shared_range(source, bytes, window);
  bulk_write_global(memory, destination, {window.bytes + source, bytes});
}

}  // namespace emu::tma
