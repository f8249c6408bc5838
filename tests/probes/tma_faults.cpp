// What bulk copies refuse: alignment, ranges, coordinates, CTAs that are not there. Codes are an H200's where it was
// asked (715, 716, 700); the report names the value and the rule.

#include <fmt/format.h>

#include "emulator/units/tensor_map.h"
#include "tests/probes/everywhere.h"

namespace {

using emu::TensorMap;

const std::string kStart = R"(
    .shared .align 8 .b64 full;
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d1, [p1];
    mov.u32 %r0, smem;
    mov.u32 %r1, full;
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 64;
)";
const std::string kEnd = R"(
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    mov.u32 %r9, 0;
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], 0;
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p2, %r9, 20;
    @!%p1 bra more;
    bra done;
  more:
    @%p2 bra wait;
  done:
)";

/// The fault, the same code under each schedule; p1 is a map of a 64 x 32 f16 matrix, box 32 x 8.
probe::Ending fault_of(const std::string& body, const char* apart = nullptr) {
  const std::string ptx = probe::kernel(kStart + body + kEnd, 2, ".extern .shared .align 1024 .b8 smem[];");
  probe::Ending first;
  for (const auto& [name, with] : probe::settings(1)) {
    probe::Machine machine(with);
    TensorMap map;
    map.type = emu::TensorMapType::float16;
    map.rank = 2;
    map.dims = {64, 32, 1, 1, 1};
    map.strides_bytes = {0, 128, 0, 0, 0};
    map.box = {32, 8, 1, 1, 1};
    map.address = machine.buffer(std::vector<uint16_t>(64 * 32));
    emu::TensorMapObject object = emu::encode_tensor_map(map);
    std::vector<std::byte> objects(object.begin(), object.end());
    objects.resize(256);
    std::vector<uint64_t> parameters{machine.buffer(std::vector<uint8_t>(4096)), machine.buffer(objects)};
    auto fault = machine.launch(ptx, parameters, {.block = {1, 1, 1}, .dynamic_shared_bytes = 4096, .apart = apart});
    INFO(name << "\n" << ptx);
    REQUIRE(fault);
    if (first.report.empty()) first.report = fault->report, first.error = fault->error;
    REQUIRE(fault->error == first.error);
  }
  return first;
}

std::string load(const std::string& to, const std::string& from, const std::string& bytes, const std::string& barrier) {
  return "mov.u32 %r5, " + bytes + "; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [" + to +
         "], [" + from + "], %r5, [" + barrier + "];\n";
}
std::string tensor_load(const std::string& to, const std::string& at, const std::string& map = "%d1") {
  return "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [" + to + "], [" + map + ", " +
         at + "], [%r1];\n";
}
std::string tensor_store(const std::string& from, const std::string& at) {
  return "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d1, " + at + "], [" + from + "];\n";
}

}  // namespace

TEST_CASE("plain bulk copies: addresses and barriers are aligned, as an H200 asks") {
  CHECK(fault_of(load("%r0+8", "%d0", "64", "%r1")).error == 716);
  CHECK(fault_of(load("%r0", "%d0+8", "64", "%r1")).error == 716);
  CHECK(fault_of(load("%r0", "%d0", "64", "%r1+4")).error == 716);
  CHECK(fault_of("cp.async.bulk.global.shared::cta.bulk_group [%d0+8], [%r0], 64;").error == 716);
  CHECK(fault_of("cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r0+8], 64;").error == 716);
  CHECK(fault_of("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0+4], [%r0], 64;").error == 716);
  CHECK_THAT(fault_of(load("%r0", "%d0", "72", "%r1"),
                      "PTX ISA, cp.async.bulk: sizes in multiples of 16; an H200 lets others pass, cut down")
                 .report,
             test::contains("multiple of 16"));
}

TEST_CASE("plain bulk copies: what nobody owns is an illegal address") {
  CHECK(fault_of(load("%r0+8192", "%d0", "64", "%r1")).error == 700);
  CHECK(fault_of(load("%r0+4064", "%d0", "64", "%r1")).error == 700);
  CHECK(fault_of("mov.u64 %d2, 0x10000;" + load("%r0", "%d2", "64", "%r1")).error == 700);
  CHECK(fault_of("mov.u64 %d2, 0x10000; cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r0], 64;").error == 700);
  CHECK(fault_of("cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r0+4064], 64;").error == 700);
}

