// Operands of instructions. PTX ISA section 6.

#include <bit>
#include <charconv>

#include "emulator/ptx/parsing.h"

namespace emu::ptx {
namespace {

/// Index of a vector component by its name, in either alphabet; -1 for none.
int component_index(std::string_view name) {
  if (name.size() != 1) return -1;
  for (std::string_view alphabet : {"xyzw", "rgba"}) {
    const size_t at = alphabet.find(name[0]);
    if (at != std::string_view::npos) return static_cast<int>(at);
  }
  return -1;
}

/// `name` as `prefix` and a number below `count`; kNone when it is not.
uint32_t number_in_range(std::string_view name, std::string_view prefix, size_t count) {
  if (name.size() <= prefix.size() || !name.starts_with(prefix)) return kNone;
  name.remove_prefix(prefix.size());
  if (name[0] == '0' && name.size() > 1) return kNone;
  uint32_t number = kNone;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() && number < count ? number : kNone;
}

}  // namespace

std::optional<Name> Parser::find(std::string_view name) {
  for (size_t i = scopes_.size(); i-- > 0;) {
    Scope& scope = scopes_[i];
    for (RegisterRange& range : scope.ranges) {
      const uint32_t number = number_in_range(name, range.prefix, range.registers.size());
      if (number == kNone) continue;
      uint32_t& index = range.registers[number];
      if (index == kNone) index = add_registers(name, range.type, range.vector);
      return Name{Name::Kind::reg, index, range.vector};
    }
    if (scope.names.empty()) continue;
    if (const auto found = scope.names.find(name); found != scope.names.end()) return found->second;
  }
  return std::nullopt;
}

const Variable& Parser::variable(SymbolRef symbol) const {
  return symbol.in_function ? function_->variables[symbol.index] : module_.variables[symbol.index];
}

uint32_t Parser::guard() {
  const Token name = expect_identifier("a predicate register after @");
  const std::optional<Name> found = find(name.text);
  if (!found || found->kind != Name::Kind::reg || function_->registers[found->index].type != Type::pred) {
    fail(name, "the guard '" + std::string(name.text) + "' is not a register of type .pred");
  }
  return found->index;
}

Operand Parser::immediate() {
  const Constant value = constant();
  Operand result;
  if (value.real) {
    result.kind = Operand::Kind::real;
    result.real_width = value.real_width;
    result.real_bits = value.bits;
  } else {
    result.kind = Operand::Kind::integer;
    result.value = value.integer;
  }
  return result;
}

Operand Parser::operand(bool label_expected) {
  const Depth depth(*this, token_);
  Operand result;
  if (token_.is('[')) {
    result = address();
  } else if (token_.is('{')) {
    result = vector();
  } else if (token_.is('!')) {
    // !5 is a constant, !p the negation of a predicate.
    const Token next = Lexer(lexer_).next();
    if (next.kind == Token::Kind::identifier && next.text != "WARP_SZ") {
      const Token bang = take();
      result = named(take(), false);
      if (result.kind != Operand::Kind::reg) fail(bang, "! stands before a predicate register or a constant only");
      result.negated = true;
    } else {
      result = immediate();
    }
  } else if (token_.kind == Token::Kind::identifier && token_.text != "WARP_SZ") {
    result = named(take(), label_expected);
  } else if (starts_constant()) {
    result = immediate();
  } else {
    fail_expected("an operand");
  }

  const bool can_pair = result.kind == Operand::Kind::reg || result.kind == Operand::Kind::sink;
  if (can_pair && accept('|')) {
    Operand pair;
    pair.kind = Operand::Kind::pair;
    pair.children.push_back(std::move(result));
    pair.children.push_back(nested_operand());
    return pair;
  }
  return result;
}

Operand Parser::nested_operand() {
  const Token at = token_;
  Operand result = operand();
  if (result.kind == Operand::Kind::label) fail(at, "'" + std::string(at.text) + "' is not declared");
  return result;
}

void Parser::component(Operand& operand, const Token& of, uint32_t elements) {
  // v.x of a vector register becomes the element's own register; %r.b0 keeps its selector.
  if (token_.kind != Token::Kind::word) {
    if (elements > 1) {
      operand.kind = Operand::Kind::vector;
      for (uint32_t i = 0; i < elements; ++i) {
        Operand element;
        element.kind = Operand::Kind::reg;
        element.index = operand.index + i;
        operand.children.push_back(std::move(element));
      }
    }
    return;
  }
  const Token word = take();
  const int element = component_index(word.text);
  if (elements > 1) {
    if (element < 0 || element >= static_cast<int>(elements)) {
      fail(word, "." + std::string(word.text) + " is not an element of the vector register " + std::string(of.text) +
                     ", which has " + std::to_string(elements));
    }
    operand.index += element;
  } else if (word.text.size() > 1 && (word.text[0] == 'b' || word.text[0] == 'h') &&
             word.text.find_first_not_of("01234567", 1) == std::string_view::npos) {
    operand.selector = word.text;
  } else {
    fail(word, "." + std::string(word.text) + " selects nothing of the scalar register " + std::string(of.text));
  }
}

Operand Parser::named(const Token& name, bool label_expected) {
  Operand result;
  if (name.text == "_") return result;  // a sink

  if (!label_expected) {
    if (const std::optional<Name> found = find(name.text)) {
      result.index = found->index;
      if (found->kind == Name::Kind::reg) {
        result.kind = Operand::Kind::reg;
        component(result, name, found->vector);
        return result;
      }
      result.kind = Operand::Kind::symbol;
      result.symbol = {true, found->index};
    } else if (const auto global = variables_.find(name.text); global != variables_.end()) {
      result.kind = Operand::Kind::symbol;
      result.symbol = {false, global->second};
    } else if (const auto function = functions_.find(name.text); function != functions_.end()) {
      result.kind = Operand::Kind::function;
      result.index = function->second;
      return result;
    } else if (name.text[0] == '%') {
      for (const Scope& scope : scopes_) {
        for (const RegisterRange& range : scope.ranges) {
          if (number_in_range(name.text, range.prefix, SIZE_MAX) != kNone) {
            fail(name, "the register " + std::string(name.text) + " is not declared: " + std::string(range.prefix) +
                           "<" + std::to_string(range.registers.size()) + "> ends at " + std::string(range.prefix) +
                           std::to_string(range.registers.size() - 1));
          }
        }
      }
      result.kind = Operand::Kind::special;
      result.name = name.text;
      if (token_.kind == Token::Kind::word) {
        const Token word = take();
        const int element = component_index(word.text);
        if (element < 0)
          fail(word,
               "." + std::string(word.text) + " is no component of a special register: expected .x, .y, .z or .w");
        result.component = "xyzw"[element];
      }
      return result;
    } else {
      label_expected = true;
    }
  }
  if (label_expected) {
    result.kind = Operand::Kind::label;
    result.name = name.text;  // taken away when it is resolved
    return result;
  }

  // A variable: its address, that of an element, or that plus an offset.
  if (token_.is('[')) {
    element_index(result, variable(result.symbol));
  } else if (token_.is('+') || token_.is('-')) {
    result.value = integer_constant("an offset");
  }
  return result;
}

void Parser::element_index(Operand& operand, const Variable& variable) {
  // a[3] is the address of the fourth element; as the operand of ld and st it is the place itself (section 6.4.2).
  const Token open = take();
  if (variable.dimensions.empty()) fail(open, "'" + std::string(variable.name) + "' is not an array");
  uint64_t element_bytes = uint64_t{bytes(variable.type)} * variable.vector;
  for (size_t i = 1; i < variable.dimensions.size(); ++i) element_bytes *= variable.dimensions[i];
  if (token_.kind == Token::Kind::identifier && token_.text != "WARP_SZ") {
    const Token name = take();
    const std::optional<Name> found = find(name.text);
    if (!found || found->kind != Name::Kind::reg) fail(name, "expected a register or a constant as the index");
    operand.kind = Operand::Kind::address;
    operand.address_base = Operand::Base::element;
    operand.index = found->index;
    operand.scale = static_cast<uint32_t>(element_bytes);
    if (token_.is('+') || token_.is('-')) operand.value = integer_constant("an offset") * element_bytes;
  } else {
    operand.value = integer_constant("an index") * element_bytes;
  }
  expect(']', "to close the index");
}

Operand Parser::address() {
  take();
  Operand result;
  result.kind = Operand::Kind::address;
  if (token_.kind == Token::Kind::identifier && token_.text != "WARP_SZ") {
    const Token name = take();
    Operand base = named(name, false);
    if (base.kind == Operand::Kind::reg && base.selector.empty()) {
      result.address_base = Operand::Base::reg;
      result.index = base.index;
    } else if (base.kind == Operand::Kind::symbol) {
      result.address_base = Operand::Base::symbol;
      result.symbol = base.symbol;
      result.value = base.value;
    } else if (base.kind == Operand::Kind::label) {
      fail(name, "'" + std::string(name.text) + "' is not declared");
    } else {
      fail(name,
           "'" + std::string(name.text) + "' cannot be the base of an address: expected a register or a variable");
    }
    if (token_.is('+') || token_.is('-')) result.value += integer_constant("an offset");
  } else if (starts_constant()) {
    result.value = integer_constant("an address");
  } else {
    fail_expected("a register, a variable or a constant as the address");
  }
  while (accept(',')) result.children.push_back(nested_operand());
  expect(']', "to close the address");
  return result;
}

Operand Parser::vector() {
  take();
  Operand result;
  result.kind = Operand::Kind::vector;
  do {
    result.children.push_back(nested_operand());
  } while (accept(','));
  expect('}', "to close the vector");
  return result;
}

}  // namespace emu::ptx
