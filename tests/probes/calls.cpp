// Calls of functions: frames, recursion, pointers to functions, where lanes meet again, the stack. What each program
// computes follows from the PTX ISA (call, ret, alloca, "Abstracting the ABI") and arithmetic; `activemask` shows who
// is together, which is the emulator's own promise.

#include "tests/probes/everywhere.h"

namespace {

constexpr uint32_t kAll = 0xFFFFFFFF;

/// A kernel that may call the functions of `scope`. p0: eight words for each lane, at %d1.
std::string program(const std::string& scope, const std::string& body) {
  return probe::kernel(R"(
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %d1, %r0, 32, %d0;
)" + body,
                       1, scope);
}

std::vector<uint32_t> run(const std::string& scope, const std::string& body, uint32_t threads = 32, int seeds = 8,
                          const char* apart = nullptr) {
  return probe::everywhere<uint32_t>(program(scope, body), 8 * threads, {}, {.block = {threads, 1, 1}, .apart = apart},
                                     seeds);
}

/// {call (result), name, (argument)} of 32 bits each.
std::string call(const std::string& name, const std::string& result, const std::string& argument,
                 const std::string& guard = "", const std::string& behind = "") {
  return "{ .param .b32 arg; .param .b32 back; st.param.b32 [arg], " + argument + "; " + guard + " call (back), " +
         name + ", (arg)" + behind + "; ld.param.b32 " + result + ", [back]; }\n";
}

const std::string kUnary = "(.param .b32 back) ";

/// sum(n) = n + sum(n - 1), sum(0) = 0.
const std::string kSum = ".func " + kUnary + R"(sum (.param .b32 n)
{
    .reg .pred %p; .reg .b32 %n, %m, %s;
    ld.param.b32 %n, [n];
    mov.u32 %s, 0;
    setp.eq.u32 %p, %n, 0;
    @%p bra done;
    sub.u32 %m, %n, 1;
    { .param .b32 arg; .param .b32 sub; st.param.b32 [arg], %m; call (sub), sum, (arg); ld.param.b32 %s, [sub]; }
    add.u32 %s, %s, %n;
  done:
    st.param.b32 [back], %s;
    ret;
}
)";

}  // namespace

TEST_CASE("recursion to a depth of each lane's own; all lanes are together behind the call") {
  std::vector<uint32_t> got = run(kSum, "and.b32 %r3, %r0, 7;\n" + call("sum", "%r1", "%r3") + R"(
    activemask.b32 %r2;
    st.global.v2.b32 [%d1], {%r1, %r2};
)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    CHECK(got[8 * lane] == lane % 8 * (lane % 8 + 1) / 2);
    CHECK(got[8 * lane + 1] == kAll);
  }
}

TEST_CASE("two functions that call each other a thousand deep") {
  auto half = [](const std::string& name, const std::string& other, int at_end) {
    return ".func " + kUnary + name +
           " (.param .b32 n)\n{\n .reg .pred %p; .reg .b32 %n, %s;\n ld.param.b32 %n, [n];\n" + " mov.u32 %s, " +
           std::to_string(at_end) + ";\n setp.eq.u32 %p, %n, 0;\n @%p bra done;\n sub.u32 %n, %n, 1;\n" +
           " { .param .b32 arg; .param .b32 sub; st.param.b32 [arg], %n; call (sub), " + other +
           ", (arg); ld.param.b32 %s, [sub]; }\n done:\n st.param.b32 [back], %s;\n ret;\n}\n";
  };
  std::string scope = ".func " + kUnary + "odd (.param .b32 n);\n" + half("even", "odd", 1) + half("odd", "even", 0);
  std::vector<uint32_t> got =
      run(scope, "add.u32 %r1, %r0, 1000;\n" + call("even", "%r2", "%r1") + "st.global.b32 [%d1], %r2;\n", 32, 2,
          "CUDA gives a thread 1 KB of stack unless it is asked for more");
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(got[8 * lane] == (lane % 2 == 0));
}

