// Lanes part and meet. The ISA promises each lane its own progress and no particular meeting point; the emulator's
// promise is that lanes meet at the immediate post-dominator and before .aligned instructions, and that no lane waits
// for ever because of where others are. `activemask` shows who is together.

#include "tests/probes/everywhere.h"

namespace {

const std::string kStart = R"(
    .shared .align 8 .b64 bar[4];
    .shared .align 4 .b32 flag[4];
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %d1, %r0, 16, %d0;
)";
constexpr uint32_t kAll = 0xFFFFFFFF;

/// Four words for each lane.
std::vector<uint32_t> run(const std::string& body, int seeds = 12, uint32_t threads = 32, const char* apart = nullptr) {
  return probe::everywhere<uint32_t>(probe::kernel(kStart + body, 1), 4 * threads, {},
                                     {.block = {threads, 1, 1}, .apart = apart}, seeds);
}

uint32_t lanes_where(bool (*condition)(uint32_t)) {
  uint32_t mask = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) mask |= static_cast<uint32_t>(condition(lane)) << lane;
  return mask;
}

}  // namespace

TEST_CASE("nested ifs: lanes are together inside, and again behind each level") {
  std::vector<uint32_t> got = run(R"(
    and.b32 %r1, %r0, 1;
    and.b32 %r2, %r0, 6;
    setp.eq.u32 %p0, %r1, 0;
    setp.eq.u32 %p1, %r2, 2;
    mov.u32 %r3, 0;
    mov.u32 %r4, 0;
    @!%p0 bra odd;
    @!%p1 bra other;
    activemask.b32 %r3;
    bra inner;
  other:
    activemask.b32 %r3;
  inner:
    activemask.b32 %r4;
    bra outer;
  odd:
    activemask.b32 %r3;
    mov.u32 %r4, 7;
  outer:
    activemask.b32 %r5;
    vote.sync.ballot.b32 %r6, %p1, 0xFFFFFFFF;
    st.global.v4.u32 [%d1], {%r3, %r4, %r5, %r6};
)");
  const uint32_t even = lanes_where([](uint32_t l) { return l % 2 == 0; });
  const uint32_t two = lanes_where([](uint32_t l) { return (l & 6) == 2; });
  for (uint32_t lane = 0; lane < 32; ++lane) {
    CHECK(got[4 * lane] == (lane % 2 ? ~even : (lane & 6) == 2 ? even & two : even & ~two));
    CHECK(got[4 * lane + 1] == (lane % 2 ? 7 : even));
    CHECK(got[4 * lane + 2] == kAll);
    CHECK(got[4 * lane + 3] == two);
  }
}

TEST_CASE("a loop that each lane leaves after its own number of turns") {
  // Lane l turns l % 5 + 1 times. Word 0: how often it saw exactly the lanes that still turn; word 1: turns; word 2:
  // who is there behind the loop.
  std::vector<uint32_t> got = run(R"(
    rem.u32 %r1, %r0, 5;
    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
  turn:
    activemask.b32 %r4;
    popc.b32 %r4, %r4;
    add.u32 %r3, %r3, %r4;
    add.u32 %r2, %r2, 1;
    setp.le.u32 %p0, %r2, %r1;
    @%p0 bra turn;
    activemask.b32 %r5;
    st.global.v4.u32 [%d1], {%r3, %r2, %r5, %r5};
)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t sum = 0;
    for (uint32_t turn = 0; turn <= lane % 5; ++turn)
      for (uint32_t other = 0; other < 32; ++other) sum += other % 5 >= turn;
    CHECK(got[4 * lane] == sum);
    CHECK(got[4 * lane + 1] == lane % 5 + 1);
    CHECK(got[4 * lane + 2] == kAll);
  }
}

TEST_CASE("loops in loops, with a way out of both") {
  // Collatz-like walk: lanes run different numbers of inner and outer turns, some leave through `out`.
  std::vector<uint32_t> got = run(R"(
    mov.u32 %r1, 0;
    mov.u32 %r2, 0;
  outer:
    and.b32 %r3, %r0, 3;
  inner:
    add.u32 %r1, %r1, 1;
    setp.gt.u32 %p1, %r1, 20;
    @%p1 bra out;
    setp.eq.u32 %p0, %r3, 0;
    @%p0 bra next;
    sub.u32 %r3, %r3, 1;
    bra inner;
  next:
    add.u32 %r2, %r2, 1;
    shr.u32 %r4, %r0, 1;
    setp.lt.u32 %p0, %r2, %r4;
    @%p0 bra outer;
  out:
    activemask.b32 %r5;
    st.global.v4.u32 [%d1], {%r1, %r2, %r5, %r5};
)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t steps = 0, outer = 0;
    bool out = false;
    do {
      for (uint32_t left = lane & 3;; --left) {
        if (++steps > 20) out = true;
        if (out || left == 0) break;
      }
      if (!out) ++outer;
    } while (!out && outer < lane / 2);
    CHECK(got[4 * lane] == steps);
    CHECK(got[4 * lane + 1] == outer);
    CHECK(got[4 * lane + 2] == kAll);
  }
}

