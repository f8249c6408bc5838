// What lanes of a warp do together. Expected values: the pseudocode of PTX ISA, shfl.sync, vote.sync, match.sync,
// redux.sync, elect.sync; bar.warp.sync and activemask.

#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/probes/probe.h"

namespace {

using Words = std::vector<uint32_t>;

const std::string kStore = R"(
    mov.u32 %r30, %tid.x;
    ld.param.u64 %d10, [p0];
    mad.wide.u32 %d10, %r30, 4, %d10;
    st.global.u32 [%d10], %r31;
)";
const std::string kLoad = R"(
    mov.u32 %r0, %tid.x;
    ld.param.u64 %d0, [p1];
    mad.wide.u32 %d0, %r0, 8, %d0;
    ld.global.u32 %r1, [%d0];
)";

std::vector<uint64_t> values(uint64_t seed, int few = 0) {
  probe::Random random(seed);
  std::vector<uint64_t> out;
  for (int i = 0; i < 32; ++i) {
    uint64_t v = random.next() & 0xFFFFFFFFu;
    out.push_back(few ? v % static_cast<uint64_t>(few) : v);
  }
  return out;
}

struct Shuffled {
  bool valid;
  int from;
};
/// PTX ISA, shfl.sync, semantics.
Shuffled shuffled(const std::string& mode, int lane, int b, int c) {
  int bval = b & 31, cval = c & 31, segmask = c >> 8 & 31;
  int max_lane = (lane & segmask) | (cval & ~segmask & 31), min_lane = lane & segmask;
  int j = 0;
  bool p = false;
  if (mode == "up") j = lane - bval, p = j >= max_lane;
  if (mode == "down") j = lane + bval, p = j <= max_lane;
  if (mode == "bfly") j = lane ^ bval, p = j <= max_lane;
  if (mode == "idx") j = min_lane | (bval & ~segmask), p = j <= max_lane;
  return {p, p ? j : lane};
}

}  // namespace

TEST_CASE("shfl.sync moves values between lanes") {
  auto input = values(1);
  for (const char* mode : {"up", "down", "bfly", "idx"})
    for (int b : {0, 1, 2, 5, 16, 31, 33})
      for (int c : {0x1F, 0x00, 0x1800 | 0x1F, 0x1800, 0x1E1F, 0x0F, 0x1C03}) {
        std::string text = "shfl.sync." + std::string(mode) + ".b32 %r31|%p1, %r1, " + std::to_string(b) + ", " +
                           std::to_string(c) + ", -1;";
        Words got = probe::run<uint32_t>(kLoad + text + kStore, 32, input);
        Words valid = probe::run<uint32_t>(kLoad + text + "selp.b32 %r31, 1, 0, %p1;" + kStore, 32, input);
        for (int lane = 0; lane < 32; ++lane) {
          Shuffled want = shuffled(mode, lane, b, c);
          INFO(text << " lane " << lane);
          CHECK(got[static_cast<size_t>(lane)] == input[static_cast<size_t>(want.from)]);
          CHECK(valid[static_cast<size_t>(lane)] == (want.valid ? 1u : 0u));
        }
      }
}

TEST_CASE("shfl.sync may take source lane and destination from registers, and overwrite its source") {
  auto input = values(2);
  Words got = probe::run<uint32_t>(
      kLoad +
          "mul.lo.u32 %r2, %r0, 7; and.b32 %r2, %r2, 31; shfl.sync.idx.b32 %r1, %r1, %r2, 31, 0xffffffff; "
          "mov.b32 %r31, %r1;" +
          kStore,
      32, input);
  for (size_t lane = 0; lane < 32; ++lane) CHECK(got[lane] == input[lane * 7 % 32]);
}

