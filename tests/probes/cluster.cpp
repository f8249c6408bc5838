// Clusters: special registers, the cluster barrier, addresses of other CTAs' shared memory. PTX ISA, "Special
// Registers", "barrier.cluster", "mapa", "getctarank", "cvta"; the bits of cluster addresses as an H200 has them.

#include <fmt/format.h>

#include "tests/probes/everywhere.h"

namespace {

using Dim3 = emu::Dim3;
using Words = std::vector<uint32_t>;

/// p0: `words` words for each CTA, at %d0; %r0: its number in the grid, %r1: thread, %r2: its rank, %r3: ranks.
std::string start(uint32_t words) {
  return fmt::format(R"(
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %ctaid.z;
    mov.u32 %r1, %nctaid.y;
    mov.u32 %r2, %ctaid.y;
    mad.lo.u32 %r0, %r0, %r1, %r2;
    mov.u32 %r1, %nctaid.x;
    mov.u32 %r2, %ctaid.x;
    mad.lo.u32 %r0, %r0, %r1, %r2;
    mad.wide.u32 %d0, %r0, {}, %d0;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %cluster_ctarank;
    mov.u32 %r3, %cluster_nctarank;
)",
                     4 * words);
}

/// Calls f(CTA's number, its place, its place in its cluster, rank).
template <class F>
void each_cta(Dim3 grid, Dim3 cluster, F&& f) {
  uint32_t number = 0;
  for (uint32_t z = 0; z < grid.z; ++z)
    for (uint32_t y = 0; y < grid.y; ++y)
      for (uint32_t x = 0; x < grid.x; ++x) {
        Dim3 in{x % cluster.x, y % cluster.y, z % cluster.z};
        f(number++, Dim3{x, y, z}, in, in.x + cluster.x * (in.y + cluster.y * in.z));
      }
}

struct Case {
  Dim3 grid, cluster;
};
const Case kShapes[] = {{{2, 1, 1}, {2, 1, 1}},
                        {{4, 6, 1}, {2, 2, 1}},
                        {{6, 2, 4}, {3, 1, 2}},
                        {{1, 8, 2}, {1, 4, 2}},
                        {{16, 1, 1}, {8, 1, 1}}};

}  // namespace

TEST_CASE("cluster: every special register, in one to three dimensions") {
  const char* registers[] = {"clusterid.x",     "clusterid.y",      "clusterid.z",      "nclusterid.x",
                             "nclusterid.y",    "nclusterid.z",     "cluster_ctaid.x",  "cluster_ctaid.y",
                             "cluster_ctaid.z", "cluster_nctaid.x", "cluster_nctaid.y", "cluster_nctaid.z",
                             "cluster_ctarank", "cluster_nctarank"};
  std::string body = start(16);
  uint32_t at = 0;
  for (const char* name : registers)
    body += fmt::format("    mov.u32 %r4, %{};\n    st.global.u32 [%d0+{}], %r4;\n", name, 4 * at++);
  body += fmt::format(
      "    mov.pred %p0, %is_explicit_cluster;\n    selp.u32 %r4, 1, 0, %p0;\n    st.global.u32 [%d0+{}], %r4;\n",
      4 * at);
  std::vector<Case> shapes(std::begin(kShapes), std::end(kShapes));
  shapes.push_back({{3, 2, 2}, {1, 1, 1}});
  for (auto [grid, cluster] : shapes) {
    Words got = probe::everywhere<uint32_t>(probe::kernel(body, 1), grid.count() * 16, {},
                                            {.grid = grid, .block = {1, 1, 1}, .cluster = cluster}, 2);
    each_cta(grid, cluster, [&](uint32_t number, Dim3 place, Dim3 in, uint32_t rank) {
      Words want{place.x / cluster.x,
                 place.y / cluster.y,
                 place.z / cluster.z,
                 grid.x / cluster.x,
                 grid.y / cluster.y,
                 grid.z / cluster.z,
                 in.x,
                 in.y,
                 in.z,
                 cluster.x,
                 cluster.y,
                 cluster.z,
                 rank,
                 static_cast<uint32_t>(cluster.count()),
                 cluster.count() > 1 ? 1u : 0u};
      CHECK(Words(got.begin() + number * 16, got.begin() + number * 16 + 15) == want);
    });
  }
}

