#include "emulator/fatbin/fatbin.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "emulator/fatbin/elf.h"

namespace emu::fatbin {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243B1, kContainerMagic = 0xBA55ED50;
constexpr uint64_t kContainerHeaderBytes = 16, kEntryHeaderBytes = 64;
constexpr uint64_t kFlagDebug = 0x2, kFlagLz4 = 0x2000, kFlagZstd = 0x8000, kFlagA = 0x100000, kFlagF = 0x200000;

template <class T>
T read(std::span<const std::byte> bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

[[noreturn]] void broken(const std::string& what) {
  throw std::runtime_error("broken fatbin: " + what);
}

std::string text(std::span<const std::byte> bytes, uint64_t offset, uint64_t length, const char* what) {
  if (offset > bytes.size() || length > bytes.size() - offset)
    broken(std::string(what) + " lies outside its entry's header");
  const char* start = reinterpret_cast<const char*>(bytes.data()) + offset;
  std::string_view result(start, strnlen(start, length));
  while (result.starts_with(' ')) result.remove_prefix(1);
  while (result.ends_with(' ')) result.remove_suffix(1);
  return std::string(result);
}

Image read_entry(std::span<const std::byte> header, std::span<const std::byte> payload) {
  Image image;
  const uint16_t kind = read<uint16_t>(header, 0);
  image.kind = kind == 1 ? Kind::ptx : kind == 2 ? Kind::elf : Kind::other;
  const uint32_t compressed = read<uint32_t>(header, 16), options = read<uint32_t>(header, 20);
  image.version_minor = read<uint16_t>(header, 24);
  image.version_major = read<uint16_t>(header, 26);
  image.arch = read<uint32_t>(header, 28);
  const uint32_t identifier = read<uint32_t>(header, 32), identifier_length = read<uint32_t>(header, 36);
  const uint64_t flags = read<uint64_t>(header, 40);
  image.uncompressed_bytes = payload.size();
  image.stored = payload;
  image.debug = flags & kFlagDebug;
  image.suffix = flags & kFlagA ? 'a' : flags & kFlagF ? 'f' : '\0';
  if (identifier != 0) image.identifier = text(header, identifier, identifier_length, "the identifier");
  if (options != 0) {
    if (options > header.size() || header.size() - options < 8)
      broken("the option block lies outside its entry's header");
    image.options =
        text(header, read<uint32_t>(header, options), read<uint32_t>(header, options + 4), "the option text");
  }
  if (compressed != 0) {
    if (compressed > payload.size()) broken("an entry has more compressed bytes than payload");
    image.compression = flags & kFlagZstd ? Compression::zstd : flags & kFlagLz4 ? Compression::lz4 : Compression::none;
    if (image.compression == Compression::none)
      broken("an entry is compressed in an unknown way (flags " + std::to_string(flags) + ")");
    image.stored = payload.first(compressed);
    image.uncompressed_bytes = read<uint64_t>(header, 56);
  }
  return image;
}

Container read_container(std::span<const std::byte> body) {
  Container container;
  while (!body.empty()) {
    if (body.size() < kEntryHeaderBytes)
      broken("an entry ends " + std::to_string(body.size()) + " bytes after its start");
    const uint64_t header_bytes = read<uint32_t>(body, 4), payload_bytes = read<uint64_t>(body, 8);
    if (header_bytes < kEntryHeaderBytes || header_bytes > body.size() || payload_bytes > body.size() - header_bytes) {
      broken("an entry of " + std::to_string(header_bytes) + " + " + std::to_string(payload_bytes) +
             " bytes in a container that has " + std::to_string(body.size()) + " left");
    }
    container.images.push_back(read_entry(body.first(header_bytes), body.subspan(header_bytes, payload_bytes)));
    body = body.subspan(header_bytes + payload_bytes);
  }
  return container;
}

/// Bytes of the container at the start of `bytes`, header and all.
uint64_t container_bytes(std::span<const std::byte> header) {
  if (read<uint32_t>(header, 0) != kContainerMagic) broken("a container does not begin with its magic number");
  const uint16_t version = read<uint16_t>(header, 4), header_bytes = read<uint16_t>(header, 6);
  if (version != 1 || header_bytes != kContainerHeaderBytes) {
    broken("container version " + std::to_string(version) + " with a header of " + std::to_string(header_bytes) +
           " bytes: only version 1 is known");
  }
  return kContainerHeaderBytes + read<uint64_t>(header, 8);
}

std::string capability(int major, int minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace

std::string Image::content() const {
  if (compression == Compression::none) {
    const char* start = reinterpret_cast<const char*>(stored.data());
    return {start, kind == Kind::ptx ? strnlen(start, stored.size()) : stored.size()};
  }
  // A size that no compiler's output has would only exhaust memory.
  if (uncompressed_bytes > uint64_t{1} << 32)
    broken("an image that unpacks to " + std::to_string(uncompressed_bytes) + " bytes");
  std::string result(uncompressed_bytes, '\0');
  uint64_t written = 0;
  if (compression == Compression::zstd) {
    written = ZSTD_decompress(result.data(), result.size(), stored.data(), stored.size());
    if (ZSTD_isError(written))
      broken(std::string("zstd data of ") + target() + " does not unpack: " + ZSTD_getErrorName(written));
  } else {
    const int bytes = LZ4_decompress_safe(reinterpret_cast<const char*>(stored.data()), result.data(),
                                          static_cast<int>(stored.size()), static_cast<int>(result.size()));
    if (bytes < 0) broken("LZ4 data of " + target() + " does not unpack");
    written = bytes;
  }
  if (written != uncompressed_bytes) {
    broken(target() + " unpacks to " + std::to_string(written) + " bytes where " + std::to_string(uncompressed_bytes) +
           " were announced");
  }
  if (kind == Kind::ptx) result.resize(strnlen(result.data(), result.size()));
  return result;
}

std::string Image::target() const {
  std::string result = (kind == Kind::ptx ? "compute_" : "sm_") + std::to_string(arch);
  if (suffix != 0) result += suffix;
  return result;
}

std::vector<Container> read_containers(std::span<const std::byte> bytes) {
  std::vector<Container> result;
  while (bytes.size() >= kContainerHeaderBytes) {
    if (read<uint32_t>(bytes, 0) != kContainerMagic) {  // padding between what several object files brought
      bytes = bytes.subspan(std::min<uint64_t>(8, bytes.size()));
      continue;
    }
    const uint64_t size = container_bytes(bytes);
    if (size > bytes.size())
      broken("a container of " + std::to_string(size) + " bytes where " + std::to_string(bytes.size()) + " are left");
    Container container = read_container(bytes.subspan(kContainerHeaderBytes, size - kContainerHeaderBytes));
    if (!container.images.empty()) result.push_back(std::move(container));
    bytes = bytes.subspan(size);
  }
  return result;
}

std::vector<Container> read_registered(const void* wrapper_or_container) {
  struct Wrapper {
    uint32_t magic, version;
    const std::byte* data;
    const std::byte* const* more;  // ends with a null pointer (crt/link.stub of the toolkit)
  };
  std::vector<Container> result;
  const auto add = [&](const std::byte* data) {
    const uint64_t size = container_bytes({data, kContainerHeaderBytes});
    Container container = read_container({data + kContainerHeaderBytes, size - kContainerHeaderBytes});
    if (!container.images.empty()) result.push_back(std::move(container));
  };
  uint32_t magic;
  std::memcpy(&magic, wrapper_or_container, sizeof magic);
  if (magic != kWrapperMagic) {
    add(static_cast<const std::byte*>(wrapper_or_container));
    return result;
  }
  const Wrapper& wrapper = *static_cast<const Wrapper*>(wrapper_or_container);
  add(wrapper.data);
  if (wrapper.version == 2 && wrapper.more != nullptr) {
    for (const std::byte* const* next = wrapper.more; *next != nullptr; ++next) add(*next);
  }
  return result;
}

bool has_kernels(const Container& container) {
  return std::any_of(container.images.begin(), container.images.end(), [](const Image& image) {
    if (image.kind == Kind::ptx) return true;
    if (image.kind != Kind::elf) return false;
    const std::string cubin = image.content();
    const Elf elf(std::as_bytes(std::span(cubin)));
    return std::any_of(elf.sections().begin(), elf.sections().end(),
                       [](const Section& s) { return s.name.starts_with(".text."); });
  });
}

Executable read_executable(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) throw std::runtime_error(path + " is not a file");
  std::ifstream in(path, std::ios::binary);
  auto file = std::make_shared<std::vector<std::byte>>(std::filesystem::file_size(path));
  if (!in.read(reinterpret_cast<char*>(file->data()), static_cast<std::streamsize>(file->size()))) {
    throw std::runtime_error("cannot read " + path);
  }

  Executable result;
  result.is_elf = Elf::is_elf(*file);
  if (!result.is_elf) return result;
  const Elf elf(*file);
  result.needed = elf.needed();
  if (const Section* section = elf.section(".nv_fatbin")) result.containers = read_containers(section->bytes);
  for (Container& container : result.containers) container.file = file;
  const bool shared = std::any_of(result.needed.begin(), result.needed.end(),
                                  [](const std::string& n) { return n.starts_with("libcudart.so"); });
  result.has_static_runtime = !result.containers.empty() && !shared;
  return result;
}

const Image* choose_ptx(const Container& container, int major, int minor) {
  const uint32_t chip = major * 10 + minor;
  const Image* best = nullptr;
  const auto rank = [&](const Image& image) -> uint32_t {  // 0: this chip does not run it
    if (image.kind != Kind::ptx || image.arch > chip) return 0;
    if (image.suffix == 'a') return image.arch == chip ? 3000 : 0;
    // A family is the chips of one major version, from the one it is named after on.
    if (image.suffix == 'f') return image.arch / 10 == chip / 10 ? 2000 + image.arch : 0;
    return 1 + image.arch;
  };
  for (const Image& image : container.images) {
    if (rank(image) > (best == nullptr ? 0 : rank(*best))) best = &image;
  }
  return best;
}

std::string refusal(const Container& container, int major, int minor) {
  std::string has;
  for (const Image& image : container.images) {
    if (image.kind == Kind::other) continue;
    has += (has.empty() ? "" : ", ") + image.target() + (image.kind == Kind::ptx ? " (PTX)" : " (machine code)");
  }
  const std::string identifier = container.images.empty() ? "" : container.images[0].identifier;
  // Blackwell's kernels need what the plain architecture lacks: name the family there, the chip itself on Hopper.
  const std::string arch = std::to_string(major * 10 + minor) + (major >= 10 ? "f" : "a");
  return "no PTX for compute capability " + capability(major, minor) +
         (identifier.empty() ? "" : " in the code of " + identifier) + "; it has " + (has.empty() ? "nothing" : has) +
         ". Build with -gencode arch=compute_" + arch + ",code=[sm_" + arch + ",compute_" + arch + "]";
}

std::optional<std::string> objection(const Executable& executable, int major, int minor) {
  if (executable.has_static_runtime) {
    return "its CUDA runtime is linked statically, so no other can take its place. Link it with nvcc -cudart shared";
  }
  for (const Container& container : executable.containers) {
    if (has_kernels(container) && choose_ptx(container, major, minor) == nullptr)
      return refusal(container, major, minor);
  }
  return std::nullopt;
}

std::vector<std::pair<std::string, uint32_t>> register_counts(const Container& container, int major, int minor) {
  const uint32_t chip = major * 10 + minor;
  const Image* best = nullptr;
  const auto distance = [&](const Image& image) { return image.arch > chip ? image.arch - chip : chip - image.arch; };
  for (const Image& image : container.images) {
    if (image.kind == Kind::elf && (best == nullptr || distance(image) < distance(*best))) best = &image;
  }
  if (best == nullptr) return {};
  const std::string cubin = best->content();
  return register_counts(std::as_bytes(std::span(cubin)));
}

}  // namespace emu::fatbin
