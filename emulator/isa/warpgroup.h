#pragma once
// Four warps and what they have asked of the tensor core together: wgmma.mma_async between its issue and the wait that
// makes its result theirs.
//
// The warps run at clocks of their own, so an instruction gathers: each warp issues its part, with its rows of D and of
// an A in registers, and when the last has come the instruction is under way. It reads shared memory at one time and
// has its result at a later one, both the schedule's choice; instructions of one warpgroup finish in the order of
// issue.
//
// D stays with the tensor core from the first wgmma that adds to it until a wait, row by row as the arithmetic wants
// it. Whatever else touches such a register before waits for it, since ptxas puts the missing wait in (C7514, C7517:
// "warpgroup.wait is injected"); with LADDER_STRICT the registers hold a value that shows instead.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "emulator/hazards/hazards.h"
#include "emulator/machine/cluster.h"
#include "emulator/units/descriptor.h"
#include "emulator/units/descriptor_operand.h"
#include "emulator/units/fragment.h"
#include "emulator/units/tensor_core.h"

namespace emu {

/// What a wgmma.mma_async says apart from its registers.
struct WgmmaForm {
  ElementType a = ElementType::f16, b = ElementType::f16;
  AccumulatorType d = AccumulatorType::f32;
  uint32_t n = 8;
  bool negate_a = false, negate_b = false, saturate = false;
  Major a_major = Major::k, b_major = Major::k;

  uint64_t packed() const;
  static WgmmaForm unpack(uint64_t modifiers);
};

/// D of one warp while the tensor core has it: 16 x n words.
struct HeldAccumulator {
  std::vector<uint32_t*> registers;  ///< where it came from and will go
  AccumulatorType type = AccumulatorType::f32;
  uint32_t n = 0;
  uint64_t last = 0;  ///< number of the last wgmma that works on it
  std::vector<uint32_t> rows;
};

/// One wgmma.mma_async of the warpgroup.
struct Wgmma {
  const Instruction* instruction = nullptr;
  WgmmaForm form;
  uint64_t a_word = 0, b_word = 0;  ///< descriptors as given
  MatrixDescriptor a, b;
  bool a_in_registers = false, adds = true;
  uint32_t warps = 0;  ///< bit w: warp w of the warpgroup has issued it
  Origin who;
  uint64_t operation = 0;  ///< for the trace
  hazards::IssuedPointer announced;
  enum class State : uint8_t { gathering, issued, read, done } state = State::gathering;
  std::array<std::shared_ptr<HeldAccumulator>, 4> d;
  std::array<std::byte, 64 * kOperandBytesPerRow> a_dense;
  std::array<std::byte, 256 * kOperandBytesPerRow> b_dense;
};

class Warpgroup : public std::enable_shared_from_this<Warpgroup> {
 public:
  /// That of `warp`; made when it is asked for. Traps unless the CTA has four whole warps there.
  static Warpgroup& of(Warp& warp);

  Warpgroup(Cta& cta, uint32_t first_warp) : cta_(cta), first_warp_(first_warp) {}

  /// `warp` issues a wgmma. False: it must wait before, and is parked.
  bool issue(Warp& warp, const Instruction& instruction);
  void commit(Warp& warp);
  /// All but the last `pending` committed groups are done, and their registers the warp's again. False: parked.
  bool wait(Warp& warp, uint64_t pending);
  /// The instruction touches registers that the tensor core may have. False: it must wait for them, and is parked.
  bool settle(Warp& warp, const Instruction& instruction);

  /// "warps 2 and 3 have not issued the wgmma.mma_async that it waits for", for the hang report.
  std::string missing(const Warp& warp) const;

 private:
  struct Part {  ///< of one warp
    uint64_t issued = 0;
    std::deque<uint64_t> groups;  ///< by committed group: number of its last wgmma
    std::vector<std::shared_ptr<HeldAccumulator>> held;
    const std::byte* file = nullptr;  ///< where the held registers lie
    std::vector<uint16_t> granules;   ///< of that file, 64 bytes each: how many held registers lie there
    size_t granule(const void* at) const;
    hazards::IssuedPointer last;  ///< for the hazard rules: its last wgmma
    Group* waiter = nullptr;
    uint64_t waits_for = 0;
  };

  Part& part(const Warp& warp) { return parts_[warp.index - first_warp_]; }
  Wgmma& queued(uint64_t number) { return *queue_[number - done_ - 1]; }
  Wgmma& join(Warp& warp, const Instruction& instruction, uint64_t number);
  void check_alike(Warp& warp, const Instruction& instruction, const Wgmma& mma) const;
  std::shared_ptr<HeldAccumulator> hold(Warp& warp, const Instruction& instruction, const Wgmma& mma);
  void release(Warp& warp, uint64_t number);
  bool reach(Warp& warp, uint64_t number);
  void start(std::shared_ptr<Wgmma> mma);
  void read(Wgmma& mma);
  void finish_first();
  void finish_through(uint64_t number);
  void wake();

  Cta& cta_;
  const uint32_t first_warp_;
  std::array<Part, 4> parts_;
  std::deque<std::shared_ptr<Wgmma>> queue_;  ///< not done, in the order of issue
  uint64_t done_ = 0;                         ///< so many are done
  uint64_t time_ = 0;                         ///< when the last one started shows its result
};

}  // namespace emu