namespace {

/// Each thread leaves a word in its CTA's shared memory and reads the one of the next rank.
std::string neighbours(const std::string& arrive, const std::string& wait) {
  return start(64) + R"(
    .shared .align 4 .b32 words[64];
    mov.u32 %r4, words;
    shl.b32 %r5, %r1, 2;
    add.u32 %r4, %r4, %r5;
    mad.lo.u32 %r6, %r0, 1000, %r1;
    st.shared.u32 [%r4], %r6;
    )" + arrive +
         "\n    " + wait + R"(
    add.u32 %r7, %r2, 1;
    rem.u32 %r7, %r7, %r3;
    mapa.shared::cluster.u32 %r8, %r4, %r7;
    ld.shared::cluster.u32 %r9, [%r8];
    cvt.u64.u32 %d1, %r5;
    add.u64 %d0, %d0, %d1;
    st.global.u32 [%d0], %r9;
    )" + arrive +
         "\n    " + wait + "\n";
}

void check_neighbours(const std::string& body, Case shape, int seeds) {
  Words got = probe::everywhere<uint32_t>(probe::kernel(body, 1), shape.grid.count() * 64, {},
                                          {.grid = shape.grid, .block = {64, 1, 1}, .cluster = shape.cluster}, seeds);
  // Number of the CTA with this rank in the same cluster.
  auto number = [&](Dim3 place, Dim3 in, uint32_t rank) {
    Dim3 other{rank % shape.cluster.x, rank / shape.cluster.x % shape.cluster.y,
               rank / shape.cluster.x / shape.cluster.y};
    Dim3 at{place.x - in.x + other.x, place.y - in.y + other.y, place.z - in.z + other.z};
    return at.x + shape.grid.x * (at.y + shape.grid.y * at.z);
  };
  each_cta(shape.grid, shape.cluster, [&](uint32_t cta, Dim3 place, Dim3 in, uint32_t rank) {
    uint32_t next = number(place, in, (rank + 1) % static_cast<uint32_t>(shape.cluster.count()));
    for (uint32_t thread = 0; thread < 64; ++thread) REQUIRE(got[cta * 64 + thread] == next * 1000 + thread);
  });
}

}  // namespace

TEST_CASE("cluster: stores before the barrier are seen by the neighbour after it") {
  for (const Case& shape : kShapes)
    check_neighbours(neighbours("barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;"), shape, 3);
  for (const char* arrive :
       {"barrier.cluster.arrive;", "barrier.cluster.arrive.release;", "barrier.cluster.arrive.release.aligned;"})
    for (const char* wait :
         {"barrier.cluster.wait;", "barrier.cluster.wait.acquire;", "barrier.cluster.wait.acquire.aligned;"})
      check_neighbours(neighbours(arrive, wait), {{4, 1, 1}, {4, 1, 1}}, 2);
}

TEST_CASE("cluster: relaxed arrivals behind a fence order as releases do") {
  check_neighbours(neighbours("fence.acq_rel.cluster; barrier.cluster.arrive.relaxed;", "barrier.cluster.wait;"),
                   {{4, 1, 1}, {2, 1, 1}}, 3);
}

TEST_CASE("cluster: without clusters the barrier is one of the CTA") {
  // Each thread reads what the thread of the other warp stored; the neighbour is the CTA itself.
  std::string body = start(64) + R"(
    .shared .align 4 .b32 words[64];
    mov.u32 %r4, words;
    shl.b32 %r5, %r1, 2;
    add.u32 %r6, %r4, %r5;
    mad.lo.u32 %r7, %r0, 1000, %r1;
    st.shared.u32 [%r6], %r7;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    xor.b32 %r8, %r5, 128;
    add.u32 %r8, %r8, %r4;
    ld.shared.u32 %r9, [%r8];
    cvt.u64.u32 %d1, %r5;
    add.u64 %d0, %d0, %d1;
    st.global.u32 [%d0], %r9;
    barrier.cluster.arrive;
    barrier.cluster.wait;
)";
  Words got = probe::everywhere<uint32_t>(probe::kernel(body, 1), 3 * 64, {}, {.grid = {3, 1, 1}, .block = {64, 1, 1}});
  for (uint32_t i = 0; i < 3 * 64; ++i) REQUIRE(got[i] == i / 64 * 1000 + (i % 64 ^ 32));
}

