// Initial values of variables: numbers, addresses, nested braces. PTX ISA section 5.4.4; ptxas asks for a pair of
// braces for every dimension and for a vector, and fills what is left out with zeros.

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/ptx/parsing.h"

namespace emu::ptx {

void Parser::initialise(Variable& variable) {
  if (variable.type == Type::samplerref || variable.type == Type::texref || variable.type == Type::surfref) {
    skip_braces();  // settings of opaque objects
    return;
  }
  if (variable.space != Space::global && variable.space != Space::constant) {
    fail(token_, "only variables in .global and .const can have initial values");
  }
  constexpr uint64_t kMost = uint64_t{1} << 30;
  if (variable.bytes > kMost) {
    fail(token_, "'" + std::string(variable.name) + "' has " + std::to_string(variable.bytes) +
                     " bytes; variables with initial values can have " + std::to_string(kMost));
  }
  variable.initial.resize(variable.bytes);
  if (variable.dimensions.empty()) {
    initial_value(variable, 0);
    return;
  }
  const uint64_t outer = initial_elements(variable, 0, 0);
  if (variable.dimensions[0] == 0) {  // the size was left open: what stands in the braces decides it
    uint64_t inner_bytes = uint64_t{bytes(variable.type)} * variable.vector;
    for (size_t i = 1; i < variable.dimensions.size(); ++i) inner_bytes *= variable.dimensions[i];
    variable.dimensions[0] = outer;
    variable.bytes = outer * inner_bytes;
  }
  variable.initial.resize(variable.bytes);
}

uint64_t Parser::initial_elements(Variable& variable, size_t dimension, uint64_t at) {
  const Depth depth(*this, token_);
  uint64_t element_bytes = uint64_t{bytes(variable.type)} * variable.vector;
  for (size_t i = dimension + 1; i < variable.dimensions.size(); ++i) element_bytes *= variable.dimensions[i];
  const uint64_t size = variable.dimensions[dimension];
  uint64_t count = 0;

  expect('{', "before the initial values of an array");
  while (!token_.is('}')) {
    if (size != 0 && count == size) {
      fail(token_, "more initial values than the " + std::to_string(size) + " elements that '" +
                       std::string(variable.name) + "' has in this dimension");
    }
    if (size == 0) variable.initial.resize(at + (count + 1) * element_bytes);
    if (dimension + 1 < variable.dimensions.size()) {
      initial_elements(variable, dimension + 1, at + count * element_bytes);
    } else {
      initial_value(variable, at + count * element_bytes);
    }
    ++count;
    if (!accept(',')) break;
  }
  expect('}', "to close the initial values");
  return count;
}

void Parser::initial_value(Variable& variable, uint64_t at) {
  if (variable.vector > 1) {
    expect('{', "before the elements of a vector");
    const uint32_t elements = variable.vector;
    variable.vector = 1;
    for (uint32_t i = 0; i < elements; ++i) {
      if (i > 0) expect(',', "between the elements of a vector");
      initial_value(variable, at + uint64_t{i} * bytes(variable.type));
    }
    variable.vector = elements;
    expect('}', "to close the vector");
    return;
  }
  if (token_.kind == Token::Kind::identifier && token_.text != "WARP_SZ") {
    initial_address(variable, at, ~uint64_t{0});
    return;
  }

  const Token token = token_;
  if (!starts_constant()) fail_expected("an initial value");
  const Constant value = constant();
  if (token_.is('(') && !value.real) {  // 0xFF00(symbol): some bytes of an address
    take();
    if (value.integer == 0) fail(token, "the mask of an address is zero");
    initial_address(variable, at, value.integer);
    expect(')', "to close the masked address");
    return;
  }
  std::byte* const place = variable.initial.data() + at;
  const bool is_float = variable.type == Type::f32 || variable.type == Type::f64;
  const uint32_t width = bytes(variable.type);
  if (!value.real) {
    if (is_float)
      fail(token, "the initial value of a ." + std::string(to_string(variable.type)) +
                      " variable must be a floating-point constant");
    std::memcpy(place, &value.integer, std::min(width, 8u));
    if (width > 8) std::memset(place + 8, value.integer < 0 && !value.is_unsigned ? 0xFF : 0, width - 8);
    return;
  }
  const bool is_bits = variable.type == Type::b32 || variable.type == Type::b64;
  if (!is_float && !is_bits) {
    fail(token, "the initial value of a ." + std::string(to_string(variable.type)) + " variable must be an integer");
  }
  const uint32_t single_bits = static_cast<uint32_t>(value.bits);
  if (width == 4) {
    const uint32_t word =
        value.real_width == 32 ? single_bits : std::bit_cast<uint32_t>(static_cast<float>(value.number));
    std::memcpy(place, &word, 4);
  } else {
    const double number = value.real_width == 32 ? std::bit_cast<float>(single_bits) : value.number;
    std::memcpy(place, &number, 8);
  }
}

void Parser::initial_address(Variable& variable, uint64_t at, uint64_t mask) {
  Relocation relocation;
  relocation.offset = at;
  relocation.bytes = bytes(variable.type);
  relocation.mask = mask;
  Token name = expect_identifier("the name of a variable or function");
  if (name.text == "generic" && accept('(')) {
    relocation.generic = true;
    name = expect_identifier("the name of a variable");
    expect(')', "to close generic(");
  }
  if (const auto found = variables_.find(name.text); found != variables_.end()) {
    relocation.index = found->second;
  } else if (const auto callee = functions_.find(name.text); callee != functions_.end()) {
    relocation.index = callee->second;
    relocation.is_function = true;
  } else {
    fail(name, "'" + std::string(name.text) + "' is not declared");
  }
  if (token_.is('+') || token_.is('-')) relocation.addend = integer_constant("an offset");
  variable.relocations.push_back(relocation);
}

}  // namespace emu::ptx