TEST_CASE("a recursion that never ends is a stack overflow, and the report says who called whom") {
  std::string scope =
      ".func deeper (.param .b32 n)\n{\n .reg .b32 %n;\n ld.param.b32 %n, [n];\n add.u32 %n, %n, 1;\n"
      " { .param .b32 arg; st.param.b32 [arg], %n; call deeper, (arg); }\n ret;\n}\n";
  probe::Ending ending =
      probe::failure(program(scope, "{ .param .b32 arg; st.param.b32 [arg], %r0; call deeper, (arg); }\n"), {},
                     {.apart = "what a chip does then is not documented"});
  CHECK(ending.error == 700);  // an H200, 512 KiB or not
  CHECK_THAT(ending.report, test::contains("stack overflow"));
  CHECK_THAT(ending.report, test::contains("512 KiB"));
  CHECK_THAT(ending.report, test::contains("in deeper, called at"));
  CHECK_THAT(ending.report, test::contains("of probe"));
  CHECK_THAT(ending.report, test::contains(" times"));
}

namespace {

const std::string kTable = ".func " + kUnary + R"(add_seven (.param .b32 n)
{ .reg .b32 %n; ld.param.b32 %n, [n]; add.u32 %n, %n, 7; st.param.b32 [back], %n; ret; }
)" + ".func " + kUnary + R"(triple (.param .b32 n)
{ .reg .b32 %n; ld.param.b32 %n, [n]; mul.lo.u32 %n, %n, 3; st.param.b32 [back], %n; ret; }
)" + ".func " + kUnary + R"(who (.param .b32 n)
{ .reg .b32 %n; activemask.b32 %n; st.param.b32 [back], %n; ret; }
.global .align 8 .u64 table[3] = {add_seven, triple, who};
)";

}  // namespace

TEST_CASE("calls through a table of functions: lanes of one target go together, and all meet behind the call") {
  std::vector<uint32_t> got = run(kTable,
                                  R"(
    rem.u32 %r1, %r0, 3;
    mov.u64 %d2, table;
    mad.wide.u32 %d2, %r1, 8, %d2;
    ld.global.u64 %d3, [%d2];
    proto: .callprototype (.param .b32 _) _ (.param .b32 _);
)" + call("%d3", "%r2", "%r0", "", ", proto") +
                                      R"(
    activemask.b32 %r3;
    st.global.v2.b32 [%d1], {%r2, %r3};
)",
                                  32, 8, "the ISA promises no meeting behind a call, and ptxas arranges none");
  uint32_t third = 0;
  for (uint32_t lane = 2; lane < 32; lane += 3) third |= 1u << lane;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    CHECK(got[8 * lane] == (lane % 3 == 0 ? lane + 7 : lane % 3 == 1 ? lane * 3 : third));
    CHECK(got[8 * lane + 1] == kAll);
  }
}

TEST_CASE("the address of a function in a register, and a list of the functions that a call may reach") {
  std::vector<uint32_t> got = run(kTable, R"(
    mov.u64 %d2, triple;
    mov.u64 %d3, add_seven;
    setp.lt.u32 %p0, %r0, 10;
    selp.b64 %d2, %d2, %d3, %p0;
    list: .calltargets triple, add_seven;
)" + call("%d2", "%r2", "%r0", "", ", list") + "st.global.b32 [%d1], %r2;\n");
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(got[8 * lane] == (lane < 10 ? 3 * lane : lane + 7));
}

TEST_CASE("calls through what is no function") {
  auto through = [](const std::string& pointer, const std::string& table) {
    return probe::failure(
        program(kTable,
                "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
                "list: .calltargets triple, add_seven;\n" +
                    pointer + call("%d2", "%r2", "%r0", "", ", " + table) + "st.global.b32 [%d1], %r2;\n"),
        {}, {.apart = "what a chip does then is not documented"});
  };
  // cudaErrorInvalidPc: "the device program counter wrapped its address space". What a chip does is not documented.
  probe::Ending null = through("mov.u64 %d2, 0;\n", "proto");
  CHECK(null.error == 718);
  CHECK_THAT(null.report, test::contains("a null pointer"));
  CHECK_THAT(through("mov.u64 %d2, 0x1234560;\n", "proto").report, test::contains("no function of this module"));
  CHECK_THAT(through("mov.u64 %d2, who;\n", "list").report, test::contains(".calltargets"));
}

TEST_CASE("a call that only some lanes make: the others wait behind it") {
  std::vector<uint32_t> got = run(kSum, R"(
    setp.ge.u32 %p0, %r0, 20;
    mov.u32 %r1, 77;
    and.b32 %r4, %r0, 7;
    { .param .b32 arg; .param .b32 back;
      st.param.b32 [arg], %r4;
      @%p0 call (back), sum, (arg);
      ld.param.b32 %r3, [back]; }
    @%p0 mov.u32 %r1, %r3;
    activemask.b32 %r2;
    st.global.v2.b32 [%d1], {%r1, %r2};
)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    CHECK(got[8 * lane] == (lane < 20 ? 77 : lane % 8 * (lane % 8 + 1) / 2));
    CHECK(got[8 * lane + 1] == kAll);
  }
}

