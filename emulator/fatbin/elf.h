#pragma once
// What is read from ELF files: the host executable that embeds fatbins, and the cubins inside them. 64-bit
// little-endian only. Source: System V ABI, and for cubins what readelf shows of those that CUDA 13 makes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace emu::fatbin {

struct Section {
  std::string_view name;
  uint32_t type = 0, info = 0, link = 0;
  uint64_t address = 0;
  std::span<const std::byte> bytes;  ///< empty for NOBITS
};

/// A view: the bytes must outlive it. Every offset is checked against the file's end; a broken file throws
/// std::runtime_error.
class Elf {
 public:
  static bool is_elf(std::span<const std::byte> file);
  explicit Elf(std::span<const std::byte> file);

  const std::vector<Section>& sections() const { return sections_; }
  /// nullptr when there is none of that name.
  const Section* section(std::string_view name) const;
  /// Shared libraries that the loader is told to bring (DT_NEEDED), in order.
  std::vector<std::string> needed() const;
  /// Names of the symbols of .symtab, by index.
  std::vector<std::string_view> symbol_names() const;

 private:
  std::span<const std::byte> slice(uint64_t offset, uint64_t bytes, std::string_view what) const;

  std::span<const std::byte> file_;
  std::vector<Section> sections_;
};

/// Registers per thread of each kernel (mangled name) in a cubin: EIATTR_REGCOUNT of .nv.info, else the top byte of
/// sh_info of .text.<kernel>, where older toolkits keep it.
std::vector<std::pair<std::string, uint32_t>> register_counts(std::span<const std::byte> cubin);

}  // namespace emu::fatbin