TEST_CASE("cluster: a barrier's phases follow each other, with work between arrive and wait") {
  // Each round a CTA adds its neighbour's number of the round before to its own, in buffers that change places.
  std::string body = start(8) + R"(
    .shared .align 4 .b32 words[2];
    mov.u32 %r4, words;
    add.u32 %r5, %r0, 1;
    setp.eq.u32 %p0, %r1, 0;
    @%p0 st.shared.u32 [%r4], %r5;
    mov.u32 %r6, 0;
    add.u32 %r7, %r2, 1;
    rem.u32 %r7, %r7, %r3;
  round:
    barrier.cluster.arrive.aligned;
    shl.b32 %r8, %r6, 2;
    cvt.u64.u32 %d1, %r8;
    add.u64 %d1, %d1, %d0;
    barrier.cluster.wait.aligned;
    and.b32 %r9, %r6, 1;
    shl.b32 %r9, %r9, 2;
    add.u32 %r10, %r4, %r9;
    ld.shared.u32 %r11, [%r10];
    mapa.shared::cluster.u32 %r12, %r10, %r7;
    ld.shared::cluster.u32 %r13, [%r12];
    add.u32 %r11, %r11, %r13;
    xor.b32 %r9, %r9, 4;
    add.u32 %r10, %r4, %r9;
    @%p0 st.shared.u32 [%r10], %r11;
    @%p0 st.global.u32 [%d1], %r11;
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p1, %r6, 8;
    @%p1 bra round;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)";
  for (uint32_t size : {2u, 3u, 8u}) {
    Words got =
        probe::everywhere<uint32_t>(probe::kernel(body, 1), 2 * size * 8, {},
                                    {.grid = {2 * size, 1, 1}, .block = {96, 1, 1}, .cluster = {size, 1, 1}}, 4);
    for (uint32_t cluster = 0; cluster < 2; ++cluster) {
      Words now;
      for (uint32_t rank = 0; rank < size; ++rank) now.push_back(cluster * size + rank + 1);
      for (uint32_t round = 0; round < 8; ++round) {
        Words next;
        for (uint32_t rank = 0; rank < size; ++rank) next.push_back(now[rank] + now[(rank + 1) % size]);
        now = next;
        for (uint32_t rank = 0; rank < size; ++rank) REQUIRE(got[(cluster * size + rank) * 8 + round] == now[rank]);
      }
    }
  }
}

TEST_CASE("cluster: lanes that come to the barrier on different ways, and late") {
  // Lanes 0 to 6 of each warp arrive in another place than the rest, which spins first.
  std::string body = start(64) + R"(
    .shared .align 4 .b32 words[64];
    mov.u32 %r4, words;
    shl.b32 %r5, %r1, 2;
    add.u32 %r4, %r4, %r5;
    mad.lo.u32 %r6, %r0, 1000, %r1;
    st.shared.u32 [%r4], %r6;
    and.b32 %r7, %r1, 31;
    setp.lt.u32 %p0, %r7, 7;
    @%p0 bra few;
    mov.u32 %r8, 0;
  spin:
    add.u32 %r8, %r8, 1;
    mul.lo.u32 %r9, %r8, %r8;
    setp.lt.u32 %p1, %r9, 10000;
    @%p1 bra spin;
    barrier.cluster.arrive;
    bra.uni both;
  few:
    barrier.cluster.arrive;
  both:
    barrier.cluster.wait;
    add.u32 %r7, %r2, 1;
    rem.u32 %r7, %r7, %r3;
    mapa.shared::cluster.u32 %r8, %r4, %r7;
    ld.shared::cluster.u32 %r9, [%r8];
    cvt.u64.u32 %d1, %r5;
    add.u64 %d0, %d0, %d1;
    st.global.u32 [%d0], %r9;
    barrier.cluster.arrive;
    barrier.cluster.wait;
)";
  check_neighbours(body, {{8, 1, 1}, {4, 1, 1}}, 6);
}

TEST_CASE("cluster: threads, warps and CTAs that have ended are not waited for") {
  // Of the ranks the last ends at once, of the others warp 1 and the odd lanes of warp 2.
  std::string body = start(1) + R"(
    sub.u32 %r4, %r3, 1;
    setp.eq.u32 %p0, %r2, %r4;
    @%p0 exit;
    shr.u32 %r5, %r1, 5;
    setp.eq.u32 %p0, %r5, 1;
    @%p0 exit;
    setp.eq.u32 %p1, %r5, 2;
    and.b32 %r6, %r1, 1;
    setp.eq.and.u32 %p0, %r6, 1, %p1;
    @%p0 exit;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.u32 %r7, 1;
    atom.global.add.u32 %r8, [%d0], %r7;
)";
  Words got = probe::everywhere<uint32_t>(probe::kernel(body, 1), 8, {},
                                          {.grid = {8, 1, 1}, .block = {128, 1, 1}, .cluster = {4, 1, 1}}, 4);
  for (uint32_t cta = 0; cta < 8; ++cta) CHECK(got[cta] == (cta % 4 == 3 ? 0xEEEEEEEEu : 0xEEEEEEEEu + 32 + 16 + 32));
}

