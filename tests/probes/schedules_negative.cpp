// Programs with a wait left out. They may well work on a fast day; a schedule that takes its time, or a random one,
// must show that they are wrong. Each stands beside the correct program, which gives one result under all schedules.

#include <fmt/format.h>

#include "tests/probes/mma_program.h"

namespace {

const std::string kDynamic = ".extern .shared .align 1024 .b8 smem[];";

std::string without(std::string text, const std::string& what) {
  size_t at = text.find(what);
  INFO(what << " in\n" << text);
  REQUIRE(at != std::string::npos);
  return text.erase(at, what.size());
}

/// `good` gives the same everywhere; `bad` must not under `latest` (where `latest_tells`), and differs in at least
/// `least` of 16 random schedules.
void check(const std::string& good, const std::string& bad, size_t count,
           const std::vector<std::vector<std::byte>>& inputs, const probe::Shape& shape, bool latest_tells, int least) {
  std::vector<std::byte> right = probe::bytes_of(probe::everywhere<uint32_t>(good, count / 4, inputs, shape, 16));
  probe::Shape racing = shape;
  racing.apart = "wrong on purpose: what it leaves depends on who is faster";
  probe::Ending late = probe::launch_with(probe::options(emu::Schedule::latest), bad, count, inputs, racing);
  CHECK((late.bytes != right) == latest_tells);
  int seen = probe::noticed(bad, right, inputs, racing);
  INFO("16 random schedules, of which " << seen << " notice");
  CHECK(seen >= least);
}

const std::string kLoads = R"(
    .shared .align 8 .b64 full;
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d1, [p1];
    mov.u32 %r0, smem;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p0, %r1, 0;
    @%p0 bra ready;
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 512;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%d1], 512, [full];
  ready:
    bar.sync 0;
//wait
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], 0;
    @!%p1 bra wait;
//end
    mad.lo.u32 %r2, %r1, 4, %r0;
    ld.shared.u32 %r3, [%r2];
    mad.wide.u32 %d2, %r1, 4, %d0;
    st.global.u32 [%d2], %r3;
)";

/// Without what stands between the comment lines `from` and `to`.
std::string cut(const std::string& text, const std::string& from, const std::string& to) {
  size_t begin = text.find(from), end = text.find(to, begin);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  return text.substr(0, begin) + text.substr(end);
}

std::vector<uint32_t> counting(size_t count) {
  std::vector<uint32_t> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<uint32_t>(i) * 3 + 1;
  return out;
}

probe::MmaProgram mma() {
  probe::MmaProgram program;
  program.n = 32;
  program.steps = 2;
  program.finish();
  return program;
}
std::vector<std::vector<std::byte>> mma_inputs(const probe::MmaProgram& program) {
  auto a = [](uint32_t row, uint32_t k) { return 0x3C00u + (row + k) % 8 * 0x80; };
  return probe::inputs_of(program, a, a, std::vector<uint32_t>(128 * program.n));
}

}  // namespace

TEST_CASE("left out: the wait for the bytes of a bulk load") {
  check(probe::kernel(kLoads, 2, kDynamic), probe::kernel(cut(kLoads, "//wait", "//end"), 2, kDynamic), 512,
        {probe::bytes_of(counting(128))}, {.block = {128, 1, 1}, .dynamic_shared_bytes = 1024}, true, 4);
}

TEST_CASE("left out: the loop around try_wait, which may give up with nothing wrong") {
  std::string bad = kLoads;
  const std::string loop = "    @!%p1 bra wait;\n";
  bad.erase(bad.find(loop), loop.size());
  check(probe::kernel(kLoads, 2, kDynamic), probe::kernel(bad, 2, kDynamic), 512, {probe::bytes_of(counting(128))},
        {.block = {128, 1, 1}, .dynamic_shared_bytes = 1024}, false, 2);
}

TEST_CASE("left out: the wait for the commit before the accumulator is read") {
  probe::MmaProgram program = mma();
  const std::string good = program.text();
  size_t from = good.find("    mbarrier.try_wait"), to = good.find("    tcgen05.fence::after_thread_sync;", from);
  std::string bad = good.substr(0, from) + good.substr(to);
  check(good, bad, 128 * 32 * 4, mma_inputs(program), probe::shape_of(program), true, 4);
}

TEST_CASE("left out: the wait for the commit before the operands are overwritten") {
  probe::MmaProgram program = mma();
  std::string good = program.text();
  // Zeros over all of shared memory, by all threads: once after the wait, once before it.
  const std::string overwrite = fmt::format(R"(
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    mov.b32 %v0, 0;
    shl.b32 %r3, %r1, 4;
  over:
    add.u32 %r4, %r0, %r3;
    st.shared.v4.u32 [%r4], {{%v0, %v0, %v0, %v0}};
    add.u32 %r3, %r3, 2048;
    setp.lt.u32 %p0, %r3, {};
    @%p0 bra over;
)",
                                            program.image_bytes());
  size_t before = good.find("    mbarrier.try_wait"),
         after = good.find("    tcgen05.fence::after_thread_sync;", before);
  size_t label = good.rfind("  issued:", before);
  std::string late = good, early = good;
  late.insert(after, overwrite);
  early.insert(before, "  waits:\n");
  early.insert(before, overwrite);
  size_t branch = early.find("@!%p0 bra issued;");
  early.replace(branch, 17, "@!%p0 bra waits;");
  REQUIRE(label != std::string::npos);
  check(late, early, 128 * 32 * 4, mma_inputs(program), probe::shape_of(program), true, 4);
}

