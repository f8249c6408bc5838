#include "emulator/ptx/lexer.h"

#include <array>
#include <string>

#include "emulator/ptx/parser.h"

namespace emu::ptx {
namespace {

enum : uint8_t { kLetter = 1, kDigit = 2, kIdentifierStart = 4, kSpace = 8, kHex = 16 };

constexpr std::array<uint8_t, 256> classify() {
  std::array<uint8_t, 256> table{};
  for (int c = 'a'; c <= 'z'; ++c) table[c] = kLetter | kIdentifierStart | (c <= 'f' ? kHex : 0);
  for (int c = 'A'; c <= 'Z'; ++c) table[c] = kLetter | kIdentifierStart | (c <= 'F' ? kHex : 0);
  for (int c = '0'; c <= '9'; ++c) table[c] = kDigit | kHex;
  table['_'] = table['$'] = kLetter | kIdentifierStart;
  table['%'] = kIdentifierStart;
  for (char c : {' ', '\t', '\r', '\n', '\v', '\f'}) table[static_cast<uint8_t>(c)] = kSpace;
  return table;
}
constexpr std::array<uint8_t, 256> kClass = classify();

bool is(char c, int classes) {
  return kClass[static_cast<uint8_t>(c)] & classes;
}

}  // namespace

void Lexer::fail(const char* at, uint32_t line, const std::string& message) const {
  uint32_t column = 1;
  while (at > text_.data() && at[-1] != '\n') --at, ++column;
  throw ParseError(name_, line, column, message);
}

void Lexer::fail(const Token& at, const std::string& message) const {
  const char* start = at.kind == Token::Kind::end ? text_.data() + text_.size() : at.text.data();
  if (at.kind == Token::Kind::word || at.kind == Token::Kind::string) --start;  // the dot or the quote
  fail(start, at.line, message);
}

Token Lexer::finish(Token::Kind kind, const char* start, const char* text_end) {
  at_ = text_end - text_.data();
  return {kind, 0, {start, static_cast<size_t>(text_end - start)}, line_};
}

void Lexer::skip_line() {
  while (at_ < text_.size() && text_[at_] != '\n') ++at_;
}

void Lexer::skip_space() {
  const char* data = text_.data();
  const size_t size = text_.size();
  while (at_ < size) {
    const char c = data[at_];
    if (is(c, kSpace)) {
      line_ += c == '\n';
      ++at_;
    } else if (c == '/' && at_ + 1 < size && data[at_ + 1] == '/') {
      skip_line();
    } else if (c == '/' && at_ + 1 < size && data[at_ + 1] == '*') {
      const size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) fail(data + at_, line_, "this comment has no end: expected */");
      for (; at_ < end; ++at_) line_ += data[at_] == '\n';
      at_ = end + 2;
    } else if (c == '#') {
      // ptxas takes only the line markers that a preprocessor leaves behind: # 12 "file".
      size_t digit = at_ + 1;
      while (digit < size && (data[digit] == ' ' || data[digit] == '\t')) ++digit;
      if (digit >= size || !is(data[digit], kDigit)) {
        fail(data + at_, line_,
             "preprocessor directives are not part of what PTX assemblers take; preprocess the text first");
      }
      skip_line();
    } else {
      return;
    }
  }
}