TEST_CASE("lanes part and meet inside a function, share its registers, and return in two places") {
  // Odd lanes return early; the others meet again first. Word 0: result, 1: who is together behind the call.
  std::string scope =
      ".func (.param .b32 back) parts (.param .b32 n)\n"
      R"({
    .reg .pred %p, %q; .reg .b32 %n, %m, %s;
    ld.param.b32 %n, [n];
    add.u32 %s, %n, 1000;
    and.b32 %m, %n, 1;
    setp.eq.u32 %p, %m, 1;
    @%p bra odd;
    and.b32 %m, %n, 2;
    setp.eq.u32 %q, %m, 2;
    @%q bra two;
    add.u32 %s, %s, 100;
    bra both;
  two:
    add.u32 %s, %s, 200;
  both:
    activemask.b32 %m;
    popc.b32 %m, %m;
    mad.lo.u32 %s, %m, 100000, %s;
    st.param.b32 [back], %s;
    ret;
  odd:
    activemask.b32 %m;
    popc.b32 %m, %m;
    mad.lo.u32 %s, %m, 10000000, %s;
    st.param.b32 [back], %s;
    ret;
}
)";
  std::vector<uint32_t> got =
      run(scope, call("parts", "%r1", "%r0") + "activemask.b32 %r2;\nst.global.v2.b32 [%d1], {%r1, %r2};\n");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t wanted = lane + 1000;
    wanted += lane % 2 ? 16 * 10000000 : 16 * 100000 + (lane & 2 ? 200 : 100);
    CHECK(got[8 * lane] == wanted);
    CHECK(got[8 * lane + 1] == kAll);
  }
}

TEST_CASE("a guarded return, a guarded exit inside a function, and a barrier behind them") {
  // Lanes below 4 exit in the function; those below 8 return early.
  std::string scope =
      ".func (.param .b32 back) leave (.param .b32 n)\n"
      R"({
    .reg .pred %p, %q; .reg .b32 %n;
    ld.param.b32 %n, [n];
    setp.lt.u32 %p, %n, 4;
    setp.lt.u32 %q, %n, 8;
    st.param.b32 [back], 1;
    @%p exit;
    @%q ret;
    st.param.b32 [back], 2;
    ret;
}
)";
  std::vector<uint32_t> got = run(scope, R"(
    mov.u32 %r5, 0;
    st.global.v2.b32 [%d1], {%r5, %r5};
    and.b32 %r4, %r0, 31;
)" + call("leave", "%r1", "%r4") + R"(
    activemask.b32 %r2;
    bar.sync 0;
    st.global.v2.b32 [%d1], {%r1, %r2};
)",
                                  64);
  for (uint32_t thread = 0; thread < 64; ++thread) {
    uint32_t lane = thread % 32;
    CHECK(got[8 * thread] == (lane < 4 ? 0 : lane < 8 ? 1 : 2));
    CHECK(got[8 * thread + 1] == (lane < 4 ? 0 : 0xFFFFFFF0));
  }
}

