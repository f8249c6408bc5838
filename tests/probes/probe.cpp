#include "tests/probes/probe.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "emulator/machine/chip.h"
#include "emulator/units/tensor_map.h"
#include "tests/probes/digest.h"

namespace probe {
namespace {

std::filesystem::path folder_named(const char* variable) {
  const char* folder = std::getenv(variable);
  return folder ? folder : "";
}
/// Where programs go with their buffers, and where their text alone; empty when nowhere.
std::filesystem::path dump_folder() {
  return folder_named("LADDER_PROBE_DUMP");
}
std::filesystem::path text_folder() {
  return folder_named("LADDER_PROBE_TEXTS");
}

/// What an H200 leaves of every program.
class Record {
 public:
  static Record& get() {
    static Record record;
    return record;
  }

  /// A digest of the program's buffers, or the error in which it ends; "" when it was not recorded.
  std::string of(const std::string& key) {
    std::string recorded = programs_.value(key, "");
    if (!recorded.empty() && !text_folder().empty()) {
      std::filesystem::create_directories(text_folder());
      std::ofstream(text_folder() / (key + ".compared"));  // counted by check_ptx.py
    }
    return recorded;
  }

 private:
  Record() {
    std::ifstream in(SOURCE_FOLDER "/tests/golden/h200_probes.json");
    if (!in) throw std::runtime_error("tests/golden/h200_probes.json is missing");
    programs_ = nlohmann::json::parse(in).at("programs");
  }
  nlohmann::json programs_;
};

/// A tensor map among the bytes of the buffers: on another machine it has another address in it, so that it must be
/// made there. `at`: where among all buffers' bytes; `buffer`, `offset`: what it points to.
struct MapAt {
  uint64_t at, buffer, offset;
  emu::TensorMap map;
};

/// A program with its buffers before and after, as replay/program.h reads it from a file.
struct Run {
  const std::string& ptx;
  const Shape& shape;
  size_t parameters = 0;
  std::vector<size_t> sizes;  // of the parameters' buffers, then of others that tensor maps point to
  std::vector<MapAt> maps;
  std::vector<std::byte> before, after;
  uint64_t error = 0;

  std::string key() const {
    Digest digest;
    digest.add(ptx.data(), ptx.size());
    for (const emu::Dim3& dim : {shape.grid, shape.block, shape.cluster}) digest.add(&dim, sizeof(dim));
    digest.add(&shape.dynamic_shared_bytes, sizeof(shape.dynamic_shared_bytes));
    digest.add(sizes.data(), sizes.size() * sizeof(size_t)).add(before.data(), before.size());
    if (!maps.empty()) digest.add("maps", 4);
    return digest.hex();
  }

  std::string outcome() const {
    return error ? fmt::format("error {}", error) : Digest().add(after.data(), after.size()).hex();
  }

  void dump_text(const std::filesystem::path& folder) const {
    std::filesystem::create_directories(folder);
    std::ofstream(folder / (key() + ".ptx")) << ptx;
  }

