// Variables, initial values, parameters and directives. Which initialisers are legal was tried on ptxas 13.0.

#include <cstring>

#include "tests/catch.h"
#include "tests/unit/ptx_text.h"

using namespace emu::ptx;
using test::module;

namespace {

template <class T>
std::vector<T> values(const Variable& variable) {
  REQUIRE(variable.initial.size() % sizeof(T) == 0);
  std::vector<T> result(variable.initial.size() / sizeof(T));
  std::memcpy(result.data(), variable.initial.data(), variable.initial.size());
  return result;
}

Variable only(const std::string& text) {
  Module m = module(text);
  REQUIRE(!m.variables.empty());
  return m.variables.back();
}

}  // namespace

TEST_CASE("header of a module") {
  const Module m = parse(".version 8.7\n.target sm_90a, debug\n.address_size 64\n", "x");
  CHECK(m.version_major == 8);
  CHECK(m.version_minor == 7);
  CHECK(m.target == "sm_90a");
  CHECK(m.target_options == std::vector<std::string_view>{"debug"});
  CHECK(m.address_size == 64);
}

TEST_CASE("linkage, spaces, types and alignment") {
  const Module m = module(
      ".visible .global .align 16 .b8 bytes[3]; .weak .const .f64 d; .common .global .v4 .f32 v; .extern .shared "
      ".align 1024 .b8 dynamic[];\n"
      ".shared .u16 word; .global .attribute(.managed) .align 8 .b8 managed[4]; .global .u32 x, y[2], z; .global "
      ".align 2 .u32 loose; .global .b128 wide;");
  const auto& v = m.variables;
  CHECK(
      (v[0].is_visible && v[0].align == 16 && v[0].bytes == 3 && v[0].space == Space::global && v[0].type == Type::b8));
  CHECK((v[1].is_weak && v[1].space == Space::constant && v[1].align == 8 && v[1].bytes == 8));
  CHECK((v[2].is_common && v[2].vector == 4 && v[2].bytes == 16 && v[2].align == 16));
  CHECK((v[3].is_extern && v[3].bytes == 0 && v[3].align == 1024 && v[3].dimensions == std::vector<uint64_t>{0}));
  CHECK((v[4].space == Space::shared && v[4].bytes == 2 && v[4].align == 2));
  CHECK(v[5].is_managed);
  CHECK((v[7].name == "y" && v[7].bytes == 8));
  CHECK(v[8].name == "z");
  CHECK(v[9].align == 2);
  CHECK((v[10].bytes == 16 && v[10].align == 16));
  CHECK(m.variable("managed") == &v[5]);
  CHECK(m.variable("nothing") == nullptr);
}

TEST_CASE("initial values of numbers") {
  CHECK(values<uint32_t>(only(".global .u32 x = 5;")) == std::vector<uint32_t>{5});
  CHECK(values<int32_t>(only(".global .s32 x[3] = {-1, 2};")) == std::vector<int32_t>{-1, 2, 0});
  CHECK(values<uint8_t>(only(".global .u8 x = 300;")) == std::vector<uint8_t>{44});
  CHECK(values<uint64_t>(only(".global .u64 x = 0xFFFFFFFFFFFFFFFF;")) == std::vector<uint64_t>{~uint64_t{0}});
  CHECK(values<float>(only(".global .f32 x[2] = {1.5, 0f3F800000};")) == std::vector<float>{1.5f, 1.f});
  CHECK(values<float>(only(".global .b32 x = 1.5;")) == std::vector<float>{1.5f});
  CHECK(values<double>(only(".const .f64 x[2] = {0f3F800000, -2e5};")) == std::vector<double>{1, -2e5});
  CHECK(values<float>(only(".global .f32 x = 0d3FF8000000000000;")) == std::vector<float>{1.5f});
  CHECK(values<uint32_t>(only(".global .u32 x = 1 << 4 | 3;")) == std::vector<uint32_t>{19});
  CHECK(values<uint64_t>(only(".global .b128 x = 5;")) == std::vector<uint64_t>{5, 0});
  CHECK(only(".global .u32 x[2];").initial.empty());
}

TEST_CASE("initial values nest as the dimensions do, and decide a size left open") {
  CHECK(values<uint8_t>(only(".global .b8 x[2][3] = {{1}, {2, 3}};")) == std::vector<uint8_t>{1, 0, 0, 2, 3, 0});
  const Variable open = only(".global .u16 x[] = {1, 2, 3};");
  CHECK(open.bytes == 6);
  CHECK(open.dimensions == std::vector<uint64_t>{3});
  CHECK(values<uint16_t>(open) == std::vector<uint16_t>{1, 2, 3});
  CHECK(values<uint16_t>(only(".global .u16 x[][2] = {{1}, {2, 3}};")) == std::vector<uint16_t>{1, 0, 2, 3});
  CHECK(values<uint32_t>(only(".global .v2 .u32 x[2] = {{1, 2}, {3, 4}};")) == std::vector<uint32_t>{1, 2, 3, 4});
}

