// What the hang report takes for the likely cause: the waiter's count of phases, bytes, arrivals. And where it says
// none.

#include "tests/probes/everywhere.h"

namespace {

/// One warp initialises two barriers of `count` arrivals; the body is for all threads, with %r0 the thread, %r1 and %r2
/// the barriers.
std::string module(const std::string& body, int count = 1) {
  return probe::kernel(R"(
    .shared .align 8 .b64 full;
    .shared .align 8 .b64 other;
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, full;
    mov.u32 %r2, other;
    setp.ne.u32 %p7, %r0, 0;
    @%p7 bra ready;
    mbarrier.init.shared::cta.b64 [full], )" +
                           std::to_string(count) + R"(;
    mbarrier.init.shared::cta.b64 [other], 1;
  ready:
    bar.sync 0;
)" + body,
                       1);
}

/// Waits for the phase of `parity` of the barrier in `where`; `label` is new each time.
std::string wait(const std::string& label, const std::string& where, int parity) {
  return label + ": mbarrier.try_wait.parity.shared::cta.b64 %p1, [" + where + "], " + std::to_string(parity) +
         "; @!%p1 bra " + label + ";\n";
}

const std::string kOne = "@%p7 exit;\n";  // the rest is for thread 0
const std::string kArrive = "mbarrier.arrive.shared::cta.b64 _, [full];\n";
const std::string kExpect = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 64;\n";
const std::string kBulk =
    "ld.param.u64 %d0, [p0]; .shared .align 16 .b8 to[128];"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [to], [%d0], ";

/// The causes that the report names.
std::vector<std::string> causes(const std::string& ptx, uint32_t threads = 32) {
  probe::Ending ending = probe::launch_with({}, ptx, 256, {}, {.block = {threads, 1, 1}});
  INFO(ending.report << ptx);
  REQUIRE(ending.error == 702);
  std::vector<std::string> found;
  const std::string key = "likely: ";
  for (size_t at = ending.report.find(key); at != std::string::npos; at = ending.report.find(key, at + 1))
    found.push_back(ending.report.substr(at + key.size(), ending.report.find('\n', at) - at - key.size()));
  return found;
}

void one_cause(const std::string& ptx, const std::string& part, uint32_t threads = 32) {
  const std::vector<std::string> found = causes(ptx, threads);
  INFO(ptx);
  REQUIRE(found.size() == 1);
  CHECK_THAT(found[0], test::contains(part));
}

}  // namespace

TEST_CASE("likely cause: a parity that does not turn over") {
  one_cause(module(kOne + kArrive + wait("a", "%r1", 0) + kArrive + wait("b", "%r1", 0)),
            "it has seen phase 0 end, so phase 1 is next, of parity 1; it asks for parity 0");
}

TEST_CASE("likely cause: two phases late") {
  one_cause(module(kOne + kArrive + wait("a", "%r1", 0) + kArrive + kArrive + wait("b", "%r1", 1)),
            "it has seen phase 0 end, and waits for phase 1, which is over: phase 3 looks the same");
}

TEST_CASE("likely cause: a first wait that comes too late, or asks for the second phase") {
  one_cause(module(kOne + kArrive + kArrive + wait("a", "%r1", 0)),
            "this is its first wait here, and phases 0 to 1 have ended without it");
  one_cause(module(kOne + kArrive + wait("a", "%r1", 1)), "this is its first wait here, and it asks for phase 1");
}

TEST_CASE("likely cause: bytes that do not match") {
  one_cause(module(kOne + kExpect + kBulk + "128, [full];" + wait("a", "%r1", 0)),
            "expect_tx announces 64 bytes fewer than the copies bring");
  one_cause(module(kOne + kExpect + kBulk + "16, [full];" + wait("a", "%r1", 0)),
            "expect_tx announces 48 bytes more than the copies bring");
  one_cause(module(kOne + kExpect + wait("a", "%r1", 0)), "no copy has brought any in this phase");
  one_cause(module(kOne + kExpect + kBulk + "64, [other];" + wait("a", "%r1", 0)), "tells another barrier, other");
}

TEST_CASE("likely cause: fewer arrivals than are counted") {
  one_cause(module(kOne + kArrive + kArrive + wait("a", "%r1", 0), 3),
            "2 of 3 arrivals have come, by arrive of warp 0");
}

TEST_CASE("likely cause: who took part before and does not now") {
  const std::string ptx = module("and.b32 %r3, %r0, 31; setp.ne.u32 %p2, %r3, 0; @%p2 exit;" + kArrive +
                                     wait("a", "%r1", 0) + kOne + kArrive + wait("b", "%r1", 1),
                                 2);
  one_cause(ptx, "arrive of warp 1 took part in phase 0 and not in this one", 64);
}

TEST_CASE("likely cause: a producer that begins with parity 0") {
  one_cause(module(kOne + wait("a", "%r1", 0) + kExpect + kBulk + "64, [full];"), "it loads next");
}

TEST_CASE("no likely cause where nothing points anywhere") {
  // What comes next is a store.
  CHECK(causes(module(kOne + wait("a", "%r2", 0) +
                      "ld.param.u64 %d0, [p0]; cp.async.bulk.global.shared::cta.bulk_group [%d0], [full], 16;"))
            .empty());
  // Nobody has signalled, and what comes next is no load.
  CHECK(causes(module(kOne + wait("a", "%r2", 0))).empty());
  // It passed the fresh barrier with parity 1, and asks for phase 0 next, as a producer does that is round its ring.
  CHECK(causes(module(kOne + wait("a", "%r2", 1) + kExpect + wait("b", "%r2", 0) + kExpect)).empty());
}