TEST_CASE("lanes that part before a .sync instruction are gathered for it") {
  // Odd and even lanes take different ways to the same shuffle, so each half arrives alone.
  auto input = values(3);
  Words got = probe::run<uint32_t>(kLoad + R"(
    and.b32 %r2, %r0, 1;
    setp.eq.u32 %p1, %r2, 1;
    @%p1 bra odd;
    add.u32 %r1, %r1, 1;
    bra meet;
  odd:
    add.u32 %r1, %r1, 2;
    add.u32 %r1, %r1, 2;
  meet:
    shfl.sync.bfly.b32 %r31, %r1, 1, 31, -1;
)" + kStore,
                                   32, input);
  for (size_t lane = 0; lane < 32; ++lane) {
    size_t other = lane ^ 1;
    CHECK(got[lane] == static_cast<uint32_t>(input[other] + (other % 2 ? 4 : 1)));
  }
}

TEST_CASE("each half of a warp may shuffle with its own mask, together or apart") {
  auto input = values(4);
  for (bool apart : {false, true}) {
    std::string split = apart ? "setp.lt.u32 %p1, %r0, 16; @%p1 bra low; add.u32 %r1, %r1, 0; low:\n" : "";
    Words got = probe::run<uint32_t>(kLoad + "setp.lt.u32 %p2, %r0, 16; selp.b32 %r4, 0xffff, 0xffff0000, %p2;" +
                                         split + "shfl.sync.idx.b32 %r31, %r1, 3, 0x100f, %r4;" + kStore,
                                     32, input);
    for (size_t lane = 0; lane < 32; ++lane) CHECK(got[lane] == input[lane / 16 * 16 + 3]);
  }
}

TEST_CASE("one half may go on while the other still waits for its lanes") {
  // Lanes 0-15 need nobody else. Lanes 16-31 are complete only when lane 31 comes, which first waits for lane 0's word.
  // (That lane 31 might leave keeps `vote` from being the place where the branch's lanes meet again.)
  Words got = probe::run<uint32_t>(R"(
    .shared .u32 flag;
    mov.u32 %r0, %tid.x;
    setp.eq.u32 %p1, %r0, 0;
    @%p1 st.shared.u32 [flag], 0;
    bar.warp.sync -1;
    setp.lt.u32 %p2, %r0, 16;
    selp.b32 %r4, 0xffff, 0xffff0000, %p2;
    setp.ne.u32 %p3, %r0, 31;
    @%p3 bra vote;
  wait:
    ld.volatile.shared.u32 %r5, [flag];
    setp.gt.u32 %p5, %r5, 7;
    @%p5 bra out;
    setp.eq.u32 %p4, %r5, 0;
    @%p4 bra wait;
  vote:
    setp.eq.u32 %p6, %r0, %r0;
    vote.sync.ballot.b32 %r31, %p6, %r4;
    @%p1 st.volatile.shared.u32 [flag], 1;
)" + kStore + "out:\n",
                                   32);
  for (size_t lane = 0; lane < 32; ++lane) CHECK(got[lane] == (lane < 16 ? 0xFFFFu : 0xFFFF0000u));
}

TEST_CASE("a lane that comes late is waited for where no branch would bring it back") {
  // As above, nothing but the instruction itself makes the others wait for lane 5, which sleeps first.
  const std::string kLate = R"(
    .shared .u32 word;
    mov.u32 %r0, %tid.x;
    setp.ne.u32 %p1, %r0, 5;
    @%p1 bra meet;
    nanosleep.u32 3000;
    mov.u32 %r1, %clock;
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra out;
    st.shared.u32 [word], 77;
  meet:
)";
  const std::string kEnd = kStore + "out:\n";
  CHECK(probe::run<uint32_t>(kLate + "bar.warp.sync -1; ld.shared.u32 %r31, [word];" + kEnd, 32) == Words(32, 77));
  CHECK(probe::run<uint32_t>(kLate + "shfl.sync.idx.b32 %r31, %r0, 5, 31, -1; ld.shared.u32 %r31, [word];" + kEnd,
                             32) == Words(32, 77));
  CHECK(probe::run<uint32_t>(kLate + "redux.sync.add.u32 %r31, %r0, -1;" + kEnd, 32) == Words(32, 31 * 16));
  CHECK(probe::run<uint32_t>(kLate + "match.any.sync.b32 %r31, 9, -1;" + kEnd, 32) == Words(32, 0xFFFFFFFFu));
  CHECK(probe::run<uint32_t>(kLate + "elect.sync %r31|%p3, 0xffffffff; ld.shared.u32 %r31, [word];" + kEnd, 32) ==
        Words(32, 77));
}

