// What the parser says about text that is not PTX: place, what was expected, what stands there.

#include "tests/catch.h"
#include "tests/unit/ptx_text.h"

using namespace emu::ptx;

namespace {

std::string of_module(const std::string& text) {
  return test::error_of([&] { test::module(text); });
}
/// `text` begins at line 7, column 1.
std::string of_body(const std::string& text) {
  return test::error_of([&] { test::kernel(text); });
}
std::string of_text(const std::string& text) {
  return test::error_of([&] { parse(text, "test.ptx"); });
}

}  // namespace

TEST_CASE("errors of the header") {
  CHECK(of_text("") == "test.ptx:1:1: expected .version at the beginning of a PTX module, found the end of the text");
  CHECK(of_text("int main() {}") == "test.ptx:1:1: expected .version at the beginning of a PTX module, found 'int'");
  CHECK(of_text(".version 9") == "test.ptx:1:10: expected a version such as 9.0, found '9'");
  CHECK(of_text(".version 9.0\n.address_size 64") ==
        "test.ptx:2:1: expected .target after .version, found '.address_size'");
  CHECK(of_text(".version 9.0 .target sm_100f .address_size 32") ==
        "test.ptx:1:44: addresses of 32 bits: expected .address_size 64, the only one CUDA 13 has");
}

TEST_CASE("errors of tokens") {
  CHECK(of_body("x 0f3F80000;") ==
        "test.ptx:7:3: the floating-point constant 0f3F80000 needs 8 hexadecimal digits and has 7");
  CHECK(of_body("x 0d3F800000;") ==
        "test.ptx:7:3: the floating-point constant 0d3F800000 needs 16 hexadecimal digits and has 8");
  CHECK(of_body("x 12abc;") == "test.ptx:7:3: malformed number 12: 'abc' does not belong to it");
  CHECK(of_body("x 0x;") == "test.ptx:7:3: a number ends after its prefix: expected digits");
  CHECK(of_body("x 018;") == "test.ptx:7:3: 018 has a digit that base 8 does not have");
  CHECK(of_body("x 0b12;") == "test.ptx:7:3: 0b12 has a digit that base 2 does not have");
  CHECK(of_body("x 18446744073709551616;") == "test.ptx:7:3: 18446744073709551616 does not fit 64 bits");
  CHECK(of_body("x 'a';") == "test.ptx:7:3: the character ''' means nothing in PTX");
  CHECK(of_body("/* x") == "test.ptx:7:1: this comment has no end: expected */");
  CHECK(of_body(".pragma \"x;\n") == "test.ptx:7:9: this string has no end: expected \" on the same line");
  CHECK(of_body("#define A 3\n") ==
        "test.ptx:7:1: preprocessor directives are not part of what PTX assemblers take; preprocess the text first");
}

TEST_CASE("errors of instructions") {
  CHECK(of_body("add.u32 %r1, %r2\nmov.u32 %r1, %r2;") ==
        "test.ptx:8:1: expected ',' or ';' after an operand of add.u32, found 'mov'");
  CHECK(of_body("add.u32 %r1,, %r2;") == "test.ptx:7:13: expected an operand, found ','");
  CHECK(of_body("ld.global.u32 %r1, [a;") == "test.ptx:7:22: expected ']' to close the address, found ';'");
  CHECK(of_body("ld.global.u32 %r1, [];") ==
        "test.ptx:7:21: expected a register, a variable or a constant as the address, found ']'");
  CHECK(of_body("ld.global.u32 %r1, [nothing];") == "test.ptx:7:21: 'nothing' is not declared");
  CHECK(of_body("ld.global.u32 %r1, [f];") ==
        "test.ptx:7:21: 'f' cannot be the base of an address: expected a register or a variable");
  CHECK(of_body("mov.b64 %rd1, {%r1, %r2;") == "test.ptx:7:24: expected '}' to close the vector, found ';'");
  CHECK(of_body("mov.b64 %rd1, {%r1, nothing};") == "test.ptx:7:21: 'nothing' is not declared");
  CHECK(of_body("mov.u32 %r1, nothing;") == "test.ptx:7:14: 'nothing' is not declared");
  CHECK(of_body("mov.u32 %r1, %r9;") == "test.ptx:7:14: the register %r9 is not declared: %r<9> ends at %r8");
  CHECK(of_body("mov.u32 %r1, %tid.q;") ==
        "test.ptx:7:18: .q is no component of a special register: expected .x, .y, .z or .w");
  CHECK(of_body("mov.u32 %r1, %r2.x;") == "test.ptx:7:17: .x selects nothing of the scalar register %r2");
  CHECK(of_body("mov.f32 %r1, v.q;") == "test.ptx:7:15: .q is not an element of the vector register v, which has 4");
  CHECK(of_body("x !a;") == "test.ptx:7:3: ! stands before a predicate register or a constant only");
  CHECK(of_body("@%r1 x;") == "test.ptx:7:2: the guard '%r1' is not a register of type .pred");
  CHECK(of_body("@%p1 { x; }") == "test.ptx:7:6: expected an instruction after its guard, found '{'");
  CHECK(of_body(";") == "test.ptx:7:1: expected an instruction, a label, a declaration or '}', found ';'");
  CHECK(of_body("x 1 / 0;") == "test.ptx:7:5: division by zero in a constant expression");
  CHECK(of_body("x 1.5 + 2;") ==
        "test.ptx:7:7: this operator has an integer on one side and a floating-point constant on the other");
  CHECK(of_body("x 1.5 << 2.0;") == "test.ptx:7:7: the operator << takes integers only");
  CHECK(of_body("x p0[2];") == "test.ptx:7:5: 'p0' is not an array");
}

