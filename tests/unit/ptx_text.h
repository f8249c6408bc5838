#pragma once
// Small pieces of PTX for the tests of the parser and of what works on its result.

#include <string>
#include <vector>

#include "emulator/ptx/parser.h"

namespace test {

inline const std::string kHead = ".version 9.0\n.target sm_100f\n.address_size 64\n";

/// A module of the given declarations; its text begins on line 4.
inline emu::ptx::Module module(const std::string& text) {
  return emu::ptx::parse(kHead + text, "test.ptx");
}

/// A module with variables and functions for instructions to name, and one kernel "k" whose body begins on line 7.
inline emu::ptx::Module kernel(const std::string& body) {
  return module(
      ".global .align 16 .b32 a[8]; .extern .shared .align 1024 .b8 s[]; .global .u32 m[4][8];\n"
      ".func (.param .b32 result) f(.param .b32 x) { ret; } .func f0() { ret; }\n"
      ".visible .entry k(.param .u32 p0, .param .align 16 .b8 p1[20]) { .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred "
      "%p<4>; .reg .v4 .f32 v;\n" +
      body + "\nret; }");
}

inline const emu::ptx::Function& entry(const emu::ptx::Module& module) {
  return *module.function("k");
}

/// The message of the ParseError that the text causes; "parsed" when it causes none.
template <class Parse>
std::string error_of(Parse parse) {
  try {
    parse();
  } catch (const emu::ptx::ParseError& error) {
    return error.what();
  }
  return "parsed";
}

/// Spellings of a body's instructions, in order.
inline std::vector<std::string> spellings(const emu::ptx::Function& function) {
  std::vector<std::string> result;
  for (const emu::ptx::Instruction& i : function.body) result.push_back(i.opcode->text);
  return result;
}

}  // namespace test