TEST_CASE("brx.idx: each lane goes to its label, and all meet behind") {
  // Index 3 leads straight to where the others meet.
  std::vector<uint32_t> got = run(R"(
    and.b32 %r1, %r0, 3;
    mov.u32 %r2, 100;
    mov.u32 %r3, 0;
  table: .branchtargets zero, one, two, meet;
    brx.idx %r1, table;
  zero:
    mov.u32 %r2, 0;
    activemask.b32 %r3;
    bra meet;
  one:
    mov.u32 %r2, 1;
    activemask.b32 %r3;
    bra meet;
  two:
    mov.u32 %r2, 2;
    activemask.b32 %r3;
  meet:
    activemask.b32 %r4;
    st.global.v4.u32 [%d1], {%r2, %r3, %r4, %r4};
)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    CHECK(got[4 * lane] == (lane % 4 == 3 ? 100 : lane % 4));
    CHECK(got[4 * lane + 1] == (lane % 4 == 3 ? 0 : 0x11111111u << lane % 4));
    CHECK(got[4 * lane + 2] == kAll);
  }
}

TEST_CASE("brx.idx with a guard, in a loop") {
  // A lane's program is the digits of its number in base 3, interpreted: 0 adds 1, 1 doubles, 2 subtracts 3.
  std::vector<uint32_t> got = run(R"(
    mov.u32 %r1, %r0;
    mov.u32 %r2, 10;
  fetch:
    setp.eq.u32 %p0, %r1, 0;
    rem.u32 %r3, %r1, 3;
    div.u32 %r1, %r1, 3;
  table: .branchtargets add, double, subtract;
    @!%p0 brx.idx %r3, table;
    activemask.b32 %r4;
    bra done;
  add:
    add.u32 %r2, %r2, 1;
    bra fetch;
  double:
    shl.b32 %r2, %r2, 1;
    bra fetch;
  subtract:
    sub.u32 %r2, %r2, 3;
    bra fetch;
  done:
    activemask.b32 %r4;
    st.global.v4.u32 [%d1], {%r2, %r4, %r4, %r4};
)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t value = 10;
    for (uint32_t n = lane; n; n /= 3) value = n % 3 == 0 ? value + 1 : n % 3 == 1 ? value * 2 : value - 3;
    CHECK(got[4 * lane] == value);
    CHECK(got[4 * lane + 1] == kAll);
  }
}

TEST_CASE("brx.idx: where lanes meet may be a target, and lie before the others in the text") {
  std::vector<uint32_t> got = run(R"(
    bra start;
  meet:
    activemask.b32 %r4;
    st.global.v4.u32 [%d1], {%r2, %r3, %r4, %r4};
    exit;
  start:
    and.b32 %r1, %r0, 3;
    mov.u32 %r2, 100;
    mov.u32 %r3, 0;
    setp.ge.u32 %p0, %r0, 8;
  table: .branchtargets meet, one, two, meet;
    @%p0 brx.idx %r1, table;
    mov.u32 %r2, 8;
    activemask.b32 %r3;
    bra meet;
  one:
    mov.u32 %r2, 1;
    activemask.b32 %r3;
    bra meet;
  two:
    mov.u32 %r2, 2;
    activemask.b32 %r3;
    bra meet;
)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    bool straight = lane >= 8 && (lane % 4 == 0 || lane % 4 == 3);
    CHECK(got[4 * lane] == (lane < 8 ? 8 : straight ? 100 : lane % 4));
    CHECK(got[4 * lane + 1] == (lane < 8 ? 0xFF : straight ? 0 : 0x11111100u << lane % 4));
    CHECK(got[4 * lane + 2] == kAll);
  }
}

TEST_CASE("lanes that exit inside a branch are not waited for") {
  std::vector<uint32_t> got = run(R"(
    rem.u32 %r1, %r0, 3;
    setp.eq.u32 %p0, %r1, 0;
    setp.eq.u32 %p1, %r1, 1;
    @%p0 bra first;
    @%p1 exit;
    activemask.b32 %r2;
    bra meet;
  first:
    activemask.b32 %r2;
    setp.gt.u32 %p2, %r0, 20;
    @%p2 exit;
  meet:
    activemask.b32 %r3;
    bar.sync 0;
    activemask.b32 %r4;
    st.global.v4.u32 [%d1], {%r2, %r3, %r4, %r4};
)");
  const uint32_t first = lanes_where([](uint32_t l) { return l % 3 == 0; });
  const uint32_t third = lanes_where([](uint32_t l) { return l % 3 == 2; });
  const uint32_t left = lanes_where([](uint32_t l) { return l % 3 == 2 || (l % 3 == 0 && l <= 20); });
  for (uint32_t lane = 0; lane < 32; ++lane) {
    bool stays = left >> lane & 1;
    CHECK(got[4 * lane] == (!stays ? 0xEEEEEEEE : lane % 3 == 0 ? first : third));
    CHECK(got[4 * lane + 1] == (stays ? left : 0xEEEEEEEE));
    CHECK(got[4 * lane + 2] == (stays ? left : 0xEEEEEEEE));
  }
}

