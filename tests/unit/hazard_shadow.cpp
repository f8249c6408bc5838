// The shadow of a memory against a model that forgets nothing: random accesses by lanes of a few warps that hand over
// to each other now and then. Up to the first race, and there, both must say the same.

#include <random>

#include "emulator/hazards/shadow.h"
#include "tests/catch.h"

namespace {

using namespace emu::hazards;

constexpr uint32_t kWarps = 3, kLanes = 4, kThreads = kWarps * kLanes, kCells = 6;

/// Who accesses: the model's threads are the lanes of its warps, each with a clock of its own.
struct Model {
  struct Access {
    uint32_t thread, time;
    bool writes;
  };
  std::array<std::array<uint32_t, kThreads>, kThreads> known{};  // [who][of whom]
  std::array<uint32_t, kWarps> now;
  std::array<std::vector<Access>, kCells * 4> bytes;
  Records records;
  bool poisoned = false;  // a record was asked for that had been freed

  Model() { now.fill(1); }

  bool knows(uint32_t thread, uint32_t other, uint32_t time) const {
    return thread == other || known[thread][other] >= time;
  }
  bool races(uint32_t byte, const Access& access) const {
    return std::any_of(bytes[byte].begin(), bytes[byte].end(), [&](const Access& earlier) {
      return (earlier.writes || access.writes) && !knows(access.thread, earlier.thread, earlier.time);
    });
  }
  void hand_over(uint32_t from, uint32_t to) {
    for (uint32_t i = 0; i < kThreads; ++i) known[to][i] = std::max(known[to][i], known[from][i]);
    known[to][from] = std::max(known[to][from], now[from / kLanes]++);
  }
  const Record& record(Ref ref) {
    poisoned |= records[ref].lanes == 0;
    return records[ref];
  }
};

/// As the checker's own, by the model's clocks.
struct Judge {
  Model& model;
  uint32_t thread;
  bool raced = false;

  bool before_all(Ref ref, uint32_t lanes) {
    const Record& earlier = model.record(ref);
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      if ((lanes >> lane & 1) && !model.knows(thread, earlier.issuer * kLanes + lane, earlier.issued)) return false;
    return true;
  }
  bool before(Ref ref, size_t) {
    const bool ordered = before_all(ref, lanes(ref));
    raced |= !ordered;
    return ordered;
  }
  bool all_before(Ref ref, uint32_t lanes) { return before_all(ref, lanes); }
  void again(size_t) {}
  void unwritten(size_t) {}
  bool replaces(Ref ref, uint32_t lanes) { return before_all(ref, lanes); }
  bool surely_replaces(Ref ref) { return before_all(ref, (1u << kLanes) - 1); }
  bool known(Ref ref) { return !(ref & kFlag) && surely_replaces(ref); }
  uint32_t lanes(Ref ref) {
    model.record(ref);
    return model.records.lanes(ref);
  }
  Agent warp(Ref ref) { return model.record(ref).issuer; }
  uint64_t moment(Ref ref) {
    const Record& record = model.record(ref);
    return record.lane_by_lane ? uint64_t{record.issuer} << 32 | record.issued : 0;
  }
};

void collect(Model& model, const Shadow& shadow) {
  model.records.free_unused([&](auto&& used) { shadow.for_each_ref(used); });
}

}  // namespace

TEST_CASE("the shadow finds the first race of a random program, and no other") {
  uint32_t races = 0;
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](uint32_t below) { return static_cast<uint32_t>(random() % below); };
    Model model;
    // The last warp is not of those that the shadow has places for.
    Shadow shadow(kCells, 0, kWarps - 1);
    const uint32_t writes_in_ten = 1 + draw(4), hand_overs = 2 + draw(20), barriers = draw(8);
    bool raced = false;
    for (uint32_t step = 0; step < 80 && !raced; ++step) {
      for (uint32_t i = draw(hand_overs); i > 0; --i) model.hand_over(draw(kThreads), draw(kThreads));
      if (draw(4) < barriers) {
        for (uint32_t thread = 1; thread < kThreads; ++thread) model.hand_over(thread, 0);
        for (uint32_t thread = 1; thread < kThreads; ++thread) model.hand_over(0, thread);
      }
      if (draw(8) == 0) collect(model, shadow);
      const uint32_t thread = draw(kThreads), warp = thread / kLanes, lane = thread % kLanes;
      const bool writes = draw(10) < writes_in_ten;
      Record record;
      record.kind = writes ? Kind::store : Kind::load;
      record.lane_by_lane = draw(2);
      record.issuer = record.channel = warp;
      record.issued = model.now[warp];
      record.lanes = 1u << lane;
      const Ref by = model.records.add(record) | (record.lane_by_lane ? lane : 0);
      Judge judge{model, thread};
      const uint32_t cell = draw(kCells), how = draw(4);
      uint32_t first = cell * 4, count = 4;
      if (how == 0) {
        const uint32_t part = draw(4);
        first += part;
        count = 1;
        writes ? shadow.write_part(cell, 1u << part, by, judge) : shadow.read_part(cell, 1u << part, by, judge);
      } else if (how == 1) {
        const uint32_t cells = 1 + draw(kCells - cell);
        count = 4 * cells;
        writes ? shadow.write(cell, cells, by, judge) : shadow.read(cell, cells, by, judge);
      } else if (!(writes ? shadow.write_known(cell, by, judge) : shadow.read_known(cell, by, judge))) {
        writes ? shadow.write(cell, 1, by, judge) : shadow.read(cell, 1, by, judge);
      }
      const Model::Access access{thread, record.issued, writes};
      for (uint32_t byte = first; byte < first + count; ++byte) {
        raced |= model.races(byte, access);
        model.bytes[byte].push_back(access);
      }
      INFO("seed " << seed << ", step " << step << ", cell " << cell);
      REQUIRE(judge.raced == raced);
      REQUIRE(!model.poisoned);
    }
    races += raced;
  }
  // Both kinds of programs have been tried.
  CHECK(races > 1000);
  CHECK(races < 3000);
}
