// The hazard rules of global memory, between the threads of a launch: what they are told of by right, and the same
// without what gives the right. See hazards.cpp.

#include <fmt/format.h>

#include "tests/probes/hazards_found.h"

namespace {

using probe::found;
using probe::Names;

constexpr probe::Shape kTwoWarps{.block = {64, 1, 1}};
constexpr probe::Shape kTwo{.grid = {2, 1, 1}};
constexpr probe::Shape kThree{.grid = {3, 1, 1}};
constexpr probe::Shape kPair{.grid = {2, 1, 1}, .cluster = {2, 1, 1}};

/// %d0: p0; %r1: thread; %r3: block; %d1: p0 + 4 * thread.
const std::string kStart = R"(
    ld.param.u64 %d0, [p0];
    mov.u32 %r1, %tid.x;
    mov.u32 %r3, %ctaid.x;
    mul.wide.u32 %d1, %r1, 4;
    add.u64 %d1, %d1, %d0;
)";

/// Block (or, in one block, warp) 0 does the first, 1 the second, ...
std::string parts(const std::vector<std::string>& texts, bool warps = false) {
  std::string all = kStart;
  if (warps) all += "shr.u32 %r3, %r1, 5;\n";
  for (size_t i = 0; i < texts.size(); ++i)
    all += fmt::format("setp.ne.u32 %p7, %r3, {0};\n@%p7 bra part{0};\n{1}\nbra end;\npart{0}:\n", i, texts[i]);
  return all + "end:\nret;\n";
}
std::string blocks(const std::string& first, const std::string& second) {
  return parts({first, second});
}
std::string warps(const std::string& first, const std::string& second) {
  return parts({first, second}, true);
}

/// In lane 0. A block's labels are its own.
std::string lane_0(const std::string& text) {
  return "{\nmov.u32 %r20, %laneid;\nsetp.ne.u32 %p1, %r20, 0;\n@%p1 bra skip;\n" + text + "skip:\n}\n";
}

std::string store(int value, const std::string& to = "[%d0]", const std::string& type = "u32") {
  return type == "u8" ? fmt::format("mov.u16 %h1, {};\nst.global.u8 {}, %h1;\n", value, to)
                      : fmt::format("mov.u32 %r10, {};\nst.global.u32 {}, %r10;\n", value, to);
}
const std::string kRead = "ld.global.u32 %r11, [%d0];\nst.global.u32 [%d0+128], %r11;\n";
/// Behind what the other blocks have done by then, in every schedule; nobody is told anything by it.
const std::string kLater = "nanosleep.u32 90000;\natom.global.add.u32 %r12, [%d0+252], 0;\n";

std::string signal(const std::string& how = "st.release.gpu.global.u32", const std::string& flag = "[%d0+64]") {
  return fmt::format("mov.u32 %r13, 1;\n{} {}, %r13;\n", how, flag);
}
std::string wait(const std::string& how = "ld.acquire.gpu.global.u32", const std::string& flag = "[%d0+64]") {
  return fmt::format("{{\npoll:\n{} %r14, {};\nsetp.eq.u32 %p3, %r14, 0;\n@%p3 bra poll;\n}}\n", how, flag);
}
std::string fence(const std::string& scope = "gpu") {
  return "fence.acq_rel." + scope + ";\n";
}
const std::string kRelaxedStore = "st.relaxed.gpu.global.u32", kRelaxedLoad = "ld.relaxed.gpu.global.u32";

}  // namespace

TEST_CASE("two writes to a word of global memory") {
  const Names race{"Error write-write"};
  CHECK(found(blocks(lane_0(store(7)), lane_0(kLater + store(8))), kTwo) == race);
  CHECK(found(blocks(lane_0(store(7)), lane_0(kLater + store(7))), kTwo).empty());
  CHECK(found(blocks(lane_0(store(7) + signal()), lane_0(wait() + store(8))), kTwo).empty());
  CHECK(found(blocks(lane_0(store(7) + signal(kRelaxedStore)), lane_0(wait(kRelaxedLoad) + store(8))), kTwo) ==
        Names{"Error weak-order"});
  CHECK(found(warps(lane_0(store(7)), lane_0(kLater + store(8))), kTwoWarps) == race);
  CHECK(found(warps(lane_0(store(7)) + "bar.sync 1;\n", "bar.sync 1;\n" + lane_0(store(8))), kTwoWarps).empty());
  // Rows, and a word of one of them.
  const std::string row = "st.global.u32 [%d1], %r1;\n";
  CHECK(found(blocks(row, lane_0(kLater + store(9, "[%d0+12]"))), kTwo) == race);
  CHECK(found(blocks(row, kLater + row), kTwo).empty());
}