TEST_CASE("structures, bytes and vectors as parameters and results") {
  // sum of the fields of {u8 a; s16 b; u32 c[3]; f64 d} and the structure back with c reversed.
  std::string scope =
      R"(.func (.param .align 16 .b8 back[40]) shuffle (.param .align 16 .b8 s[32], .param .b8 extra)
{
    .reg .b16 %a, %b, %e; .reg .b32 %c<6>, %t; .reg .f64 %d;
    ld.param.u8 %a, [s];
    ld.param.s16 %b, [s+2];
    ld.param.v2.b32 {%c0, %c1}, [s+8];
    ld.param.b32 %c2, [s+16];
    ld.param.f64 %d, [s+24];
    ld.param.s8 %e, [extra];
    cvt.u32.u16 %t, %a;
    cvt.s32.s16 %c3, %b;
    add.s32 %t, %t, %c3;
    add.s32 %t, %t, %c0;
    add.s32 %t, %t, %c1;
    add.s32 %t, %t, %c2;
    cvt.rzi.s32.f64 %c4, %d;
    add.s32 %t, %t, %c4;
    cvt.s32.s16 %c5, %e;
    add.s32 %t, %t, %c5;
    st.param.b8 [back], %a;
    st.param.b16 [back+2], %b;
    st.param.v2.b32 [back+8], {%c2, %c1};
    st.param.b32 [back+16], %c0;
    st.param.f64 [back+24], %d;
    st.param.b32 [back+32], %t;
    ret;
}
)";
  std::vector<uint32_t> got = run(scope, R"(
    .reg .f64 %f;
    cvt.rn.f64.u32 %f, %r0;
    cvt.u16.u32 %h0, %r0;
    neg.s16 %h1, %h0;
    mov.b16 %h2, -5;
    add.u32 %r1, %r0, 100;
    add.u32 %r2, %r0, 200;
    add.u32 %r3, %r0, 300;
    { .param .align 16 .b8 s[32]; .param .b8 extra; .param .align 16 .b8 out[40];
      st.param.b8 [s], %h0;
      st.param.b16 [s+2], %h1;
      st.param.v2.b32 [s+8], {%r1, %r2};
      st.param.b32 [s+16], %r3;
      st.param.f64 [s+24], %f;
      st.param.b8 [extra], %h2;
      call (out), shuffle, (s, extra);
      ld.param.v2.b32 {%r4, %r5}, [out+8];
      ld.param.b32 %r6, [out+16];
      ld.param.b8 %h3, [out];
      ld.param.b32 %r7, [out+32]; }
    cvt.u32.u16 %r8, %h3;
    st.global.v4.b32 [%d1], {%r4, %r5, %r6, %r7};
    st.global.b32 [%d1+16], %r8;
)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    CHECK(got[8 * lane] == lane + 300);
    CHECK(got[8 * lane + 1] == lane + 200);
    CHECK(got[8 * lane + 2] == lane + 100);
    CHECK(got[8 * lane + 3] == 3 * lane + 600 + lane - 5);
    CHECK(got[8 * lane + 4] == lane);
  }
}

TEST_CASE("parameters and results in registers") {
  std::string scope = R"(.func (.reg .b32 out, .reg .b64 wide) both (.reg .b32 a, .reg .b64 b)
{
    .reg .b32 %t;
    add.u32 out, a, 5;
    mul.wide.u32 wide, a, a;
    add.u64 wide, wide, b;
    mov.u32 %t, 1;
    ret;
}
)";
  std::vector<uint32_t> got = run(scope, R"(
    mov.u64 %d3, 0x100000000;
    call (%r1, %d2), both, (%r0, %d3);
    st.global.b32 [%d1], %r1;
    st.global.b64 [%d1+8], %d2;
)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    CHECK(got[8 * lane] == lane + 5);
    CHECK(got[8 * lane + 2] == lane * lane);
    CHECK(got[8 * lane + 3] == 1);
  }
}

TEST_CASE("each call has local memory of its own, and callees reach their callers' through pointers") {
  // fill(n, p): an array of its own, filled with n; calls itself with n - 1 and a pointer to its array; at the end adds
  // what the callee has written there. Result of fill(3): 3 + (2 + 1000) ... each callee adds 1000 to its caller's
  // word.
  std::string scope = R"(.func (.param .b32 back) fill (.param .b32 n, .param .b64 p)
{
    .local .align 8 .b8 depot[16];
    .reg .pred %p; .reg .b32 %n, %m, %s, %x; .reg .b64 %l, %g, %q;
    mov.u64 %l, depot;
    cvta.local.u64 %g, %l;
    ld.param.b32 %n, [n];
    ld.param.b64 %q, [p];
    st.local.b32 [%l+4], %n;
    ld.b32 %x, [%q];
    add.u32 %x, %x, 1000;
    st.b32 [%q], %x;
    mov.u32 %s, 0;
    setp.eq.u32 %p, %n, 0;
    @%p bra done;
    sub.u32 %m, %n, 1;
    add.u64 %q, %g, 4;
    { .param .b32 a; .param .b64 b; .param .b32 c; st.param.b32 [a], %m; st.param.b64 [b], %q;
      call (c), fill, (a, b); ld.param.b32 %s, [c]; }
  done:
    ld.local.b32 %x, [%l+4];
    add.u32 %s, %s, %x;
    st.param.b32 [back], %s;
    ret;
}
)";
  std::vector<uint32_t> got = run(scope, R"(
    .local .align 8 .b8 mine[8];
    mov.u64 %d2, mine;
    cvta.local.u64 %d3, %d2;
    mov.u32 %r1, 5;
    st.local.b32 [%d2], %r1;
    and.b32 %r2, %r0, 7;
    { .param .b32 a; .param .b64 b; .param .b32 c; st.param.b32 [a], %r2; st.param.b64 [b], %d3;
      call (c), fill, (a, b); ld.param.b32 %r3, [c]; }
    ld.local.b32 %r4, [%d2];
    st.global.v2.b32 [%d1], {%r3, %r4};
)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t n = lane % 8;
    CHECK(got[8 * lane] == n * (n + 1) / 2 + 1000 * n);
    CHECK(got[8 * lane + 1] == 1005);
  }
}

