#pragma once
// Inside the parser: its state, and what its parts offer each other. Only the parser's own .cpp files include this.
//
//   parser.cpp        the module: directives, functions
//   declarations.cpp  variables, registers, parameters
//   initialisers.cpp  initial values of variables
//   statements.cpp    bodies: scopes, labels, instructions
//   operands.cpp      operands
//   constants.cpp     constant expressions
//   source_lines.cpp  .file, .loc and the debug sections that name inlined functions

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "emulator/ptx/ast.h"
#include "emulator/ptx/lexer.h"

namespace emu::ptx {

/// Value of a constant expression. PTX has 64-bit integers, signed and unsigned, and doubles (section 4.5).
struct Constant {
  bool real = false, is_unsigned = false;
  uint8_t real_width = 64;  ///< 32 when the whole expression is one 0f literal: `bits` are its own
  union {
    int64_t integer = 0;
    double number;
    uint64_t bits;
  };
};

/// What a name stands for in a scope of a function.
struct Name {
  enum class Kind : uint8_t { reg, variable } kind = Kind::reg;
  uint32_t index = 0;   ///< register (the first of a vector) or variable
  uint32_t vector = 1;  ///< elements of a vector register
};

/// .reg .b32 %r<100>: entries in Function::registers come only for the names that occur.
struct RegisterRange {
  std::string_view prefix;
  Type type = Type::b32;
  uint32_t vector = 1;
  std::vector<uint32_t> registers;  ///< by number; kNone until it occurs
};

/// A label or a table behind a label.
struct Target {
  Operand::Kind kind = Operand::Kind::label;
  uint32_t index = 0;
};

/// A use of a label that may stand before its definition.
struct Fixup {
  enum class Kind : uint8_t { operand, branch_target } kind = Kind::operand;
  uint32_t a = 0, b = 0;  ///< instruction and operand, or table and entry
  Token token;            ///< the label's name
};

struct Scope {
  std::unordered_map<std::string_view, Name> names;
  std::unordered_map<std::string_view, Target> targets;
  std::vector<RegisterRange> ranges;
  std::vector<Fixup> fixups;
  uint32_t param_frame_top = 0;
};

class Parser {
 public:
  explicit Parser(Module& module) : module_(module), lexer_(*module.text, module.name) {}
  void run();

 private:
  // Tokens: the current one, and one step on.
  Token take();
  bool accept(char symbol);
  bool accept_word(std::string_view word);
  void expect(char symbol, std::string_view where);
  Token expect_identifier(std::string_view what);
  [[noreturn]] void fail(const Token& at, const std::string& message) const { lexer_.fail(at, message); }
  [[noreturn]] void fail_expected(std::string_view what) const;

  // parser.cpp
  void header();
  void module_statement();
  void function(bool is_extern, bool is_visible, bool is_weak);
  void parameter_list(Function& function, bool returns);
  void tuning(Function& function);
  void alias();
  void skip_braces();
  std::string_view until_directive();
  void pragma(std::vector<Pragma>& into, uint32_t instruction);

  // declarations.cpp
  struct Linkage {
    bool is_extern = false, is_visible = false, is_weak = false, is_common = false;
  };
  /// Space, attributes, alignment, vector and type: what stands before the names of a declaration.
  struct Shape {
    Space space = Space::global;
    Type type = Type::b8;
    bool has_type = false;
    uint32_t vector = 1;
    uint32_t align = 0;  // 0: natural
    bool is_managed = false, is_pointer = false;
    std::optional<Space> pointer_space;
    uint32_t pointer_align = 4;
  };
  static std::optional<Space> space_from_word(std::string_view word);
  Shape shape(bool parameter);
  uint32_t count_in_angles();
  void attribute(Shape& shape);
  Variable declarator(const Shape& shape, const Token& name);
  void declaration(const Linkage& linkage);
  void register_declaration(const Shape& shape);
  void declare_variable(Variable variable, const Token& name);
  uint32_t number(std::string_view what, uint64_t most);

  // initialisers.cpp
  void initialise(Variable& variable);
  uint64_t initial_elements(Variable& variable, size_t dimension, uint64_t at);
  void initial_value(Variable& variable, uint64_t at);
  void initial_address(Variable& variable, uint64_t at, uint64_t mask);

  // statements.cpp
  void body(Function& function, const Token& open);
  void statement();
  void label(const Token& name);
  void instruction(const Token& first);
  void call(Instruction& instruction);
  void branch_targets(const Token& name);
  void call_targets(const Token& name);
  void call_prototype(const Token& name);
  const Opcode* opcode(const Token& name);
  const Opcode* intern(std::string_view spelling, const std::vector<std::string_view>& modifiers);
  void define_target(const Token& name, Target target);
  void open_scope();
  void close_scope();
  void add_fixup(Fixup fixup);
  bool resolve(const Scope& scope, const Fixup& fixup);
  void end_body(const Token& close);
  uint32_t add_registers(std::string_view name, Type type, uint32_t vector);

  // operands.cpp
  Operand operand(bool label_expected = false);
  Operand nested_operand();
  Operand named(const Token& name, bool label_expected);
  Operand address();
  Operand vector();
  void element_index(Operand& operand, const Variable& variable);
  void component(Operand& operand, const Token& of, uint32_t elements);
  std::optional<Name> find(std::string_view name);
  const Variable& variable(SymbolRef symbol) const;
  Operand immediate();
  uint32_t guard();

  // constants.cpp
  Constant constant();
  Constant binary(int lowest);
  Constant unary();
  Constant primary();
  Constant combine(const Token& op, const Constant& a, const Constant& b);
  Constant literal(const Token& token);
  int64_t integer_constant(std::string_view what);
  bool starts_constant() const;

  // source_lines.cpp
  void file();
  void loc();
  void section();
  void name_inlined_functions();
  SourceLine source_line();

  /// Guards the recursion of nested constructs against text that would exhaust the stack.
  struct Depth {
    Depth(Parser& parser, const Token& at) : parser(parser) {
      if (++parser.depth_ > 200) parser.fail(at, "more than 200 nested brackets or scopes");
    }
    ~Depth() { --parser.depth_; }
    Parser& parser;
  };

  Module& module_;
  Lexer lexer_;
  Token token_;
  int depth_ = 0;

  std::unordered_map<std::string_view, uint32_t> variables_, functions_;  // of the module
  std::unordered_map<std::string_view, const Opcode*> opcodes_;

  Function* function_ = nullptr;  // whose body is being read
  std::vector<Scope> scopes_;     // innermost last

  uint32_t location_ = kNone;  // of the next instruction
  std::unordered_map<uint64_t, uint32_t>
      location_at_;                                // hash of file, line, column -> latest Location in this function
  std::vector<std::string_view> location_labels_;  // by Location: label of the function's name
  std::unordered_map<std::string_view, std::string> debug_strings_;
};

}  // namespace emu::ptx
