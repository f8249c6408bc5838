// The parser on what nvcc 13.0 writes. The sources and the commands lie beside the texts in ptx_fixtures/; what is
// expected here was read off the .cu files and the PTX by eye.

#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "emulator/ptx/liveness.h"
#include "tests/catch.h"
#include "tests/unit/ptx_text.h"

using namespace emu::ptx;
using Kind = Operand::Kind;

namespace {

Module fixture(const std::string& name) {
  std::ifstream in(std::string(SOURCE_FOLDER) + "/tests/unit/ptx_fixtures/" + name);
  REQUIRE(in.good());
  std::stringstream text;
  text << in.rdbuf();
  return parse(text.str(), name);
}

std::vector<const Instruction*> all(const Function& function, std::string_view opcode) {
  std::vector<const Instruction*> result;
  for (const Instruction& i : function.body) {
    if (i.opcode->text == opcode) result.push_back(&i);
  }
  return result;
}

}  // namespace

TEST_CASE("calls.ptx: functions, prototypes, variables") {
  const Module m = fixture("calls.ptx");
  CHECK(m.target == "sm_100f");
  std::set<std::string_view> with_code, prototypes;
  for (const Function& f : m.functions) (f.has_code() ? with_code : prototypes).insert(f.name);
  CHECK(with_code ==
        std::set<std::string_view>{"_Z9fibonaccii", "_Z6squarei", "_Z9make_pairc4Pairi", "_Z8call_allPic4Pairt"});
  CHECK(prototypes == std::set<std::string_view>{"vprintf", "__assertfail"});

  const Variable& weights = *m.variable("weights");
  CHECK((weights.space == Space::constant && weights.bytes == 20));
  float first[2];
  std::memcpy(first, weights.initial.data(), 8);
  CHECK((first[0] == 1.f && first[1] == 2.f));
  const Variable& second = *m.variable("second_counter");
  REQUIRE(second.relocations.size() == 1);
  CHECK((second.relocations[0].generic && second.relocations[0].addend == 4 &&
         m.variables[second.relocations[0].index].name == "counters"));
  const Variable& table = *m.variable("table");
  REQUIRE(table.relocations.size() == 2);
  CHECK((table.relocations[1].is_function && m.functions[table.relocations[1].index].name == "_Z6squarei"));
  const Variable& text = m.variables[m.variable("greeting")->relocations.at(0).index];
  CHECK(std::string(reinterpret_cast<const char*>(text.initial.data())) == "hello");
}

TEST_CASE("calls.ptx: calls of every kind") {
  const Module m = fixture("calls.ptx");
  const Function& kernel = *m.function("_Z8call_allPic4Pairt");
  std::vector<uint32_t> offsets;
  for (const Variable& v : kernel.parameters()) offsets.push_back(v.offset);
  CHECK(offsets == std::vector<uint32_t>{0, 8, 16, 40});  // int*, char, 24 bytes aligned to 8, unsigned short
  CHECK(kernel.entry_parameter_bytes == 42);
  CHECK(kernel.local_frame_bytes == 24);

  std::vector<std::string> callees;
  for (const Instruction* call : all(kernel, "call.uni"))
    callees.emplace_back(m.functions[call->operands[1].index].name);
  CHECK(callees == std::vector<std::string>{"__assertfail", "_Z9make_pairc4Pairi", "vprintf"});
  const auto indirect = all(kernel, "call");
  REQUIRE(indirect.size() == 1);
  CHECK(indirect[0]->operands[1].kind == Kind::reg);
  REQUIRE(indirect[0]->operands[3].kind == Kind::prototype);
  CHECK(kernel.prototypes[indirect[0]->operands[3].index].parameters.at(0).bytes == 4);

  // Every call sequence declares its own param0; arguments are those of the sequence that the call stands in.
  const Instruction* make_pair = all(kernel, "call.uni")[1];
  const auto argument = [&](size_t i) -> const Variable& {
    return kernel.variables[make_pair->operands[2].children.at(i).symbol.index];
  };
  CHECK((argument(0).name == "param0" && argument(0).bytes == 4));
  CHECK((argument(1).name == "param1" && argument(1).bytes == 24 && argument(1).align == 16));
  const Function& fibonacci = *m.function("_Z9fibonaccii");
  for (const Instruction* call : all(fibonacci, "call.uni")) CHECK(&m.functions[call->operands[1].index] == &fibonacci);
}

TEST_CASE("inlined.ptx: scopes of inline assembly, clusters, source lines") {
  const Module m = fixture("inlined.ptx");
  const Function& kernel = *m.function("_Z4load14CUtensorMap_stPfi");
  CHECK((kernel.tuning.maxntid->x == 128 && kernel.tuning.minnctapersm == 1u && kernel.tuning.explicitcluster));
  CHECK(kernel.tuning.reqnctapercluster->x == 2);
  CHECK((kernel.parameters()[0].bytes == 128 && kernel.parameters()[0].align == 128));

  const auto waits = all(kernel, "mbarrier.try_wait.parity.shared::cta.b64");
  REQUIRE(waits.size() == 2);
  CHECK(waits[0]->operands[0].index != waits[1]->operands[0].index);  // both are called p in the text
  for (const Instruction* wait : waits) {
    const uint32_t at = static_cast<uint32_t>(wait - kernel.body.data());
    const Instruction &leave = kernel.body[at + 1], &again = kernel.body[at + 2];
    CHECK((leave.name() == "bra" && leave.guard == wait->operands[0].index && leave.operands[0].index == at + 3));
    CHECK((again.name() == "bra" && again.guard == kNone && again.operands[0].index == at));
  }

  const auto loads = all(kernel, "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes");
  REQUIRE(loads.size() == 1);
  const Operand& map = loads[0]->operands[1];
  CHECK((map.kind == Kind::address && map.children.size() == 1 && map.children[0].children.size() == 2));

  // wait_twice(barrier) on line 39 calls wait on lines 22 and 23, whose assembly is on line 17.
  const auto line = [&](const Instruction* i) {
    const Location& l = m.locations.at(i->location);
    return m.describe(l.innermost) + " in " + std::string(l.function) + " <- " +
           m.describe(m.locations.at(l.inlined_at).innermost) + " <- " + m.describe(l.outermost);
  };
  CHECK(line(waits[0]) == "inlined.cu:17 in _Z4waitjj <- inlined.cu:22 <- inlined.cu:39");
  CHECK(line(waits[1]) == "inlined.cu:17 in _Z4waitjj <- inlined.cu:23 <- inlined.cu:39");
  CHECK(m.describe(m.locations.at(loads[0]->location).outermost) == "inlined.cu:36");
}

TEST_CASE("inlined.ptx: the arms of the switch meet where it ends") {
  const Module m = fixture("inlined.ptx");
  const Function& kernel = *m.function("_Z4load14CUtensorMap_stPfi");
  const ControlFlow flow = analyse(kernel);
  const auto stores = all(kernel, "st.global.f32");
  REQUIRE(stores.size() == 1);
  const uint32_t meeting = static_cast<uint32_t>(stores[0] - kernel.body.data());
  size_t arms = 0;
  for (uint32_t i = 0; i < kernel.body.size(); ++i) {
    if (kernel.body[i].guard == kNone) continue;
    CHECK(flow.reconvergence[i] < kernel.body.size());
    arms += flow.reconvergence[i] == meeting;
  }
  CHECK(arms == 9);  // the nine comparisons %p2 to %p10 of the decision tree; %p1 and the two waits meet elsewhere
}