namespace {

const std::string kTensorMemory = R"(
    .shared .align 4 .b32 address;
    .reg .b32 %v<4>;
    ld.param.u64 %d0, [p0];
    mov.u32 %r1, %tid.x;
    shr.u32 %r2, %r1, 5;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra allocated;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 32;
  allocated:
    bar.sync 0;
    ld.shared.u32 %r5, [address];
    setp.ge.u32 %p0, %r1, 32;
    @%p0 bra second;
    add.u32 %v0, %r1, 100;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r5], {%v0};
    tcgen05.wait::st.sync.aligned;
//first
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v1}, [%r5];
    tcgen05.wait::ld.sync.aligned;
    mov.b32 %v2, 7;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r5], {%v2};
    tcgen05.wait::st.sync.aligned;
    nanosleep.u32 40000;
    mad.wide.u32 %d1, %r1, 8, %d0;
    st.global.u32 [%d1], %v1;
//last
    tcgen05.fence::before_thread_sync;
  second:
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    setp.lt.u32 %p0, %r1, 128;
    @%p0 bra shown;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v3}, [%r5];
    tcgen05.wait::ld.sync.aligned;
    mad.wide.u32 %d1, %r1, 8, %d0;
    st.global.u32 [%d1+-1020], %v3;
  shown:
    bar.sync 0;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra freed;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 32;
  freed:
)";
constexpr probe::Shape kFiveWarps{.block = {160, 1, 1}};

}  // namespace

TEST_CASE("left out: wait::ld before the cells that are being read are written again") {
  const std::string ld = "    tcgen05.wait::ld.sync.aligned;\n    mov.b32 %v2, 7;\n";
  std::string bad = kTensorMemory;
  bad.replace(bad.find(ld), ld.size(), "    mov.b32 %v2, 7;\n");
  check(probe::kernel(kTensorMemory, 1), probe::kernel(bad, 1), 256, {}, kFiveWarps, true, 4);
}

TEST_CASE("left out: wait::st before stored cells are handed to another warp") {
  // Warp 4 shares warp 0's lane quarter and reads what warp 0 stored last.
  const std::string st = "    tcgen05.wait::st.sync.aligned;\n    nanosleep.u32 40000;\n";
  std::string good = kTensorMemory, bad = kTensorMemory;
  good.replace(good.find(st), st.size(), "    tcgen05.wait::st.sync.aligned;\n");
  bad.replace(bad.find(st), st.size(), "");
  check(probe::kernel(good, 1), probe::kernel(bad, 1), 256, {}, kFiveWarps, true, 4);
}

TEST_CASE("left out: wait::st before the same warp reads the cells back") {
  // The ISA asks for it; the load may overtake the store.
  const std::string st = "    tcgen05.wait::st.sync.aligned;\n//first\n";
  std::string bad = kTensorMemory;
  bad.replace(bad.find(st), st.size(), "");
  check(probe::kernel(kTensorMemory, 1), probe::kernel(bad, 1), 256, {}, kFiveWarps, true, 4);
}

TEST_CASE("left out: wait_group.read before a store's source is overwritten") {
  const std::string good = R"(
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, smem;
    mov.u32 %r4, 0;
  tile:
    cp.async.bulk.wait_group.read 0;
    st.shared.v4.u32 [%r0], {%r4, %r4, %r4, %r4};
    fence.proxy.async.shared::cta;
    mul.wide.u32 %d2, %r4, 16;
    add.u64 %d2, %d2, %d0;
    cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r0], 16;
    cp.async.bulk.commit_group;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, 8;
    @%p1 bra tile;
    cp.async.bulk.wait_group 0;
)";
  check(probe::kernel(good, 1, kDynamic),
        probe::kernel(without(good, "    cp.async.bulk.wait_group.read 0;\n"), 1, kDynamic), 128, {},
        {.block = {1, 1, 1}, .dynamic_shared_bytes = 1024}, true, 8);
}

TEST_CASE("left out: wait_group before a store's result is read back; .read is not enough") {
  const std::string good = R"(
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, smem;
    mov.u32 %r2, 41;
    st.shared.v4.u32 [%r0], {%r2, %r2, %r2, %r2};
    fence.proxy.async.shared::cta;
    st.global.u32 [%d0], 7;
    cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r0], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ld.global.u32 %r1, [%d0];
    st.global.u32 [%d0+16], %r1;
)";
  std::string bad = good;
  bad.replace(bad.find("wait_group 0"), 12, "wait_group.read 0");
  check(probe::kernel(good, 1, kDynamic), probe::kernel(bad, 1, kDynamic), 20, {},
        {.block = {1, 1, 1}, .dynamic_shared_bytes = 1024}, true, 4);
}

