// Functions that every program may call: printf, malloc, free, assert. The text that printf leaves is what the C
// library's printf makes of the same values (CUDA programming guide, "Formatted Output").

#include <algorithm>
#include <cstdio>
#include <initializer_list>

#include "tests/probes/everywhere.h"

namespace {

const std::string kPrint =
    ".extern .func (.param .b32 status) vprintf (.param .b64 format, .param .b64 arguments);\n"
    ".extern .func (.param .b64 address) malloc (.param .b64 bytes);\n"
    ".extern .func free (.param .b64 address);\n"
    ".extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);\n";

/// `.global .b8 name[] = "text"`.
std::string text(const std::string& name, const std::string& value) {
  std::string out = ".global .align 1 .b8 " + name + "[" + std::to_string(value.size() + 1) + "] = {";
  for (unsigned char c : value) out += std::to_string(c) + ", ";
  return out + "0};\n";
}

/// printf(format, ...): the arguments lie at `at` in local memory.
std::string print(const std::string& format, const std::string& result = "%r9") {
  return "{ .param .b64 a; .param .b64 b; .param .b32 c; mov.u64 %d8, " + format +
         "; cvta.global.u64 %d8, %d8; mov.u64 %d9, at; cvta.local.u64 %d9, %d9; st.param.b64 [a], %d8; st.param.b64 "
         "[b], "
         "%d9; call (c), vprintf, (a, b); ld.param.b32 " +
         result + ", [c]; }\n";
}

std::string printed(const std::string& scope, const std::string& body, const probe::Shape& shape = {},
                    const emu::Options& options = {}) {
  probe::Machine machine(options);
  std::optional<emu::Fault> fault = machine.launch(
      probe::kernel(
          ".local .align 8 .b8 at[512];\nmov.u64 %d1, at;\nmov.u32 %r0, %tid.x;\nld.param.u64 %d0, [p0];\n" + body, 1,
          kPrint + scope),
      {machine.buffer(std::vector<uint32_t>(64))}, shape);
  if (fault) FAIL(fault->report);
  return machine.device().take_printed();
}

constexpr probe::Shape kOne{.block = {1, 1, 1}};

template <class... T>
std::string by_library(const char* format, T... values) {
  char buffer[1024];
  std::snprintf(buffer, sizeof buffer, format, values...);
  return buffer;
}

}  // namespace

TEST_CASE("printf: every conversion, as the C library prints it") {
  const std::string format =
      "%d|%i|%u|%o|%x|%X|%c|%%|%lld|%llu|%llx|%f|%e|%G|%g|%a|%s|%p|%5d|%-5d|%05d|%+d|% "
      "d|%#x|%.3f|%10.2f|%.2s|%*d|%-*d|\n";
  std::string body;
  size_t at = 0;
  auto put32 = [&](int64_t value) {
    at = (at + 3) / 4 * 4;
    body += "mov.u32 %r1, " + std::to_string(value) + ";\nst.local.b32 [%d1+" + std::to_string(at) + "], %r1;\n";
    at += 4;
  };
  auto put64 = [&](const std::string& value) {
    at = (at + 7) / 8 * 8;
    body += "mov.b64 %d2, " + value + ";\nst.local.b64 [%d1+" + std::to_string(at) + "], %d2;\n";
    at += 8;
  };
  for (int64_t v : std::initializer_list<int64_t>{-7, -8, 4000000000ll, 8, 255, 255, 65}) put32(v);
  put64("-5000000000"), put64("18446744073709551615U"), put64("0x123456789abcdef");
  for (int i = 0; i < 5; ++i) put64("0d400921FB54442D18");  // pi
  body += "mov.u64 %d3, word;\ncvta.global.u64 %d3, %d3;\n";
  put64("%d3");
  put64("0x1234");
  for (int64_t v : std::initializer_list<int64_t>{42, 42, 42, 42, 42, 42}) put32(v);
  put64("0d400921FB54442D18"), put64("0d400921FB54442D18");
  put64("%d3");
  put32(6), put32(42);
  put32(9), put32(3);
  constexpr double kPi = 3.141592653589793;
  std::string wanted =
      by_library(format.c_str(), -7, -8, 4000000000u, 8u, 255u, 255u, 65, -5000000000ll, 18446744073709551615ull,
                 0x123456789abcdefull, kPi, kPi, kPi, kPi, kPi, "three", reinterpret_cast<void*>(0x1234), 42, 42, 42,
                 42, 42, 42u, kPi, kPi, "three", 6, 42, 9, 3);
  std::string got = printed(text("format", format) + text("word", "three"),
                            body + print("format") + "st.global.b32 [%d0], %r9;\n", kOne);
  CHECK(got == wanted);
}

TEST_CASE("printf returns how many arguments it took; a null string is (null); a precision must be a number") {
  probe::Machine machine;
  uint64_t out = machine.buffer(std::vector<uint32_t>(4));
  std::optional<emu::Fault> fault = machine.launch(
      probe::kernel(".local .align 8 .b8 at[64];\nld.param.u64 %d0, [p0];\nmov.u64 %d1, at;\nmov.u64 %d2, 0;\n"
                    "st.local.b64 [%d1], %d2;\nst.local.b64 [%d1+8], %d2;\n" +
                        print("two", "%r1") + print("none", "%r2") + print("width", "%r3") + print("precision", "%r4") +
                        "st.global.v4.b32 [%d0], {%r1, %r2, %r3, %r4};\n",
                    1,
                    kPrint + text("two", "[%s] %d\n") + text("none", "plain\n") + text("width", "<%*d>\n") +
                        text("precision", "<%8.*f %d>\n")),
      {out}, kOne);
  if (fault) FAIL(fault->report);
  CHECK(machine.device().take_printed() == "[(null)] 0\nplain\n<0>\n<%8.*f 0>\n");
  CHECK(machine.device().take_printed().empty());
  CHECK(machine.read<uint32_t>(out, 4) == std::vector<uint32_t>{2, 0, 2, 1});  // as an H200
}

