// From a conflict to a finding: which rule it breaks, and the words.

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "emulator/hazards/hazards.h"
#include "emulator/machine/grid.h"
#include "emulator/report/fault_report.h"

namespace emu::hazards {
namespace {

std::string lanes_text(uint32_t lanes, uint32_t of_warp) {
  if (lanes == of_warp && std::popcount(lanes) > 1) return "";
  if (std::has_single_bit(lanes)) return fmt::format(", lane {}", std::countr_zero(lanes));
  if (lanes == kAllLanes) return "";
  return fmt::format(", lanes {:#010x}", lanes);
}

}  // namespace

/// An instruction's line: copies of it that an unrolled loop makes are one.
std::string Hazards::place(uint32_t source) const {
  return describe_location(cluster_.grid.location(source));
}

Side Hazards::side(const Record& record, uint32_t lanes) const {
  const Cta& cta = *cluster_.ctas[record.cta_rank];
  const std::string rank = cluster_.ctas.size() > 1 ? fmt::format(" (CTA {} of its cluster)", cta.rank) : "";
  const std::string& instruction = cluster_.grid.text(record.source);
  return {traits(record.kind).name, place(record.source),
          fmt::format("block ({},{},{}){}, warp {}{}", cta.index.x, cta.index.y, cta.index.z, rank, record.warp,
                      lanes_text(lanes, cta.warps[record.warp]->live)),
          instruction};
}

Record Hazards::here(const Warp& warp, uint32_t lanes) const {
  Record record;
  record.kind = Kind::barrier_use;
  record.issuer = record.channel = agent(warp);
  record.issued = threads_[record.issuer].now;
  record.cta_rank = warp.cta.rank;
  record.warp = warp.index;
  record.lanes = lanes;
  record.source = cluster_.origin(warp).source;
  return record;
}

std::string Hazards::object_text(const Cta& cta, const Where& where, bool tensor_memory) const {
  if (tensor_memory)
    return fmt::format("tensor memory{}: lanes {} to {}, columns {} to {}",
                       cluster_.ctas.size() > 1 ? fmt::format(" of CTA {}", cta.rank) : "", where.first_row * 16,
                       where.last_row * 16 + 15, where.first_column, where.last_column);
  const auto begin = static_cast<uint32_t>(where.first_column * 4),
             end = static_cast<uint32_t>(where.last_column * 4 + 3);
  const std::string variable = describe_shared(cluster_, cta.rank << 24 | begin);
  std::vector<size_t> words = where.cells;
  std::ranges::sort(words);
  words.erase(std::ranges::unique(words).begin(), words.end());
  const bool whole = words.size() == where.last_column - where.first_column + 1;
  return fmt::format("shared memory: {} bytes {} {} (addresses {:#x} to {:#x})", words.size() * 4,
                     whole ? "from" : "scattered from", variable, begin, end);
}

/// How somebody may know that the operation is done.
std::string Hazards::how_it_completes(const Record& record) const {
  const Channel& channel = channels_[record.channel];
  const std::string what = traits(record.kind).name;
  switch (channel.kind) {
    case ChannelKind::warp:
      return "";
    case ChannelKind::barrier:
      if (record.kind == Kind::barrier_use)
        return fmt::format("It arrives on {}.", describe_shared(cluster_, channel.barrier));
      return fmt::format("The {} tells {} when it is done.", what, describe_shared(cluster_, channel.barrier));
    case ChannelKind::commit: {
      std::string text = fmt::format(
          "The {} is done when an mbarrier that a later tcgen05.commit of the same thread names says so.", what);
      if (!empty_commit_.empty())
        text += " The tcgen05.commit at " + empty_commit_ + " is another thread's and tracks nothing.";
      return text;
    }
    case ChannelKind::bulk_read:
      return fmt::format("The {} has read its source when the same thread's cp.async.bulk.wait_group.read says so.",
                         what);
    case ChannelKind::bulk_write:
      return fmt::format("The {} is done when the same thread's cp.async.bulk.wait_group says so.", what);
    case ChannelKind::tensor_load:
      return "A tcgen05.ld is done when its thread has executed tcgen05.wait::ld, or used all its registers.";
    case ChannelKind::tensor_store:
      return "A tcgen05.st is done when its thread has executed tcgen05.wait::st.";
    case ChannelKind::wgmma:
      return "A wgmma has read its operands when its warpgroup's wgmma.wait_group says so.";
    case ChannelKind::copy:
      return "A cp.async is done when its thread's cp.async.wait_group says so, or an mbarrier by "
             "cp.async.mbarrier.arrive.";
    case ChannelKind::alloc:
    case ChannelKind::init:
    case ChannelKind::start:
      break;
  }
  return "";
}

/// The reader has waited for an earlier phase of the barrier that the write tells.
bool Hazards::had_stage(const Record& write, const Record& reader, uint32_t lanes) const {
  const auto known = barriers_.find(write.signal);
  if (known == barriers_.end()) return false;
  const auto pass = known->second.passes.find(reader.issuer);
  const uint32_t released = reader.asynchronous() ? reader.released : last_release(threads_[reader.issuer], lanes);
  return pass != known->second.passes.end() && pass->second.phases < write.complete && released > pass->second.moment;
}

bool Hazards::told(Rule rule, uint32_t source, uint32_t other) {
  const auto known = told_.find({rule, source, other});
  if (known == told_.end()) return false;
  findings_.count(known->second);
  return true;
}

/// Which of the two comes first by the program, whatever came first in this run? What the other one's issuer knew says
/// it. Where neither knew of the other: who reads what nobody has written reads too early; and who has waited for a
/// stage, and has not released it since, still has a right to it when the next round's write comes. Else, of a thread
/// that reads and another that writes, a barrier may be missing on either side of the read.
Hazards::First Hazards::comes_first(const Record& before, uint32_t before_lanes, const Record& now, uint32_t now_lanes,
                                    const View& view) const {
  // Memory that is freed was meant to be used before.
  if (before.kind == Kind::tensor_dealloc) return First::now;
  if (now.kind == Kind::tensor_dealloc) return First::before;
  if (before.issuer == now.issuer && now.asynchronous())
    return (before.asynchronous() ? now.sequence < before.sequence : now.issued < before.issued) ? First::now
                                                                                                 : First::before;
  if (view.done.covers_lanes(before.issuer, before_lanes, before.issued)) return First::before;
  if (before.view && before.view->done.covers_lanes(now.issuer, now_lanes, now.issued)) return First::now;
  if (before.of_nothing) return First::now;
  // A thread's own access: what the thread knows, by now at the latest.
  if (!before.asynchronous() && before.issuer != now.issuer)
    for (const Lanes& part : threads_[before.issuer].classes)
      if ((part.lanes & before_lanes) && part.view->done.covers_lanes(now.issuer, now_lanes, now.issued))
        return First::now;
  // And who has released the stage has no right to it any more.
  if (const auto told = barriers_.find(now.signal); told != barriers_.end() && !traits(before.kind).writes) {
    const auto pass = told->second.passes.find(before.issuer);
    if (pass != told->second.passes.end() && before.released > pass->second.moment) return First::now;
  }
  const auto known = barriers_.find(before.signal);
  if (known == barriers_.end() || traits(now.kind).writes) return First::unknown;
  const auto pass = known->second.passes.find(now.issuer);
  const uint32_t released = now.asynchronous() ? now.released : last_release(threads_[now.issuer], now_lanes);
  return pass != known->second.passes.end() && pass->second.phases + 1 == before.complete &&
                 released < pass->second.moment
             ? First::now
             : First::unknown;
}

void Hazards::report(const Conflict& conflict, const Record& now, uint32_t now_lanes, const View& view, Cta& cta,
                     bool tensor_memory) {
  const Record& before = records_[conflict.before];
  const First comes =
      conflict.order == Order::none ? comes_first(before, conflict.before_lanes, now, now_lanes, view) : First::before;
  const bool turned = comes == First::now;
  const Record &first = turned ? now : before, &second = turned ? before : now;
  const uint32_t first_lanes = turned ? now_lanes : conflict.before_lanes,
                 second_lanes = turned ? conflict.before_lanes : now_lanes;
  const KindTraits &f = traits(first.kind), &s = traits(second.kind);

  Rule rule = Rule::write_write;
  if (f.writes && !s.writes) rule = Rule::read_too_early;
  if (!f.writes && s.writes) rule = Rule::overwrite_too_early;
  Rank rank = Rank::error;
  std::string explanation = how_it_completes(first);
  if (before.kind == Kind::barrier_init && traits(now.kind).writes && now.kind != Kind::barrier_init) {
    rule = Rule::barrier_overwritten;
    rank = Rank::rule;
  }
  switch (conflict.order) {
    case Order::known:
    case Order::constant:
      return;
    case Order::unfenced:
      rule = Rule::proxy_fence;
      rank = s.writes ? Rank::rule : Rank::error;
      explanation =
          fmt::format("A barrier orders the two, but no fence.proxy.async lies between the threads' {} and the {}.",
                      f.writes ? "writes" : "reads", f.writes ? "use" : "next answer");
      break;
    case Order::untaken:
      rule = Rule::tcgen05_fence;
      rank = Rank::rule;
      explanation = "What lies between the two orders them on the chips known today.";
      break;
    case Order::warp_only:
      rule = Rule::warp_sync;
      rank = Rank::rule;
      explanation = explanation.empty() ? "The two are ordered only by lanes of a warp running together."
                                        : explanation + " Another lane of the warp has waited for that.";
      break;
    case Order::unacquired:
    case Order::stale:
    case Order::weak:
      rule = Rule::weak_order;
      rank = f.writes && !s.writes && first.cta_rank != second.cta_rank ? Rank::error : Rank::rule;
      explanation =
          first.cta_rank != second.cta_rank
              ? "They are in different CTAs, and what lies between them is relaxed or of .cta scope."
              : "What lies between them is no release and acquire of these two threads: something relaxed, or the "
                "signal of another thread. A signal speaks for its own thread, and for those that had met it at a "
                "__syncthreads() or __syncwarp() before.";
      break;
    case Order::none:
      if (rule == Rule::barrier_overwritten) {
        explanation = "The mbarrier has not been invalidated.";
        break;
      }
      if (rule == Rule::read_too_early && had_stage(first, second, second_lanes)) {
        explanation += " " + side(second, second_lanes).who +
                       " had waited for the round before, and has released the stage since: either it releases too "
                       "early, or does not wait for this round.";
        break;
      }
      if (explanation.empty() && comes == First::unknown && f.writes != s.writes)
        explanation =
            "Nothing orders the two: a barrier, or an arrive and a wait, is missing before the read or behind it.";
      else if (explanation.empty())
        explanation = "Nothing between the two orders them: no barrier, no arrive and wait.";
      else
        explanation += fmt::format(" Nothing that {} had waited for says so.", side(second, second_lanes).who);
      break;
  }
  std::string fix = conflict.order == Order::none ? fix_between_threads(first, second) : "";
  if (conflict.order == Order::unfenced && !f.writes)
    fix = "each reading thread executes fence.proxy.async.shared::cta behind its load and before it signals";
  if (now.kind == Kind::wgmma_operands && first.cta_rank == second.cta_rank &&
      (conflict.order == Order::warp_only || conflict.order == Order::weak)) {
    rule = Rule::warp_sync;
    explanation = how_it_completes(first) +
                  " Some threads of the warpgroup know of that, and not all: wgmma brings the lanes of "
                  "a warp together, not the four warps.";
    fix =
        "every warp of the warpgroup waits before its wgmma, or a barrier of all four lies between the wait and the "
        "wgmma";
  }
  if (told(rule, second.source, first.source)) return;
  told_[{rule, second.source, first.source}] =
      report(rule, rank, object_text(cta, conflict.where, tensor_memory),
             {side(second, second_lanes), side(first, first_lanes)}, std::move(explanation), std::move(fix));
}

/// Of two threads' own loads, stores and atomics.
std::string Hazards::fix_between_threads(const Record& first, const Record& second) const {
  const auto own = [](const Record& record) { return record.kind <= Kind::atomic; };
  if (!own(first) || !own(second)) return "";
  const std::string update = traits(first.kind).writes && traits(second.kind).writes
                                 ? "; where both are to update one place, an atomic operation"
                                 : "";
  if (first.cta_rank != second.cta_rank)
    return "a cluster barrier (barrier.cluster.arrive, .wait) between the two, or a release and an acquire of cluster "
           "scope" +
           update;
  return "a barrier of both threads between the two (__syncthreads(), a named barrier, an arrive and a wait; within a "
         "warp __syncwarp()), in a loop also between a turn's reads and the next turn's writes" +
         update;
}

void Hazards::read_of_nothing(const Record& record, uint32_t lanes, const Cta& cta, size_t word) {
  if (told(Rule::uninitialised, record.source, 0)) return;
  told_[{Rule::uninitialised, record.source, 0}] =
      report(Rule::uninitialised, Rank::note,
             fmt::format("shared memory: {} (address {:#x})",
                         describe_shared(cluster_, cta.rank << 24 | static_cast<uint32_t>(word * 4)), word * 4),
             {side(record, lanes)}, "It read some bytes that nothing has written since the block started.");
}

void Hazards::wgmma_registers_used(Warp& warp, const Record& wgmma) {
  const Record now = here(warp, warp.live);
  if (told(Rule::wgmma_wait, now.source, wgmma.source)) return;
  Side user = side(now, warp.live), producer = side(wgmma, wgmma.lanes);
  user.what = "use of a register";
  producer.what = "wgmma";
  told_[{Rule::wgmma_wait, now.source, wgmma.source}] =
      report(Rule::wgmma_wait, Rank::rule, "registers of D", {user, producer}, "ptxas puts the missing wait in.");
}

void Hazards::misaligned_tile(Warp& warp, int lane, uint32_t address, uint32_t pattern_bytes) {
  Side copy = side(here(warp, 1u << lane), 1u << lane);
  copy.what = "TMA copy";
  report(Rule::swizzle_alignment, Rank::note, describe_shared(cluster_, address), {copy},
         fmt::format("The tile begins at {:#x}; the pattern of this swizzle repeats every {} bytes.",
                     address & 0xFFFFFF, pattern_bytes));
}

size_t Hazards::report(Rule rule, Rank rank, std::string object, std::vector<Side> sides, std::string explanation,
                       std::string fix) {
  return findings_.add({.rule = rule,
                        .rank = rank,
                        .kernel = cluster_.grid.program.pretty_name,
                        .object = std::move(object),
                        .explanation = std::move(explanation),
                        .fix = std::move(fix),
                        .sides = std::move(sides),
                        .schedule = name(cluster_.schedule())});
}

}  // namespace emu::hazards