TEST_CASE("errors of labels and calls") {
  CHECK(of_body("bra nowhere;") == "test.ptx:7:5: 'nowhere' is not declared");
  CHECK(of_body("bra L; { L: x; }") == "test.ptx:7:5: 'L' is not declared");
  CHECK(of_body("bra;") == "test.ptx:7:1: bra takes one operand, a label");
  CHECK(of_body("L: @%p1 bra L, %r1;") == "test.ptx:7:9: bra takes one operand, a label");
  CHECK(of_body("brx.idx %r1;") == "test.ptx:7:1: brx.idx takes two operands, an index and a table");
  CHECK(of_body("bra 5;") == "test.ptx:7:5: expected a label, found '5'");
  CHECK(of_body("L: x; L: y;") == "test.ptx:7:7: the label 'L' is defined twice in the same scope");
  CHECK(of_body("brx.idx %r1, L; L: x;") == "test.ptx:7:14: 'L' is not a .branchtargets table");
  CHECK(of_body("T: .branchtargets L; brx.idx %r1, T;") == "test.ptx:7:19: 'L' is not declared");
  CHECK(of_body("bra T; T: .branchtargets L; L: x;") == "test.ptx:7:5: 'T' is not a label to branch to");
  CHECK(of_body("call g, ();") == "test.ptx:7:6: the function 'g' is not declared");
  CHECK(of_body("call f, (nothing);") == "test.ptx:7:10: 'nothing' is not declared");
  CHECK(of_body("L: call %rd1, (5), L;") == "test.ptx:7:20: 'L' is not a .callprototype or .calltargets");
}

