// Instructions and their operands: what the parser makes of each form of PTX ISA sections 4.3, 6 and 9.7.12.

#include <bit>

#include "tests/catch.h"
#include "tests/unit/ptx_text.h"

using namespace emu::ptx;
using Kind = Operand::Kind;
using Base = Operand::Base;
using test::entry;
using test::kernel;

namespace {

std::string register_name(const Function& f, uint32_t index) {
  return std::string(f.registers.at(index).name);
}

}  // namespace

TEST_CASE("an opcode splits into its name and whole modifiers") {
  const Module m = kernel(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
      "[%r1], [%rd1, {%r2, "
      "%r3}], [%r4], 5, %rd2;\n"
      "tcgen05.cp.cta_group::1.64x128b.warpx2::02_13 [%r1], %rd1;\n"
      "ld .global .u32 %r1, [a];\n"
      "made.up::thing.1x2 %r1;");
  const auto& body = entry(m).body;
  CHECK(body[0].name() == "cp");
  CHECK(body[0].opcode->modifiers == std::vector<std::string_view>{"async", "bulk", "tensor", "2d", "shared::cluster",
                                                                   "global", "mbarrier::complete_tx::bytes",
                                                                   "multicast::cluster", "L2::cache_hint"});
  CHECK(body[1].opcode->modifiers == std::vector<std::string_view>{"cp", "cta_group::1", "64x128b", "warpx2::02_13"});
  CHECK(body[2].opcode->text == "ld.global.u32");  // spaces inside do not matter
  CHECK(body[3].opcode->text == "made.up::thing.1x2");
  CHECK(body[3].has("up::thing"));
  CHECK_FALSE(body[3].has("up"));
}

TEST_CASE("equal spellings share one opcode") {
  const Module m = kernel("add.u32 %r1, %r2, %r3; add.u32 %r1, %r2, 4; add .u32 %r1, %r2, 4; add.s32 %r1, %r2, 4;");
  const auto& body = entry(m).body;
  CHECK(body[0].opcode == body[1].opcode);
  CHECK(body[0].opcode == body[2].opcode);
  CHECK(body[0].opcode != body[3].opcode);
}

TEST_CASE("a module keeps its text when it is moved") {
  Module first = kernel("add.u32 %r1, %r2, %tid.x;");
  const Module second = std::move(first);
  CHECK(entry(second).body[0].opcode->text == "add.u32");
  CHECK(entry(second).body[0].operands[2].name == "%tid");
}

TEST_CASE("immediates") {
  const auto operand = [](const std::string& text) {
    return entry(kernel("x %r1, " + text + ";")).body[0].operands[1];
  };
  const auto integer = [&](const std::string& text) {
    const Operand o = operand(text);
    CHECK(o.kind == Kind::integer);
    return o.value;
  };
  CHECK(integer("-1") == -1);
  CHECK(integer("0xFEFFFFF0") == 0xFEFFFFF0);
  CHECK(integer("0b101") == 5);
  CHECK(integer("017") == 15);
  CHECK(integer("4294967295U") == 4294967295);
  CHECK(integer("0xFFFFFFFFFFFFFFFF") == -1);
  CHECK(integer("WARP_SZ") == 32);
  CHECK(integer("-WARP_SZ+2") == -30);
  CHECK(integer("(1+2)*3") == 9);
  CHECK(integer("~0 & 0xff << 2") == 0x3fc);
  CHECK(integer("!5 + 3") == 3);
  CHECK(integer("1 ? 4 : 5") == 4);
  CHECK(integer("0 || 0 ? 4 : 2 > 1 ? 6 : 7") == 6);
  CHECK(integer("-7 / 2") == -3);
  CHECK(integer("-7 % 4") == -3);
  CHECK(integer("0xFFFFFFFFFFFFFFFF / 2") == INT64_MAX);  // unsigned, as it does not fit s64
  CHECK(integer("-16 >> 2") == -4);
  CHECK(integer("(.u64)-16 >> 60") == 15);
  CHECK(integer("(.s64)-1 < 0") == 1);
  CHECK(integer("(.u64)-1 < 0") == 0);
  CHECK(integer("1.5 < 2.0") == 1);
  CHECK(integer("5 ^ 1 | 8 & 12") == 12);
  CHECK(integer("1 == 1 && 2 != 3") == 1);

  const auto real = [&](const std::string& text) {
    const Operand o = operand(text);
    CHECK(o.kind == Kind::real);
    CHECK(o.real_width == 64);
    return std::bit_cast<double>(o.real_bits);
  };
  CHECK(real("1.5") == 1.5);
  CHECK(real("-1.5e-3") == -1.5e-3);
  CHECK(real(".5") == 0.5);
  CHECK(real("1.") == 1);
  CHECK(real("1.e5") == 1e5);
  CHECK(real("2e3") == 2000);
  CHECK(real("1.5 + 2.0 * 4.0") == 9.5);
  CHECK(real("0d3FF8000000000000") == 1.5);
  CHECK(real("1e999") == std::numeric_limits<double>::infinity());

  const Operand single = operand("0f3fC00000");
  CHECK(single.kind == Kind::real);
  CHECK(single.real_width == 32);
  CHECK(single.real_bits == 0x3fc00000);
  CHECK(operand("0F7FC00001").real_bits == 0x7fc00001);  // a NaN keeps its bits
}