TEST_CASE("initial values that are addresses") {
  const Module m = module(
      ".global .u32 y[4]; .func f() { ret; }\n"
      ".global .u64 p[3] = {y, generic(y)+8, f}; .global .u8 bytes[] = {0xff(y), 0xff00(y), 7};");
  const auto& p = m.variable("p")->relocations;
  REQUIRE(p.size() == 3);
  CHECK((p[0].offset == 0 && p[0].bytes == 8 && !p[0].generic && p[0].addend == 0 &&
         m.variables[p[0].index].name == "y"));
  CHECK((p[1].offset == 8 && p[1].generic && p[1].addend == 8));
  CHECK((p[2].offset == 16 && p[2].is_function && m.functions[p[2].index].name == "f"));
  const Variable& bytes = *m.variable("bytes");
  REQUIRE(bytes.relocations.size() == 2);
  CHECK((bytes.relocations[0].bytes == 1 && bytes.relocations[0].mask == 0xff));
  CHECK((bytes.relocations[1].offset == 1 && bytes.relocations[1].mask == 0xff00));
  CHECK(values<uint8_t>(bytes) == std::vector<uint8_t>{0, 0, 7});
}

TEST_CASE("an extern declaration and its definition are one variable") {
  const Module m = module(
      ".extern .global .u32 x; .func f() { .reg .b32 r; ld.global.u32 r, [x]; ret; } .visible .global .u32 x = 5;");
  REQUIRE(m.variables.size() == 1);
  CHECK(!m.variables[0].is_extern);
  CHECK(values<uint32_t>(m.variables[0]) == std::vector<uint32_t>{5});
}

TEST_CASE("numbered variables") {
  const Module m = module(".global .u16 x<3>; .global .u64 p = x2;");
  REQUIRE(m.variables.size() == 4);
  CHECK(m.variables[2].name == "x2");
  CHECK(m.variables[3].relocations[0].index == 2);
}

TEST_CASE("parameters of a kernel lie in their block as the ABI says") {
  const Module m = module(
      ".visible .entry k(.param .u8 a, .param .align 64 .b8 map[128], .param .u64 .ptr .global .align 16 p, .param "
      ".u32 n, .param .f64 d, "
      ".param .u64 .ptr .align 4 q) { ret; }");
  const Function& f = *m.function("k");
  CHECK(f.is_entry);
  CHECK(f.is_visible);
  REQUIRE(f.parameter_count == 6);
  std::vector<uint32_t> offsets;
  for (const Variable& v : f.parameters()) offsets.push_back(v.offset);
  CHECK(offsets == std::vector<uint32_t>{0, 64, 192, 200, 208, 216});
  CHECK(f.entry_parameter_bytes == 224);
  CHECK(f.param_frame_bytes == 0);
  CHECK((f.variables[1].bytes == 128 && f.variables[1].align == 64));
  CHECK((f.variables[2].is_pointer && f.variables[2].pointer_space == Space::global &&
         f.variables[2].pointer_align == 16));
  CHECK((f.variables[5].is_pointer && !f.variables[5].pointer_space && f.variables[5].pointer_align == 4));
}

TEST_CASE("parameters and results of a function") {
  const Module m = module(
      ".extern .func (.param .b32 r) e(.param .b64 x, .param .b8 rest[]); .func g;\n"
      ".func (.param .b64 result) f(.param .b32 x, .param .align 8 .b8 y[12]) { .reg .b64 t; st.param.b64 [result], t; "
      "ret; }\n"
      ".func (.reg .b32 a, .reg .b32 b) swap(.reg .b32 c, .reg .v2 .b32 d) { mov.b32 a, d.y; mov.b32 b, c; ret; }");
  const Function& e = *m.function("e");
  CHECK((e.is_prototype && e.is_extern && e.return_count == 1 && e.parameter_count == 2 && !e.has_code()));
  CHECK(m.function("g")->is_prototype);
  const Function& f = *m.function("f");
  CHECK((f.parameter_count == 2 && f.return_count == 1));
  CHECK((f.parameters()[0].name == "x" && f.parameters()[1].name == "y" && f.returns()[0].name == "result"));
  CHECK(f.variables[f.body[0].operands[0].symbol.index].name == "result");
  // Each has its own place in the thread's frame.
  CHECK(f.param_frame_bytes == 8 + 4 + 4 + 12);
  CHECK((f.returns()[0].offset == 0 && f.parameters()[0].offset == 8 && f.parameters()[1].offset == 16));
  const Function& swap = *m.function("swap");
  CHECK((swap.parameter_count == 2 && swap.return_count == 2 && swap.param_frame_bytes == 0));
  CHECK(swap.registers[swap.returns()[0].reg].name == "a");
  CHECK(swap.body[0].operands[0].index == swap.returns()[0].reg);
  CHECK(swap.body[0].operands[1].index == swap.parameters()[1].reg + 1);
  CHECK(swap.body[1].operands[1].index == swap.parameters()[0].reg);
}

