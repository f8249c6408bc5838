#include "common/harness/npy.h"

#include <fmt/format.h>

#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "common/harness/user_error.h"

namespace ladder {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kLargestHeader = 1 << 20;

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
  throw UserError(fmt::format("{}: {}", path.string(), why));
}

/// The header is the text of a Python dictionary with string keys. Values are kept as text.
class Dictionary {
 public:
  explicit Dictionary(std::string_view text) : rest_(text) { well_formed_ = parse(); }
  bool well_formed() const { return well_formed_; }
  std::optional<std::string> find(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  void skip_space() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front()))) rest_.remove_prefix(1);
  }
  bool take(char c) {
    skip_space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::optional<std::string> quoted() {
    skip_space();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return std::nullopt;
    const size_t end = rest_.find(rest_.front(), 1);
    if (end == rest_.npos) return std::nullopt;
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }
  /// Up to the comma or brace that ends a value, minding brackets and quotes.
  std::string plain() {
    skip_space();
    int depth = 0;
    char quote = 0;
    size_t end = 0;
    for (; end < rest_.size(); ++end) {
      const char c = rest_[end];
      if (quote != 0) {
        if (c == quote) quote = 0;
      } else if (c == '\'' || c == '"') {
        quote = c;
      } else if (c == '(' || c == '[') {
        ++depth;
      } else if (c == ')' || c == ']') {
        --depth;
      } else if ((c == ',' || c == '}') && depth <= 0) {
        break;
      }
    }
    std::string text(rest_.substr(0, end));
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
    rest_.remove_prefix(end);
    return text;
  }
  bool parse() {
    if (!take('{')) return false;
    while (!take('}')) {
      const std::optional<std::string> key = quoted();
      if (!key || !take(':')) return false;
      values_[*key] = plain();
      if (!take(',')) {
        if (!take('}')) return false;
        break;
      }
    }
    skip_space();
    return rest_.empty();
  }

  std::string_view rest_;
  std::map<std::string, std::string> values_;
  bool well_formed_ = false;
};

/// "(3, 4)", "(3,)", "()". Nothing when it is no tuple of whole numbers.
std::optional<std::vector<int64_t>> parse_tuple(std::string_view text) {
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::vector<int64_t> values;
  while (true) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    if (text.empty()) return values;
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || value < 0) return std::nullopt;
    values.push_back(value);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    if (text.empty()) return values;
    if (text.front() != ',') return std::nullopt;
    text.remove_prefix(1);
  }
}

DType parse_type(const std::filesystem::path& path, std::string descr) {
  if (descr.size() >= 2 && (descr.front() == '\'' || descr.front() == '"') && descr.back() == descr.front()) {
    descr = descr.substr(1, descr.size() - 2);
  }
  if (descr == "<f2") return DType::f16;
  if (descr == "<u2") return DType::bf16;
  if (descr == "<f4") return DType::f32;
  if (descr == ">f2" || descr == ">u2" || descr == ">f4") {
    refuse(path, fmt::format("holds big-endian '{}'; save x.astype(x.dtype.newbyteorder('<')) instead", descr));
  }
  if (descr == "<V2" || descr == "|V2") {
    refuse(path, fmt::format("holds untyped 2-byte elements ('{}'), as NumPy stores ml_dtypes.bfloat16; save "
                             "x.view(np.uint16) instead",
                             descr));
  }
  refuse(path, fmt::format("holds elements of type '{}'; a matrix here is float16 ('<f2'), bf16 as uint16 ('<u2') or "
                           "float32 ('<f4', with --round)",
                           descr));
}

uint32_t little_endian(const char* bytes, int count) {
  uint32_t value = 0;
  for (int i = count - 1; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::ifstream open_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) refuse(path, "is a folder, not an .npy file");
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, fmt::format("cannot be read ({})", std::strerror(errno)));
  if (!std::filesystem::is_regular_file(path, ignored)) refuse(path, "is not a regular file");
  return file;
}

