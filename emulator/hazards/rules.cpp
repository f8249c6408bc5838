#include "emulator/hazards/rules.h"

#include <array>

namespace emu::hazards {

const char* name(Rank rank) {
  constexpr const char* kNames[] = {"Error", "Rule", "Note"};
  return kNames[static_cast<size_t>(rank)];
}

const RuleTraits& traits(Rule rule) {
  static constexpr std::array<RuleTraits, kRules> kTraits = {{
      {"read-too-early", Rank::error, "read before the write is known to be done",
       "wait for what the writer signals (its mbarrier, its commit's mbarrier, a barrier) before the read",
       "PTX ISA, Memory Consistency Model: Causality Order"},
      {"overwrite-too-early", Rank::error, "overwritten before the read is known to be done",
       "let the reader signal when it is done (tcgen05.commit, an arrive, cp.async.bulk.wait_group.read), and wait for "
       "that before the overwrite",
       "PTX ISA, Memory Consistency Model: Causality Order"},
      {"write-write", Rank::error, "written twice in no order", "order the two writes by a barrier",
       "PTX ISA, Memory Consistency Model: Causality Order"},
      {"proxy-fence", Rank::error, "written by threads and used through the async proxy without a proxy fence",
       "each writing thread executes fence.proxy.async.shared::cta behind its stores and before the barrier",
       "PTX ISA, Proxies; membar/fence: fence.proxy.async"},
      {"weak-order", Rank::error, "handed over by a synchronisation that is too weak",
       "release and acquire at a scope that holds both threads: .release.cluster and .acquire.cluster between the CTAs "
       "of a cluster, no .relaxed",
       "PTX ISA, Memory Consistency Model: Morally strong operations, Release and Acquire Patterns"},
      {"warp-sync", Rank::rule, "handed from lane to lane of a warp without bar.warp.sync",
       "__syncwarp() between the two: that lanes run together is no order",
       "PTX ISA, bar.warp.sync; CUDA C++ Programming Guide, Independent Thread Scheduling"},
      {"tcgen05-fence", Rank::rule, "tcgen05 operations of two threads without the pair of tcgen05 fences",
       "tcgen05.fence::before_thread_sync behind the first (a tcgen05.commit brings it along), "
       "tcgen05.fence::after_thread_sync behind the wait and before the second",
       "PTX ISA, tcgen05 Memory Consistency Model: specialised fences"},
      {"uninitialised", Rank::note, "read before anything wrote it", "write it first",
       "PTX ISA, State Spaces: contents of shared and tensor memory are undefined at the start"},
      {"barrier-init", Rank::error, "mbarrier used where its mbarrier.init is not yet known to be done",
       "__syncthreads() behind mbarrier.init, and where other CTAs of the cluster use it, a cluster barrier",
       "PTX ISA, mbarrier.init"},
      {"barrier-init-fence", Rank::note, "mbarrier.init without a fence that shows it to asynchronous operations",
       "fence.mbarrier_init.release.cluster behind mbarrier.init, in the same thread",
       "PTX ISA, membar/fence: fence.mbarrier_init; cp.async.bulk: mbar"},
      {"barrier-reuse", Rank::rule, "mbarrier that may be in use initialised again or invalidated",
       "mbarrier.inval first, when nobody uses it any more", "PTX ISA, mbarrier.init, mbarrier.inval"},
      {"barrier-overwritten", Rank::error, "memory of a live mbarrier written as data",
       "keep barriers apart from data; before their memory is reused, mbarrier.inval", "PTX ISA, mbarrier.inval"},
      {"barrier-bytes", Rank::error, "phase of an mbarrier ends while copies that tell it are under way",
       "expect the bytes of all copies that tell the barrier in a phase, with or before the last arrive of that phase",
       "PTX ISA, Phase of the mbarrier object: tx-count"},
      {"barrier-behind", Rank::error, "wait for a phase of an mbarrier that ended two phases ago",
       "keep phases apart: nobody may arrive for the next phase but one before all have seen the last",
       "PTX ISA, mbarrier.test_wait: .parity"},
      {"peer-not-started", Rank::error, "another CTA of the cluster used before it is known to run",
       "a cluster barrier (barrier.cluster.arrive, .wait) before the first use of a peer's shared memory or barriers",
       "CUDA C++ Programming Guide, Distributed Shared Memory"},
      {"peer-gone", Rank::error, "another CTA of the cluster used when it may have ended",
       "end no CTA while others may still use its shared memory, barriers or tensor memory: a cluster barrier before "
       "the end, or wait for their last signals",
       "CUDA C++ Programming Guide, Distributed Shared Memory"},
      {"bulk-store-wait", Rank::error, "CTA ends while bulk stores still read its shared memory",
       "cp.async.bulk.wait_group.read 0 in the thread that issued them before the CTA ends",
       "PTX ISA, cp.async.bulk.wait_group"},
      {"commit-thread", Rank::note, "tcgen05.commit by a thread that has issued nothing to track",
       "the thread that issues the MMAs commits them: a commit tracks its own thread's operations alone",
       "PTX ISA, tcgen05.commit"},
      {"wgmma-wait", Rank::rule, "register of a wgmma used before wgmma.wait_group",
       "wgmma.wait_group before D is read or written, and before registers of A are written",
       "PTX ISA, wgmma.mma_async: accessing the registers before wgmma.wait_group is undefined"},
      {"swizzle-alignment", Rank::note, "swizzled tile that does not begin where the pattern of its swizzle does",
       "align the tile: 1024 bytes for the 128-byte swizzle, 512 for 64, 256 for 32; the swizzle goes by addresses, "
       "not "
       "by rows of the tile",
       "PTX ISA, Swizzling modes; CUDA programming guide, TMA swizzle"},
  }};
  return kTraits[static_cast<size_t>(rule)];
}

}  // namespace emu::hazards
