#include "emulator/fatbin/elf.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace emu::fatbin {
namespace {

template <class T>
T read(std::span<const std::byte> bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string_view string_at(std::span<const std::byte> table, uint64_t offset) {
  if (offset >= table.size()) throw std::runtime_error("broken ELF file: a name lies outside its string table");
  const char* start = reinterpret_cast<const char*>(table.data()) + offset;
  return {start, strnlen(start, table.size() - offset)};
}

}  // namespace

bool Elf::is_elf(std::span<const std::byte> file) {
  return file.size() >= sizeof(Elf64_Ehdr) && std::memcmp(file.data(), ELFMAG, SELFMAG) == 0 &&
         file[EI_CLASS] == std::byte{ELFCLASS64} && file[EI_DATA] == std::byte{ELFDATA2LSB};
}

std::span<const std::byte> Elf::slice(uint64_t offset, uint64_t bytes, std::string_view what) const {
  if (offset > file_.size() || bytes > file_.size() - offset) {
    throw std::runtime_error("broken ELF file: " + std::string(what) + " reaches past its end");
  }
  return file_.subspan(offset, bytes);
}

Elf::Elf(std::span<const std::byte> file) : file_(file) {
  if (!is_elf(file)) throw std::runtime_error("not a 64-bit little-endian ELF file");
  const Elf64_Ehdr header = read<Elf64_Ehdr>(file, 0);
  if (header.e_shnum == 0) return;
  if (header.e_shentsize != sizeof(Elf64_Shdr))
    throw std::runtime_error("broken ELF file: section headers of an unknown size");
  const auto table = slice(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr), "its section table");
  std::vector<Elf64_Shdr> headers(header.e_shnum);
  std::memcpy(headers.data(), table.data(), table.size());
  if (header.e_shstrndx >= headers.size()) throw std::runtime_error("broken ELF file: no table of section names");
  const auto names =
      slice(headers[header.e_shstrndx].sh_offset, headers[header.e_shstrndx].sh_size, "its section names");
  for (const Elf64_Shdr& h : headers) {
    Section section;
    section.name = h.sh_type == SHT_NULL ? std::string_view{} : string_at(names, h.sh_name);
    section.type = h.sh_type;
    section.info = h.sh_info;
    section.link = h.sh_link;
    section.address = h.sh_addr;
    if (h.sh_type != SHT_NOBITS && h.sh_type != SHT_NULL) section.bytes = slice(h.sh_offset, h.sh_size, "a section");
    sections_.push_back(section);
  }
}

const Section* Elf::section(std::string_view name) const {
  const auto found = std::find_if(sections_.begin(), sections_.end(), [&](const Section& s) { return s.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

std::vector<std::string> Elf::needed() const {
  std::vector<std::string> result;
  for (const Section& section : sections_) {
    if (section.type != SHT_DYNAMIC || section.link >= sections_.size()) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= section.bytes.size(); at += sizeof(Elf64_Dyn)) {
      const Elf64_Dyn entry = read<Elf64_Dyn>(section.bytes, at);
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_NEEDED) result.emplace_back(string_at(sections_[section.link].bytes, entry.d_un.d_val));
    }
  }
  return result;
}

std::vector<std::string_view> Elf::symbol_names() const {
  std::vector<std::string_view> result;
  const Section* symbols = section(".symtab");
  if (symbols == nullptr || symbols->link >= sections_.size()) return result;
  for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols->bytes.size(); at += sizeof(Elf64_Sym)) {
    result.push_back(string_at(sections_[symbols->link].bytes, read<Elf64_Sym>(symbols->bytes, at).st_name));
  }
  return result;
}

std::vector<std::pair<std::string, uint32_t>> register_counts(std::span<const std::byte> cubin) {
  const Elf elf(cubin);
  const std::vector<std::string_view> symbols = elf.symbol_names();
  constexpr std::string_view kText = ".text.";
  std::vector<std::pair<std::string, uint32_t>> result;
  for (const Section& section : elf.sections()) {
    if (section.name.starts_with(kText)) result.emplace_back(section.name.substr(kText.size()), section.info >> 24);
  }

  // .nv.info is a list of {u8 format, u8 attribute, u16}: format 4 has that many bytes behind it, the others keep their
  // value there.
  const Section* info = elf.section(".nv.info");
  if (info == nullptr) return result;
  constexpr std::byte kSized{4}, kRegisterCount{0x2f};
  for (uint64_t at = 0; at + 4 <= info->bytes.size();) {
    const std::byte format = info->bytes[at], attribute = info->bytes[at + 1];
    const uint16_t size = read<uint16_t>(info->bytes, at + 2);
    at += 4;
    if (format != kSized) continue;
    if (attribute == kRegisterCount && size == 8 && at + 8 <= info->bytes.size()) {
      const uint32_t symbol = read<uint32_t>(info->bytes, at), count = read<uint32_t>(info->bytes, at + 4);
      for (auto& [name, registers] : result) {
        if (symbol < symbols.size() && symbols[symbol] == name) registers = count;
      }
    }
    at += size;
  }
  return result;
}

}  // namespace emu::fatbin