TEST_CASE("registers, special registers and sinks") {
  const Module m =
      kernel("x %r8, _, %tid.x, %ntid.z, %clock64, %laneid, %r1.b0, %r2.h1, %cluster_ctarank, %tid, %r3.b7610;");
  const Function& f = entry(m);
  const auto& o = f.body[0].operands;
  CHECK(o[0].kind == Kind::reg);
  CHECK(register_name(f, o[0].index) == "%r8");
  CHECK(f.registers[o[0].index].type == Type::b32);
  CHECK(o[1].kind == Kind::sink);
  CHECK((o[2].kind == Kind::special && o[2].name == "%tid" && o[2].component == 'x'));
  CHECK((o[3].name == "%ntid" && o[3].component == 'z'));
  CHECK((o[4].kind == Kind::special && o[4].name == "%clock64" && o[4].component == 0));
  CHECK((o[6].kind == Kind::reg && o[6].selector == "b0"));
  CHECK(o[7].selector == "h1");
  CHECK(o[8].name == "%cluster_ctarank");
  CHECK((o[9].kind == Kind::special && o[9].component == 0));
  CHECK(o[10].selector == "b7610");
}

TEST_CASE("only registers that occur are listed, once each") {
  const Module m = kernel("x %r5, %r5, %r3; y %r3;");
  const Function& f = entry(m);
  std::vector<std::string> names;
  for (const Register& r : f.registers) names.emplace_back(r.name);
  CHECK(names == std::vector<std::string>{"v", "v", "v", "v", "%r5", "%r3"});
}

TEST_CASE("a vector register is four registers") {
  const Module m = kernel("x v.x, v.w, v.g, v;");
  const Function& f = entry(m);
  const auto& o = f.body[0].operands;
  const uint32_t first = o[0].index;
  CHECK(f.registers[first].component == 'x');
  CHECK(f.registers[first].type == Type::f32);
  CHECK(o[1].index == first + 3);
  CHECK(o[2].index == first + 1);
  REQUIRE(o[3].kind == Kind::vector);
  REQUIRE(o[3].children.size() == 4);
  for (uint32_t i = 0; i < 4; ++i) CHECK((o[3].children[i].kind == Kind::reg && o[3].children[i].index == first + i));
}

TEST_CASE("vectors, pairs and negated predicates") {
  const Module m = kernel("x {%r1, _, 5, %r2}, %p1|%p2, _|%p3, %p1 | _, !%p2;");
  const Function& f = entry(m);
  const auto& o = f.body[0].operands;
  REQUIRE(o.size() == 5);
  CHECK((o[0].kind == Kind::vector && o[0].children.size() == 4 && o[0].children[1].kind == Kind::sink &&
         o[0].children[2].value == 5));
  CHECK((o[1].kind == Kind::pair && register_name(f, o[1].children[1].index) == "%p2"));
  CHECK((o[2].kind == Kind::pair && o[2].children[0].kind == Kind::sink));
  CHECK((o[3].kind == Kind::pair && o[3].children[1].kind == Kind::sink));
  CHECK((o[4].kind == Kind::reg && o[4].negated && register_name(f, o[4].index) == "%p2"));
}

