// .npy files: round trips, headers as NumPy documents them (numpy.lib.format), and refusals.

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "common/harness/inputs.h"
#include "common/harness/npy.h"
#include "common/harness/user_error.h"
#include "tests/catch.h"

using namespace ladder;
using test::contains;

namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("ladder-npy-" + std::to_string(getpid()))) {
    fs::create_directory(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  fs::path write(const std::string& content) const {
    std::ofstream(path_ / "x.npy", std::ios::binary) << content;
    return path_ / "x.npy";
  }
  fs::path path() const { return path_; }

 private:
  fs::path path_;
};

std::string file_with(const std::string& dictionary, const std::string& data, int major = 1) {
  std::string length(major == 1 ? 2 : 4, '\0');
  length[0] = static_cast<char>(dictionary.size() & 0xFF);
  length[1] = static_cast<char>(dictionary.size() >> 8);
  return "\x93NUMPY" + std::string(1, static_cast<char>(major)) + std::string(1, '\0') + length + dictionary + data;
}

const std::string kTwoByThree = "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }\n";
const std::string kTwelve(12, 'x');

std::string refusal(const Folder& folder, const std::string& content) {
  try {
    read_npy(folder.write(content));
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("what is written is read back, in every type") {
  const Folder folder;
  for (const DType type : {DType::f16, DType::bf16, DType::f32}) {
    HostMatrix matrix(5, 7, type);
    for (int64_t i = 0; i < 5; ++i) {
      for (int64_t j = 0; j < 7; ++j) matrix.set_bits(i, j, static_cast<uint32_t>(i * 0x1234567 + j * 0x89));
    }
    write_npy(folder.path() / "x.npy", matrix);
    const HostMatrix read = read_npy(folder.path() / "x.npy");
    REQUIRE(read.rows() == 5);
    REQUIRE(read.cols() == 7);
    REQUIRE(read.type() == type);
    REQUIRE(std::memcmp(read.data(), matrix.data(), matrix.size_bytes()) == 0);
  }
}

TEST_CASE("a written file is what NumPy's format document says") {
  const Folder folder;
  HostMatrix matrix(2, 3, DType::f16);
  for (int64_t i = 0; i < 6; ++i) matrix.set_bits(0, i, 0x3C00);
  write_npy(folder.path() / "x.npy", matrix);
  std::ifstream file(folder.path() / "x.npy", std::ios::binary);
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string content = stream.str();
  REQUIRE(content.size() == 128 + 12);  // elements at a multiple of 64
  CHECK(content.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
  CHECK(content.substr(8, 2) == std::string("\x76\x00", 2));  // 118 = 128 - 10
  const std::string dictionary = "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }";
  CHECK(content.substr(10, dictionary.size()) == dictionary);
  CHECK(content.substr(10 + dictionary.size(), 118 - dictionary.size()) ==
        std::string(117 - dictionary.size(), ' ') + "\n");
  CHECK(content.substr(128, 2) == std::string("\x00\x3C", 2));
}

TEST_CASE("versions 1, 2 and 3 and any spelling of the dictionary are read") {
  const Folder folder;
  for (const int version : {1, 2, 3}) {
    const NpyHeader header = read_npy_header(folder.write(file_with(kTwoByThree, kTwelve, version)));
    CHECK(header.rows == 2);
    CHECK(header.cols == 3);
    CHECK(header.type == DType::f16);
    CHECK(header.data_offset == (version == 1 ? 10 : 12) + static_cast<int64_t>(kTwoByThree.size()));
  }
  const NpyHeader header = read_npy_header(
      folder.write(file_with("{\"shape\":(3,2),\"fortran_order\":False,  'descr':'<u2'}   \n", kTwelve)));
  CHECK(header.rows == 3);
  CHECK(header.cols == 2);
  CHECK(header.type == DType::bf16);
}

TEST_CASE("files that cannot be used are refused by name and reason") {
  const Folder folder;
  const auto with = [&](const std::string& dictionary, const std::string& data = kTwelve) {
    return refusal(folder, file_with(dictionary, data));
  };
  CHECK_THAT(refusal(folder, "hello, this is text"), contains("x.npy: is not an .npy file"));
  CHECK_THAT(refusal(folder, ""), contains("is not an .npy file"));
  CHECK_THAT(refusal(folder, file_with(kTwoByThree, kTwelve, 9)), contains("version 9.0"));
  CHECK_THAT(refusal(folder, file_with(kTwoByThree, kTwelve).substr(0, 30)), contains("ends inside its header"));
  CHECK_THAT(with("{'descr': '<f2', 'fortran_order': True, 'shape': (2, 3), }"), contains("ascontiguousarray"));
  CHECK_THAT(with("{'descr': '<f2', 'fortran_order': Perhaps, 'shape': (2, 3), }"), contains("neither True nor False"));
  CHECK_THAT(with("{'descr': '>f2', 'fortran_order': False, 'shape': (2, 3), }"), contains("big-endian '>f2'"));
  CHECK_THAT(with("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }"),
             contains("'<f8'") && contains("float16"));
  CHECK_THAT(with("{'descr': '|V2', 'fortran_order': False, 'shape': (2, 3), }"), contains("view(np.uint16)"));
  CHECK_THAT(with("{'descr': [('a', '<f2')], 'fortran_order': False, 'shape': (2, 3), }"), contains("('a', '<f2')"));
  CHECK_THAT(with("{'descr': '<f2', 'fortran_order': False, 'shape': (6,), }"),
             contains("has 1 dimension (shape (6,))"));
  CHECK_THAT(with("{'descr': '<f2', 'fortran_order': False, 'shape': (1, 2, 3), }"), contains("has 3 dimensions"));
  CHECK_THAT(with("{'descr': '<f2', 'fortran_order': False, 'shape': (0, 3), }"), contains("is empty"));
  CHECK_THAT(with("{'descr': '<f2', 'fortran_order': False, 'shape': (-2, 3), }"),
             contains("not a tuple of whole numbers"));
  CHECK_THAT(with("{'descr': '<f2', 'fortran_order': False, 'shape': (2, x), }"),
             contains("not a tuple of whole numbers"));
  CHECK_THAT(with("{'descr': '<f2', 'shape': (2, 3), }"), contains("descr, fortran_order and shape"));
  CHECK_THAT(with("not a dictionary"), contains("descr, fortran_order and shape"));
  CHECK_THAT(with(kTwoByThree, "12345678"), contains("holds 8 bytes") && contains("needs 12"));
  CHECK_THAT(with(kTwoByThree, kTwelve + "!"), contains("holds 13 bytes"));
  CHECK_THROWS_WITH(read_npy(folder.path() / "absent.npy"), contains("cannot be read"));
  CHECK_THROWS_WITH(read_npy(folder.path()), contains("is a folder"));
  CHECK_THROWS_WITH(write_npy("/nowhere/d.npy", HostMatrix(1, 1, DType::f16)), contains("cannot be written"));
}