TEST_CASE("before an .aligned instruction all lanes meet, even those that waits have parted") {
  // Lanes wait for different barriers, which complete at different times; there is no branch whose end they share.
  std::vector<uint32_t> got = run(R"(
    mov.u32 %r1, bar;
    and.b32 %r2, %r0, 3;
    mad.lo.u32 %r3, %r2, 8, %r1;
    setp.lt.u32 %p0, %r0, 4;
    @%p0 mbarrier.init.shared::cta.b64 [%r3], 1;
    bar.sync 0;
    setp.ge.u32 %p0, %r0, 32;
    @%p0 bra arrive;
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], 0;
    bar.sync 1, 32;
    activemask.b32 %r4;
    st.global.v4.u32 [%d1], {%r4, %r4, %r4, %r4};
    exit;
  arrive:
    setp.ge.u32 %p0, %r0, 36;
    @%p0 exit;
    shl.b32 %r5, %r2, 6;
    nanosleep.u32 %r5;
    mbarrier.arrive.shared::cta.b64 _, [%r3];
    st.global.v4.u32 [%d1], {%r2, %r2, %r2, %r2};
)",
                                  12, 64);
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(got[4 * lane] == kAll);
}

TEST_CASE("a lane spins on a flag that another lane of its warp sets in the other branch") {
  for (const char* spinner : {"setp.eq.u32 %p0, %r0, 0;", "setp.ne.u32 %p0, %r0, 31;"}) {
    std::vector<uint32_t> got = run(std::string(R"(
    st.shared.u32 [flag], 0;
    bar.warp.sync 0xFFFFFFFF;
    )") + spinner + R"(
    setp.eq.u32 %p1, %r0, 31;
    mov.u32 %r1, 0;
    @%p0 bra spin;
    @%p1 st.volatile.shared.u32 [flag], 5;
    bra meet;
  spin:
    ld.volatile.shared.u32 %r1, [flag];
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra spin;
  meet:
    activemask.b32 %r2;
    st.global.v4.u32 [%d1], {%r1, %r2, %r2, %r2};
)",
                                    6, 32,
                                    "where lanes meet is left open: on an H200 the lane that sets does not wait");
    for (uint32_t lane = 0; lane < 32; ++lane) {
      bool spun = std::string(spinner).find("eq") != std::string::npos ? lane == 0 : lane != 31;
      CHECK(got[4 * lane] == (spun ? 5 : 0));
      CHECK(got[4 * lane + 1] == kAll);
    }
  }
}

TEST_CASE("lanes take turns: each waits in a loop for the lane before it, which signals only behind the loop") {
  // Where lanes leave the loop they would meet; a lane that waited there for all others would never signal.
  for (const char* space : {"shared", "global"}) {
    const std::string load = std::string("ld.volatile.") + space, store = std::string("st.volatile.") + space;
    const std::string at = std::string(space) == "shared" ? "[flag]" : "[%d0+512]";
    const std::string setup = std::string(space) == "shared"
                                  ? ""
                                  : "setp.eq.u32 %p0, %r0, 0;\n    @%p0 st.volatile.global.u32 [%d0+512], 0;\n";
    std::string body = kStart + "    st.shared.u32 [flag], 0;\n    " + setup + "    bar.warp.sync 0xFFFFFFFF;\n" + R"(
  spin:
    )" + load + ".u32 %r1, " +
                       at + R"(;
    setp.ne.u32 %p2, %r1, %r0;
    @%p2 bra spin;
    st.global.u32 [%d1], %r1;
    add.u32 %r1, %r1, 1;
    )" + store + ".u32 " +
                       at + R"(, %r1;
    bar.sync 0;
    activemask.b32 %r2;
    st.global.u32 [%d1+4], %r2;
)";
    // An H200 never ends: ptxas has lanes wait for each other where they leave the loop.
    std::vector<uint32_t> got = probe::everywhere<uint32_t>(
        probe::kernel(body, 1), 129, {}, {.apart = "PTX ISA promises each lane progress; an H200 hangs"}, 3);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      CHECK(got[4 * lane] == lane);
      CHECK(got[4 * lane + 1] == kAll);
    }
  }
}

TEST_CASE("lanes of a warp take a lock with compare-and-swap, and give it back behind the loop") {
  const std::string body = kStart + R"(
    st.shared.u32 [flag], 0;
    st.shared.u32 [flag+4], 0;
    bar.sync 0;
  spin:
    atom.shared.cas.b32 %r1, [flag], 0, 1;
    setp.ne.u32 %p0, %r1, 0;
    @%p0 bra spin;
    ld.volatile.shared.u32 %r2, [flag+4];
    add.u32 %r2, %r2, 3;
    st.volatile.shared.u32 [flag+4], %r2;
    atom.shared.exch.b32 %r1, [flag], 0;
    bar.sync 0;
    ld.volatile.shared.u32 %r2, [flag+4];
    st.global.u32 [%d0], %r2;
)";
  CHECK(probe::everywhere<uint32_t>(probe::kernel(body, 1), 1, {}, {.block = {64, 1, 1}}, 3)[0] == 3 * 64);
}
