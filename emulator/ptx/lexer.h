#pragma once
// Cuts PTX text into tokens, one at a time, without copying. PTX ISA sections 4.1 to 4.5.

#include <cstdint>
#include <string_view>

#include "emulator/ptx/ast.h"

namespace emu::ptx {

struct Token {
  enum class Kind : uint8_t {
    end,         // of the text
    identifier,  // foo, %r1, $L__BB0_1, _
    word,        // .shared::cta, without the dot: directives, types, modifiers, vector components
    integer,     // 12, 0x1F, 0b101, 017, 5U
    real,        // 1.5, 1e-3, 0f3F800000, 0d3FF0000000000000
    string,      // "...", without the quotes
    symbol,      // punctuation and operators; `op` says which
  };
  Kind kind = Kind::end;
  /// A single character, or one of the names below for an operator of two.
  char op = 0;
  std::string_view text;
  uint32_t line = 0;

  static constexpr char kShiftLeft = 'l', kShiftRight = 'r', kLessEqual = 'L', kGreaterEqual = 'G', kEqual = 'E',
                        kNotEqual = 'N', kAnd = 'A', kOr = 'O';

  bool is(char symbol) const { return kind == Kind::symbol && op == symbol; }
  bool is_word(std::string_view word) const { return kind == Kind::word && text == word; }
  bool is_identifier(std::string_view word) const { return kind == Kind::identifier && text == word; }
};

class Lexer {
 public:
  Lexer(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Token next();
  /// `word` was taken for a modifier but stands where a number must: ".5" and what follows of it, as one real token.
  Token number_at(const Token& word);
  /// Everything up to `end` of the text as one skipped piece (legacy @@DWARF lines).
  void skip_line();

  [[noreturn]] void fail(const Token& at, const std::string& message) const;

 private:
  void skip_space();
  Token number(const char* start);
  Token finish(Token::Kind kind, const char* start, const char* text_end);
  [[noreturn]] void fail(const char* at, uint32_t line, const std::string& message) const;

  std::string_view text_, name_;
  size_t at_ = 0;
  uint32_t line_ = 1;
};

}  // namespace emu::ptx
