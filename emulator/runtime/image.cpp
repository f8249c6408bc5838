#include "emulator/runtime/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "emulator/fatbin/fatbin.h"
#include "emulator/runtime/error.h"
#include "emulator/runtime/message.h"
#include "emulator/runtime/runtime.h"

namespace emu::runtime {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243B1, kContainerMagic = 0xBA55ED50, kElfMagic = 0x464C457F;

bool is_fat_binary(const void* data) {
  uint32_t magic;
  std::memcpy(&magic, data, sizeof magic);
  return magic == kWrapperMagic || magic == kContainerMagic;
}

// What an image offers a chip: PTX, or why there is none.
struct Choice {
  std::string ptx, identifier;
  int architecture = 0;
  std::vector<std::pair<std::string, uint32_t>> registers;
  std::optional<std::string> objection;
};

// Throws std::runtime_error when the fat binary is broken.
Choice choose(const void* data, const Chip& chip) {
  Choice choice;
  if (is_fat_binary(data)) {
    const auto containers = fatbin::read_registered(data);
    const auto with_ptx = std::count_if(containers.begin(), containers.end(), [&](const fatbin::Container& container) {
      return fatbin::choose_ptx(container, chip.major, chip.minor) != nullptr;
    });
    if (with_ptx > 1) {
      choice.objection = fmt::format(
          "its device code comes from {} translation units built with -rdc=true, which the emulator does not link; "
          "build it without -rdc",
          with_ptx);
      return choice;
    }
    for (const fatbin::Container& container : containers) {
      const fatbin::Image* image = fatbin::choose_ptx(container, chip.major, chip.minor);
      if (!image) {
        if (!choice.objection) choice.objection = fatbin::refusal(container, chip.major, chip.minor);
        continue;
      }
      choice.objection.reset();
      choice.ptx = image->content();
      choice.identifier = image->identifier;
      choice.architecture = static_cast<int>(image->arch);
      choice.registers = fatbin::register_counts(container, chip.major, chip.minor);
      return choice;
    }
    if (!choice.objection) choice.objection = "there is no device code in this fat binary";
    return choice;
  }
  uint32_t magic;
  std::memcpy(&magic, data, sizeof magic);
  if (magic == kElfMagic) {
    choice.objection =
        "this is machine code alone, which the emulator does not run: load the PTX that it was made from";
    return choice;
  }
  choice.ptx = static_cast<const char*>(data);
  choice.architecture = chip.major * 10 + chip.minor;  // the target is checked when it is loaded
  return choice;
}

}  // namespace

void require_ptx(std::string_view text) {
  if (text.find(".version") == std::string_view::npos)
    throw ApiError{cudaErrorInvalidKernelImage,
                   "the code to load is neither a fat binary nor PTX (which has .version near its start)"};
}

std::optional<std::string> Image::objection(const Chip& chip) const {
  try {
    return choose(data_, chip).objection;
  } catch (const std::exception& error) {
    return std::string("the program's device code cannot be read: ") + error.what();
  }
}

std::shared_ptr<Module> Image::load(Runtime& runtime) {
  const Chip& chip = runtime.chip();
  Choice choice;
  try {
    choice = choose(data_, chip);
  } catch (const std::exception& error) {
    throw ApiError{cudaErrorInvalidKernelImage, error.what()};
  }
  if (choice.objection) throw ApiError{cudaErrorNoKernelImageForDevice, *choice.objection};
  require_ptx(choice.ptx);
  ptx_architecture_ = choice.architecture;
  try {
    const std::lock_guard lock(runtime.code_mutex());
    return runtime.device().load(choice.ptx, choice.identifier.empty() ? "PTX" : choice.identifier, choice.registers);
  } catch (const std::exception& error) {
    throw ApiError{cudaErrorInvalidPtx, fmt::format("the PTX cannot be loaded: {}", error.what())};
  }
}

std::shared_ptr<Module> Image::module(Runtime& runtime) {
  runtime.device();
  const std::lock_guard lock(mutex_);
  if (module_) return module_;
  if (failed_) throw ApiError{*failed_};
  try {
    return module_ = load(runtime);
  } catch (const ApiError& error) {
    failed_ = error.code;
    throw;
  }
}

void Image::unload(Device* device) {
  const std::lock_guard lock(mutex_);
  if (module_ && device)
    for (const Variable& variable : module_->variables) {
      if (variable.managed)
        device->memory().unmap_host(reinterpret_cast<void*>(variable.address));
      else
        device->memory().release(variable.address);
    }
  module_.reset();
  failed_.reset();
}

}  // namespace emu::runtime