TEST_CASE("a guarded .sync instruction takes only the lanes whose guard is true") {
  auto input = values(5);
  Words got = probe::run<uint32_t>(kLoad + R"(
    mov.b32 %r31, 77;
    setp.lt.u32 %p1, %r0, 8;
    @%p1 shfl.sync.bfly.b32 %r31, %r1, 3, 31, 0xff;
)" + kStore,
                                   32, input);
  for (size_t lane = 0; lane < 32; ++lane)
    CHECK(got[lane] == (lane < 8 ? static_cast<uint32_t>(input[lane ^ 3]) : 77u));
}

TEST_CASE("lanes that have exited are not waited for") {
  Words got = probe::run<uint32_t>(R"(
    mov.u32 %r0, %tid.x;
    setp.ge.u32 %p1, %r0, 20;
    @%p1 exit;
    setp.ge.u32 %p2, %r0, 4;
    vote.sync.ballot.b32 %r31, %p2, -1;
)" + kStore,
                                   32);
  for (size_t lane = 0; lane < 32; ++lane) CHECK(got[lane] == (lane < 20 ? 0xFFFF0u : 0u));
}

TEST_CASE("a lane outside its own member mask is a fault") {
  int error = 0;
  const std::string each_its_own =
      "mov.u32 %r1, %tid.x; shl.b32 %r2, 1, %r1; add.u32 %r2, %r2, -1;";  // lanes before it
  std::string report = probe::fault(each_its_own + "vote.sync.ballot.b32 %r0, 1, %r2;", {}, &error);
  CHECK_THAT(report, test::contains("lane 0") && test::contains("0x00000000"));
  CHECK(error != 0);
  // Lanes 16 to 31 have parted from the others.
  report = probe::fault(
      "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 16; @%p1 bra OUT; vote.sync.ballot.b32 %r0, 1, 0x7fffffff; OUT:",
      {.apart = "PTX ISA, vote.sync: undefined for a lane that the mask leaves out"}, &error);
  CHECK_THAT(report, test::contains("lane 31") && test::contains("0x7fffffff"));
  CHECK(error != 0);
}

// GpuBTree has such a mask. On an H200 ptxas leaves out the check, and all lanes take part.
TEST_CASE("a member mask, of all lanes alike, that leaves some out, in a warp that has not parted") {
  const std::string thirds = "mov.u32 %r1, %tid.x; rem.u32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 0;";
  CHECK(probe::run<uint32_t>(thirds + "vote.sync.ballot.b32 %r31, %p1, 0xffff;" + kStore, 32) == Words(32, 0x49249249));
  CHECK(probe::run<uint32_t>("mov.u32 %r1, %tid.x; mov.b32 %r2, 65535; redux.sync.add.u32 %r31, %r1, %r2;" + kStore,
                             32) == Words(32, 31 * 16));
  Words shifted =
      probe::run<uint32_t>("mov.u32 %r1, %tid.x; shfl.sync.down.b32 %r31, %r1, 8, 31, 0xffff;" + kStore, 32);
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(shifted[lane] == (lane < 24 ? lane + 8 : lane));
}

TEST_CASE("vote.sync") {
  struct Case {
    uint32_t yes;
    bool all, any, uniform;
  };
  for (const Case& c : {Case{0, false, false, true}, Case{0xFFFFFFFFu, true, true, true},
                        Case{0x10, false, true, false}, Case{0xFFFFFFFEu, false, true, false}}) {
    std::string vote = "mov.u32 %r0, %tid.x; shr.u32 %r1, " + std::to_string(c.yes) +
                       ", %r0; and.b32 %r1, %r1, 1; setp.eq.u32 %p1, %r1, 1;";
    for (bool negated : {false, true}) {
      std::string p = negated ? "!%p1" : "%p1";
      uint32_t yes = negated ? ~c.yes : c.yes;
      CHECK(probe::run<uint32_t>(vote + "vote.sync.ballot.b32 %r31, " + p + ", -1;" + kStore, 32) == Words(32, yes));
      auto pred = [&](const char* kind) {
        return probe::run<uint32_t>(
            vote + "vote.sync." + kind + ".pred %p2, " + p + ", -1; selp.b32 %r31, 1, 0, %p2;" + kStore, 32);
      };
      CHECK(pred("all") == Words(32, yes == 0xFFFFFFFFu));
      CHECK(pred("any") == Words(32, yes != 0));
      CHECK(pred("uni") == Words(32, c.uniform));
    }
  }
}

