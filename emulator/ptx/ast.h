#pragma once
// What parsing a PTX module yields. Names are resolved: a register operand is an index into its function's registers, a
// label is the index of the instruction it stands before, a symbol is an index into the variables of the function or of
// the module. Nested { } scopes have dissolved into flat lists: two scopes that both declare `p` gave two registers.
//
// Text (names, opcodes, modifiers) is std::string_view into the module's own copy of the source, which lives as long as
// the Module; so a Module can be moved but not copied.
//
// Source of the grammar: PTX ISA, sections 4 (syntax), 5 (state spaces, types, variables), 6 (operands), 7 (ABI), 11
// (directives).

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace emu::ptx {

constexpr uint32_t kNone = UINT32_MAX;  ///< "no such index"

/// State spaces in which something can be declared.
enum class Space : uint8_t { reg, global, constant, shared, local, param, tex };
std::string_view to_string(Space);

/// Fundamental and opaque types, as declarations spell them. Types that only instructions have (.bf16, .tf32, .e4m3x2,
/// ...) stay modifiers.
enum class Type : uint8_t {
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  f16x2,
  f32,
  f64,
  texref,
  samplerref,
  surfref
};
std::string_view to_string(Type);
/// Without the leading dot ("u32"). Empty when it is not one of the above.
std::optional<Type> type_from_name(std::string_view name);
/// Bits of a value: 1 for pred, 64 for the opaque types (a handle).
uint32_t bits(Type);
inline uint32_t bytes(Type type) {
  return type == Type::pred ? 1 : bits(type) / 8;
}

/// A register that the function's text uses. `%r<100>` makes entries only for the names that occur. A vector register
/// (.reg .v4 .f32 v) makes one entry an element: v.x, v.y, v.z, v.w, at successive indices.
struct Register {
  std::string_view name;
  Type type = Type::b32;
  char component = 0;  ///< 'x', 'y', 'z', 'w' for an element of a vector register, whose name is then `name`
};

/// A place in a variable's initial bytes that holds an address.
struct Relocation {
  uint64_t offset = 0;       ///< into Variable::initial
  uint32_t bytes = 8;        ///< width of the field
  bool is_function = false;  ///< `index` is into Module::functions, else into Module::variables
  uint32_t index = 0;
  int64_t addend = 0;
  bool generic = false;          ///< generic(symbol): the generic address, else the address in the symbol's own space
  uint64_t mask = ~uint64_t{0};  ///< 0xFF00(symbol): the masked bits, shifted down to bit 0
};

/// A variable of the module or of a function, or a parameter.
struct Variable {
  std::string_view name;
  Space space = Space::global;
  Type type = Type::b8;  ///< of one element
  uint32_t vector = 1;   ///< 2, 4 (or 8) for .v2, .v4 (.v8)
  std::vector<uint64_t>
      dimensions;      ///< outermost first; empty for a scalar; a leading 0 where the size was left open: name[]
  uint32_t align = 1;  ///< bytes; at least the natural alignment of the type
  uint64_t bytes = 0;  ///< all elements; 0 when the size was left open (dynamic shared memory)
  bool is_extern = false, is_visible = false, is_weak = false, is_common = false;
  bool is_managed = false;  ///< .attribute(.managed)

  std::vector<std::byte> initial;  ///< empty: all zero (or undefined in shared and local); else `bytes` long
  std::vector<Relocation> relocations;

  /// Parameters with .ptr: what they point to.
  bool is_pointer = false;
  std::optional<Space> pointer_space;  ///< none: generic
  uint32_t pointer_align = 4;

  /// .local and .param of a function: offset in that function's frame of that space (see Function). kNone otherwise.
  uint32_t offset = kNone;
  /// Parameters of a .func declared in .reg space: their register. kNone otherwise.
  uint32_t reg = kNone;
  uint32_t line = 0;  ///< of the PTX text
};

struct SymbolRef {
  bool in_function = false;  ///< index into Function::variables, else into Module::variables
  uint32_t index = 0;
  bool operator==(const SymbolRef&) const = default;
};

/// Operand of an instruction. Which fields count depends on `kind`.
struct Operand {
  enum class Kind : uint8_t {
    reg,       ///< index; negated for !p; selector for %r.b0, %r.h1
    special,   ///< name ("%tid"), component ('x' or 0). WARP_SZ is an integer
    integer,   ///< value (any constant expression, folded; 64-bit two's complement)
    real,      ///< real_bits, real_width: 32 for 0fXXXXXXXX; 64 for 0dXXXXXXXXXXXXXXXX and decimal (round it to the
               ///< instruction's type)
    symbol,    ///< symbol + value: the address of a variable, or a .param/.reg argument of a call
    label,     ///< index of an instruction
    function,  ///< index into Module::functions
    sink,      ///< _
    address,   ///< [base + value, children...]: base in address_base; children are what follows the first comma: tensor
               ///< coordinates [map, {c0,c1}], texture [tex, sampler, {x,y}]
    vector,    ///< {a, b, ...}: children. The whole of a vector register too
    pair,      ///< a|b: two children
    list,      ///< (a, b, ...) of a call: children
    targets,   ///< index into Function::branch_targets (brx.idx)
    calltargets,  ///< index into Function::call_targets
    prototype,    ///< index into Function::prototypes
  };
  enum class Base : uint8_t {
    none,    ///< [immediate]
    reg,     ///< [%rd1+16]
    symbol,  ///< [name+16]
    element  ///< name[%r1+2], an old form: the variable's address + register * scale + value
  };

  Kind kind = Kind::sink;
  bool negated = false;
  char component = 0;
  Base address_base = Base::none;
  uint8_t real_width = 0;
  SymbolRef symbol;
  uint32_t index = 0;  ///< register, instruction, function, table; an address's base (or index) register
  uint32_t scale = 0;  ///< Base::element: bytes of an element
  union {
    int64_t value = 0;  ///< immediate; offset added to a symbol or an address
    uint64_t real_bits;
  };
  std::string_view name;      ///< special registers
  std::string_view selector;  ///< "b0", "h1", "b3210", ... (video instructions)
  std::vector<Operand> children;
};

/// An opcode with its modifiers, as spelled. Equal spellings of a module share one object, so a decoder may cache by
/// its address.
struct Opcode {
  std::string text;                         ///< "mbarrier.try_wait.parity.shared::cta.b64"
  std::string_view name;                    ///< "mbarrier"
  std::vector<std::string_view> modifiers;  ///< "try_wait", "parity", "shared::cta", "b64"
  bool has(std::string_view modifier) const {
    for (std::string_view m : modifiers)
      if (m == modifier) return true;
    return false;
  }
};

struct Instruction {
  const Opcode* opcode = nullptr;  ///< owned by the Module
  uint32_t guard = kNone;          ///< predicate register
  bool guard_negated = false;      ///< @!p
  uint32_t line = 0;               ///< of the PTX text, from 1
  uint32_t location = kNone;       ///< index into Module::locations
  /// As written, from left to right. `call` is normalised to four: list of returns (may be empty), callee (function or
  /// reg), list of arguments (may be empty), and prototype, calltargets or sink.
  std::vector<Operand> operands;

  std::string_view name() const { return opcode->name; }
  std::span<const std::string_view> modifiers() const { return opcode->modifiers; }
  bool has(std::string_view modifier) const { return opcode->has(modifier); }
};

/// .callprototype: the shape of an indirect call.
struct Prototype {
  std::string_view name;
  std::vector<Variable> returns, parameters;
  bool noreturn = false;
};

/// Directives before the body of an .entry or .func.
struct Tuning {
  struct Extent {
    uint32_t x = 1, y = 1, z = 1;
  };
  std::optional<Extent> maxntid, reqntid, reqnctapercluster;
  std::optional<uint32_t> minnctapersm, maxnctapersm, maxnreg, maxclusterrank;
  bool explicitcluster = false, blocksareclusters = false, noreturn = false;
  std::vector<std::string_view> others;  ///< directives that are none of these, as written
};

struct Pragma {
  std::string_view text;     ///< between the quotes
  uint32_t instruction = 0;  ///< the one it stands before; 0 for those before the body too
};

struct Label {
  std::string_view name;
  uint32_t instruction = 0;
};

struct Function {
  std::string_view name;
  bool is_entry = false;
  bool is_prototype = false;  ///< declared, never defined in this module (vprintf, __assertfail, ...)
  bool is_extern = false, is_visible = false, is_weak = false;
  uint32_t alias_of = kNone;  ///< .alias: index of the function that has the code
  uint32_t line = 0;
  Tuning tuning;
  std::vector<Pragma> pragmas;

  std::vector<Register> registers;
  /// Parameters first, then returned values, then what bodies declare, scopes dissolved. Spaces: param, local, shared,
  /// global, const; reg for parameters of that kind.
  std::vector<Variable> variables;
  uint32_t parameter_count = 0;  ///< variables[0, parameter_count)
  uint32_t return_count = 0;     ///< variables[parameter_count, parameter_count + return_count)

  /// Of an .entry: bytes of the block of launch parameters, in which its parameters have their offsets.
  uint32_t entry_parameter_bytes = 0;
  /// Per thread: a .func's parameters and returned values, and the .param variables of bodies (those of disjoint scopes
  /// overlap).
  uint32_t param_frame_bytes = 0, param_frame_align = 1;
  uint32_t local_frame_bytes = 0, local_frame_align = 1;

  /// Ends in an instruction that never falls through: the parser adds `ret` when the text does not.
  std::vector<Instruction> body;
  std::vector<Label> labels;                          ///< by instruction, for reports
  std::vector<std::vector<uint32_t>> branch_targets;  ///< .branchtargets: instruction indices
  std::vector<std::vector<uint32_t>> call_targets;    ///< .calltargets: function indices
  std::vector<Prototype> prototypes;

  std::span<const Variable> parameters() const { return {variables.data(), parameter_count}; }
  std::span<const Variable> returns() const { return {variables.data() + parameter_count, return_count}; }
  bool has_code() const { return !body.empty(); }
};

/// One place in CUDA source. `file` is an index into Module::files, kNone when unknown.
struct SourceLine {
  uint32_t file = kNone, line = 0, column = 0;
};

/// From .loc: where an instruction comes from, through the functions that were inlined.
struct Location {
  SourceLine innermost;         ///< the wrapper's line
  SourceLine outermost;         ///< the kernel's line; equal to innermost when nothing was inlined
  std::string_view function;    ///< inlined function that `innermost` is in, mangled; empty when nothing was inlined
  uint32_t inlined_at = kNone;  ///< index of the Location of the call, one step outwards
};

struct Module {
  Module() = default;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;

  std::string name;  ///< what messages call the text (identifier of the fatbin entry, file name)
  int version_major = 0, version_minor = 0;
  std::string_view target;                       ///< "sm_100f"
  std::vector<std::string_view> target_options;  ///< "debug", "texmode_independent", ...
  int address_size = 32;

  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<Pragma> pragmas;
  std::vector<std::string> files;  ///< source files of .file
  std::vector<Location> locations;

  const Function* function(std::string_view name) const;
  const Variable* variable(std::string_view name) const;
  /// "file.cu:12" or "" when there is none.
  std::string describe(const SourceLine& line) const;

  std::shared_ptr<const std::string> text;  ///< the PTX; everything above points into it
  std::deque<Opcode> opcodes;               ///< distinct spellings
  std::deque<std::string> strings;          ///< names that do not stand in the text as they are
};

}  // namespace emu::ptx