  /// NAME.ptx and, unless it is apart, NAME.run.
  void dump() const {
    dump_text(dump_folder());
    if (shape.apart) return;
    std::ofstream out(dump_folder() / (key() + ".run"), std::ios::binary);
    auto number = [&](uint64_t value) { out.write(reinterpret_cast<const char*>(&value), 8); };
    for (const emu::Dim3& dim : {shape.grid, shape.block, shape.cluster})
      for (uint32_t extent : {dim.x, dim.y, dim.z}) number(extent);
    number(shape.dynamic_shared_bytes);
    number(error);
    number(parameters);
    number(sizes.size());
    for (size_t size : sizes) number(size);
    number(maps.size());
    for (const auto& [at, buffer, offset, map] : maps) {
      for (uint64_t value :
           {at, buffer, offset, uint64_t(map.type), uint64_t(map.rank) | (map.im2col ? 0x100 : 0),
            uint64_t(map.interleave), uint64_t(map.swizzle), uint64_t(map.promotion), uint64_t(map.fill)})
        number(value);
      for (size_t d = 0; d < 5; ++d) {
        uint64_t box = map.box[d];
        if (map.im2col && d >= 2)
          box = static_cast<uint16_t>(map.lower[d - 2]) | uint64_t{static_cast<uint16_t>(map.upper[d - 2])} << 16;
        for (uint64_t value : {map.dims[d], map.strides_bytes[d], box, uint64_t{map.element_strides[d]}}) number(value);
      }
    }
    out.write(reinterpret_cast<const char*>(before.data()), static_cast<std::streamsize>(before.size()));
    out.write(reinterpret_cast<const char*>(after.data()), static_cast<std::streamsize>(after.size()));
  }
};

/// One kernel for an operation: sources at p1, p2, ..., the result at p0. `odd`: only some lanes execute it.
std::string program(const Operation& operation, size_t count, bool some) {
  std::string body = R"(
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r0, %r0, %r1, %r2;
)";
  body += fmt::format("    setp.ge.u32 %p0, %r0, {};\n    @%p0 exit;\n", count);
  int n = operation.result_bits;
  body += fmt::format("    .reg .b{} %d;\n", n);
  for (size_t i = 0; i < operation.source_bits.size(); ++i) {
    int bits = operation.source_bits[i];
    char name = static_cast<char>('a' + i);
    body += fmt::format(
        "    .reg .b{0} %{1};\n    ld.param.u64 %d0, [p{2}];\n    mad.wide.u32 %d0, %r0, {3}, %d0;\n"
        "    ld.global.b{0} %{1}, [%d0];\n",
        bits, name, i + 1, bits / 8);
  }
  body += fmt::format("    mov.b{} %d, {};\n", n, n == 16 ? "0x5A5A" : "0x5A5A5A5A");
  if (some) {
    body += "    and.b32 %r3, %r0, 5;\n    setp.ne.u32 %p1, %r3, 1;\n    @%p1 bra after;\n";
    body += "    " + operation.text + "\n  after:\n";
  } else {
    body += "    " + operation.text + "\n";
  }
  body += fmt::format(
      "    ld.param.u64 %d0, [p0];\n    mad.wide.u32 %d0, %r0, {}, %d0;\n    st.global.b{} [%d0], %d;\n", n / 8, n);
  return kernel(body, static_cast<int>(operation.source_bits.size()) + 1);
}

std::vector<std::byte> narrow(const std::vector<uint64_t>& values, int bits) {
  size_t bytes = static_cast<size_t>(bits) / 8;
  std::vector<std::byte> out(values.size() * bytes);
  for (size_t i = 0; i < values.size(); ++i) std::memcpy(out.data() + i * bytes, &values[i], bytes);
  return out;
}

/// The tensor maps among the bytes of `buffers`, to which the buffers that they point to are added.
std::vector<MapAt> maps_in(const std::vector<std::byte>& bytes, const std::map<uint64_t, size_t>& buffer_bytes,
                           std::vector<uint64_t>& buffers) {
  std::vector<MapAt> out;
  uint64_t start = 0;
  for (size_t i = 0, own = buffers.size(); i < own; start += buffer_bytes.at(buffers[i]), ++i)
    for (uint64_t at = start; at + emu::kTensorMapBytes <= start + buffer_bytes.at(buffers[i]); at += 64) {
      if (!emu::holds_tensor_map(bytes.data() + at)) continue;
      emu::TensorMap map = emu::decode_tensor_map(bytes.data() + at, 0);
      auto target = buffer_bytes.upper_bound(map.address);
      if (target == buffer_bytes.begin()) continue;
      uint64_t buffer = (--target)->first;
      auto known = std::find(buffers.begin(), buffers.end(), buffer);
      out.push_back({at, static_cast<uint64_t>(known - buffers.begin()), map.address - buffer, map});
      if (known == buffers.end()) buffers.push_back(buffer);
    }
  return out;
}

}  // namespace

std::string hex(uint64_t value) {
  return fmt::format("{:#x}", value);
}

std::string kernel(const std::string& body, int parameters, const std::string& module_scope,
                   const std::string& target) {
  std::string list;
  for (int i = 0; i < parameters; ++i) list += fmt::format("{}.param .u64 p{}", i ? ", " : "", i);
  return fmt::format(
      ".version 9.0\n.target {}\n.address_size 64\n{}\n.visible .entry probe({})\n{{\n"
      "    .reg .pred %p<8>;\n    .reg .b16 %h<16>;\n    .reg .b32 %r<32>;\n    .reg .b64 %d<16>;\n    .reg .b128 "
      "%q<4>;\n"
      "{}\n    ret;\n}}\n",
      target, module_scope, list, body);
}

Machine::Machine(const emu::Options& options)
    : device_(std::make_unique<emu::Device>(options.emulated_chip(), options)) {}

