#pragma once
// What the files of the tcgen05 family share.

#include "emulator/isa/binder.h"
#include "emulator/machine/cluster.h"

namespace emu::isa {

/// Takes .cta_group::1; refuses ::2 by name.
void take_cta_group(Binder& binder);

/// Traps unless columns [first, first + count) belong to the CTA. `what` reads "tcgen05.ld reads".
void check_columns(const Cta& cta, uint32_t first, uint32_t count, const char* what);

void bind_tensor_load(Binder& binder);   // tcgen05.ld; .ld has been taken. tcgen05_ldst.cpp
void bind_tensor_store(Binder& binder);  // tcgen05.st
void bind_tensor_wait(Binder& binder, bool loads);
void bind_mma(Binder& binder);  // tcgen05.mma; tcgen05_mma.cpp
void bind_commit(Binder& binder);

}  // namespace emu::isa
