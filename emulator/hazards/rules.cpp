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
       "PTX ISA, Memory Consistency Model: Causality Order",
       "Reads of shared and tensor memory (threads, TMA stores, bulk copies, tensor core operands, `tcgen05.ld`) of "
       "what a thread or an asynchronous operation wrote, and of global memory what another thread of the launch "
       "wrote, where nothing the reader had waited for says that the write is done: no wait, the wrong parity, a "
       "commit by another thread, a mailbox without a barrier",
       "an access that the run never makes; in global memory, a read that came before the write in every schedule "
       "tried (that is told as an overwrite)"},
      {"overwrite-too-early", Rank::error, "overwritten before the read is known to be done",
       "let the reader signal when it is done (tcgen05.commit, an arrive, cp.async.bulk.wait_group.read), and wait for "
       "that before the overwrite",
       "PTX ISA, Memory Consistency Model: Causality Order",
       "A stage refilled, a source buffer reused, an accumulator overwritten or tensor memory freed while a reader "
       "(threads, an MMA, a multicast peer, a bulk store, a `tcgen05.ld` neither waited for nor used) is not known to "
       "be done; bytes of global memory changed by a store or a bulk store when a thread's load or a TMA load of them "
       "is "
       "not known to be done",
       "in global memory: all but the last two warps that have read a sector of 32 bytes; multicast loads; reads whose "
       "thread has signalled since, if only by something relaxed"},
      {"write-write", Rank::error, "written twice in no order", "order the two writes by a barrier",
       "PTX ISA, Memory Consistency Model: Causality Order",
       "Two writes to the same bytes or columns that nothing orders, and that differ where threads store; in global "
       "memory stores and bulk stores that differ, and a plain store with an atomic",
       "stores of what is there already"},
      {"proxy-fence", Rank::error, "accessed by threads and then through the async proxy without a proxy fence",
       "each writing thread executes fence.proxy.async.shared::cta (of global memory .global) behind its stores and "
       "before "
       "the barrier; or whoever uses the bytes, behind its wait",
       "PTX ISA, Proxies; membar/fence: fence.proxy.async",
       "Bytes that threads wrote (`st.shared`, `cp.async`) and TMA, bulk copies, `wgmma` or `tcgen05` then read or "
       "overwrite; global memory that threads wrote and TMA loads or overwrites. A rule where the bytes are "
       "overwritten, also an answer of cluster launch control that threads have read. A fence anywhere on the way "
       "between the two counts, by the thread or by whoever learned of what it did",
       "other reads by threads before an asynchronous overwrite (the text can be read to ask for a fence there; no "
       "published kernel has one)"},
      {"weak-order", Rank::error, "handed over by a synchronisation that is too weak",
       "release before the signal and acquire behind it, at a scope that holds both threads: .release.cluster and "
       ".acquire.cluster between the CTAs of a cluster; through global memory __threadfence() before the writer's "
       "signal "
       "and behind the reader's, or .release.gpu and .acquire.gpu",
       "PTX ISA, Memory Consistency Model: Morally strong operations, Release and Acquire Patterns",
       "Hand-overs by `.relaxed` operations without a fence, by `.cta` scope between CTAs of a cluster, through flags "
       "and counters in memory without `__threadfence()`, or with operations and fences (`__threadfence_block()`) "
       "whose "
       "scope ends at the cluster's edge. An error where another CTA reads what was written, else a rule; a rule, too, "
       "where nothing lacks but the fence behind the reader's relaxed read and its block has not read the bytes before",
       "`.cta` scope of flags in global memory between the CTAs of one cluster; what atomics hand over that many lanes "
       "perform in places of their own: they count, and its lack is told as no order at all"},
      {"warp-sync", Rank::rule, "handed from lane to lane of a warp without bar.warp.sync",
       "__syncwarp() between the two: that lanes run together is no order",
       "PTX ISA, bar.warp.sync; CUDA C++ Programming Guide, Independent Thread Scheduling",
       "One lane waits or arrives for its warp, or one warp waits for its warpgroup's `wgmma`, and nothing like "
       "`__syncwarp()` lies between that and the other lanes' "
       "accesses, where the lanes ran together all the same",
       "what the compiler did to the order of lanes"},
      {"tcgen05-fence", Rank::rule, "tcgen05 operations of two threads without the pair of tcgen05 fences",
       "tcgen05.fence::before_thread_sync behind the first (a tcgen05.commit brings it along), "
       "tcgen05.fence::after_thread_sync behind the wait and before the second",
       "PTX ISA, tcgen05 Memory Consistency Model: specialised fences",
       "`tcgen05` operations of two threads on the same columns, ordered by barriers but without `before_thread_sync` "
       "and `after_thread_sync`",
       "between lanes of one warp"},
      {"uninitialised", Rank::note, "read before anything wrote it", "write it first",
       "PTX ISA, State Spaces: contents of shared and tensor memory are undefined at the start",
       "Words of shared memory read that nothing in the CTA has written; where nothing was written in tensor memory "
       "either, the machine says so by itself. `./ladder check` then runs the program with other contents there: an "
       "error "
       "where what it writes to global memory changes",
       "registers; outputs of programs that differ from run to run"},
      {"barrier-init", Rank::error, "mbarrier used where its mbarrier.init is not yet known to be done",
       "__syncthreads() behind mbarrier.init, and where other CTAs of the cluster use it, a cluster barrier",
       "PTX ISA, mbarrier.init",
       "Any use of an mbarrier whose `mbarrier.init` no barrier orders before it, in the CTA or across the cluster",
       "a barrier that was never initialised: that ends in a trap"},
      {"barrier-init-fence", Rank::note, "mbarrier.init without a fence that shows it to asynchronous operations",
       "fence.mbarrier_init.release.cluster behind mbarrier.init, in the same thread",
       "PTX ISA, membar/fence: fence.mbarrier_init; cp.async.bulk: mbar",
       "Copies that complete on an mbarrier whose init no `fence.mbarrier_init` or proxy fence has followed",
       "commits and arrives; a note, since the text from PTX 9.3 on has copies reach their mbarrier through the "
       "generic proxy, where an ordered init is enough"},
      {"barrier-reuse", Rank::rule, "mbarrier ended or initialised again while it may be in use",
       "a barrier behind its last use, then mbarrier.inval, and only then another mbarrier.init",
       "PTX ISA, mbarrier.init, mbarrier.inval",
       "`mbarrier.init` on a live barrier; `mbarrier.inval` or init while a thread may still wait or arrive", ""},
      {"barrier-overwritten", Rank::rule, "memory of a live mbarrier written as data",
       "keep barriers apart from data; before their memory is reused, mbarrier.inval", "PTX ISA, mbarrier.inval",
       "Data written where a live mbarrier is", ""},
      {"barrier-bytes", Rank::error, "phase of an mbarrier ends while copies that tell it are under way",
       "expect the bytes of all copies that tell the barrier in a phase, with or before the last arrive of that phase; "
       "start no copy of the next phase before this one has ended",
       "PTX ISA, Phase of the mbarrier object: tx-count",
       "A phase that ends while a copy that tells the barrier is under way",
       "under the schedule `earliest`, where no copy ever is: there the read is told"},
      {"barrier-behind", Rank::rule, "wait for a phase of an mbarrier that ended two phases ago",
       "keep phases apart: nobody may arrive for the next phase but one before all have seen the last",
       "PTX ISA, mbarrier.test_wait: .parity",
       "Lanes that saw phase n end and ask for the parity of n + 1 when n + 2 has ended as well",
       "lanes that wait for a barrier for the first time"},
      {"peer-not-started", Rank::error, "another CTA of the cluster used before it is known to run",
       "a cluster barrier (barrier.cluster.arrive, .wait) before the first use of a peer's shared memory or barriers, "
       "and "
       "before tcgen05.alloc.cta_group::2",
       "CUDA C++ Programming Guide, Distributed Shared Memory; PTX ISA, tcgen05.alloc: .cta_group::2",
       "Shared memory, barriers or multicast of a CTA of the cluster from which nothing has come yet. A rule where it "
       "is a "
       "`tcgen05.alloc` of a pair: the call waits for the other CTA by itself",
       ""},
      {"peer-gone", Rank::error, "another CTA of the cluster used when it may have ended",
       "end no CTA while others may still use its shared memory, barriers or tensor memory: a cluster barrier before "
       "the end, or wait for their last signals",
       "CUDA C++ Programming Guide, Distributed Shared Memory",
       "A CTA that ends while a load, store, copy, MMA or arrive of another CTA on it is not known to be over. An "
       "arrive alone is a rule: an H200 drops it",
       "the CTA that ends first by luck, where it knows of the other's last access"},
      {"pair-dealloc", Rank::rule, "tensor memory of a pair freed when the other CTA may not have it yet",
       "a cluster barrier between tcgen05.alloc.cta_group::2 and tcgen05.dealloc.cta_group::2",
       "PTX ISA, tcgen05: Issue Granularity; published: a B300 ends such a launch every time (cutlass 3435)",
       "`tcgen05.dealloc` of a pair by a warp that has heard nothing of the other CTA since that one's "
       "`tcgen05.alloc`: "
       "the alloc may be done in one CTA earlier than in the other",
       "where the warp that allocated there has ended by then"},
      {"bulk-store-wait", Rank::rule, "CTA ends while bulk stores still read its shared memory",
       "cp.async.bulk.wait_group.read 0 in the thread that issued them before the CTA ends",
       "PTX ISA, cp.async.bulk.wait_group",
       "Threads that end without waiting for the sources of their bulk stores, and CTAs that end without knowing that "
       "their bulk copies to other CTAs have been read",
       "what the host or a later launch reads: a launch's end waits for all"},
      {"constant-load", Rank::rule, "loaded as a constant, and written in the same launch",
       "load it by a plain ld.global (no __ldg(), no const __restrict__ pointer to what the kernel writes)",
       "PTX ISA, ld.global.nc: the data must be read-only while the kernel runs",
       "`ld.global.nc` of bytes that a thread or a bulk store of the launch has written before, whatever orders the "
       "two",
       "writes that come behind the load"},
      {"bulk-load-wait", Rank::rule, "CTA ends while bulk loads into its shared memory are under way",
       "wait for every load's mbarrier before the CTA ends, also for what was loaded ahead and is not needed",
       "PTX ISA, cp.async.bulk: completion; CUDA C++ Programming Guide, Thread Block Clusters: shared memory lives as "
       "long "
       "as its CTA",
       "TMA and bulk loads into the CTA's own shared memory of which no thread that ends knows that they are done: "
       "what a "
       "producer loaded ahead",
       "loads by other CTAs: `peer-gone`"},
      {"commit-thread", Rank::note, "tcgen05.commit by a thread that has issued nothing to track",
       "the thread that issues the MMAs commits them: a commit tracks its own thread's operations alone",
       "PTX ISA, tcgen05.commit", "`tcgen05.commit` by a thread that has issued no MMA, copy or shift", ""},
      {"wgmma-wait", Rank::rule, "register of a wgmma used before wgmma.wait_group",
       "wgmma.wait_group before D is read or written, and before registers of A are written",
       "PTX ISA, wgmma.mma_async: accessing the registers before wgmma.wait_group is undefined",
       "Registers of D touched while their `wgmma` is under way", "registers of A"},
      {"swizzle-alignment", Rank::note, "swizzled tile that does not begin where the pattern of its swizzle does",
       "align the tile: 1024 bytes for the 128-byte swizzle, 512 for 64, 256 for 32; the swizzle goes by addresses, "
       "not by rows of the tile",
       "PTX ISA, Swizzling modes; CUDA programming guide, TMA swizzle",
       "TMA tiles with a swizzle whose address is no multiple of the pattern", "whether the readers know of it"},
  }};
  return kTraits[static_cast<size_t>(rule)];
}

}  // namespace emu::hazards