TEST_CASE("bulk copies to a CTA that is not in the cluster are illegal, as on an H200") {
  CHECK(fault_of("add.u32 %r6, %r0, 0x1000000;" + load("%r6", "%d0", "64", "%r1")).error == 715);
  CHECK(fault_of("add.u32 %r6, %r0, 0x1000000;" + tensor_load("%r6", "{0, 0}")).error == 715);
}

TEST_CASE("tensor copies: shared addresses are multiples of 128") {
  for (const char* offset : {"%r0+16", "%r0+64"}) {
    CHECK(fault_of(tensor_load(offset, "{0, 0}")).error == 716);
    CHECK(fault_of(tensor_store(offset, "{0, 0}")).error == 716);
  }
}

TEST_CASE("tensor copies: the innermost coordinate is a multiple of 16 bytes") {
  for (const char* at : {"{4, 0}", "{1, 3}", "{-4, 0}"}) {
    probe::Ending ending = fault_of(tensor_load("%r0", at));
    CHECK(ending.error == 715);
    CHECK_THAT(ending.report, test::contains("16"));
  }
  CHECK(fault_of(tensor_store("%r0", "{4, 0}")).error == 715);
}

TEST_CASE("tensor stores and reductions: no negative coordinates") {
  for (const char* at : {"{-8, 0}", "{0, -1}"}) {
    CHECK(fault_of(tensor_store("%r0", at)).error == 715);
    CHECK(fault_of(std::string("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%d1, ") + at +
                   "], [%r0];")
              .error == 715);
  }
}

TEST_CASE("tensor copies: a box that leaves the CTA's shared memory") {
  // 32 x 8 f16 are 512 bytes; 4096 bytes are there.
  CHECK(fault_of(tensor_load("%r0+3712", "{0, 0}")).error == 700);
  CHECK(fault_of(tensor_store("%r0+3712", "{0, 0}")).error == 700);
}

TEST_CASE("tensor copies: as many coordinates as the map has dimensions") {
  CHECK(fault_of("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%d1, {0, 0, 0}], "
                 "[%r1];")
            .error == 715);
  CHECK(fault_of("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%d1, {0}], [%r0];").error == 715);
}

TEST_CASE("tensor copies: what is no tensor map, and a map some of whose bytes were overwritten") {
  CHECK_THAT(fault_of(tensor_load("%r0", "{0, 0}", "%d0")).report, test::contains("tensor map"));
  CHECK_THAT(fault_of("st.global.u32 [%d1+16], 77;" + tensor_load("%r0", "{0, 0}"),
                      "a map is opaque: what a GPU makes of other bytes is left open")
                 .report,
             test::contains("tensor map"));
  CHECK_THAT(fault_of("add.u64 %d2, %d1, 16;" + tensor_load("%r0", "{0, 0}", "%d2")).report, test::contains("map"));
}

TEST_CASE("tensor reductions that the map's type does not have") {
  CHECK(fault_of("cp.reduce.async.bulk.tensor.2d.global.shared::cta.xor.tile.bulk_group [%d1, {0, 0}], [%r0];").error ==
        715);
}

TEST_CASE("more bytes than the barrier expected: the phase does not end, and a hang report says so") {
  const std::string ptx = probe::kernel(kStart + load("%r0", "%d0", "128", "%r1") + R"(
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], 0;
    @!%p1 bra wait;
)",
                                        2, ".extern .shared .align 1024 .b8 smem[];");
  probe::Ending ending = probe::failure(ptx, {probe::bytes_of(std::vector<uint32_t>(64))},
                                        {.block = {1, 1, 1},
                                         .dynamic_shared_bytes = 4096,
                                         .apart = "an H200 counts the bytes of a copy in pieces of 32 and more as they "
                                                  "come: whether the count is met on the way is chance"});
  CHECK(ending.error == 702);
  CHECK_THAT(ending.report, test::contains("64 bytes more than were expected"));
  CHECK_THAT(ending.report, test::contains("bytes of a copy"));
}
