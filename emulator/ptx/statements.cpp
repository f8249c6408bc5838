// Bodies of functions: scopes, labels, instructions, tables of branch and call targets. PTX ISA
// sections 4.3, 9.7.12, 11.2 and 11.3.

#include <algorithm>

#include "emulator/ptx/parsing.h"

namespace emu::ptx {

void Parser::open_scope() {
  const uint32_t top = scopes_.empty() ? 0 : scopes_.back().param_frame_top;
  scopes_.emplace_back();
  scopes_.back().param_frame_top = top;
}

bool Parser::resolve(const Scope& scope, const Fixup& fixup) {
  const auto found = scope.targets.find(fixup.token.text);
  if (found == scope.targets.end()) return false;
  const Target target = found->second;
  if (fixup.kind == Fixup::Kind::branch_target) {
    if (target.kind != Operand::Kind::label)
      fail(fixup.token, "'" + std::string(fixup.token.text) + "' is not a label");
    function_->branch_targets[fixup.a][fixup.b] = target.index;
    return true;
  }
  Instruction& instruction = function_->body[fixup.a];
  const std::string_view name = instruction.name();
  const bool is_call_table = target.kind == Operand::Kind::prototype || target.kind == Operand::Kind::calltargets;
  if (name == "bra" && target.kind != Operand::Kind::label) {
    fail(fixup.token, "'" + std::string(fixup.token.text) + "' is not a label to branch to");
  }
  if (name == "brx" && target.kind != Operand::Kind::targets) {
    fail(fixup.token, "'" + std::string(fixup.token.text) + "' is not a .branchtargets table");
  }
  if (name == "call" && !is_call_table) {
    fail(fixup.token, "'" + std::string(fixup.token.text) + "' is not a .callprototype or .calltargets");
  }
  Operand& operand = instruction.operands[fixup.b];
  operand.kind = target.kind;
  operand.index = target.index;
  operand.name = {};
  return true;
}

void Parser::add_fixup(Fixup fixup) {
  scopes_.back().fixups.push_back(std::move(fixup));
}

void Parser::close_scope() {
  // A label is visible in its own scope, from its beginning, and in the scopes inside it; what is still unknown may be
  // one of the scope around. Registers and variables were resolved where they stood, since they must be declared
  // before.
  Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  for (Fixup& fixup : scope.fixups) {
    if (resolve(scope, fixup)) continue;
    if (scopes_.empty()) fail(fixup.token, "'" + std::string(fixup.token.text) + "' is not declared");
    add_fixup(std::move(fixup));
  }
}

void Parser::body(Function& function, const Token& open) {
  function_ = &function;
  location_ = kNone;
  location_at_.clear();
  while (!token_.is('}')) {
    if (token_.kind == Token::Kind::end) {
      fail(token_, "the body of '" + std::string(function.name) + "', opened on line " + std::to_string(open.line) +
                       ", has no end: expected '}'");
    }
    statement();
  }
  end_body(take());
  close_scope();
  // Labels may stand at the very end, and scopes can be closed in any order.
  std::sort(function.labels.begin(), function.labels.end(),
            [](const Label& a, const Label& b) { return a.instruction < b.instruction; });
  function_ = nullptr;
}

void Parser::end_body(const Token& close) {
  // The closing brace returns, as `ret` does. Every label gets an instruction to stand before.
  Function& function = *function_;
  const uint32_t size = static_cast<uint32_t>(function.body.size());
  bool falls_through = size == 0 || function.body.back().guard != kNone;
  if (!falls_through) {
    const std::string_view last = function.body.back().name();
    falls_through = last != "ret" && last != "exit" && last != "trap" && last != "bra" && last != "brx";
  }
  const bool label_at_end = std::any_of(function.labels.begin(), function.labels.end(),
                                        [&](const Label& l) { return l.instruction == size; });
  if (!falls_through && !label_at_end) return;
  Instruction instruction;
  instruction.opcode = intern("ret", {});
  instruction.line = close.line;
  instruction.location = location_;
  function.body.push_back(std::move(instruction));
}

void Parser::statement() {
  const Depth depth(*this, token_);
  switch (token_.kind) {
    case Token::Kind::identifier: {
      const Token first = take();
      if (accept(':')) {
        label(first);
      } else {
        instruction(first);
      }
      return;
    }
    case Token::Kind::symbol:
      if (token_.is('@')) {
        instruction(token_);
        return;
      }
      if (token_.is('{')) {
        const Token open = take();
        open_scope();
        while (!token_.is('}')) {
          if (token_.kind == Token::Kind::end) {
            fail(token_, "the scope opened on line " + std::to_string(open.line) + " has no end: expected '}'");
          }
          statement();
        }
        take();
        close_scope();
        return;
      }
      break;
    case Token::Kind::word:
      if (space_from_word(token_.text)) {
        declaration({});
        return;
      }
      if (token_.text == "loc") {
        loc();
        return;
      }
      if (token_.text == "pragma") {
        pragma(function_->pragmas, static_cast<uint32_t>(function_->body.size()));
        return;
      }
      break;
    default:
      break;
  }
  fail_expected("an instruction, a label, a declaration or '}'");
}

void Parser::define_target(const Token& name, Target target) {
  if (!scopes_.back().targets.emplace(name.text, target).second) {
    fail(name, "the label '" + std::string(name.text) + "' is defined twice in the same scope");
  }
}

void Parser::label(const Token& name) {
  if (token_.is_word("branchtargets")) {
    branch_targets(name);
  } else if (token_.is_word("calltargets")) {
    call_targets(name);
  } else if (token_.is_word("callprototype")) {
    call_prototype(name);
  } else {
    const uint32_t at = static_cast<uint32_t>(function_->body.size());
    define_target(name, {Operand::Kind::label, at});
    function_->labels.push_back({name.text, at});
  }
}

void Parser::branch_targets(const Token& name) {
  take();
  const uint32_t table = static_cast<uint32_t>(function_->branch_targets.size());
  define_target(name, {Operand::Kind::targets, table});
  function_->branch_targets.emplace_back();
  do {
    const Token label = expect_identifier("a label");
    const uint32_t entry = static_cast<uint32_t>(function_->branch_targets[table].size());
    function_->branch_targets[table].push_back(kNone);
    add_fixup({Fixup::Kind::branch_target, table, entry, label});
  } while (accept(','));
  expect(';', "after .branchtargets");
}

void Parser::call_targets(const Token& name) {
  take();
  define_target(name, {Operand::Kind::calltargets, static_cast<uint32_t>(function_->call_targets.size())});
  std::vector<uint32_t> targets;
  do {
    const Token callee = expect_identifier("the name of a function");
    const auto found = functions_.find(callee.text);
    if (found == functions_.end()) fail(callee, "the function '" + std::string(callee.text) + "' is not declared");
    targets.push_back(found->second);
  } while (accept(','));
  function_->call_targets.push_back(std::move(targets));
  expect(';', "after .calltargets");
}

void Parser::call_prototype(const Token& name) {
  take();
  define_target(name, {Operand::Kind::prototype, static_cast<uint32_t>(function_->prototypes.size())});
  Prototype prototype;
  prototype.name = name.text;
  const auto list = [&](std::vector<Variable>& into) {
    if (!accept('(')) return;
    if (accept(')')) return;
    do {
      if (token_.kind != Token::Kind::word || !space_from_word(token_.text)) fail_expected(".param or .reg");
      const Shape shape = this->shape(true);
      into.push_back(declarator(shape, expect_identifier("_ or the name of a parameter")));
    } while (accept(','));
    expect(')', "to close the parameters");
  };
  list(prototype.returns);
  expect_identifier("_");
  list(prototype.parameters);
  while (token_.kind == Token::Kind::word) {
    if (token_.text == "noreturn") prototype.noreturn = true;
    take();
    if (token_.kind == Token::Kind::integer) take();  // .abi_preserve 10
  }
  function_->prototypes.push_back(std::move(prototype));
  expect(';', "after .callprototype");
}

const Opcode* Parser::opcode(const Token& name) {
  // Almost always the spelling is one piece of the text, which is then its own key.
  const char* end = name.text.data() + name.text.size();
  std::vector<std::string_view> words;
  bool in_one_piece = true;
  for (; token_.kind == Token::Kind::word; take()) {
    in_one_piece = in_one_piece && token_.text.data() == end + 1;
    end = token_.text.data() + token_.text.size();
    words.push_back(token_.text);
  }
  if (in_one_piece) return intern({name.text.data(), static_cast<size_t>(end - name.text.data())}, words);
  std::string spelling(name.text);
  for (std::string_view word : words) spelling.append(".").append(word);
  return intern(spelling, words);
}

const Opcode* Parser::intern(std::string_view spelling, const std::vector<std::string_view>& modifiers) {
  if (const auto found = opcodes_.find(spelling); found != opcodes_.end()) return found->second;
  Opcode& entry = module_.opcodes.emplace_back();
  entry.text = spelling;
  const std::string_view text = entry.text;
  size_t at = text.find('.');
  entry.name = text.substr(0, at);
  for (std::string_view modifier : modifiers) {
    entry.modifiers.push_back(text.substr(at + 1, modifier.size()));
    at += 1 + modifier.size();
  }
  opcodes_.emplace(text, &entry);
  return &entry;
}

void Parser::instruction(const Token& first) {
  Instruction instruction;
  instruction.location = location_;
  Token name = first;
  if (first.is('@')) {
    take();
    instruction.guard_negated = accept('!');
    instruction.guard = guard();
    name = expect_identifier("an instruction after its guard");
  }
  instruction.line = name.line;
  instruction.opcode = opcode(name);

  const uint32_t index = static_cast<uint32_t>(function_->body.size());
  if (name.text == "call") {
    call(instruction);
  } else if (!token_.is(';')) {
    do {
      const bool label_expected = (name.text == "bra" && instruction.operands.empty()) ||
                                  (name.text == "brx" && instruction.operands.size() == 1);
      const Token at = token_;
      if (label_expected && at.kind != Token::Kind::identifier) fail_expected("a label");
      instruction.operands.push_back(operand(label_expected));
      if (instruction.operands.back().kind == Operand::Kind::label) {
        add_fixup({Fixup::Kind::operand, index, static_cast<uint32_t>(instruction.operands.size() - 1), at});
      }
    } while (accept(','));
  }
  if (!token_.is(';')) fail_expected("',' or ';' after an operand of " + instruction.opcode->text);
  const size_t wanted = name.text == "bra" ? 1 : name.text == "brx" ? 2 : instruction.operands.size();
  if (instruction.operands.size() != wanted) {
    fail(name, instruction.opcode->text +
                   (wanted == 1 ? " takes one operand, a label" : " takes two operands, an index and a table"));
  }
  take();
  function_->body.push_back(std::move(instruction));
}

void Parser::call(Instruction& instruction) {
  // call (returns), callee, (arguments), table;  each part but the callee may be left out.
  const uint32_t index = static_cast<uint32_t>(function_->body.size());
  const auto list = [&](Operand& into) {
    into.kind = Operand::Kind::list;
    if (!accept('(')) return false;
    if (!accept(')')) {
      do {
        into.children.push_back(nested_operand());
      } while (accept(','));
      expect(')', "to close the list");
    }
    return true;
  };
  instruction.operands.resize(4);
  if (list(instruction.operands[0])) expect(',', "after the returned values of a call");

  const Token callee = expect_identifier("the function to call");
  Operand& target = instruction.operands[1];
  if (const auto found = functions_.find(callee.text); found != functions_.end()) {
    target.kind = Operand::Kind::function;
    target.index = found->second;
  } else {
    target = named(callee, false);
    if (target.kind != Operand::Kind::reg)
      fail(callee, "the function '" + std::string(callee.text) + "' is not declared");
  }

  instruction.operands[2].kind = Operand::Kind::list;
  if (!accept(',')) return;
  if (token_.is('(')) {
    list(instruction.operands[2]);
    if (!accept(',')) return;
  }
  const Token table = expect_identifier("the name of a .callprototype or .calltargets");
  instruction.operands[3].kind = Operand::Kind::label;
  instruction.operands[3].name = table.text;
  add_fixup({Fixup::Kind::operand, index, 3, table});
}

}  // namespace emu::ptx
