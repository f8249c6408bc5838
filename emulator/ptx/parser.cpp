#include "emulator/ptx/parser.h"

#include <algorithm>

#include "emulator/ptx/parsing.h"

namespace emu::ptx {

ParseError::ParseError(std::string_view name, uint32_t line, uint32_t column, const std::string& message)
    : std::runtime_error(std::string(name) + ":" + std::to_string(line) + ":" + std::to_string(column) + ": " +
                         message),
      line(line),
      column(column) {}

Module parse(std::string text, std::string_view name) {
  if (const size_t nul = text.find('\0'); nul != std::string::npos) text.resize(nul);
  Module module;
  module.name = name;
  module.text = std::make_shared<const std::string>(std::move(text));
  Parser(module).run();
  return module;
}

Token Parser::take() {
  const Token result = token_;
  token_ = lexer_.next();
  return result;
}

bool Parser::accept(char symbol) {
  if (!token_.is(symbol)) return false;
  take();
  return true;
}

bool Parser::accept_word(std::string_view word) {
  if (!token_.is_word(word)) return false;
  take();
  return true;
}

void Parser::fail_expected(std::string_view what) const {
  std::string found;
  switch (token_.kind) {
    case Token::Kind::end:
      found = "the end of the text";
      break;
    case Token::Kind::word:
      found = "'." + std::string(token_.text) + "'";
      break;
    case Token::Kind::string:
      found = "\"" + std::string(token_.text) + "\"";
      break;
    default:
      found = "'" + std::string(token_.text) + "'";
  }
  fail(token_, "expected " + std::string(what) + ", found " + found);
}

void Parser::expect(char symbol, std::string_view where) {
  if (!accept(symbol)) fail_expected("'" + std::string(1, symbol) + "' " + std::string(where));
}

Token Parser::expect_identifier(std::string_view what) {
  if (token_.kind != Token::Kind::identifier) fail_expected(what);
  return take();
}

void Parser::run() {
  take();
  header();
  while (token_.kind != Token::Kind::end) module_statement();
  name_inlined_functions();
}

void Parser::header() {
  if (!accept_word("version")) fail_expected(".version at the beginning of a PTX module");
  const Token version = token_;
  const size_t dot = version.text.find('.');
  if (version.kind != Token::Kind::real || dot == std::string_view::npos) fail_expected("a version such as 9.0");
  take();
  module_.version_major = std::atoi(std::string(version.text.substr(0, dot)).c_str());
  module_.version_minor = std::atoi(std::string(version.text.substr(dot + 1)).c_str());

  if (!accept_word("target")) fail_expected(".target after .version");
  module_.target = expect_identifier("an architecture such as sm_100f").text;
  while (accept(',')) module_.target_options.push_back(expect_identifier("an option of .target").text);
  if (accept_word("address_size")) {
    const Token at = token_;
    module_.address_size = static_cast<int>(integer_constant("32 or 64"));
    if (module_.address_size != 64)
      fail(at, "addresses of " + std::to_string(module_.address_size) +
                   " bits: expected .address_size 64, the only one CUDA 13 has");
  } else {
    fail_expected(".address_size 64 after .target");
  }
}

void Parser::module_statement() {
  Linkage linkage;
  for (; token_.kind == Token::Kind::word; take()) {
    if (token_.text == "extern") {
      linkage.is_extern = true;
    } else if (token_.text == "visible") {
      linkage.is_visible = true;
    } else if (token_.text == "weak") {
      linkage.is_weak = true;
    } else if (token_.text == "common") {
      linkage.is_common = true;
    } else {
      break;
    }
  }
  if (token_.is_word("entry") || token_.is_word("func")) {
    function(linkage.is_extern, linkage.is_visible, linkage.is_weak);
  } else if (token_.kind == Token::Kind::word && space_from_word(token_.text)) {
    declaration(linkage);
  } else if (token_.is_word("file")) {
    file();
  } else if (token_.is_word("section")) {
    section();
  } else if (token_.is_word("alias")) {
    alias();
  } else if (token_.is_word("pragma")) {
    pragma(module_.pragmas, 0);
  } else if (token_.is_word("loc")) {
    loc();
  } else if (token_.is('@')) {
    // @@DWARF lines of PTX before 2.0: debug data
    take();
    if (!token_.is('@')) fail_expected("'@' of @@DWARF");
    lexer_.skip_line();
    take();
  } else {
    fail_expected("a function, a variable or another directive of the module");
  }
}

void Parser::skip_braces() {
  expect('{', "to open a block");
  for (int open = 1; open > 0;) {
    if (token_.kind == Token::Kind::end) fail_expected("'}' to close the block");
    const Token token = take();
    open += token.is('{') - token.is('}');
  }
}

void Parser::pragma(std::vector<Pragma>& into, uint32_t instruction) {
  take();
  do {
    if (token_.kind != Token::Kind::string) fail_expected("the text of a pragma in quotes");
    into.push_back({take().text, instruction});
  } while (accept(','));
  expect(';', "after .pragma");
}

void Parser::alias() {
  take();
  const auto known = [&](const Token& name) {
    const auto found = functions_.find(name.text);
    if (found == functions_.end()) fail(name, "the function '" + std::string(name.text) + "' is not declared");
    return found->second;
  };
  const uint32_t name = known(expect_identifier("the name of a function"));
  expect(',', "between the names of .alias");
  module_.functions[name].alias_of = known(expect_identifier("the name of a function"));
  expect(';', "after .alias");
}

void Parser::parameter_list(Function& function, bool returns) {
  if (!accept('(')) return;
  if (accept(')')) return;
  do {
    if (token_.kind != Token::Kind::word) fail_expected(".param or .reg");
    const std::optional<Space> space = space_from_word(token_.text);
    if (space != Space::param && (space != Space::reg || function.is_entry)) {
      fail_expected(function.is_entry ? ".param" : ".param or .reg");
    }
    const Shape shape = this->shape(true);
    const Token name = expect_identifier("the name of a parameter");
    Variable variable = declarator(shape, name);
    if (shape.space == Space::reg) {
      variable.reg = add_registers(name.text, shape.type, shape.vector);
      const Name entry{Name::Kind::reg, variable.reg, shape.vector};
      if (!scopes_.back().names.emplace(name.text, entry).second)
        fail(name, "two parameters have the name '" + std::string(name.text) + "'");
      function.variables.push_back(std::move(variable));
    } else {
      declare_variable(std::move(variable), name);
    }
    ++(returns ? function.return_count : function.parameter_count);
  } while (accept(','));
  expect(')', "to close the parameters");
}

void Parser::function(bool is_extern, bool is_visible, bool is_weak) {
  Function function;
  function.is_entry = take().text == "entry";
  function.is_extern = is_extern;
  function.is_visible = is_visible;
  function.is_weak = is_weak;
  function_ = &function;
  open_scope();

  Shape ignored;
  if (accept_word("attribute")) attribute(ignored);
  if (!function.is_entry) parameter_list(function, true);
  const Token name = expect_identifier("the name of a function");
  function.name = name.text;
  function.line = name.line;
  parameter_list(function, false);
  // Parameters stand before returned values in the text's order of use, behind them in ours: names keep their meaning
  // by index.
  if (function.return_count > 0) {
    const uint32_t returns = function.return_count, parameters = function.parameter_count;
    std::rotate(function.variables.begin(), function.variables.begin() + returns, function.variables.end());
    for (auto& [_, entry] : scopes_.back().names) {
      if (entry.kind == Name::Kind::variable)
        entry.index = entry.index < returns ? entry.index + parameters : entry.index - returns;
    }
  }
  if (function.is_entry) {
    // Launch parameters live in a block of their own, not in the frame of the thread.
    function.entry_parameter_bytes = function.param_frame_bytes;
    function.param_frame_bytes = scopes_.back().param_frame_top = 0;
    function.param_frame_align = 1;
  }
  tuning(function);

  const auto [entry, fresh] = functions_.emplace(name.text, static_cast<uint32_t>(module_.functions.size()));
  const uint32_t index = entry->second;
  if (fresh) {
    Function& slot = module_.functions.emplace_back();
    slot.name = function.name;
    slot.line = function.line;
    slot.is_prototype = true;
  }
  if (token_.is('{')) {
    if (!module_.functions[index].is_prototype) {
      fail(name, "the function '" + std::string(name.text) + "' is defined twice (first on line " +
                     std::to_string(module_.functions[index].line) + ")");
    }
    const Token open = take();
    body(function, open);
    function.alias_of = module_.functions[index].alias_of;
    module_.functions[index] = std::move(function);
  } else {
    expect(';', "or '{' after the head of a function");
    function.is_prototype = true;
    if (module_.functions[index].is_prototype) {
      function.alias_of = module_.functions[index].alias_of;
      module_.functions[index] = std::move(function);
    }
    scopes_.clear();
    function_ = nullptr;
  }
}

std::string_view Parser::until_directive() {
  // A directive that nobody here knows, as written: up to the next one, the body or the end.
  const char* const start = token_.text.data() - 1;
  const char* end = start;
  do {
    const Token token = take();
    end = token.text.data() + token.text.size();
    if (token.kind == Token::Kind::string) ++end;
  } while (token_.kind != Token::Kind::word && token_.kind != Token::Kind::end && !token_.is('{') && !token_.is(';'));
  return {start, static_cast<size_t>(end - start)};
}

void Parser::tuning(Function& function) {
  const auto count = [&](std::string_view what) { return number(what, UINT32_MAX - 1); };
  const auto extent = [&](std::string_view what) {
    Tuning::Extent result;
    result.x = count(what);
    if (accept(',')) result.y = count(what);
    if (accept(',')) result.z = count(what);
    return result;
  };
  Tuning& tuning = function.tuning;
  while (token_.kind == Token::Kind::word) {
    if (accept_word("maxntid")) {
      tuning.maxntid = extent("the extent in .maxntid");
    } else if (accept_word("reqntid")) {
      tuning.reqntid = extent("the extent in .reqntid");
    } else if (accept_word("reqnctapercluster")) {
      tuning.reqnctapercluster = extent("the extent in .reqnctapercluster");
    } else if (accept_word("minnctapersm")) {
      tuning.minnctapersm = count("the count in .minnctapersm");
    } else if (accept_word("maxnctapersm")) {
      tuning.maxnctapersm = count("the count in .maxnctapersm");
    } else if (accept_word("maxnreg")) {
      tuning.maxnreg = count("the count in .maxnreg");
    } else if (accept_word("maxclusterrank")) {
      tuning.maxclusterrank = count("the count in .maxclusterrank");
    } else if (accept_word("explicitcluster")) {
      tuning.explicitcluster = true;
    } else if (accept_word("blocksareclusters")) {
      tuning.blocksareclusters = true;
    } else if (accept_word("noreturn")) {
      tuning.noreturn = true;
    } else if (token_.is_word("pragma")) {
      pragma(function.pragmas, 0);
    } else {
      tuning.others.push_back(until_directive());
    }
  }
}

}  // namespace emu::ptx