TEST_CASE("errors of declarations") {
  CHECK(of_body(".reg .b32 x; .reg .b32 x;") == "test.ptx:7:24: 'x' is declared twice in the same scope");
  CHECK(of_body(".reg .b32 x") == "test.ptx:8:1: expected ';' after the declaration, found 'ret'");
  CHECK(of_body(".reg .b32 x<y>;") == "test.ptx:7:13: expected a count, found 'y'");
  CHECK(of_body(".reg x;") == "test.ptx:7:6: expected a type before 'x' in a declaration in .reg");
  CHECK(of_body(".local .u32 x = 5;") == "test.ptx:7:17: only variables in .global and .const can have initial values");
  CHECK(of_module(".global .u32 x; .global .u32 x;") == "test.ptx:4:30: 'x' is defined twice (first on line 4)");
  CHECK(of_module(".func f() { ret; }\n.func f() { ret; }") ==
        "test.ptx:5:7: the function 'f' is defined twice (first on line 4)");
  CHECK(of_module(".global .b32 .u32 x;") == "test.ptx:4:14: a second type in one declaration: .u32");
  CHECK(of_module(".global .bf16 x;") ==
        "test.ptx:4:9: expected a type, .align or .v2/.v4 in a declaration, found .bf16");
  CHECK(of_module(".global .pred x;") == "test.ptx:4:1: variables of type .pred exist in .reg only");
  CHECK(of_module(".global .align 3 .u32 x;") == "test.ptx:4:16: the alignment is 3: expected a power of two");
  CHECK(of_module(".global .b8 x[-1];") == "test.ptx:4:15: the size of an array is -1");
  CHECK(of_module(".global .b8 x[2][];") == "test.ptx:4:18: only the first dimension of an array can be left open");
  CHECK(
      of_module(".global .b8 x[];") ==
      "test.ptx:4:13: the array 'x' has no size: only .extern arrays and those with initial values can leave it open");
  CHECK(of_body(".local .b8 x[600000];") ==
        "test.ptx:7:12: 'x' ends at byte 600000 of its frame; a thread has 524288 bytes of local memory");
  CHECK(of_module(".global .b8 x[2000000000] = {1};") ==
        "test.ptx:4:29: 'x' has 2000000000 bytes; variables with initial values can have 1073741824");
  CHECK(of_module(".global .b8 x[1000000000][1000000000];") ==
        "test.ptx:4:27: the array 'x' is larger than an address space");
  CHECK(of_module(".local .u32 x;") == "test.ptx:4:1: a variable of the module cannot be in .local");
  CHECK(of_module(".reg .u32 x;") == "test.ptx:4:1: registers can be declared inside functions only");
  CHECK(of_module(".global .u32 x[2] = {1, 2, 3};") ==
        "test.ptx:4:28: more initial values than the 2 elements that 'x' has in this dimension");
  CHECK(of_module(".global .b8 x[2][2] = {1, 2};") ==
        "test.ptx:4:24: expected '{' before the initial values of an array, found '1'");
  CHECK(of_module(".global .v4 .u32 x = {1, 2, 3};") ==
        "test.ptx:4:30: expected ',' between the elements of a vector, found '}'");
  CHECK(of_module(".global .f32 x = 1;") ==
        "test.ptx:4:18: the initial value of a .f32 variable must be a floating-point constant");
  CHECK(of_module(".global .u32 x = 1.5;") == "test.ptx:4:18: the initial value of a .u32 variable must be an integer");
  CHECK(of_module(".global .u64 x = y;") == "test.ptx:4:18: 'y' is not declared");
  CHECK(of_module(".entry k(.reg .b32 x) { ret; }") == "test.ptx:4:10: expected .param, found '.reg'");
  CHECK(of_module(".func k(.reg .b32 x, .reg .b32 x) { ret; }") == "test.ptx:4:32: two parameters have the name 'x'");
  CHECK(of_module(".alias a, b;") == "test.ptx:4:8: the function 'a' is not declared");
}

TEST_CASE("errors of blocks that do not end") {
  CHECK(of_module(".entry k() { ret;") == "test.ptx:4:18: the body of 'k', opened on line 4, has no end: expected '}'");
  CHECK(of_module(".entry k() {\n{ ret; ") == "test.ptx:5:8: the scope opened on line 5 has no end: expected '}'");
  CHECK(of_module(".section .debug_info { .b8 1") ==
        "test.ptx:4:29: expected '}' to close the block, found the end of the text");
  CHECK(of_module("}") ==
        "test.ptx:4:1: expected a function, a variable or another directive of the module, found '}'");
}

TEST_CASE("depth of nesting is bounded, so that no text exhausts the stack") {
  CHECK_THAT(of_body("x " + std::string(100000, '(') + "1;"),
             test::contains("more than 200 nested brackets or scopes"));
  CHECK_THAT(of_body(std::string(100000, '{')), test::contains("more than 200 nested brackets or scopes"));
  CHECK_THAT(of_body("x " + std::string(100000, '-') + "1;"),
             test::contains("more than 200 nested brackets or scopes"));
}

TEST_CASE("text cut off anywhere is refused or parsed, never worse") {
  const std::string whole =
      test::kHead +
      ".global .u32 a[2] = {1, 2}; .visible .entry k(.param .u64 q) .maxntid 128 { .reg .b32 %r<4>; .reg .pred p;\n"
      "{ .reg .b64 x; L: ld.global.v2.u32 {%r1, %r2}, [a+4]; @!p bra L; mov.u64 x, a; }\n"
      ".loc 1 2 3, function_name s, inlined_at 1 4 5\nsetp.eq.f32 p|p, %r1, 0f3F800000; ret; }\n"
      ".file 1 \"x.cu\"\n.section .debug_str { s: .b8 65\n.b8 0\n }\n";
  size_t refused = 0;
  for (size_t length = 0; length <= whole.size(); ++length) refused += of_text(whole.substr(0, length)) != "parsed";
  CHECK(refused > whole.size() / 2);
  CHECK(of_text(whole) == "parsed");
}
