#pragma once
// What the tests of hang reports share: programs of a few roles, and their reports.

#include <algorithm>
#include <string>

#include "tests/probes/everywhere.h"

namespace probe {

/// Thread 0 initialises three barriers, a, b and c, of `count` arrivals, and a flag, 0. The body is for all threads:
/// %r0 the thread, %r1 its warp, %p6 whether it is the first of its warp, %p7 whether it is not thread 0, %d0 p0.
inline std::string hang_program(const std::string& body, int count = 1) {
  const std::string n = std::to_string(count);
  return kernel(R"(
    .shared .align 8 .b64 a;
    .shared .align 8 .b64 b;
    .shared .align 8 .b64 c;
    .shared .align 4 .b32 flag;
    .shared .align 128 .b8 to[256];
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %tid.x;
    shr.u32 %r1, %r0, 5;
    and.b32 %r2, %r0, 31;
    setp.eq.u32 %p6, %r2, 0;
    setp.ne.u32 %p7, %r0, 0;
    @%p7 bra ready;
    mbarrier.init.shared::cta.b64 [a], )" +
                    n + ";\n    mbarrier.init.shared::cta.b64 [b], " + n +
                    ";\n    mbarrier.init.shared::cta.b64 [c], " + n + R"(;
    st.shared.u32 [flag], 0;
  ready:
    bar.sync 0;
)" + body,
                1);
}

/// The first thread of a warp runs `text`; the rest of the warp ends.
inline std::string role(int warp, const std::string& text) {
  const std::string past = "past" + std::to_string(warp);
  return "    setp.ne.u32 %p0, %r1, " + std::to_string(warp) + ";\n    @%p0 bra " + past + ";\n    @!%p6 exit;\n" +
         text + "    exit;\n  " + past + ":\n";
}
/// Waits for the phase of a parity; `label` is new each time.
inline std::string wait_for(const std::string& label, const std::string& barrier, int parity = 0) {
  return "  " + label + ":\n    mbarrier.try_wait.parity.shared::cta.b64 %p1, [" + barrier + "], " +
         std::to_string(parity) + ";\n    @!%p1 bra " + label + ";\n";
}
inline std::string arrive(const std::string& barrier) {
  return "    mbarrier.arrive.shared::cta.b64 _, [" + barrier + "];\n";
}
inline std::string expect(const std::string& barrier, int bytes) {
  return "    mbarrier.arrive.expect_tx.shared::cta.b64 _, [" + barrier + "], " + std::to_string(bytes) + ";\n";
}
inline std::string copy(const std::string& barrier, int bytes) {
  return "    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [to], [%d0], " + std::to_string(bytes) +
         ", [" + barrier + "];\n";
}

/// "PTX line 17": where the nth `piece` (from 0) stands in the module's text.
inline std::string line_of(const std::string& ptx, const std::string& piece, int nth = 0) {
  size_t at = ptx.find(piece);
  for (; nth > 0 && at != std::string::npos; --nth) at = ptx.find(piece, at + 1);
  REQUIRE(at != std::string::npos);
  return "PTX line " + std::to_string(1 + std::count(ptx.begin(), ptx.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

/// The report of a launch that ends with an error: under `with`, or `earliest`.
inline std::string report_of(const std::string& ptx, Shape shape, int error = 702, const emu::Options& with = {}) {
  Ending ending = launch_with(with, ptx, 4096, {}, shape);
  INFO(ending.report << ptx);
  REQUIRE(ending.error == error);
  return ending.report;
}
inline std::string hang_report(const std::string& ptx, uint32_t threads) {
  return report_of(ptx, {.block = {threads, 1, 1}});
}

/// The report holds these parts in this order.
inline void says(const std::string& report, std::initializer_list<std::string> parts) {
  INFO(report);
  size_t at = 0;
  for (const std::string& part : parts) {
    INFO("part: " << part);
    const size_t found = report.find(part, at);
    CHECK(found != std::string::npos);
    if (found != std::string::npos) at = found + part.size();
  }
}
inline void says_not(const std::string& report, const std::string& part) {
  INFO(report << "part: " << part);
  CHECK(report.find(part) == std::string::npos);
}

}  // namespace probe