Token Lexer::next() {
  skip_space();
  const char* const end = text_.data() + text_.size();
  const char* const start = text_.data() + at_;
  if (start == end) return {Token::Kind::end, 0, {}, line_};
  const char c = *start;
  const char* p = start + 1;

  if (is(c, kIdentifierStart) && (c != '%' || (p < end && is(*p, kLetter | kDigit)))) {
    while (p < end && is(*p, kLetter | kDigit)) ++p;
    return finish(Token::Kind::identifier, start, p);
  }
  if (c == '.' && p < end && is(*p, kLetter | kDigit)) {
    while (p < end && (is(*p, kLetter | kDigit) || (*p == ':' && p + 1 < end && p[1] == ':'))) p += *p == ':' ? 2 : 1;
    return finish(Token::Kind::word, start + 1, p);
  }
  if (is(c, kDigit)) return number(start);
  if (c == '"') {
    while (p < end && *p != '"' && *p != '\n') p += *p == '\\' && p + 1 < end ? 2 : 1;
    if (p >= end || *p != '"') fail(start, line_, "this string has no end: expected \" on the same line");
    Token token = finish(Token::Kind::string, start + 1, p);
    ++at_;
    return token;
  }

  Token token = finish(Token::Kind::symbol, start, p);
  token.op = c;
  if (p < end) {
    constexpr struct {
      char first, second, op;
    } kPairs[] = {{'<', '<', Token::kShiftLeft},    {'>', '>', Token::kShiftRight}, {'<', '=', Token::kLessEqual},
                  {'>', '=', Token::kGreaterEqual}, {'=', '=', Token::kEqual},      {'!', '=', Token::kNotEqual},
                  {'&', '&', Token::kAnd},          {'|', '|', Token::kOr}};
    for (const auto& pair : kPairs) {
      if (c == pair.first && *p == pair.second) {
        token = finish(Token::Kind::symbol, start, p + 1);
        token.op = pair.op;
        return token;
      }
    }
  }
  if (std::string_view("{}()[]<>,;:|@!+-*/%&^~=?").find(c) == std::string_view::npos) {
    fail(start, line_, std::string("the character '") + c + "' means nothing in PTX");
  }
  return token;
}

Token Lexer::number_at(const Token& word) {
  at_ = word.text.data() - 1 - text_.data();
  line_ = word.line;
  return number(text_.data() + at_);
}

Token Lexer::number(const char* const start) {
  const char* const end = text_.data() + text_.size();
  const char* p = start;
  Token::Kind kind = Token::Kind::integer;
  const char second = p + 1 < end ? p[1] : 0;

  const auto skip = [&](int classes) {
    while (p < end && is(*p, classes)) ++p;
  };
  if (*p == '0' && (second == 'x' || second == 'X' || second == 'b' || second == 'B')) {
    p += 2;
    skip(kHex);
    if (p == start + 2) fail(start, line_, "a number ends after its prefix: expected digits");
  } else if (*p == '0' && (second == 'f' || second == 'F' || second == 'd' || second == 'D')) {
    const int digits = second == 'f' || second == 'F' ? 8 : 16;
    p += 2;
    skip(kHex);
    if (p - start - 2 != digits) {
      fail(start, line_,
           "the floating-point constant " + std::string(start, p) + " needs " + std::to_string(digits) +
               " hexadecimal digits and has " + std::to_string(p - start - 2));
    }
    kind = Token::Kind::real;
  } else {
    skip(kDigit);
    // The digits of an exponent when one begins at `at`, else nullptr.
    const auto exponent = [&](const char* at) -> const char* {
      if (at >= end || (*at != 'e' && *at != 'E')) return nullptr;
      ++at;
      if (at < end && (*at == '+' || *at == '-')) ++at;
      return at < end && is(*at, kDigit) ? at : nullptr;
    };
    if (p < end && *p == '.' && (p + 1 == end || !is(p[1], kLetter) || exponent(p + 1) != nullptr)) {
      kind = Token::Kind::real;
      ++p;
      skip(kDigit);
    }
    if (const char* digits = exponent(p)) {
      kind = Token::Kind::real;
      p = digits;
      skip(kDigit);
    }
  }
  if (kind == Token::Kind::integer && p < end && *p == 'U') ++p;
  if (p < end && is(*p, kLetter)) {
    const std::string digits(start, p);
    const char* const word = p;
    skip(kLetter | kDigit);
    fail(start, line_, "malformed number " + digits + ": '" + std::string(word, p) + "' does not belong to it");
  }
  return finish(kind, start, p);
}

}  // namespace emu::ptx