TEST_CASE("cluster: addresses of other ranks, as shared::cluster and as generic ones") {
  // Of each rank: mapa of an own address with an offset, the ranks of both results, and what they point at.
  std::string body = start(64) + R"(
    .shared .align 16 .b32 word;
    mov.u32 %r4, word;
    add.u32 %r5, %r2, 77;
    st.shared.u32 [word], %r5;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    cvt.u64.u32 %d2, %r4;
    cvta.shared.u64 %d2, %d2;
    mov.u32 %r6, 0;
  rank:
    mapa.shared::cluster.u32 %r7, %r4, %r6;
    mapa.u64 %d3, %d2, %r6;
    getctarank.shared::cluster.u32 %r8, %r7;
    getctarank.u64 %r9, %d3;
    ld.shared::cluster.u32 %r10, [%r7];
    ld.u32 %r11, [%d3];
    cvt.u64.u32 %d4, %r7;
    cvta.shared::cluster.u64 %d4, %d4;
    ld.u32 %r12, [%d4];
    isspacep.shared::cluster %p0, %d3;
    selp.u32 %r13, 1, 0, %p0;
    isspacep.shared::cta %p0, %d3;
    selp.u32 %r14, 1, 0, %p0;
    st.global.v4.u32 [%d0], {%r7, %r8, %r9, %r10};
    st.global.v4.u32 [%d0+16], {%r11, %r12, %r13, %r14};
    add.u64 %d0, %d0, 32;
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p1, %r6, %r3;
    @%p1 bra rank;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)";
  Words got = probe::everywhere<uint32_t>(probe::kernel(body, 1), 4 * 64, {},
                                          {.grid = {4, 1, 1}, .block = {1, 1, 1}, .cluster = {4, 1, 1}}, 2);
  for (uint32_t cta = 0; cta < 4; ++cta)
    for (uint32_t rank = 0; rank < 4; ++rank) {
      const uint32_t* row = &got[cta * 64 + rank * 8];
      CHECK(row[0] >> 24 == rank);
      CHECK((row[0] & 0xFFFFFF) == (got[0] & 0xFFFFFF));
      CHECK(row[1] == rank);
      CHECK(row[2] == rank);
      for (int i : {3, 4, 5}) CHECK(row[i] == rank + 77);
      CHECK(row[6] == 1);
      CHECK(row[7] == (rank == cta));
    }
}

TEST_CASE("cluster: loads, stores, atomic operations and reductions in other CTAs' shared memory") {
  // Every thread of every rank works on rank 0's words; all results are independent of the order.
  std::string body = start(16) + R"(
    .shared .align 16 .b32 words[16];
    mov.u32 %r4, words;
    setp.eq.u32 %p0, %r1, 0;
    mov.u32 %r5, 0;
    @%p0 st.shared.v4.u32 [%r4], {%r5, %r5, %r5, %r5};
    not.b32 %r6, %r5;
    @%p0 st.shared.v4.u32 [%r4+16], {%r5, %r6, %r6, %r5};
    @%p0 st.shared.v4.u32 [%r4+32], {%r5, %r5, %r5, %r5};
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mapa.shared::cluster.u32 %r7, %r4, 0;
    cvt.u64.u32 %d2, %r4;
    cvta.shared.u64 %d2, %d2;
    mapa.u64 %d1, %d2, 0;
    shl.b32 %r8, %r2, 5;
    add.u32 %r8, %r8, %r1;
    atom.shared::cluster.add.u32 %r9, [%r7], %r8;
    red.shared::cluster.add.u32 [%r7+4], 1;
    atom.add.u32 %r10, [%d1+8], 3;
    red.relaxed.cluster.shared::cluster.max.u32 [%r7+12], %r8;
    red.or.b32 [%d1+16], %r8;
    red.shared::cluster.min.u32 [%r7+20], %r8;
    add.u32 %r11, %r8, 5;
    atom.shared::cluster.and.b32 %r12, [%r7+24], %r11;
    cvt.u64.u32 %d3, %r8;
    shl.b64 %d3, %d3, 30;
    atom.shared::cluster.add.u64 %d4, [%r7+32], %d3;
    add.u32 %r13, %r9, %r10;
    add.u32 %r13, %r13, %r12;
    cvt.u32.u64 %r14, %d4;
    add.u32 %r13, %r13, %r14;
    setp.eq.u32 %p1, %r13, 0x12345678;
    @%p1 st.global.u32 [%d0+60], %r13;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @!%p0 bra over;
    ld.shared::cluster.v4.u32 {%r16, %r17, %r18, %r19}, [%r7];
    st.global.v4.u32 [%d0], {%r16, %r17, %r18, %r19};
    ld.v4.u32 {%r16, %r17, %r18, %r19}, [%d1+16];
    st.global.v4.u32 [%d0+16], {%r16, %r17, %r18, %r19};
    ld.shared::cluster.v2.u32 {%r16, %r17}, [%r7+32];
    st.global.v2.u32 [%d0+32], {%r16, %r17};
  over:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)";
  Words got = probe::everywhere<uint32_t>(probe::kernel(body, 1), 4 * 16, {},
                                          {.grid = {4, 1, 1}, .block = {32, 1, 1}, .cluster = {4, 1, 1}}, 4);
  uint32_t sum = 127 * 128 / 2, conjunction = 0xFFFFFFFF;
  for (uint32_t i = 0; i < 128; ++i) conjunction &= i + 5;
  uint64_t wide = uint64_t{sum} << 30;
  Words want{
      sum, 128, 3 * 128, 127, 127, 0, conjunction, 0, static_cast<uint32_t>(wide), static_cast<uint32_t>(wide >> 32)};
  for (uint32_t cta = 0; cta < 4; ++cta) CHECK(Words(got.begin() + cta * 16, got.begin() + cta * 16 + 10) == want);
}