TEST_CASE("activemask names the lanes that are together") {
  Words got = probe::run<uint32_t>(R"(
    mov.u32 %r0, %tid.x;
    setp.lt.u32 %p1, %r0, 5;
    @%p1 bra few;
    activemask.b32 %r31;
    bra end;
  few:
    activemask.b32 %r31;
  end:
)" + kStore,
                                   32);
  for (size_t lane = 0; lane < 32; ++lane) CHECK(got[lane] == (lane < 5 ? 0x1Fu : 0xFFFFFFE0u));
}

TEST_CASE("match.sync finds lanes with equal values") {
  for (int few : {1, 2, 5}) {
    auto input = values(6, few);
    Words any = probe::run<uint32_t>(kLoad + "match.any.sync.b32 %r31, %r1, -1;" + kStore, 32, input);
    Words wide = probe::run<uint32_t>(
        kLoad + "cvt.u64.u32 %d1, %r1; shl.b64 %d1, %d1, 40; match.any.sync.b64 %r31, %d1, -1;" + kStore, 32, input);
    Words all = probe::run<uint32_t>(
        kLoad + "match.all.sync.b32 %r31|%p1, %r1, -1; @!%p1 add.u32 %r31, %r31, 5;" + kStore, 32, input);
    for (size_t lane = 0; lane < 32; ++lane) {
      uint32_t same = 0;
      for (size_t other = 0; other < 32; ++other) same |= static_cast<uint32_t>(input[other] == input[lane]) << other;
      CHECK(any[lane] == same);
      CHECK(wide[lane] == same);
      CHECK(all[lane] == (few == 1 ? 0xFFFFFFFFu : 5u));
    }
  }
}

TEST_CASE("redux.sync reduces integers") {
  auto input = values(7);
  std::vector<uint32_t> u(input.begin(), input.end());
  std::vector<int32_t> s(input.begin(), input.end());
  auto reduced = [&](const std::string& op) {
    return probe::run<uint32_t>(kLoad + "redux.sync." + op + " %r31, %r1, -1;" + kStore, 32, input);
  };
  uint32_t sum = 0, conjunction = ~0u, disjunction = 0, difference = 0;
  for (uint32_t v : u) sum += v, conjunction &= v, disjunction |= v, difference ^= v;
  CHECK(reduced("add.u32") == Words(32, sum));
  CHECK(reduced("add.s32") == Words(32, sum));
  CHECK(reduced("min.u32") == Words(32, *std::min_element(u.begin(), u.end())));
  CHECK(reduced("max.u32") == Words(32, *std::max_element(u.begin(), u.end())));
  CHECK(reduced("min.s32") == Words(32, static_cast<uint32_t>(*std::min_element(s.begin(), s.end()))));
  CHECK(reduced("max.s32") == Words(32, static_cast<uint32_t>(*std::max_element(s.begin(), s.end()))));
  CHECK(reduced("and.b32") == Words(32, conjunction));
  CHECK(reduced("or.b32") == Words(32, disjunction));
  CHECK(reduced("xor.b32") == Words(32, difference));
}