TEST_CASE("addresses") {
  const Module m = kernel(
      "x [%rd1], [%rd1+16], [%rd1+-16], [a+4 - 4*2 + 4], [a+8], [s], [16], [%rd2, {%r1, 7}], [%rd2, %rd3, {%r1}], "
      "[p1+16];");
  const Function& f = entry(m);
  const auto& o = f.body[0].operands;
  CHECK((o[0].kind == Kind::address && o[0].address_base == Base::reg && register_name(f, o[0].index) == "%rd1" &&
         o[0].value == 0));
  CHECK(o[1].value == 16);
  CHECK(o[2].value == -16);
  CHECK((o[3].address_base == Base::symbol && o[3].value == 0 && m.variables[o[3].symbol.index].name == "a" &&
         !o[3].symbol.in_function));
  CHECK(o[4].value == 8);
  CHECK(m.variables[o[5].symbol.index].name == "s");
  CHECK((o[6].address_base == Base::none && o[6].value == 16));
  REQUIRE((o[7].kind == Kind::address && o[7].children.size() == 1));
  CHECK((o[7].children[0].kind == Kind::vector && o[7].children[0].children[1].value == 7));
  CHECK((o[8].children.size() == 2 && o[8].children[0].kind == Kind::reg));
  CHECK((o[9].symbol.in_function && f.variables[o[9].symbol.index].name == "p1" && o[9].value == 16));
}

TEST_CASE("addresses of variables as values, and the old way to name an element") {
  const Module m = kernel(
      "mov.u64 %rd1, a; mov.u64 %rd1, a+12; ld.global.u32 %r1, a[3]; mov.u64 %rd1, m[2]; ld.global.u32 %r1, a[%r2+1]; "
      "mov.u64 %rd1, f;");
  const Function& f = entry(m);
  const auto last = [&](size_t i) { return f.body[i].operands.back(); };
  CHECK((last(0).kind == Kind::symbol && last(0).value == 0));
  CHECK((last(1).kind == Kind::symbol && last(1).value == 12));
  CHECK((last(2).kind == Kind::symbol && last(2).value == 12));      // four-byte elements
  CHECK((last(3).kind == Kind::symbol && last(3).value == 2 * 32));  // rows of eight of them
  CHECK((last(4).kind == Kind::address && last(4).address_base == Base::element && last(4).scale == 4 &&
         last(4).value == 4));
  CHECK(register_name(f, last(4).index) == "%r2");
  CHECK((last(5).kind == Kind::function && m.functions[last(5).index].name == "f"));
}

TEST_CASE("guards") {
  const Module m = kernel("@%p1 x; @!%p2 y; @ ! %p3 z; w;");
  const Function& f = entry(m);
  CHECK((register_name(f, f.body[0].guard) == "%p1" && !f.body[0].guard_negated));
  CHECK((register_name(f, f.body[1].guard) == "%p2" && f.body[1].guard_negated));
  CHECK((register_name(f, f.body[2].guard) == "%p3" && f.body[2].guard_negated));
  CHECK(f.body[3].guard == kNone);
}

TEST_CASE("labels become instruction indices, forwards and backwards") {
  const Module m = kernel("top: x; bra bottom; middle: second: y; bra.uni top; bottom:");
  const Function& f = entry(m);
  CHECK(test::spellings(f) == std::vector<std::string>{"x", "bra", "y", "bra.uni", "ret"});
  CHECK((f.body[1].operands[0].kind == Kind::label && f.body[1].operands[0].index == 4));
  CHECK(f.body[3].operands[0].index == 0);
  REQUIRE(f.labels.size() == 4);
  CHECK((f.labels[1].name == "middle" && f.labels[1].instruction == 2));
  CHECK((f.labels[2].name == "second" && f.labels[2].instruction == 2));
}

TEST_CASE("scopes repeat names without mixing them up") {
  // As two inlined copies of the same inline assembly; the outer p is another one again.
  const Module m = kernel(
      ".reg .pred p;\n"
      "{ .reg .pred p; again: try p; @p bra done; bra again; done: }\n"
      "{ .reg .pred p; again: try p; @p bra done; bra again; done: }\n"
      "use p;");
  const Function& f = entry(m);
  REQUIRE(f.body.size() == 8);
  const uint32_t first = f.body[0].operands[0].index, second = f.body[3].operands[0].index,
                 outer = f.body[6].operands[0].index;
  CHECK(first != second);
  CHECK(first != outer);
  CHECK(second != outer);
  CHECK(f.body[1].guard == first);
  CHECK(f.body[4].guard == second);
  CHECK(f.body[1].operands[0].index == 3);  // done of the first scope: the next instruction after it
  CHECK(f.body[2].operands[0].index == 0);
  CHECK(f.body[4].operands[0].index == 6);
  CHECK(f.body[5].operands[0].index == 3);
}

TEST_CASE("the inner label wins, an outer one is visible inside") {
  const Module m = kernel("{ bra L; { bra L; bra outer; L: x; } y; L: z; } outer:");
  const Function& f = entry(m);
  CHECK(test::spellings(f) == std::vector<std::string>{"bra", "bra", "bra", "x", "y", "z", "ret"});
  CHECK(f.body[0].operands[0].index == 5);
  CHECK(f.body[1].operands[0].index == 3);
  CHECK(f.body[2].operands[0].index == 6);
}

