#include "tests/probes/replay/program.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace replay {

Program read_program(const std::filesystem::path& path) {
  Program program;
  program.name = path.stem().string();
  std::ifstream text(std::filesystem::path(path).replace_extension(".ptx"));
  std::stringstream all;
  all << text.rdbuf();
  program.ptx = all.str();
  std::ifstream in(path, std::ios::binary);
  auto number = [&] {
    uint64_t value = 0;
    in.read(reinterpret_cast<char*>(&value), 8);
    return value;
  };
  for (auto* dim : {&program.grid, &program.block, &program.cluster})
    for (uint64_t& extent : *dim) extent = number();
  program.shared_bytes = number();
  program.error = number();
  program.parameters = number();
  program.sizes.resize(number());
  uint64_t total = 0;
  for (uint64_t& size : program.sizes) total += size = number();
  program.maps.resize(number());
  for (TensorMapAt& map : program.maps) {
    for (uint64_t* field : {&map.at, &map.buffer, &map.offset, &map.type, &map.rank, &map.interleave, &map.swizzle,
                            &map.promotion, &map.fill})
      *field = number();
    for (auto& dimension : map.dimension)
      for (uint64_t* field : {&dimension.extent, &dimension.stride_bytes, &dimension.box, &dimension.element_stride})
        *field = number();
  }
  program.before.resize(total);
  program.after.resize(total);
  in.read(program.before.data(), static_cast<std::streamsize>(total));
  in.read(program.after.data(), static_cast<std::streamsize>(total));
  if (!in || program.ptx.empty()) throw std::runtime_error(path.string() + " ends early");
  return program;
}

std::string instruction(const Program& program) {
  std::istringstream lines(program.ptx);
  std::string line, longest, out;
  while (std::getline(lines, line)) {
    if (line.find("mov.b") != std::string::npos && line.find("%d, 0x5A5A") != std::string::npos) {
      std::getline(lines, out);
      return out;
    }
    if (line.size() > longest.size() && line.find(".reg") == std::string::npos &&
        line.find(".entry") == std::string::npos)
      longest = line;
  }
  return longest;
}

std::string differences(const Program& program, const std::vector<char>& gpu, size_t shown) {
  // Buffer 0 is the result; where an instruction is probed on many values the others are its sources.
  size_t size = program.sizes[0], wide = 4, count = 0;
  for (size_t bytes : {2, 4, 8})
    if (program.ptx.find(".reg .b" + std::to_string(bytes * 8) + " %d;") != std::string::npos) wide = bytes;
  auto hex = [](const std::vector<char>& from, size_t at, size_t bytes) {
    uint64_t value = 0;
    std::memcpy(&value, from.data() + at, bytes);
    char out[32];
    std::snprintf(out, sizeof(out), "%0*llx", static_cast<int>(bytes * 2), static_cast<unsigned long long>(value));
    return std::string(out);
  };
  std::string text;
  for (size_t at = 0; at + wide <= gpu.size(); at += wide) {
    if (std::memcmp(gpu.data() + at, program.after.data() + at, wide) == 0) continue;
    if (count++ >= shown) continue;
    text += "    [" + std::to_string(at / wide) + "]";
    if (at < size) {
      size_t offset = size, results = size / wide;
      for (size_t i = 1; i < program.sizes.size() && results; ++i) {
        size_t bytes = program.sizes[i] / results;
        if (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8)
          text += (i == 1 ? " of " : " ") + hex(program.before, offset + at / wide * bytes, bytes);
        offset += program.sizes[i];
      }
    }
    text += ": GPU " + hex(gpu, at, wide) + ", emulator " + hex(program.after, at, wide) + "\n";
  }
  return "differs in " + std::to_string(count) + " of " + std::to_string(gpu.size() / wide) + " values\n" + text;
}

}  // namespace replay