TEST_CASE("local memory ends where the stack does") {
  std::string scope = R"(.func over ()
{
    .local .align 8 .b8 depot[16];
    .reg .b64 %l;
    mov.u64 %l, depot;
    st.local.b32 [%l+16], 1;
    ret;
}
)";
  probe::Ending ending = probe::failure(program(scope, "call over;\n"), {},
                                        {.apart = "a chip's threads have more local memory than they declare"});
  CHECK(ending.error == 700);
  CHECK_THAT(ending.report, test::contains("16 bytes of local memory"));
}

TEST_CASE("alloca takes from the stack until the function returns or stackrestore gives back") {
  // Each lane takes lane + 1 words twice, with the stack restored in between: the same place. Then again in a callee.
  std::string scope = R"(.func (.param .b32 back) take (.param .b32 n)
{
    .reg .pred %p; .reg .b32 %n, %i, %s, %v; .reg .b64 %size, %a, %b, %saved, %at;
    ld.param.b32 %n, [n];
    mul.wide.u32 %size, %n, 4;
    stacksave.u64 %saved;
    alloca.u64 %a, %size, 16;
    stackrestore.u64 %saved;
    alloca.u64 %b, %size, 16;
    setp.ne.u64 %p, %a, %b;
    mov.u32 %s, 0;
    @%p bra done;
    mov.u32 %i, 0;
  write:
    mad.wide.u32 %at, %i, 4, %b;
    mul.lo.u32 %v, %i, 3;
    st.local.b32 [%at], %v;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, %n;
    @%p bra write;
    mov.u32 %i, 0;
  read:
    mad.wide.u32 %at, %i, 4, %b;
    ld.local.b32 %v, [%at];
    add.u32 %s, %s, %v;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, %n;
    @%p bra read;
  done:
    st.param.b32 [back], %s;
    ret;
}
)";
  std::vector<uint32_t> got = run(scope, R"(
    mov.u64 %d2, 64;
    alloca.u64 %d3, %d2, 32;
    st.local.b32 [%d3+60], %r0;
    add.u32 %r1, %r0, 1;
)" + call("take", "%r2", "%r1") + R"(
    ld.local.b32 %r3, [%d3+60];
    and.b64 %d4, %d3, 31;
    cvt.u32.u64 %r4, %d4;
    st.global.v4.b32 [%d1], {%r2, %r3, %r4, %r4};
)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    CHECK(got[8 * lane] == 3 * lane * (lane + 1) / 2);
    CHECK(got[8 * lane + 1] == lane);
    CHECK(got[8 * lane + 2] == 0);
  }
  probe::Ending ending =
      probe::failure(program("", "mov.u64 %d2, 600000;\nalloca.u64 %d3, %d2;\nst.local.b32 [%d3], %r0;\n"), {},
                     {.apart = "what a chip does then is not documented"});
  CHECK(ending.error == 700);
}

TEST_CASE("waits inside functions: barriers with results, shuffles, mbarriers") {
  // The predicate of a wait, the result of a .red and the registers around them belong to the frame that waited.
  std::string scope = R"(.shared .align 8 .b64 phase;
.func (.param .b32 back) waits (.param .b32 n)
{
    .reg .pred %p, %q; .reg .b32 %n, %m, %s, %a; .reg .b64 %t;
    ld.param.b32 %n, [n];
    and.b32 %m, %n, 3;
    setp.eq.u32 %p, %m, 0;
    barrier.cta.red.popc.aligned.u32 %s, 1, %p;
    shfl.sync.bfly.b32 %a, %n, 1, 31, 0xFFFFFFFF;
    mov.u32 %m, phase;
    mbarrier.arrive.shared::cta.b64 %t, [%m];
  again:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [%m], 0;
    @!%q bra again;
    mad.lo.u32 %s, %a, 1000, %s;
    st.param.b32 [back], %s;
    ret;
}
)";
  std::vector<uint32_t> got = run(scope, R"(
    mov.u32 %r1, phase;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 mbarrier.init.shared::cta.b64 [%r1], 96;
    bar.sync 0;
)" + call("waits", "%r2", "%r0") + R"(
    activemask.b32 %r3;
    st.global.v2.b32 [%d1], {%r2, %r3};
)",
                                  96);
  for (uint32_t thread = 0; thread < 96; ++thread) {
    CHECK(got[8 * thread] == (thread ^ 1) * 1000 + 24);
    CHECK(got[8 * thread + 1] == kAll);
  }
}