TEST_CASE("threads print whole texts, lanes of a warp in order, the same ones under every schedule") {
  const std::string body = R"(
    mov.u32 %r1, %ctaid.x;
    st.local.v2.b32 [%d1], {%r1, %r0};
)" + print("line");
  const probe::Shape shape{.grid = {5, 1, 1}, .block = {40, 1, 1}};
  std::vector<std::string> by_setting;
  for (const probe::Setting& setting : probe::settings(4)) {
    std::string got = printed(text("line", "%u:%u\n"), body, shape, setting.options);
    for (int cta = 0; cta < 5; ++cta) {
      // A warp's lanes print one after the other.
      for (int lane = 0; lane < 31; ++lane) {
        std::string pair = "\n" + by_library("%d:%d\n%d:%d\n", cta, lane, cta, lane + 1);
        CHECK(("\n" + got).find(pair) != std::string::npos);
      }
      CHECK(("\n" + got).find("\n" + by_library("%d:39\n", cta)) != std::string::npos);
    }
    CHECK(std::count(got.begin(), got.end(), '\n') == 200);
    by_setting.push_back(got);
  }
  // Host threads change nothing.
  CHECK(by_setting[0] == by_setting[2]);
  CHECK(by_setting[1] == by_setting[3]);
}

namespace {

std::string allocate(const std::string& bytes, const std::string& result) {
  return "{ .param .b64 a; .param .b64 c; st.param.b64 [a], " + bytes + "; call (c), malloc, (a); ld.param.b64 " +
         result + ", [c]; }\n";
}
const std::string kFree = "{ .param .b64 a; st.param.b64 [a], %d2; call free, (a); }\n";

}  // namespace

TEST_CASE("malloc gives each thread memory of its own, free takes it back, and null is given when there is no more") {
  std::vector<uint32_t> got = probe::everywhere<uint32_t>(probe::kernel(R"(
    .reg .u64 %size;
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    mad.lo.u32 %r0, %r1, 64, %r0;
    mad.wide.u32 %d1, %r0, 8, %d0;
    mov.u64 %size, 100;
    mov.u32 %r4, 0;
  again:
)" + allocate("%size", "%d2") + R"(
    st.b32 [%d2], %r0;
    st.b32 [%d2+96], %r0;
    bar.sync 0;
    ld.b32 %r2, [%d2];
    ld.b32 %r3, [%d2+96];
    add.u32 %r2, %r2, %r3;
)" + kFree + R"(
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, 200;
    @%p1 bra again;
    mov.u64 %size, 9000000;
)" + allocate("%size", "%d3") + R"(
    setp.eq.u64 %p0, %d3, 0;
    selp.u32 %r3, 1, 0, %p0;
    st.global.v2.b32 [%d1], {%r2, %r3};
)",
                                                                        1, kPrint),
                                                          2 * 128, {}, {.grid = {2, 1, 1}, .block = {64, 1, 1}}, 2);
  for (uint32_t thread = 0; thread < 128; ++thread) {
    CHECK(got[2 * thread] == 2 * thread);
    CHECK(got[2 * thread + 1] == 1);  // more than the heap's 8 MB
  }
}

TEST_CASE("free of what malloc did not give") {
  probe::Ending ending =
      probe::failure(probe::kernel("mov.u64 %d3, 64;\n" + allocate("%d3", "%d2") + kFree + kFree, 1, kPrint), {},
                     {.apart = "what a chip does then is not documented"});
  CHECK(ending.error == 719);
  CHECK_THAT(ending.report, test::contains("free("));
}

TEST_CASE("assert: a line for each thread in CUDA's words, and cudaErrorAssert") {
  // The format is what CUDA's programming guide shows: file:line: function: block: [..], thread: [..] Assertion `..`
  // failed.
  probe::Ending ending = probe::failure(
      probe::kernel(
          R"(
    mov.u32 %r0, %laneid;
    and.b32 %r1, %r0, 15;
    setp.ne.u32 %p0, %r1, 3;
    @%p0 bra fine;
    mov.u64 %d1, message;
    cvta.global.u64 %d1, %d1;
    mov.u64 %d2, file;
    cvta.global.u64 %d2, %d2;
    mov.u64 %d3, name;
    cvta.global.u64 %d3, %d3;
    { .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s;
      st.param.b64 [m], %d1; st.param.b64 [f], %d2; st.param.b32 [l], 19; st.param.b64 [n], %d3; st.param.b64 [s], 1;
      call __assertfail, (m, f, l, n, s); }
  fine:
)",
          1, kPrint + text("message", "should_be_one") + text("file", "test.cu") + text("name", "void testAssert()")),
      {}, {.block = {8, 4, 1}});
  CHECK(ending.error == 710);
  CHECK(ending.report.find(
            "test.cu:19: void testAssert(): block: [0,0,0], thread: [3,0,0] Assertion `should_be_one` failed.\n"
            "test.cu:19: void testAssert(): block: [0,0,0], thread: [3,2,0] Assertion `should_be_one` failed.\n") == 0);
}