std::optional<emu::Fault> Machine::launch(const std::string& ptx, const std::vector<uint64_t>& parameters,
                                          const Shape& shape, bool valid) {
  Run run{
      .ptx = ptx, .shape = shape, .parameters = parameters.size(), .sizes = {}, .maps = {}, .before = {}, .after = {}};
  std::vector<uint64_t> buffers = parameters;
  if (valid) {
    run.before = contents(buffers);
    run.maps = maps_in(run.before, buffer_bytes_, buffers);
    run.before = contents(buffers);
    for (uint64_t buffer : buffers) run.sizes.push_back(buffer_bytes_.at(buffer));
  }
  std::shared_ptr<emu::Module> module = device_->load(ptx, "probe.ptx");
  const emu::Kernel* kernel = module->kernel("probe");
  if (!kernel) throw std::logic_error("the program has no kernel `probe`");
  emu::LaunchConfig config{.grid = shape.grid,
                           .block = shape.block,
                           .cluster = shape.cluster,
                           .dynamic_shared_bytes = shape.dynamic_shared_bytes};
  std::optional<emu::Fault> fault = device_->launch(*kernel, config, std::as_bytes(std::span(parameters)));
  if (valid) {
    run.after = contents(buffers);
    if (fault) run.error = static_cast<uint64_t>(fault->error);
    if (!dump_folder().empty()) run.dump();
    if (!text_folder().empty()) run.dump_text(text_folder());
    if (shape.apart) return fault;
    if (std::string chip = Record::get().of(run.key()); !chip.empty() && chip != run.outcome())
      FAIL_CHECK("an H200 leaves " << chip << ", the emulator " << run.outcome() << " (program " << run.key() << ")\n"
                                   << ptx);
  }
  return fault;
}

std::vector<std::byte> Machine::contents(const std::vector<uint64_t>& buffers) {
  std::vector<std::byte> out;
  for (uint64_t buffer : buffers) {
    std::vector<std::byte> bytes = read<std::byte>(buffer, buffer_bytes_.at(buffer));
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

namespace {

std::string report_of(const std::string& body, const Shape& shape, int* error, bool valid) {
  Machine machine;
  std::vector<uint64_t> parameters{machine.buffer(std::vector<uint64_t>(256)),
                                   machine.buffer(std::vector<uint64_t>(256))};
  std::optional<emu::Fault> fault = machine.launch(kernel(body, 2), parameters, shape, valid);
  if (!fault) {
    FAIL("the program was expected to fault:\n" << body);
    return {};
  }
  if (error) *error = fault->error;
  return fault->report;
}

}  // namespace

std::string fault(const std::string& body, const Shape& shape, int* error) {
  return report_of(body, shape, error, true);
}
std::string refusal(const std::string& body) {
  return report_of(body, {}, nullptr, false);
}

std::vector<uint64_t> evaluate(const Operation& operation, const std::vector<std::vector<uint64_t>>& sources) {
  size_t count = sources.at(0).size();
  Machine machine;
  std::vector<uint64_t> out[2];
  uint64_t untouched = operation.result_bits == 16 ? 0x5A5A : 0x5A5A5A5A;
  for (bool some : {false, true}) {
    std::vector<uint64_t> parameters{
        machine.buffer(std::vector<std::byte>(count * static_cast<size_t>(operation.result_bits) / 8))};
    for (size_t i = 0; i < sources.size(); ++i)
      parameters.push_back(machine.buffer(narrow(sources[i], operation.source_bits[i])));
    Shape shape{
        .grid = {static_cast<uint32_t>((count + 127) / 128), 1, 1}, .block = {128, 1, 1}, .apart = operation.apart};
    std::optional<emu::Fault> fault = machine.launch(program(operation, count, some), parameters, shape, !some);
    if (fault) {
      FAIL(fault->report);
      return {};
    }
    size_t bytes = static_cast<size_t>(operation.result_bits) / 8;
    std::vector<std::byte> raw = machine.read<std::byte>(parameters[0], count * bytes);
    out[some].resize(count);
    for (size_t i = 0; i < count; ++i) std::memcpy(&out[some][i], raw.data() + i * bytes, bytes);
  }
  for (size_t i = 0; i < count; ++i) {
    bool active = (i & 5) == 1;
    uint64_t want = active ? out[0][i] : untouched;
    if (out[1][i] != want) {
      FAIL_CHECK(operation.text << " in a warp with inactive lanes: thread " << i << (active ? "" : " (inactive)")
                                << " holds " << hex(out[1][i]) << ", expected " << hex(want));
      break;
    }
  }
  return out[0];
}

}  // namespace probe
