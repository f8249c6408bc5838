// Driver API: the linker. What a program gives it is mostly one PTX text, which needs no linking; the "machine code"
// that comes out is that text, which cuModuleLoadData takes like any.

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "emulator/ptx/parser.h"
#include "emulator/runtime/driver_table.h"

namespace emu::runtime {
namespace {

struct Linking {
  std::optional<std::string> input;  // PTX
  bool incomplete = false;           // an input that a GPU links was refused here
  std::vector<void**> message_sizes;
};

std::mutex mutex;
std::map<CUlinkState, std::unique_ptr<Linking>> live;  // needs mutex

Linking& find(CUlinkState state) {
  const auto found = live.find(state);
  if (found == live.end()) throw ApiError{cudaErrorInvalidResourceHandle};
  return *found->second;
}

// Nothing is ever written to the buffers for messages: on return, their sizes say so.
void note_options(Linking& linking, unsigned count, const CUjit_option* options, void** values) {
  require(count == 0 || (options && values));
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES || options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      linking.message_sizes.push_back(&values[i]);
}

void require_syntax(const std::string& text) {
  require_ptx(text);
  try {
    ptx::parse(text, "PTX");
  } catch (const ptx::ParseError& error) {
    throw ApiError{cudaErrorInvalidPtx, fmt::format("the PTX cannot be linked: {}", error.what())};
  }
}

// What is no code is left out, as an H200 does; without what only we refuse, nothing complete would come out.
void add(Linking& linking, CUjitInputType type, std::string text) {
  if (type == CU_JIT_INPUT_PTX) require_syntax(text);
  if (type == CU_JIT_INPUT_PTX && !linking.input) {
    linking.input = std::move(text);
    return;
  }
  linking.incomplete = true;
  throw ApiError{cudaErrorNotSupported,
                 type == CU_JIT_INPUT_PTX
                     ? "cuLinkAddData, cuLinkAddFile: a second input, which the emulator does not link to the first"
                     : fmt::format("cuLinkAddData, cuLinkAddFile: an input of type {}; the emulator links PTX alone",
                                   static_cast<int>(type))};
}

template <class Body>
CUresult with_lock(Body&& body) {
  return driver([&] {
    return answer([&](Runtime& runtime) {
      const std::lock_guard lock(mutex);
      body(runtime);
    });
  });
}

CUresult link_create(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  return with_lock([&](Runtime&) {
    require(state != nullptr);
    auto linking = std::make_unique<Linking>();
    note_options(*linking, count, options, values);
    *state = reinterpret_cast<CUlinkState>(linking.get());
    live.emplace(*state, std::move(linking));
  });
}

CUresult link_add_data(CUlinkState state, CUjitInputType type, void* data, size_t bytes, const char*, unsigned count,
                       CUjit_option* options, void** values) {
  return with_lock([&](Runtime&) {
    require(data != nullptr);
    Linking& linking = find(state);
    note_options(linking, count, options, values);
    std::string text(static_cast<const char*>(data), bytes);
    text.resize(std::char_traits<char>::length(text.c_str()));  // the size may count the closing zero
    add(linking, type, std::move(text));
  });
}

CUresult link_add_file(CUlinkState state, CUjitInputType type, const char* path, unsigned count, CUjit_option* options,
                       void** values) {
  return with_lock([&](Runtime&) {
    require(path != nullptr);
    Linking& linking = find(state);
    note_options(linking, count, options, values);
    std::ifstream file(path, std::ios::binary);
    require(file.good(), cudaErrorFileNotFound);
    add(linking, type, std::string(std::istreambuf_iterator<char>(file), {}));
  });
}

CUresult link_complete(CUlinkState state, void** code, size_t* bytes) {
  return with_lock([&](Runtime& runtime) {
    require(code != nullptr);
    Linking& linking = find(state);
    require(!linking.incomplete, cudaErrorNotSupported);
    // Code of nothing is code, too.
    if (!linking.input)
      linking.input =
          fmt::format(".version 9.0\n.target sm_{}{}\n.address_size 64\n", runtime.chip().major, runtime.chip().minor);
    *code = linking.input->data();
    if (bytes) *bytes = linking.input->size() + 1;
    for (void** size : linking.message_sizes) *size = nullptr;
  });
}

CUresult link_destroy(CUlinkState state) {
  return with_lock([&](Runtime&) {
    find(state);
    live.erase(state);
  });
}

}  // namespace

std::span<const DriverFunction> driver_functions_of_linking() {
  static const DriverFunction table[] = {
      entry<PFN_cuLinkCreate_v6050>("cuLinkCreate", 5050, link_create),
      entry<PFN_cuLinkAddData_v6050>("cuLinkAddData", 5050, link_add_data),
      entry<PFN_cuLinkAddFile_v6050>("cuLinkAddFile", 5050, link_add_file),
      entry<PFN_cuLinkComplete_v5050>("cuLinkComplete", 5050, link_complete),
      entry<PFN_cuLinkDestroy_v5050>("cuLinkDestroy", 5050, link_destroy),
  };
  return table;
}

}  // namespace emu::runtime
