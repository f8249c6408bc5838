#pragma once
// LADDER_TRACE: what happened in each launch, for tests of determinism and for tools/trace.py, which draws it. Text:
//
//   launch MANGLED                       a launch begins here
//   kernel NAME
//   barrier OFFSET NAME                  an mbarrier in a CTA's shared memory
//   source NUMBER FILE:LINE (in ...)     an instruction that events name
//   CLOCK CLUSTER CTA WARP LANE SOURCE EVENT VALUES...
//
// Clusters come one after the other, each in the order of its virtual clock, which orders events and is no chip's time.
// CTA is its rank in the cluster, LANE -1 where the warp acts as a whole. Events that are no instruction's own (a phase
// that ends) are of who caused them. Values, by event:
//
//   cta_start                            X Y Z of the block
//   cta_exit
//   wait_mbarrier, wait_barrier, ...     lanes that are parked, what they wait for (address or number), parity
//   resumed, gave_up                     lanes that go on: what they waited for has come; the limit of try_wait has
//   mbarrier_init                        address, count
//   phase                                address, number of the phase that ended
//   barrier, cluster_barrier             number, threads; threads
//   tma_load                             operation, CTA that gets the bytes, offset in shared memory, bytes, mbarrier;
//                                        with a tensor map: offset of the parameter, coordinates. Once for each CTA
//   tma_load_read                        operation
//   tma_load_shown                       operation, CTA that has the bytes, mbarrier
//   tma_store                            operation, offset, bytes; with a tensor map as above
//   tma_store_read, tma_store_shown      operation
//   mma, wgmma                           operation, offsets of A (0: not in shared memory) and B; of mma: D's column
//   mma_read, mma_shown, wgmma_...       operation
//   commit, commit_shown                 operation, mbarrier: once for each
//   tmem_load, tmem_store                operation, column, columns
//   tmem_load_shown, tmem_store_shown    operation
//   tmem_copy                            column, offset of the source
//   tmem_alloc, tmem_dealloc             column, columns
//   cancel                               whether a cluster was, which
//   wgmma_registers_before_wait

#include <string>

namespace emu {

class Grid;

void append_trace(const std::string& path, const Grid& grid);

}  // namespace emu
