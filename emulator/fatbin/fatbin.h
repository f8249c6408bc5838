#pragma once
// The device code that nvcc puts into an executable: which images there are, their text or bytes, and which of them a
// chip runs.
//
// nvcc leaves one container per translation unit in section .nv_fatbin, and beside it a wrapper that points there,
// which start-up code hands to __cudaRegisterFatBinary. The layout is not documented by its maker; it was found by
// taking apart what nvcc 13.0 writes in every compression mode. Everything is little-endian:
//   wrapper    u32 magic 0x466243B1, u32 version, u64 container, u64 list of further containers (version 2, device
//   link) container  u32 magic 0xBA55ED50, u16 version 1, u16 header bytes 16, u64 bytes that follow; then entries
//   entry      u16 kind (1 PTX, 2 ELF), u16, u32 header bytes, u64 payload bytes, u32 compressed bytes, u32 offset of
//   options,
//              u16 minor, u16 major, u32 arch, u32 offset and u32 length of the identifier, u64 flags, u64, u64
//              uncompressed bytes; offsets count from the entry's start
//   options    u32 offset, u32 length, text

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace emu::fatbin {

enum class Kind : uint8_t { ptx, elf, other };
enum class Compression : uint8_t { none, lz4, zstd };

struct Image {
  Kind kind = Kind::other;
  uint32_t arch = 0;  ///< 100 for sm_100
  char suffix = 0;    ///< 'a' (this chip alone), 'f' (its family), 0 (every later chip, for PTX)
  uint32_t version_major = 0, version_minor = 0;  ///< PTX version; for ELF that of the format
  bool debug = false;
  std::string identifier;  ///< source file, when compiled with -lineinfo or -G; else empty
  std::string options;     ///< ptxas options kept with it
  Compression compression = Compression::none;
  uint64_t uncompressed_bytes = 0;
  std::span<const std::byte> stored;  ///< as it lies in the container

  /// PTX text, without the zeros it is padded with, or the bytes of the ELF file. Throws std::runtime_error when they
  /// do not unpack.
  std::string content() const;
  /// "compute_100f" or "sm_100a", as nvcc's options spell it.
  std::string target() const;
};

/// The images of one translation unit.
struct Container {
  std::vector<Image> images;
  std::shared_ptr<const std::vector<std::byte>> file;  ///< keeps what `stored` points into, when it was read from disk
};

/// Reads containers that follow each other (with padding between) until the end of `bytes`. Throws std::runtime_error
/// on broken ones.
std::vector<Container> read_containers(std::span<const std::byte> bytes);

/// What a program gives to __cudaRegisterFatBinary (a wrapper), or a container as it lies in memory, as it may be given
/// to cuModuleLoadData. The memory stays the program's.
std::vector<Container> read_registered(const void* wrapper_or_container);

/// Whether a kernel could come from it: any PTX, or machine code with a function. The container that nvcc's device link
/// step adds has machine code without one, and nobody needs it.
bool has_kernels(const Container& container);

struct Executable {
  std::vector<Container> containers;  ///< empty: no device code
  std::vector<std::string> needed;    ///< shared libraries it asks for
  bool is_elf = false;
  /// Device code, but no libcudart.so among `needed`: the runtime is linked statically, and no library path can replace
  /// it.
  bool has_static_runtime = false;
};
/// Throws std::runtime_error when the file cannot be read.
Executable read_executable(const std::string& path);

/// The PTX that a chip of compute capability major.minor runs: its own 'a', then the newest 'f' of its family, then the
/// newest plain one that is not newer than the chip. nullptr when there is none.
const Image* choose_ptx(const Container& container, int major, int minor);

/// Why choose_ptx found nothing: what the container has, and the flag to build with.
std::string refusal(const Container& container, int major, int minor);

/// What keeps a program from running on an emulated chip of that capability, and the way out; nullopt when nothing
/// does. A program without device code runs as it would anywhere.
std::optional<std::string> objection(const Executable& executable, int major, int minor);

/// Register counts per kernel from the machine code that lies beside the PTX: that for the chip itself when there is
/// any, else the nearest.
std::vector<std::pair<std::string, uint32_t>> register_counts(const Container& container, int major, int minor);

}  // namespace emu::fatbin