TEST_CASE("variables of bodies: frames, and the same name in two call sequences") {
  const Module m = module(
      ".func f(.param .b32 x) { ret; }\n"
      ".entry k() { .local .align 16 .b8 depot[20]; .local .u64 l; .shared .align 8 .b8 barrier[16]; .shared .u32 s;\n"
      "{ .param .b32 param0; .param .b64 param1; call f, (param0); }\n"
      "{ .param .align 16 .b8 param0[4]; call f, (param0); }\n"
      "ret; }");
  const Function& f = *m.function("k");
  REQUIRE(f.variables.size() == 7);
  CHECK((f.variables[0].space == Space::local && f.variables[0].offset == 0));
  CHECK(f.variables[1].offset == 24);
  CHECK((f.local_frame_bytes == 32 && f.local_frame_align == 16));
  CHECK((f.variables[2].space == Space::shared && f.variables[2].bytes == 16 && f.variables[2].offset == kNone));
  CHECK((f.variables[4].offset == 0 && f.variables[5].offset == 8 && f.variables[6].offset == 0));
  CHECK((f.param_frame_bytes == 16 && f.param_frame_align == 16));
  CHECK(f.body[0].operands[2].children[0].symbol.index == 4);
  CHECK(f.body[1].operands[2].children[0].symbol.index == 6);
}

TEST_CASE("a prototype and its definition are one function, known under the same index") {
  const Module m = module(
      ".func f(.param .b32 a); .func g() { .reg .b64 r; mov.u64 r, f; ret; } .func f(.param .b32 b) { trap; } .visible "
      ".func f(.param .b32 c);");
  REQUIRE(m.functions.size() == 2);
  CHECK(m.functions[0].has_code());
  CHECK(m.functions[0].parameters()[0].name == "b");
  CHECK(m.functions[1].body[0].operands[1].index == 0);
}

TEST_CASE("aliases") {
  const Module m = module(".visible .func b() { ret; } .visible .func a(); .alias a, b;");
  CHECK(m.functions[m.function("a")->alias_of].name == "b");
  CHECK(m.function("b")->alias_of == kNone);
}

TEST_CASE("directives before a body") {
  const Module m = module(
      ".entry a() .maxntid 128, 2 .minnctapersm 3 .maxnreg 64 .pragma \"nounroll\"; { ret; }\n"
      ".entry b() .reqntid 32 .explicitcluster .reqnctapercluster 2, 1, 1 .maxclusterrank 8 { ret; }\n"
      ".func c() .noreturn .abi_preserve 10 .later_than_this \"x\" 3 { trap; } .extern .func d() .noreturn;");
  const Tuning& a = m.function("a")->tuning;
  CHECK((a.maxntid->x == 128 && a.maxntid->y == 2 && a.maxntid->z == 1));
  CHECK((a.minnctapersm == 3u && a.maxnreg == 64u && !a.reqntid && !a.explicitcluster));
  CHECK(m.function("a")->pragmas.at(0).text == "nounroll");
  const Tuning& b = m.function("b")->tuning;
  CHECK((b.reqntid->x == 32 && b.explicitcluster && b.reqnctapercluster->x == 2 && b.maxclusterrank == 8u));
  const Tuning& c = m.function("c")->tuning;
  CHECK(c.noreturn);
  CHECK(c.others == std::vector<std::string_view>{".abi_preserve 10", ".later_than_this \"x\" 3"});
  CHECK(m.function("d")->tuning.noreturn);
}

TEST_CASE("textures and samplers are passed over") {
  const Module m = module(
      ".global .texref t; .global .samplerref s = {addr_mode_0 = wrap, filter_mode = nearest}; .global .surfref u; "
      ".global .u32 x;");
  CHECK(m.variables.size() == 4);
  CHECK(m.variables[0].type == Type::texref);
}

TEST_CASE("types know their size") {
  CHECK(bits(Type::pred) == 1);
  CHECK(bytes(Type::pred) == 1);
  CHECK(bytes(Type::b128) == 16);
  CHECK(bytes(Type::f16x2) == 4);
  for (std::string_view name : {"pred", "b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16",
                                "s32", "s64", "f16", "f16x2", "f32", "f64"}) {
    REQUIRE(type_from_name(name).has_value());
    CHECK(to_string(*type_from_name(name)) == name);
  }
  CHECK(!type_from_name("bf16"));
}