TEST_CASE("registers hide outer ones only from where they are declared") {
  const Module m = kernel("{ x %r1; .reg .f32 %r1; x %r1; } x %r1;");
  const Function& f = entry(m);
  CHECK(f.registers[f.body[0].operands[0].index].type == Type::b32);
  CHECK(f.registers[f.body[1].operands[0].index].type == Type::f32);
  CHECK(f.body[2].operands[0].index == f.body[0].operands[0].index);
}

TEST_CASE("calls have four operands, whatever is left out") {
  const Module m = kernel(
      ".param .b32 pa; .param .b32 rv;\n"
      "call.uni (rv), f, (pa);\n"
      "call (_), f, (5);\n"
      "call f0;\n"
      "call (), f0, ();\n"
      "proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .align 8 .b8 _[24]) .noreturn;\n"
      "call (rv), %rd1, (pa), proto;\n"
      "list: .calltargets f, f0;\n"
      "call (rv), %rd1, (pa), list;");
  const Function& f = entry(m);
  for (size_t i = 0; i < 6; ++i) {
    REQUIRE(f.body[i].operands.size() == 4);
    CHECK(f.body[i].operands[0].kind == Kind::list);
    CHECK(f.body[i].operands[2].kind == Kind::list);
  }
  const auto& first = f.body[0].operands;
  CHECK((first[0].children.size() == 1 && first[0].children[0].kind == Kind::symbol &&
         first[0].children[0].symbol.in_function));
  CHECK((first[1].kind == Kind::function && m.functions[first[1].index].name == "f"));
  CHECK(f.variables[first[2].children[0].symbol.index].name == "pa");
  CHECK(first[3].kind == Kind::sink);
  CHECK(f.body[1].operands[0].children[0].kind == Kind::sink);
  CHECK(f.body[1].operands[2].children[0].value == 5);
  CHECK(f.body[2].operands[2].children.empty());
  CHECK(f.body[4].operands[1].kind == Kind::reg);
  REQUIRE(f.body[4].operands[3].kind == Kind::prototype);
  const Prototype& prototype = f.prototypes[f.body[4].operands[3].index];
  CHECK(prototype.noreturn);
  CHECK(prototype.returns.size() == 1);
  REQUIRE(prototype.parameters.size() == 2);
  CHECK((prototype.parameters[1].bytes == 24 && prototype.parameters[1].align == 8));
  REQUIRE(f.body[5].operands[3].kind == Kind::calltargets);
  CHECK(m.functions[f.call_targets[f.body[5].operands[3].index][1]].name == "f0");
}

TEST_CASE("tables of branch targets may name labels of outer scopes") {
  const Module m = kernel("{ table: .branchtargets A, B, A; brx.idx %r1, table; } A: x; B: y;");
  const Function& f = entry(m);
  REQUIRE(f.body[0].operands[1].kind == Kind::targets);
  CHECK(f.branch_targets[f.body[0].operands[1].index] == std::vector<uint32_t>{1, 2, 1});
}

TEST_CASE("a body that does not end in a return gets one") {
  const auto body = [](const std::string& text) {
    const Module m = test::module(".entry k() { .reg .pred p; " + text + " }");
    return test::spellings(entry(m));
  };
  CHECK(body("") == std::vector<std::string>{"ret"});
  CHECK(body("x;") == std::vector<std::string>{"x", "ret"});
  CHECK(body("exit;") == std::vector<std::string>{"exit"});
  CHECK(body("trap;") == std::vector<std::string>{"trap"});
  CHECK(body("@p ret;") == std::vector<std::string>{"ret", "ret"});
  CHECK(body("L: bra L;") == std::vector<std::string>{"bra"});
  CHECK(body("bra L; ret; L:") == std::vector<std::string>{"bra", "ret", "ret"});
}

TEST_CASE("lines, comments, pragmas and line markers") {
  const Module m = kernel("/* two\nlines */ x; // y;\n.pragma \"nounroll\";\n# 12 \"file.cu\"\nz;");
  const Function& f = entry(m);
  CHECK(f.body[0].line == 8);
  CHECK(f.body[1].name() == "z");
  CHECK(f.body[1].line == 11);
  REQUIRE(f.pragmas.size() == 1);
  CHECK((f.pragmas[0].text == "nounroll" && f.pragmas[0].instruction == 1));
}

TEST_CASE("text ends at the first zero byte") {
  const std::string padded = test::kHead + ".entry k() { ret; }" + std::string("\0\0\0", 3);
  CHECK(parse(padded, "padded").functions.size() == 1);
}