TEST_CASE("left out: the consumer's signal that a slot is empty, so that the next load overwrites what is being read") {
  // Thread 0 loads eight tiles through two slots; thread 32 reads them slowly.
  const std::string good = R"(
    .shared .align 8 .b64 full[2];
    .shared .align 8 .b64 empty[2];
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d1, [p1];
    mov.u32 %r0, smem;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, full;
    mov.u32 %r3, empty;
    setp.ne.u32 %p0, %r1, 0;
    @%p0 bra ready;
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.init.shared::cta.b64 [full+8], 1;
    mbarrier.init.shared::cta.b64 [empty], 1;
    mbarrier.init.shared::cta.b64 [empty+8], 1;
  ready:
    bar.sync 0;
    mov.u32 %r4, 0;
    setp.eq.u32 %p0, %r1, 32;
    @%p0 bra consume;
    setp.ne.u32 %p0, %r1, 0;
    @%p0 exit;
  produce:
    and.b32 %r5, %r4, 1;
    shr.u32 %r6, %r4, 1;
    and.b32 %r6, %r6, 1;
    xor.b32 %r7, %r6, 1;
    mad.lo.u32 %r8, %r5, 8, %r3;
    mad.lo.u32 %r9, %r5, 8, %r2;
    mad.lo.u32 %r10, %r5, 64, %r0;
//empty
  free:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r8], %r7;
    @!%p1 bra free;
//full
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r9], 64;
    mul.wide.u32 %d2, %r4, 64;
    add.u64 %d2, %d2, %d1;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%d2], 64, [%r9];
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, 2;
    @%p1 bra produce;
    setp.lt.u32 %p1, %r4, 8;
    @!%p1 exit;
    sub.u32 %r11, %r4, 2;
//slow
    bra produce;
  consume:
    and.b32 %r5, %r4, 1;
    shr.u32 %r6, %r4, 1;
    and.b32 %r6, %r6, 1;
    mad.lo.u32 %r8, %r5, 8, %r3;
    mad.lo.u32 %r9, %r5, 8, %r2;
    mad.lo.u32 %r10, %r5, 64, %r0;
  arrived:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r9], %r6;
    @!%p1 bra arrived;
    nanosleep.u32 500;
    ld.shared.u32 %r12, [%r10];
    mad.wide.u32 %d2, %r4, 4, %d0;
    st.global.u32 [%d2], %r12;
    mbarrier.arrive.shared::cta.b64 _, [%r8];
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, 8;
    @%p1 bra consume;
)";
  // The bad producer waits for the loads before (so that it does not over-arrive) and not for their reader.
  std::string bad = good;
  size_t from = bad.find("//empty"), to = bad.find("//full");
  bad = bad.substr(0, from) + R"(
    setp.lt.u32 %p2, %r4, 2;
    @%p2 bra load;
  free:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r9], %r7;
    @!%p1 bra free;
  load:
)" + bad.substr(to);
  check(probe::kernel(good, 2, kDynamic), probe::kernel(bad, 2, kDynamic), 32, {probe::bytes_of(counting(128))},
        {.block = {64, 1, 1}, .dynamic_shared_bytes = 1024}, true, 4);
}

TEST_CASE("left out: the wait for a bulk load, beside a wait for something else") {
  // A bulk store is waited for, or time, but not the load.
  const std::string store = R"(
    setp.ne.u32 %p0, %r1, 0;
    @%p0 bra stored;
    cp.async.bulk.global.shared::cta.bulk_group [%d0+512], [%r0+1024], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
  stored:
    bar.sync 0;
)";
  for (const std::string& instead : {store, std::string("    nanosleep.u32 100;\n    bar.sync 0;\n")}) {
    std::string good = kLoads, bad = cut(kLoads, "//wait", "//end");
    for (std::string* text : {&good, &bad}) {
      text->insert(text->find("//end"), instead);
      // The first 512 bytes are the result; what the store leaves behind them is fresh shared memory.
      text->insert(text->find("  ready:"),
                   "    st.shared.u32 [%r0+1024], 5; st.shared.u32 [%r0+1028], 5;\n"
                   "    st.shared.u32 [%r0+1032], 5; st.shared.u32 [%r0+1036], 5;\n"
                   "    fence.proxy.async.shared::cta;\n");
    }
    std::vector<uint32_t> numbers(128);
    for (uint32_t i = 0; i < 128; ++i) numbers[i] = 3 * i + 1;
    check(probe::kernel(good, 2, kDynamic), probe::kernel(bad, 2, kDynamic), 528, {probe::bytes_of(numbers)},
          {.block = {128, 1, 1}, .dynamic_shared_bytes = 2048}, true, 4);
  }
}
