#pragma once
// PTX text to Module. Knows the syntax, not the instructions: unknown opcodes and modifiers parse, and are refused when
// reached.

#include <stdexcept>
#include <string>
#include <string_view>

#include "emulator/ptx/ast.h"

namespace emu::ptx {

/// what(): "NAME:LINE:COLUMN: message", with the line of the PTX text.
struct ParseError : std::runtime_error {
  ParseError(std::string_view name, uint32_t line, uint32_t column, const std::string& message);
  uint32_t line, column;
};

/// `name`: what messages call the text. Text after a NUL is ignored (fatbins pad with zeros). Throws ParseError.
Module parse(std::string text, std::string_view name);

}  // namespace emu::ptx
