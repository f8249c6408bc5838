#pragma once
// Tensor memory of one SM: 128 lanes x 512 columns of 32 bits, shared by all CTAs on the SM, with its allocator.
// PTX ISA, "Tensor Memory"; isa-facts 3.1.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

namespace emu {

class TensorMemory {
 public:
  static constexpr uint32_t kTmemLanes = 128, kColumns = 512, kGranule = 32;
  /// What fresh columns hold: a recognisable NaN, so that a kernel that relies on zeros is wrong here too.
  uint32_t fresh = 0xFFFFA5A5u;
  static constexpr uint32_t kOtherFresh = 0x3F803F80u;  ///< LADDER_FILL=1
  using Owner = uint64_t;                               ///< a CTA: its number in the grid plus 1; 0: free

  /// Columns for `owner`, first fit. Nothing when no run of `columns` free ones exists.
  std::optional<uint32_t> allocate(Owner owner, uint32_t columns);
  /// The same columns on two SMs, for the two CTAs of a pair: the first run that is free on both.
  static std::optional<uint32_t> allocate_both(TensorMemory& a, Owner owner_a, TensorMemory& b, Owner owner_b,
                                               uint32_t columns);
  /// Is [first, first + columns) an allocation of `owner`, whole?
  bool holds(Owner owner, uint32_t first, uint32_t columns) const;
  /// Frees [first, first + columns); false when that is not an allocation of `owner`.
  bool release(Owner owner, uint32_t first, uint32_t columns);
  /// Columns that `owner` holds now.
  uint32_t held_by(Owner owner) const;
  Owner owner(uint32_t column) const { return granule_owner_[column / kGranule].load(std::memory_order_relaxed); }

  /// Which cells something has written since their columns were allocated.
  void mark_written(uint32_t lane, uint32_t column, uint32_t count);
  bool any_written(uint32_t lane, uint32_t column, uint32_t count) const;

  /// 512 columns of one lane. The cells exist from the first allocation on.
  uint32_t* row(uint32_t lane) { return cells_.get() + size_t{lane} * kColumns; }

 private:
  bool is_free(uint32_t granule, uint32_t count) const;
  void take(Owner owner, uint32_t granule, uint32_t columns);

  std::unique_ptr<uint32_t[]> cells_;
  // Bit c of [lane][granule]. A granule belongs to one CTA, so CTAs that share an SM touch words of their own.
  std::array<std::array<uint32_t, kColumns / kGranule>, kTmemLanes> written_{};
  std::array<std::atomic<Owner>, kColumns / kGranule> granule_owner_{};
  std::array<uint32_t, kColumns / kGranule> allocation_columns_{};  // at an allocation's first granule: its size
};

}  // namespace emu