TEST_CASE("two writes to parts of a word of global memory") {
  CHECK(found(blocks(lane_0(store(7, "[%d0]", "u8")), lane_0(kLater + store(8, "[%d0+1]", "u8"))), kTwo).empty());
  CHECK(found(blocks(lane_0(store(7, "[%d0+1]", "u8")), lane_0(kLater + store(8, "[%d0+1]", "u8"))), kTwo) ==
        Names{"Error write-write"});
  // The bytes of others are in between.
  CHECK(found(blocks(lane_0(store(7, "[%d0+2]", "u8")),
                     lane_0(kLater + store(8, "[%d0+1]", "u8") + store(8, "[%d0+3]", "u8"))),
              kTwo)
            .empty());
}

TEST_CASE("strong writes do not race with each other, but with plain ones") {
  const std::string relaxed = "mov.u32 %r10, 3;\nst.relaxed.gpu.global.u32 [%d0], %r10;\n",
                    atomic = "mov.u32 %r10, 3;\natom.global.add.u32 %r11, [%d0], %r10;\n";
  CHECK(found(blocks(lane_0(relaxed), lane_0(kLater + atomic)), kTwo).empty());
  CHECK(found(blocks(lane_0(store(7) + relaxed + atomic), lane_0("ret;\n")), kTwo).empty());
  CHECK(found(blocks(lane_0(store(7)), lane_0(kLater + atomic)), kTwo) == Names{"Error read-too-early"});
  CHECK(found(blocks(lane_0(atomic), lane_0(kLater + store(7))), kTwo) == Names{"Error write-write"});
  // Under its own strong write the plain one is still there.
  CHECK(found(blocks(lane_0(store(7) + relaxed), lane_0(kLater + atomic)), kTwo) == Names{"Error weak-order"});
}

TEST_CASE("a word of global memory is read and then overwritten") {
  const Names early{"Error overwrite-too-early"};
  CHECK(found(blocks(lane_0(kRead), lane_0(kLater + store(8))), kTwo) == early);
  CHECK(found(blocks(lane_0(kRead), lane_0(kLater + store(0))), kTwo).empty());
  CHECK(found(warps(lane_0(kRead), lane_0(kLater + store(8))), kTwoWarps) == early);
  CHECK(found(warps(lane_0(kRead) + "bar.sync 1;\n", "bar.sync 1;\n" + lane_0(store(8))), kTwoWarps).empty());
  CHECK(found(blocks(lane_0(kRead + signal()), lane_0(wait() + store(8))), kTwo).empty());
  // The signal comes before the read.
  CHECK(found(blocks(lane_0(signal() + kRead), lane_0(wait() + kLater + store(8))), kTwo) == early);
  // A value that has been read needs no fence; a signal there must be.
  CHECK(found(blocks(lane_0(kRead + signal(kRelaxedStore)), lane_0(wait(kRelaxedLoad) + store(8))), kTwo).empty());
  // All lanes read one word, each its own, the one next to it.
  CHECK(found(blocks(kRead, lane_0(kLater + store(8))), kTwo) == early);
  const std::string row = "ld.global.u32 %r11, [%d1];\n", next = "ld.global.u32 %r11, [%d1+4];\n";
  CHECK(found(blocks(row, lane_0(kLater + store(8, "[%d0+16]"))), kTwo) == early);
  CHECK(found(blocks(next, lane_0(kLater + store(8, "[%d0+16]"))), kTwo) == early);
  CHECK(found(blocks(next, lane_0(kLater + store(8))), kTwo).empty());
  CHECK(found(parts({row + "st.global.u32 [%d1], %r1;\n" + row + "st.global.u32 [%d1], %r3;\n"}), kTwo).empty());
}

TEST_CASE("a strong read is overwritten") {
  const std::string relaxed = "ld.relaxed.gpu.global.u32 %r11, [%d0];\n";
  CHECK(found(blocks(lane_0(relaxed), lane_0(kLater + signal(kRelaxedStore, "[%d0]"))), kTwo).empty());
  CHECK(found(blocks(lane_0(relaxed), lane_0(kLater + store(8))), kTwo) == Names{"Error overwrite-too-early"});
}

TEST_CASE("a counter that many blocks raise is read by the last") {
  // Everyone counts at p0 and then says so at p0 + 64; the third to do so reads.
  const auto body = [](const std::string& first, const std::string& others, const std::string& reader) {
    const std::string say = "atom.global.add.u32 %r15, [%d0+64], 1;\n", count = "red.global.add.u32 [%d0], 1;\n";
    return kStart + lane_0("setp.ne.u32 %p7, %r3, 0;\n@%p7 bra other;\n" + count + first + say + "bra skip;\nother:\n" +
                           kLater + count + others + say + "setp.ne.u32 %p2, %r15, 2;\n@%p2 bra skip;\n" + reader +
                           kRead + store(0, "[%d0+64]"));
  };
  CHECK(found(body(fence(), fence(), fence()), kThree).empty());
  // Of those who count the first alone does it wrong.
  CHECK(found(body("", fence(), fence()), kThree) == Names{"Error weak-order"});
  CHECK(found(body(fence(), fence(), ""), kThree) == Names{"Rule weak-order"});
  CHECK(found(body(fence("cta"), fence(), fence()), kThree) == Names{"Error weak-order"});
}

