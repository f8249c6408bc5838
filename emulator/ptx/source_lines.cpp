// Where instructions come from in CUDA source: .file, .loc, and the names of inlined functions in .section .debug_str.
// PTX ISA section 11.5.

#include <algorithm>

#include "emulator/ptx/parsing.h"

namespace emu::ptx {
namespace {

uint64_t key_of(const SourceLine& line) {
  return uint64_t{line.file} << 48 ^ uint64_t { line.line } << 16 ^ line.column;
}

}  // namespace

void Parser::file() {
  // .file 1 "path", timestamp, size. It may stand after all uses.
  const Token at = take();
  const int64_t index = integer_constant("the number of the file");
  if (index < 0 || index > 0xFFFF)
    fail(at, "the number of a file is " + std::to_string(index) + ": expected 0 to 65535");
  if (token_.kind != Token::Kind::string) fail_expected("the path of the file in quotes");
  if (module_.files.size() <= static_cast<size_t>(index)) module_.files.resize(index + 1);
  module_.files[index] = take().text;
  while (accept(',')) integer_constant("the time stamp or size of the file");
}

SourceLine Parser::source_line() {
  SourceLine result;
  result.file = number("the number of the file", 0xFFFF);
  result.line = number("the line", UINT32_MAX - 1);
  result.column = number("the column", UINT32_MAX - 1);
  return result;
}

void Parser::loc() {
  take();
  Location location;
  location.innermost = location.outermost = source_line();
  std::string_view label;
  while (accept(',')) {
    const Token attribute = expect_identifier("function_name or inlined_at");
    if (attribute.text == "function_name") {
      label = expect_identifier("the label of a function's name").text;
      if (token_.is('+'))
        integer_constant("an offset");  // sections are read by label; compilers give every name its own
    } else if (attribute.text == "inlined_at") {
      const SourceLine caller = source_line();
      // The caller's own .loc came before and says where that was inlined; of several, the latest is the one meant.
      if (const auto found = location_at_.find(key_of(caller)); found != location_at_.end()) {
        location.inlined_at = found->second;
        location.outermost = module_.locations[found->second].outermost;
      } else {
        location.inlined_at = static_cast<uint32_t>(module_.locations.size());
        module_.locations.push_back({caller, caller, {}, kNone});
        location_labels_.emplace_back();
      }
    } else {
      fail(attribute, "expected function_name or inlined_at in .loc, found '" + std::string(attribute.text) + "'");
    }
  }
  // Line 0 marks code that stands for no single line: the line before it remains the best answer.
  if (location.innermost.line == 0) return;

  const uint64_t key = key_of(location.innermost);
  if (const auto found = location_at_.find(key); found != location_at_.end()) {
    const Location& same = module_.locations[found->second];
    if (same.inlined_at == location.inlined_at && location_labels_[found->second] == label) {
      location_ = found->second;
      return;
    }
  }
  location_ = static_cast<uint32_t>(module_.locations.size());
  module_.locations.push_back(location);
  location_labels_.push_back(label);
  location_at_[key] = location_;
}

void Parser::section() {
  take();
  if (token_.kind != Token::Kind::word) fail_expected("the name of a section");
  const Token name = take();
  if (name.text != "debug_str") {
    skip_braces();
    return;
  }
  expect('{', "to open the section");
  std::string* current = nullptr;
  while (!accept('}')) {
    const Token token = take();
    if (token.kind == Token::Kind::end) fail_expected("'}' to close the section");
    if (token.kind == Token::Kind::identifier && accept(':')) {
      current = &debug_strings_[token.text];
    } else if (token.is_word("b8")) {
      do {
        const char byte = static_cast<char>(integer_constant("a byte"));
        if (current != nullptr && byte != 0) current->push_back(byte);
        if (byte == 0) current = nullptr;  // further strings of the same label are nobody's
      } while (accept(','));
    }
  }
}

void Parser::name_inlined_functions() {
  std::unordered_map<std::string_view, std::string_view> kept;
  for (size_t i = 0; i < module_.locations.size(); ++i) {
    const std::string_view label = location_labels_[i];
    if (label.empty()) continue;
    std::string_view& name = kept[label];
    if (name.empty()) {
      if (const auto found = debug_strings_.find(label); found != debug_strings_.end())
        name = module_.strings.emplace_back(found->second);
    }
    module_.locations[i].function = name;
  }
}

}  // namespace emu::ptx
