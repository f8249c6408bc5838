#pragma once
// Every family's entries for the table of instructions (table.cpp puts them together).

#include <span>

#include "emulator/isa/binder.h"

namespace emu::isa {

std::span<const Entry> move_entries();        // mov, cvta, isspacep, prmt
std::span<const Entry> arithmetic_entries();  // add, sub, mul, mad, fma, shl, and, bfe, min, ... on every type
std::span<const Entry> convert_entries();     // cvt
std::span<const Entry> compare_entries();     // setp, set, selp, slct
std::span<const Entry> memory_entries();      // ld, st, atom, red, prefetch
std::span<const Entry> control_entries();     // bra, brx, exit, trap, nanosleep
std::span<const Entry> call_entries();        // call, ret, alloca, stacksave, stackrestore
std::span<const Entry> warp_entries();        // vote, shfl, match, activemask, elect, redux, bar.warp.sync
std::span<const Entry> barrier_entries();     // barrier, bar, fence, membar
std::span<const Entry> mbarrier_entries();    // mbarrier
std::span<const Entry> tma_entries();         // cp.async.bulk...
std::span<const Entry> tensormap_entries();   // tensormap
std::span<const Entry> launch_entries();      // clusterlaunchcontrol
std::span<const Entry> tcgen05_entries();     // tcgen05
std::span<const Entry> wgmma_entries();       // wgmma
std::span<const Entry> video_entries();       // vadd, vadd2, vadd4, ...
std::span<const Entry> refused_entries();     // textures, surfaces, multimem
std::span<const Entry> mma_entries();         // mma
std::span<const Entry> wmma_entries();        // wmma
std::span<const Entry> register_entries();    // setmaxnreg
std::span<const Entry> matrix_entries();      // ldmatrix, stmatrix, movmatrix

/// Operand of the member mask, of all .sync instructions in warp.cpp.
inline constexpr size_t kMembers = 4;

/// exit, and a kernel's ret. In control.cpp.
void bind_exit(Binder& binder);
/// bar.warp.sync and barrier.warp.sync, which share their opcodes with the CTA barriers; .warp has been taken. In
/// warp.cpp.
void bind_warp_barrier(Binder& binder);
/// barrier.cluster; .cluster has been taken. In cluster.cpp.
void bind_cluster_barrier(Binder& binder);
/// st.async and red.async; .async has been taken. In cluster_async.cpp.
void bind_store_async(Binder& binder);
void bind_reduce_async(Binder& binder);
/// cp.async without .bulk; .async has been taken. In memory_async.cpp.
void bind_copy_async(Binder& binder);

}  // namespace emu::isa