TEST_CASE("the scope of a flag in global memory") {
  const Names weak{"Error weak-order"};
  const auto body = [](const std::string& how, const std::string& poll) {
    return blocks(lane_0(store(42) + signal(how)), lane_0(wait(poll) + kRead));
  };
  const std::string cta_release = "st.release.cta.global.u32", cta_acquire = "ld.acquire.cta.global.u32",
                    release = "st.release.gpu.global.u32", acquire = "ld.acquire.gpu.global.u32",
                    cluster_release = "st.release.cluster.global.u32",
                    cluster_acquire = "ld.acquire.cluster.global.u32";
  CHECK(found(body(release, acquire), kTwo).empty());
  CHECK(found(body(cta_release, acquire), kTwo) == weak);
  CHECK(found(body(release, cta_acquire), kTwo) == weak);
  CHECK(found(body(cluster_release, cluster_acquire), kTwo) == weak);
  CHECK(found(body(cluster_release, cluster_acquire), kPair).empty());
  CHECK(found(warps(lane_0(store(42) + signal(cta_release)), lane_0(wait(cta_acquire) + kRead)), kTwoWarps).empty());
}

// An H200 reads the old value: tests/golden/h200_litmus.json.
TEST_CASE("a flag read without an acquire, and what the block had read before") {
  const auto body = [](const std::string& before, const std::string& behind) {
    return blocks(lane_0(wait(kRelaxedLoad, "[%d0+192]") + fence() + store(42) + fence() + signal(kRelaxedStore)),
                  lane_0(kRead + before + fence("cta") + signal("st.release.gpu.global.u32", "[%d0+192]") +
                         wait(kRelaxedLoad) + behind + kRead));
  };
  CHECK(found(body("", fence()), kTwo).empty());
  CHECK(found(body("", ""), kTwo) == Names{"Error weak-order"});
  CHECK(found(body(fence(), ""), kTwo) == Names{"Rule weak-order"});
}

TEST_CASE("a load as a constant of what the launch has written") {
  const auto body = [](const std::string& load) {
    return blocks(lane_0(store(42) + signal()),
                  lane_0(wait() + load + " %r11, [%d0];\nst.global.u32 [%d0+128], %r11;\n"));
  };
  CHECK(found(body("ld.global.u32"), kTwo).empty());
  CHECK(found(body("ld.global.nc.u32"), kTwo) == Names{"Rule constant-load"});
}

TEST_CASE("lanes of a warp that count, and the last reads what all have stored") {
  const auto body = [](const std::string& before, const std::string& behind) {
    return kStart + "st.global.u32 [%d1], %r1;\n" + before +
           "atom.global.add.u32 %r12, [%d0+192], 1;\nsetp.ne.u32 %p1, %r12, 31;\n@%p1 bra end;\n" + behind +
           "ld.global.u32 %r11, [%d0+8];\nst.global.u32 [%d0+196], %r11;\nend:\nret;\n";
  };
  CHECK(found(body(fence(), fence()), {.block = {32, 1, 1}}).empty());
  CHECK(found(body("", fence()), {.block = {32, 1, 1}}) == Names{"Rule warp-sync"});
}

TEST_CASE("the scope of fences about a flag in global memory") {
  const Names weak{"Error weak-order"};
  const auto body = [](const std::string& behind, const std::string& before) {
    return blocks(lane_0(store(42) + behind + signal(kRelaxedStore)), lane_0(wait(kRelaxedLoad) + before + kRead));
  };
  CHECK(found(body(fence(), fence()), kTwo).empty());
  CHECK(found(body(fence("cta"), fence()), kTwo) == weak);
  CHECK(found(body(fence(), fence("cta")), kTwo) == Names{"Rule weak-order"});
  CHECK(found(body(fence("cta") + fence(), fence("cta") + fence()), kTwo).empty());
  CHECK(found(warps(lane_0(store(42) + fence("cta") + signal(kRelaxedStore)),
                    lane_0(wait(kRelaxedLoad) + fence("cta") + kRead)),
              kTwoWarps)
            .empty());
  // Both fences are wide enough, the flag's own operations are not.
  CHECK(found(blocks(lane_0(store(42) + fence() + signal("atom.relaxed.cta.global.exch.b32 %r16,")),
                     lane_0(wait(kRelaxedLoad) + fence() + kRead)),
              kTwo) == weak);
}