TEST_CASE("redux.sync reduces floats") {
  std::vector<uint64_t> input;
  for (int i = 0; i < 32; ++i) input.push_back(probe::bits(static_cast<float>((i * 37) % 32 - 20)));
  auto reduced = [&](const std::string& op) {
    return probe::value<float>(
        probe::run<uint32_t>(kLoad + "redux.sync." + op + ".f32 %r31, %r1, -1;" + kStore, 32, input)[9]);
  };
  CHECK(reduced("min") == -20);
  CHECK(reduced("max") == 11);
  CHECK(reduced("min.abs") == 0);
  CHECK(reduced("max.abs") == 20);
  input[5] = 0x7FC00001;  // NaN: lost, or with .NaN kept and canonical
  CHECK(reduced("max") == 11);
  CHECK(probe::bits(reduced("max.NaN")) == 0x7FFFFFFF);
}

TEST_CASE("elect.sync elects the lowest lane of the mask") {
  for (uint32_t mask : {0xFFFFFFFFu, 0xFFFF0000u, 0x00000120u}) {
    Words got = probe::run<uint32_t>("mov.u32 %r0, %tid.x; mov.b32 %r31, 99; shr.u32 %r1, " + std::to_string(mask) +
                                         ", %r0; and.b32 %r1, %r1, 1; setp.eq.u32 %p1, %r1, 1; @!%p1 bra end;"
                                         "elect.sync %r31|%p2, " +
                                         std::to_string(mask) + "; @%p2 add.u32 %r31, %r31, 1000; end:\n" + kStore,
                                     32);
    uint32_t leader = static_cast<uint32_t>(std::countr_zero(mask));
    for (uint32_t lane = 0; lane < 32; ++lane)
      CHECK(got[lane] == (mask >> lane & 1 ? leader + (lane == leader ? 1000u : 0u) : 99u));
  }
  // The lane number may be thrown away.
  Words got = probe::run<uint32_t>("elect.sync _|%p1, -1; selp.b32 %r31, 1, 0, %p1;" + kStore, 32);
  CHECK(got[0] == 1);
  CHECK(std::count(got.begin(), got.end(), 1u) == 1);
}

TEST_CASE("bar.warp.sync makes what lanes wrote visible to each other") {
  Words got = probe::run<uint32_t>(R"(
    .shared .b32 words[32];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, words;
    shl.b32 %r2, %r0, 2;
    add.u32 %r2, %r1, %r2;
    setp.lt.u32 %p1, %r0, 10;
    @%p1 bra skip;
    nanosleep.u32 20;
  skip:
    mul.lo.u32 %r3, %r0, %r0;
    st.shared.u32 [%r2], %r3;
    bar.warp.sync 0xffffffff;
    xor.b32 %r4, %r0, 31;
    shl.b32 %r4, %r4, 2;
    add.u32 %r4, %r1, %r4;
    ld.shared.u32 %r31, [%r4];
)" + kStore,
                                   32);
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(got[lane] == (31 - lane) * (31 - lane));
}

TEST_CASE("forms that newer chips do not have are refused by name") {
  CHECK_THAT(probe::refusal("vote.ballot.b32 %r0, %p0;"), test::contains("vote.ballot.b32"));
}

TEST_CASE("bar.warp.sync brings lanes together from different places of the code") {
  // An H200 ran this with these values; so does CUDA code with a __syncwarp() in both branches.
  const auto out = probe::run<uint32_t>(R"(
    .shared .align 4 .b32 words[32];
    mov.u32 %r30, %tid.x;
    mov.u32 %r1, words;
    shl.b32 %r2, %r30, 2;
    add.u32 %r3, %r1, %r2;
    setp.lt.u32 %p0, %r30, 16;
    @%p0 bra low;
    mul.lo.u32 %r4, %r30, 5;
    st.shared.u32 [%r3], %r4;
    bar.warp.sync 0xffffffff;
    ld.shared.u32 %r31, [%r3+-64];
    add.u32 %r31, %r31, 1000;
    bra show;
  low:
    mul.lo.u32 %r4, %r30, 3;
    st.shared.u32 [%r3], %r4;
    bar.warp.sync 0xffffffff;
    ld.shared.u32 %r31, [%r3+64];
  show:
)" + kStore,
                                        32);
  for (uint32_t lane = 0; lane < 32; ++lane)
    CHECK(out[lane] == (lane < 16 ? (lane + 16) * 5 : (lane - 16) * 3 + 1000));
}
