// Declarations of variables, registers and parameters. PTX ISA sections 5.2, 5.4 and 11.6.

#include <algorithm>
#include <bit>

#include "emulator/ptx/parsing.h"

namespace emu::ptx {

std::optional<Space> Parser::space_from_word(std::string_view word) {
  constexpr std::pair<std::string_view, Space> kSpaces[] = {
      {"reg", Space::reg},     {"global", Space::global}, {"const", Space::constant}, {"shared", Space::shared},
      {"local", Space::local}, {"param", Space::param},   {"tex", Space::tex},
  };
  for (const auto& [name, space] : kSpaces) {
    if (name == word) return space;
  }
  return std::nullopt;
}

uint32_t Parser::number(std::string_view what, uint64_t most) {
  const Token at = token_;
  const int64_t value = integer_constant(what);
  if (value < 0 || static_cast<uint64_t>(value) > most) {
    fail(at, std::string(what) + " is " + std::to_string(value) + ": expected 0 to " + std::to_string(most));
  }
  return static_cast<uint32_t>(value);
}

uint32_t Parser::count_in_angles() {
  // A literal: in an expression, the closing > would be an operator.
  const Token at = token_;
  if (token_.kind != Token::Kind::integer) fail_expected("a count");
  const Constant count = literal(take());
  if (count.integer < 0 || count.integer > 1 << 24) {
    fail(at, "a count of " + std::string(at.text) + ": expected at most " + std::to_string(1 << 24));
  }
  expect('>', "after the count");
  return static_cast<uint32_t>(count.integer);
}

void Parser::attribute(Shape& shape) {
  // .attribute(.managed, .unified(19, 95)): only .managed changes what a program can see.
  expect('(', "after .attribute");
  for (int open = 1; open > 0;) {
    if (token_.kind == Token::Kind::end) fail_expected("')' to close .attribute");
    const Token token = take();
    open += token.is('(') - token.is(')');
    if (token.is_word("managed")) shape.is_managed = true;
  }
}

Parser::Shape Parser::shape(bool parameter) {
  Shape result;
  const Token space = take();
  result.space = *space_from_word(space.text);
  while (token_.kind == Token::Kind::word) {
    const Token word = take();
    if (const std::optional<Type> type = type_from_name(word.text)) {
      if (result.has_type) fail(word, "a second type in one declaration: ." + std::string(word.text));
      result.type = *type;
      result.has_type = true;
    } else if (word.text == "align") {
      const Token at = token_;
      const uint32_t align = number("the alignment", uint64_t{1} << 30);
      if (!std::has_single_bit(align))
        fail(at, "the alignment is " + std::to_string(align) + ": expected a power of two");
      (result.is_pointer ? result.pointer_align : result.align) = align;
    } else if (word.text == "v2" || word.text == "v4" || word.text == "v8") {
      result.vector = word.text[1] - '0';
    } else if (word.text == "attribute") {
      attribute(result);
    } else if (parameter && word.text == "ptr") {
      result.is_pointer = true;
    } else if (result.is_pointer && space_from_word(word.text)) {
      result.pointer_space = space_from_word(word.text);
    } else {
      fail(word, "expected a type, .align or .v2/.v4 in a declaration, found ." + std::string(word.text));
    }
  }
  if (!result.has_type) {
    fail(token_,
         "expected a type before '" + std::string(token_.text) + "' in a declaration in ." + std::string(space.text));
  }
  if (result.type == Type::pred && result.space != Space::reg)
    fail(space, "variables of type .pred exist in .reg only");
  return result;
}

Variable Parser::declarator(const Shape& shape, const Token& name) {
  Variable result;
  result.name = name.text;
  result.space = shape.space;
  result.type = shape.type;
  result.vector = shape.vector;
  result.is_managed = shape.is_managed;
  result.is_pointer = shape.is_pointer;
  result.pointer_space = shape.pointer_space;
  result.pointer_align = shape.pointer_align;
  result.line = name.line;
  const uint64_t element_bytes = uint64_t{bytes(shape.type)} * shape.vector;
  result.align = shape.align != 0 ? shape.align : static_cast<uint32_t>(std::bit_ceil(element_bytes));
  result.bytes = element_bytes;
  while (accept('[')) {
    uint64_t count = 0;
    if (token_.is(']')) {
      if (!result.dimensions.empty()) fail(token_, "only the first dimension of an array can be left open");
    } else {
      const Token at = token_;
      const int64_t value = integer_constant("the size of the array");
      if (value < 0) fail(at, "the size of an array is " + std::to_string(value));
      count = value;
      if (count != 0 && result.bytes > (uint64_t{1} << 48) / count)
        fail(at, "the array '" + std::string(name.text) + "' is larger than an address space");
    }
    result.dimensions.push_back(count);
    result.bytes *= count;
    expect(']', "to close the size of the array");
  }
  return result;
}

void Parser::register_declaration(const Shape& shape) {
  do {
    const Token name = expect_identifier("the name of a register");
    Scope& scope = scopes_.back();
    if (accept('<')) {
      const uint32_t count = count_in_angles();
      scope.ranges.push_back({name.text, shape.type, shape.vector, std::vector<uint32_t>(count, kNone)});
    } else {
      const Name entry{Name::Kind::reg, static_cast<uint32_t>(function_->registers.size()), shape.vector};
      if (!scope.names.emplace(name.text, entry).second) {
        fail(name, "'" + std::string(name.text) + "' is declared twice in the same scope");
      }
      add_registers(name.text, shape.type, shape.vector);
    }
  } while (accept(','));
}

uint32_t Parser::add_registers(std::string_view name, Type type, uint32_t vector) {
  const uint32_t first = static_cast<uint32_t>(function_->registers.size());
  for (uint32_t i = 0; i < vector; ++i) {
    function_->registers.push_back({name, type, vector == 1 ? '\0' : i < 4 ? "xyzw"[i] : static_cast<char>('0' + i)});
  }
  return first;
}

void Parser::declaration(const Linkage& linkage) {
  const Token start = token_;
  const Shape shape = this->shape(false);
  if (shape.space == Space::reg) {
    if (function_ == nullptr) fail(start, "registers can be declared inside functions only");
    register_declaration(shape);
    expect(';', "after the declaration");
    return;
  }
  if (function_ == nullptr && (shape.space == Space::param || shape.space == Space::local)) {
    fail(start, "a variable of the module cannot be in ." + std::string(start.text));
  }
  do {
    const Token name = expect_identifier("the name of a variable");
    if (accept('<')) {
      // name<N> is N variables name0 .. name(N-1). Their names are not in the text, so the module keeps them.
      const uint32_t count = count_in_angles();
      for (uint32_t i = 0; i < count; ++i) {
        Token numbered = name;
        numbered.text = module_.strings.emplace_back(std::string(name.text) + std::to_string(i));
        declare_variable(declarator(shape, numbered), name);
      }
      continue;
    }
    Variable variable = declarator(shape, name);
    variable.is_extern = linkage.is_extern;
    variable.is_visible = linkage.is_visible;
    variable.is_weak = linkage.is_weak;
    variable.is_common = linkage.is_common;
    if (accept('=')) initialise(variable);
    const bool open = !variable.dimensions.empty() && variable.dimensions[0] == 0;
    if (open && !variable.is_extern && variable.bytes == 0) {
      fail(name, "the array '" + std::string(name.text) +
                     "' has no size: only .extern arrays and those with initial values can leave it open");
    }
    declare_variable(std::move(variable), name);
  } while (accept(','));
  expect(';', "after the declaration");
}

void Parser::declare_variable(Variable variable, const Token& name) {
  if (function_ == nullptr) {
    const auto [entry, fresh] = variables_.emplace(variable.name, static_cast<uint32_t>(module_.variables.size()));
    if (fresh) {
      module_.variables.push_back(std::move(variable));
      return;
    }
    // An .extern declaration and the definition that it announces are one variable.
    Variable& earlier = module_.variables[entry->second];
    if (!earlier.is_extern && !variable.is_extern) {
      fail(name,
           "'" + std::string(name.text) + "' is defined twice (first on line " + std::to_string(earlier.line) + ")");
    }
    if (earlier.is_extern && !variable.is_extern) earlier = std::move(variable);
    return;
  }

  Function& function = *function_;
  Scope& scope = scopes_.back();
  // Places `variable` behind `top` bytes of a frame of the thread and returns where it ends.
  const auto place = [&](uint64_t top, uint32_t& frame_bytes, uint32_t& frame_align) {
    const uint64_t offset = (top + variable.align - 1) & ~uint64_t{variable.align - 1};
    constexpr uint64_t kMost =
        512 << 10;  // local memory of a thread: CUDA programming guide, table of technical specifications
    if (offset + variable.bytes > kMost) {
      fail(name, "'" + std::string(name.text) + "' ends at byte " + std::to_string(offset + variable.bytes) +
                     " of its frame; a thread has " + std::to_string(kMost) + " bytes of local memory");
    }
    variable.offset = static_cast<uint32_t>(offset);
    const uint32_t end = static_cast<uint32_t>(offset + variable.bytes);
    frame_bytes = std::max(frame_bytes, end);
    frame_align = std::max(frame_align, variable.align);
    return end;
  };
  if (variable.space == Space::local) {
    place(function.local_frame_bytes, function.local_frame_bytes, function.local_frame_align);
  } else if (variable.space == Space::param) {
    scope.param_frame_top = place(scope.param_frame_top, function.param_frame_bytes, function.param_frame_align);
  }
  const Name entry{Name::Kind::variable, static_cast<uint32_t>(function.variables.size()), 1};
  if (!scope.names.emplace(variable.name, entry).second) {
    fail(name, "'" + std::string(name.text) + "' is declared twice in the same scope");
  }
  function.variables.push_back(std::move(variable));
}

}  // namespace emu::ptx