TEST_CASE("what one block tells another the other may tell a third") {
  const auto body = [](const std::string& how, const std::string& poll) {
    return parts({lane_0(store(42) + signal()), lane_0(wait(poll) + signal(how, "[%d0+96]")),
                  lane_0(wait("ld.acquire.gpu.global.u32", "[%d0+96]") + kRead)});
  };
  CHECK(found(body("st.release.gpu.global.u32", "ld.acquire.gpu.global.u32"), kThree).empty());
  CHECK(found(body(kRelaxedStore, "ld.acquire.gpu.global.u32"), kThree) == Names{"Error weak-order"});
  CHECK(found(body("st.release.gpu.global.u32", kRelaxedLoad), kThree) == Names{"Error weak-order"});
}

TEST_CASE("bulk copies of global memory that is overwritten") {
  const std::string start = R"(
    .shared .align 128 .b32 words[64];
    .shared .align 8 .b64 full;
    mov.u32 %r4, words;
    mov.u32 %r5, full;
    mov.u32 %r7, %tid.x;
    setp.ne.u32 %p6, %r7, 0;
    @%p6 bra ready;
    mbarrier.init.shared::cta.b64 [%r5], 1;
    fence.mbarrier_init.release.cluster;
  ready:
    bar.sync 0;
)";
  const std::string load =
      "mbarrier.arrive.expect_tx.shared::cta.b64 %d5, [%r5], 16;\n"
      "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r4], [%d0], 16, [%r5];\n";
  const std::string done = "{\nwait:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r5], 0;\n@!%p2 bra wait;\n}\n";
  const std::string meet = "bar.sync 1;\n", later = "nanosleep.u32 90000;\n";
  CHECK(found(start + warps(lane_0(load + done) + meet, meet + lane_0(later + store(8))), kTwoWarps).empty());
  CHECK(found(start + warps(lane_0(load) + meet + lane_0(done), meet + lane_0(later + store(8))), kTwoWarps) ==
        Names{"Error overwrite-too-early"});
  CHECK(found(start + warps(lane_0(load) + meet + lane_0(done), meet + lane_0(later + done + store(8))), kTwoWarps)
            .empty());
}

TEST_CASE("bulk stores to global memory that others use") {
  const std::string start = R"(
    .shared .align 128 .b32 words[64];
    mov.u32 %r4, words;
)";
  const std::string fill = "mov.u32 %r6, 5;\nst.shared.v4.u32 [%r4], {%r6, %r6, %r6, %r6};\nfence.proxy.async";
  const std::string copy =
      "cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r4], 16;\ncp.async.bulk.commit_group;\n"
      "cp.async.bulk.wait_group 0;\n";
  const std::string bulk = fill + ";\n" + copy, bulk_of_shared = fill + ".shared::cta;\n" + copy;
  CHECK(found(start + blocks(lane_0(kRead), lane_0(kLater + bulk)), kTwo) == Names{"Error overwrite-too-early"});
  CHECK(found(start + blocks(lane_0(kRead + signal()), lane_0(wait() + bulk)), kTwo).empty());
  CHECK(found(start + blocks(lane_0(bulk), lane_0(kLater + store(8))), kTwo) == Names{"Error write-write"});
  CHECK(found(start + blocks(lane_0(bulk), lane_0(kLater + store(5))), kTwo).empty());
  CHECK(found(start + blocks(lane_0(bulk), lane_0(kLater + bulk)), kTwo).empty());
  CHECK(
      found(start + blocks(lane_0(bulk + "fence.proxy.async;\n" + signal()), lane_0(wait() + store(8))), kTwo).empty());
  // What threads have stored and a bulk store overwrites: through two proxies.
  CHECK(found(start + blocks(lane_0(store(7) + signal()), lane_0(wait() + bulk)), kTwo).empty());
  CHECK(found(start + blocks(lane_0(store(7) + signal()), lane_0(wait() + bulk_of_shared)), kTwo) ==
        Names{"Error proxy-fence"});
  CHECK(found(start + blocks(lane_0(store(7)), lane_0(kLater + bulk)), kTwo) == Names{"Error write-write"});
}

TEST_CASE("memory that a kernel gives back belongs to nobody") {
  const std::string heap = R"(
.extern .func (.param .b64 result) malloc(.param .b64 bytes);
.extern .func free(.param .b64 address);
)";
  const auto body = [](int value) {
    return R"({
    .param .b64 bytes;
    .param .b64 result;
    .param .b64 address;
    mov.u64 %d4, 64;
    st.param.b64 [bytes], %d4;
    call.uni (result), malloc, (bytes);
    ld.param.b64 %d5, [result];
)" + store(value, "[%d5]") +
           R"(
    st.param.b64 [address], %d5;
    call.uni free, (address);
}
)";
  };
  CHECK(found(blocks(lane_0(body(7)), lane_0(kLater + body(8))), kTwo, heap).empty());
}
