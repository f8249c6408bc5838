// The ways out of tensor memory that step05 compares.
#pragma once

enum class Epilogue {
  tma_store,          ///< through swizzled shared memory, in two buffers, by TMA
  two_register_sets,  ///< the origin's: the next columns are loaded while these are converted and stored
  wide_stores,        ///< straight from the registers, 32 bytes a store
};