namespace {

/// Of each CTA of a launch when its first instruction ran, and the longest time between two turns of a loop.
struct Pace {
  std::vector<uint64_t> began, gap;
  bool operator==(const Pace&) const = default;
};

Pace pace(const emu::Options& with, uint32_t ctas, uint32_t cluster) {
  const std::string ptx = probe::kernel(R"(
    mov.u64 %d4, %clock64;
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %ctaid.x;
    mad.wide.u32 %d0, %r0, 16, %d0;
    mov.u64 %d3, 0;
    mov.u64 %d1, %d4;
    mov.u32 %r1, 4000;
  turn:
    mov.u64 %d2, %clock64;
    sub.u64 %d1, %d2, %d1;
    max.u64 %d3, %d3, %d1;
    mov.u64 %d1, %d2;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p0, %r1, 0;
    @%p0 bra turn;
    st.global.v2.u64 [%d0], {%d4, %d3};
)",
                                        1);
  probe::Machine machine(with);
  const uint64_t at = machine.buffer(std::vector<uint64_t>(2 * ctas));
  const auto fault = machine.launch(ptx, {at}, {.grid = {ctas, 1, 1}, .cluster = {cluster, 1, 1}, .apart = "clocks"});
  if (fault) FAIL(fault->report);
  const auto values = machine.read<uint64_t>(at, 2 * ctas);
  Pace out;
  for (uint32_t cta = 0; cta < ctas; ++cta) {
    out.began.push_back(values[2 * cta]);
    out.gap.push_back(values[2 * cta + 1]);
  }
  return out;
}

}  // namespace

TEST_CASE("cluster: random schedules let its CTAs start apart, in any order, and stand still") {
  constexpr uint64_t kTurn = 64;  // instructions that a warp executes before another one has its turn
  for (emu::Schedule schedule : {emu::Schedule::earliest, emu::Schedule::latest}) {
    const Pace even = pace(probe::options(schedule), 2, 2);
    CHECK(std::max(even.began[0], even.began[1]) <= 2 * kTurn);
    CHECK(std::max(even.gap[0], even.gap[1]) <= 2 * kTurn);
  }
  int first_by_far = 0, second_by_far = 0, stood = 0;
  for (uint64_t seed = 1; seed <= 32; ++seed) {
    const emu::Options with = probe::options(emu::Schedule::random, seed);
    const Pace found = pace(with, 2, 2);
    for (int threads : {2, 3}) {
      emu::Options other = with;
      other.threads = threads;
      CHECK(pace(other, 2, 2) == found);
    }
    first_by_far += found.began[0] + 200 < found.began[1];
    second_by_far += found.began[1] + 200 < found.began[0];
    stood += std::max(found.gap[0], found.gap[1]) > 1000;
    // A lone CTA has nobody to fall behind.
    const Pace lone = pace(with, 2, 1);
    CHECK(std::max(lone.began[0], lone.began[1]) < kTurn);
    CHECK(std::max(lone.gap[0], lone.gap[1]) < kTurn);
  }
  CHECK(first_by_far >= 4);
  CHECK(second_by_far >= 4);
  CHECK(stood >= 16);
}
