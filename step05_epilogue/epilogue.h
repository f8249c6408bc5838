// The ways out of tensor memory that step05 compares; on Hopper, out of the registers of the MMAs' warpgroups.
#pragma once

enum class Epilogue {
  tma_store,          ///< through swizzled shared memory, in two buffers, by TMA
  two_register_sets,  ///< the origin's: the next columns are loaded while these are converted and stored
  wide_stores,        ///< straight from the registers, 32 bytes a store
  fragment_stores,    ///< Hopper: straight from the registers, two elements a store
};