TEST_CASE("a hang inside a function tells the way there") {
  std::string scope = R"(.shared .align 8 .b64 never;
.func inner ()
{
    .reg .pred %p; .reg .b32 %m;
    mov.u32 %m, never;
  again:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%m], 0;
    @!%p bra again;
    ret;
}
.func outer () { call inner; ret; }
)";
  probe::Ending ending = probe::failure(program(scope, R"(
    mov.u32 %r1, never;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 mbarrier.init.shared::cta.b64 [%r1], 1;
    bar.sync 0;
    call outer;
)"));
  CHECK(ending.error == 702);
  CHECK_THAT(ending.report, test::contains("in inner, called at"));
  CHECK_THAT(ending.report, test::contains("of outer"));
  CHECK_THAT(ending.report, test::contains("in outer, called at"));
  CHECK_THAT(ending.report, test::contains("of probe"));
}

TEST_CASE("a function that nobody has defined is refused by name, when it is called") {
  probe::Machine machine;
  std::string ptx = program(".extern .func missing_function (.param .b32 a);\n",
                            "{ .param .b32 a; st.param.b32 [a], 1; call missing_function, (a); }\n");
  std::optional<emu::Fault> fault =
      machine.launch(ptx, {machine.buffer(std::vector<uint32_t>(256))}, {}, false);  // ptxas wants it defined
  REQUIRE(fault);
  CHECK_THAT(fault->report, test::contains("missing_function"));
}

TEST_CASE("shared memory holds what a kernel and its functions name, and nothing of other kernels") {
  // 200 KB named by a function that this kernel does not call: with the kernel's own 100 KB they would not fit.
  std::string scope = R"(.shared .align 4 .b8 other[200000];
.shared .align 4 .b8 mine[100000];
.visible .entry elsewhere () { .reg .b32 %a; mov.u32 %a, other; st.shared.b32 [%a], 1; ret; }
.func (.param .b32 back) get (.param .b32 n)
{ .reg .b32 %n, %a; ld.param.b32 %n, [n]; mov.u32 %a, mine; mad.lo.u32 %a, %n, 4, %a; ld.shared.b32 %n, [%a+99000]; st.param.b32 [back], %n; ret; }
)";
  std::vector<uint32_t> got = run(scope, R"(
    mov.u32 %r1, mine;
    mad.lo.u32 %r1, %r0, 4, %r1;
    mul.lo.u32 %r2, %r0, %r0;
    st.shared.b32 [%r1+99000], %r2;
)" + call("get", "%r3", "%r0") + "st.global.b32 [%d1], %r3;\n");
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(got[8 * lane] == lane * lane);
}

TEST_CASE("shared memory of a function that is only reached through a pointer in memory") {
  std::string scope = R"(.shared .align 4 .b8 deep[64];
.func (.param .b32 back) store (.param .b32 n)
{ .reg .b32 %n, %a; ld.param.b32 %n, [n]; mov.u32 %a, deep; st.shared.b32 [%a+4], %n; ld.shared.b32 %n, [%a+4]; add.u32 %n, %n, 1; st.param.b32 [back], %n; ret; }
.global .align 8 .u64 pointer;
)";
  std::vector<uint32_t> got = run(scope, R"(
    mov.u64 %d2, store;
    st.global.u64 [pointer], %d2;
    ld.volatile.global.u64 %d3, [pointer];
    proto: .callprototype (.param .b32 _) _ (.param .b32 _);
    mov.u32 %r4, 41;
)" + call("%d3", "%r2", "%r4", "", ", proto") +
                                             "st.global.b32 [%d1], %r2;\n");
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(got[8 * lane] == 42);
}