NpyHeader read_header(const std::filesystem::path& path, std::ifstream& file) {
  char start[8];
  if (!file.read(start, sizeof start) || std::string_view(start, kMagic.size()) != kMagic) {
    refuse(path, "is not an .npy file (it does not begin with \\x93NUMPY); np.save writes one");
  }
  const int major = static_cast<unsigned char>(start[6]), minor = static_cast<unsigned char>(start[7]);
  if (major < 1 || major > 3) {
    refuse(path, fmt::format("has .npy format version {}.{}; 1.0, 2.0 and 3.0 are known", major, minor));
  }
  const int length_bytes = major == 1 ? 2 : 4;
  char length[4];
  if (!file.read(length, length_bytes)) refuse(path, "ends inside its header");
  const size_t header_bytes = little_endian(length, length_bytes);
  if (header_bytes > kLargestHeader) refuse(path, fmt::format("claims a header of {} bytes", header_bytes));
  std::string text(header_bytes, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(header_bytes))) refuse(path, "ends inside its header");

  const Dictionary dictionary(text);
  const auto descr = dictionary.find("descr"), order = dictionary.find("fortran_order"),
             shape_text = dictionary.find("shape");
  if (!dictionary.well_formed() || !descr || !order || !shape_text) {
    refuse(path, "has a header that is not a dictionary with descr, fortran_order and shape");
  }
  NpyHeader header;
  header.type = parse_type(path, *descr);
  if (*order == "True") {
    refuse(path,
           "is stored column by column (fortran_order: True) and rows must be contiguous here; save "
           "np.ascontiguousarray(x) instead");
  }
  if (*order != "False") refuse(path, fmt::format("has fortran_order {}, which is neither True nor False", *order));
  const auto shape = parse_tuple(*shape_text);
  if (!shape) refuse(path, fmt::format("has shape {}, which is not a tuple of whole numbers", *shape_text));
  if (shape->size() != 2) {
    refuse(path, fmt::format("has {} dimension{} (shape {}); a matrix has two", shape->size(),
                             shape->size() == 1 ? "" : "s", *shape_text));
  }
  header.rows = (*shape)[0];
  header.cols = (*shape)[1];
  if (header.rows < 1 || header.cols < 1) refuse(path, fmt::format("has shape {}: it is empty", *shape_text));
  header.data_offset = static_cast<int64_t>(file.tellg());

  file.seekg(0, std::ios::end);
  const auto present = static_cast<unsigned __int128>(static_cast<int64_t>(file.tellg()) - header.data_offset);
  const auto expected =
      static_cast<unsigned __int128>(header.rows) * static_cast<unsigned __int128>(header.cols) * bytes_of(header.type);
  if (present != expected) {
    refuse(path, fmt::format("holds {} bytes of elements where shape {} needs {}", static_cast<uint64_t>(present),
                             *shape_text, static_cast<uint64_t>(expected)));
  }
  return header;
}

}  // namespace

NpyHeader read_npy_header(const std::filesystem::path& path) {
  std::ifstream file = open_file(path);
  return read_header(path, file);
}

HostMatrix read_npy(const std::filesystem::path& path) {
  std::ifstream file = open_file(path);
  const NpyHeader header = read_header(path, file);
  HostMatrix matrix(header.rows, header.cols, header.type);
  file.seekg(header.data_offset);
  if (!file.read(reinterpret_cast<char*>(matrix.data()), static_cast<std::streamsize>(matrix.size_bytes()))) {
    refuse(path, "cannot be read to its end");
  }
  return matrix;
}

void write_npy(const std::filesystem::path& path, const HostMatrix& matrix) {
  const char* descr = matrix.type() == DType::f16 ? "<f2" : matrix.type() == DType::bf16 ? "<u2" : "<f4";
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}", descr,
                                   matrix.rows(), matrix.cols());
  // The elements begin at a multiple of 64 bytes; the header ends with a newline.
  const size_t before = kMagic.size() + 4;
  header.append((64 - (before + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << kMagic << '\x01' << '\x00' << static_cast<char>(header.size() & 0xFF) << static_cast<char>(header.size() >> 8)
       << header;
  file.write(reinterpret_cast<const char*>(matrix.data()), static_cast<std::streamsize>(matrix.size_bytes()));
  file.close();
  if (!file) refuse(path, fmt::format("cannot be written ({})", std::strerror(errno)));
}

}  // namespace ladder
