// Device code in executables: fixtures that nvcc made in every compression mode (fatbin_fixtures/scale.cu says how),
// broken copies of them, and executables that are put together here.

#include "emulator/fatbin/fatbin.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "emulator/fatbin/elf.h"
#include "emulator/ptx/parser.h"
#include "tests/catch.h"

using namespace emu::fatbin;

namespace {

std::span<const std::byte> bytes_of(const std::string& s) {
  return std::as_bytes(std::span(s));
}

std::string fixture(const std::string& name) {
  std::ifstream in(std::string(SOURCE_FOLDER) + "/tests/unit/fatbin_fixtures/" + name, std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

template <class T>
void put(std::string& bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

template <class T>
T get(const std::string& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string error_of(const std::string& bytes) {
  try {
    for (const Container& container : read_containers(bytes_of(bytes))) {
      for (const Image& image : container.images) (void)image.content();
    }
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "read";
}

std::vector<std::string> targets(const std::vector<Container>& containers) {
  std::vector<std::string> result;
  for (const Container& container : containers) {
    for (const Image& image : container.images) result.push_back(image.target());
  }
  return result;
}

/// A container of images that have a kind, an architecture and a suffix and nothing else.
Container made_of(const std::vector<std::string>& targets) {
  Container result;
  for (const std::string& target : targets) {
    Image image;
    image.kind = target.starts_with("compute_") ? Kind::ptx : Kind::elf;
    std::string number = target.substr(target.find('_') + 1);
    if (number.back() == 'a' || number.back() == 'f') {
      image.suffix = number.back();
      number.pop_back();
    }
    image.arch = std::stoi(number);
    result.images.push_back(image);
  }
  return result;
}

std::string choice(const std::vector<std::string>& targets, int major, int minor) {
  const Container container = made_of(targets);
  const Image* image = choose_ptx(container, major, minor);
  return image == nullptr ? "none" : image->target();
}

/// An ELF executable with the sections that matter here, on disk.
std::string executable_with(const std::string& fatbin, const std::vector<std::string>& needed) {
  std::string names(1, '\0'), strings(1, '\0');
  std::vector<Elf64_Dyn> dynamic;
  for (const std::string& library : needed) {
    dynamic.push_back({DT_NEEDED, {strings.size()}});
    strings += library + '\0';
  }
  dynamic.push_back({DT_NULL, {0}});
  struct Part {
    std::string name;
    uint32_t type, link;
    std::string bytes;
  };
  std::vector<Part> parts{
      {"", SHT_NULL, 0, ""},
      {".dynstr", SHT_STRTAB, 0, strings},
      {".dynamic", SHT_DYNAMIC, 1,
       std::string(reinterpret_cast<const char*>(dynamic.data()), dynamic.size() * sizeof(Elf64_Dyn))}};
  if (!fatbin.empty()) parts.push_back({".nv_fatbin", SHT_PROGBITS, 0, fatbin});
  parts.push_back({".shstrtab", SHT_STRTAB, 0, ""});
  std::vector<Elf64_Shdr> headers(parts.size());
  for (size_t i = 1; i < parts.size(); ++i) {
    headers[i].sh_name = static_cast<uint32_t>(names.size());
    names += parts[i].name + '\0';
  }
  parts.back().bytes = names;
  std::string file(sizeof(Elf64_Ehdr), '\0');
  for (size_t i = 1; i < parts.size(); ++i) {
    file.resize((file.size() + 7) / 8 * 8);
    headers[i].sh_type = parts[i].type;
    headers[i].sh_link = parts[i].link;
    headers[i].sh_offset = file.size();
    headers[i].sh_size = parts[i].bytes.size();
    file += parts[i].bytes;
  }
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_shoff = file.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<uint16_t>(headers.size());
  header.e_shstrndx = static_cast<uint16_t>(headers.size() - 1);
  std::memcpy(file.data(), &header, sizeof header);
  file.append(reinterpret_cast<const char*>(headers.data()), headers.size() * sizeof(Elf64_Shdr));

  const std::string path =
      (std::filesystem::temp_directory_path() / ("fatbin_test_" + std::to_string(getpid()))).string();
  std::ofstream(path, std::ios::binary) << file;
  return path;
}

struct Removed {
  std::string path;
  ~Removed() { std::filesystem::remove(path); }
};

}  // namespace

TEST_CASE("every compression mode unpacks to PTX that parses") {
  struct Expected {
    const char* file;
    Compression compression;
  };
  for (const auto& [file, compression] :
       {Expected{"plain.fatbin", Compression::none}, Expected{"zstd.fatbin", Compression::zstd},
        Expected{"size.fatbin", Compression::zstd}, Expected{"lz4.fatbin", Compression::lz4}}) {
    INFO(file);
    const std::string bytes = fixture(file);
    size_t texts = 0;
    for (const Container& container : read_containers(bytes_of(bytes))) {
      for (const Image& image : container.images) {
        if (image.kind != Kind::ptx) continue;
        ++texts;
        CHECK(image.compression == compression);
        CHECK((image.version_major == 9 && image.version_minor == 0));
        const emu::ptx::Module module = emu::ptx::parse(image.content(), image.identifier);
        CHECK("compute_" + std::string(module.target.substr(3)) == image.target());
        CHECK(module.function("_Z5scalePff") != nullptr);
        CHECK(module.function("_Z3sumPKfPfi") != nullptr);
      }
    }
    CHECK(texts > 0);
  }
}

TEST_CASE("what an entry says of itself") {
  const std::string plain = fixture("plain.fatbin");
  const std::vector<Container> containers = read_containers(bytes_of(plain));
  REQUIRE(targets(containers) == std::vector<std::string>{"sm_100f", "compute_100f"});
  const Image& ptx = containers[0].images[1];
  CHECK(ptx.identifier == "scale.cu");
  CHECK(ptx.options == "--generate-line-info");
  CHECK(!ptx.debug);
  CHECK(ptx.content().back() != '\0');
  CHECK(Elf::is_elf(bytes_of(containers[0].images[0].content())));
  CHECK(targets(read_containers(bytes_of(fixture("zstd.fatbin")))) ==
        std::vector<std::string>{"compute_100f", "compute_90a", "compute_80"});
  CHECK(targets(read_containers(bytes_of(fixture("lz4.fatbin")))) == std::vector<std::string>{"compute_100a"});
}

TEST_CASE("all modes hold the same text") {
  // zstd.fatbin's 100f and lz4.fatbin's 100a differ in the name of the target alone.
  const std::string zstd = fixture("zstd.fatbin"), lz4 = fixture("lz4.fatbin"), size = fixture("size.fatbin");
  std::string family = read_containers(bytes_of(zstd))[0].images[0].content();
  const std::string exact = read_containers(bytes_of(lz4))[0].images[0].content();
  family.replace(family.find("sm_100f"), 7, "sm_100a");
  CHECK(family == exact);
  CHECK(read_containers(bytes_of(size))[0].images[1].content() ==
        read_containers(bytes_of(zstd))[0].images[1].content());
}

TEST_CASE("register counts come from the machine code, compressed or not") {
  // As ptxas --resource-usage says: 8 for scale, 10 for sum.
  using Counts = std::vector<std::pair<std::string, uint32_t>>;
  const auto sorted = [](Counts counts) {
    std::sort(counts.begin(), counts.end());
    return counts;
  };
  const std::string plain = fixture("plain.fatbin"), size = fixture("size.fatbin"), zstd = fixture("zstd.fatbin");
  CHECK(sorted(register_counts(read_containers(bytes_of(plain))[0], 10, 0)) ==
        Counts{{"_Z3sumPKfPfi", 10}, {"_Z5scalePff", 8}});
  CHECK(sorted(register_counts(read_containers(bytes_of(size))[0], 9, 0)) ==
        Counts{{"_Z3sumPKfPfi", 10}, {"_Z5scalePff", 8}});
  CHECK(register_counts(read_containers(bytes_of(zstd))[0], 10, 0).empty());
}

TEST_CASE("a program's registration leads to its containers") {
  struct {
    uint32_t magic = 0x466243B1, version = 1;
    const void* data = nullptr;
    const void* more = nullptr;
  } wrapper;
  // Memory as in a program: nothing says where the container ends but itself.
  const std::string plain = fixture("plain.fatbin"), zstd = fixture("zstd.fatbin");
  wrapper.data = plain.data();
  CHECK(targets(read_registered(&wrapper)) == std::vector<std::string>{"sm_100f", "compute_100f"});
  CHECK(targets(read_registered(plain.data())) == std::vector<std::string>{"sm_100f", "compute_100f"});
  const void* list[] = {zstd.data(), nullptr};
  wrapper.version = 2;
  wrapper.more = list;
  CHECK(read_registered(&wrapper).size() == 2);
  wrapper.magic = 0x12345678;
  CHECK_THROWS_WITH(read_registered(&wrapper), "broken fatbin: a container does not begin with its magic number");
}

TEST_CASE("several containers follow each other, with padding between") {
  const std::string both = fixture("plain.fatbin") + std::string(24, '\0') + fixture("lz4.fatbin");
  CHECK(targets(read_containers(bytes_of(both))) ==
        std::vector<std::string>{"sm_100f", "compute_100f", "compute_100a"});
  CHECK(read_containers({}).empty());
}

TEST_CASE("choice: the chip's own, then its family's newest, then the newest plain one") {
  const std::vector<std::string> all{"compute_80",   "compute_90",   "compute_90a",  "compute_100",
                                     "compute_100a", "compute_100f", "compute_103f", "compute_120"};
  CHECK(choice(all, 10, 0) == "compute_100a");
  CHECK(choice(all, 10, 3) == "compute_103f");
  CHECK(choice(all, 9, 0) == "compute_90a");
  CHECK(choice(all, 8, 9) == "compute_80");
  CHECK(choice(all, 12, 0) == "compute_120");
  CHECK(choice({"compute_100f", "compute_100"}, 10, 0) == "compute_100f");
  CHECK(choice({"compute_100f", "compute_100"}, 10, 3) == "compute_100f");
  CHECK(choice({"compute_103f"}, 10, 0) == "none");
  CHECK(choice({"compute_100f"}, 12, 0) == "none");
  CHECK(choice({"compute_100a"}, 10, 3) == "none");
  CHECK(choice({"compute_90", "compute_75"}, 10, 0) == "compute_90");
  CHECK(choice({"compute_100"}, 9, 0) == "none");
  CHECK(choice({"sm_100a"}, 10, 0) == "none");
  CHECK(choice({}, 10, 0) == "none");
}

TEST_CASE("a refusal names what there is and the flag to build with") {
  Container container = made_of({"sm_90a", "compute_90a"});
  CHECK(refusal(container, 10, 0) ==
        "no PTX for compute capability 10.0; it has sm_90a (machine code), compute_90a (PTX). Build with -gencode "
        "arch=compute_100f,code=[sm_100f,compute_100f]");
  container.images[0].identifier = "gemm.cu";
  CHECK(refusal(container, 9, 0) ==
        "no PTX for compute capability 9.0 in the code of gemm.cu; it has sm_90a (machine code), compute_90a (PTX). "
        "Build with -gencode "
        "arch=compute_90a,code=[sm_90a,compute_90a]");
}

TEST_CASE("executables: device code, libraries, and what speaks against running them") {
  const auto read = [](const std::string& fatbin, const std::vector<std::string>& needed) {
    const Removed file{executable_with(fatbin, needed)};
    return read_executable(file.path);
  };
  const Executable good = read(fixture("plain.fatbin"), {"libcudart.so.13", "libc.so.6"});
  CHECK(good.is_elf);
  CHECK(good.needed == std::vector<std::string>{"libcudart.so.13", "libc.so.6"});
  CHECK(!good.has_static_runtime);
  CHECK(!objection(good, 10, 0));
  CHECK(good.containers.at(0).images.at(1).content().starts_with("\n"));  // the file's bytes are still there
  CHECK_THAT(objection(good, 9, 0).value(),
             test::contains("no PTX for compute capability 9.0 in the code of scale.cu"));

  const Executable with_static = read(fixture("plain.fatbin"), {"libc.so.6"});
  CHECK(with_static.has_static_runtime);
  CHECK(objection(with_static, 10, 0) ==
        "its CUDA runtime is linked statically, so no other can take its place. Link it with nvcc -cudart shared");

  const Executable host_only = read("", {"libc.so.6"});
  CHECK(!host_only.has_static_runtime);
  CHECK(!objection(host_only, 10, 0));

  CHECK(read_executable("/proc/self/exe").is_elf);
  CHECK(!read_executable("/proc/self/exe").needed.empty());
  CHECK(!read_executable(std::string(SOURCE_FOLDER) + "/tests/unit/fatbin_fixtures/scale.cu").is_elf);
  CHECK_THROWS_WITH(read_executable("/nowhere/program"), "/nowhere/program is not a file");
}

TEST_CASE("machine code without a kernel is nobody's obstacle") {
  // nvcc's device link step leaves such a container in front of the program's own.
  std::string linked = fixture("plain.fatbin");
  Container container = read_containers(bytes_of(linked))[0];
  container.images.pop_back();  // the PTX
  CHECK(has_kernels(container));
  std::string cubin = container.images[0].content();
  for (size_t at; (at = cubin.find(".text.")) != std::string::npos;) cubin.replace(at, 6, ".gone.");
  container.images[0].stored = bytes_of(cubin);
  CHECK(!has_kernels(container));
}

TEST_CASE("broken fatbins are refused with what is wrong") {
  const std::string plain = fixture("plain.fatbin"), zstd = fixture("zstd.fatbin"), lz4 = fixture("lz4.fatbin");
  const auto changed = [](std::string bytes, size_t offset, auto value) {
    put(bytes, offset, value);
    return bytes;
  };
  CHECK(error_of(changed(plain, 4, uint16_t{2})) ==
        "broken fatbin: container version 2 with a header of 16 bytes: only version 1 is known");
  CHECK(error_of(plain.substr(0, plain.size() - 8)) == "broken fatbin: a container of " + std::to_string(plain.size()) +
                                                           " bytes where " + std::to_string(plain.size() - 8) +
                                                           " are left");
  CHECK_THAT(error_of(changed(plain, 16 + 4, uint32_t{8})), test::contains("broken fatbin: an entry of 8 + "));
  CHECK_THAT(error_of(changed(plain, 16 + 8, ~uint64_t{0})), test::contains("broken fatbin: an entry of "));
  CHECK(error_of(changed(plain, 16 + 32, uint32_t{5000})) ==
        "broken fatbin: the identifier lies outside its entry's header");
  CHECK(error_of(changed(zstd, 16 + 16, uint32_t{5000})) ==
        "broken fatbin: an entry has more compressed bytes than payload");
  CHECK(error_of(changed(zstd, 16 + 40, uint64_t{0x11})) ==
        "broken fatbin: an entry is compressed in an unknown way (flags 17)");
  const uint64_t size = get<uint64_t>(zstd, 16 + 56);
  CHECK(error_of(changed(zstd, 16 + 56, size + 1)) == "broken fatbin: compute_100f unpacks to " + std::to_string(size) +
                                                          " bytes where " + std::to_string(size + 1) +
                                                          " were announced");
  CHECK_THAT(error_of(changed(zstd, 16 + 56, size - 1)),
             test::contains("broken fatbin: zstd data of compute_100f does not unpack"));
  CHECK(error_of(changed(lz4, 16 + 56, get<uint64_t>(lz4, 16 + 56) - 1)) ==
        "broken fatbin: LZ4 data of compute_100a does not unpack");
  CHECK_THAT(error_of(changed(zstd, 16 + 56, uint64_t{1} << 40)),
             test::contains("an image that unpacks to 1099511627776 bytes"));
}

TEST_CASE("damaged bytes anywhere are refused or read, never worse") {
  for (const char* file : {"plain.fatbin", "zstd.fatbin", "lz4.fatbin", "size.fatbin"}) {
    const std::string whole = fixture(file);
    for (size_t at = 0; at < std::min<size_t>(whole.size(), 700); ++at) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
      (void)error_of(damaged);
    }
    for (size_t length = 0; length < whole.size(); length += 13) (void)error_of(whole.substr(0, length));
  }
  const std::string plain = fixture("plain.fatbin");
  const std::string cubin = read_containers(bytes_of(plain))[0].images[0].content();
  size_t refused = 0;
  for (size_t at = 0; at < cubin.size(); ++at) {
    std::string damaged = cubin;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    try {
      (void)register_counts(bytes_of(damaged));
    } catch (const std::runtime_error&) {
      ++refused;
    }
  }
  CHECK(refused > 4);  // at least its magic number
}
