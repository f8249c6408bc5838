#pragma once
// Decoded code of one kernel: what the parser's instructions become before they run.
//
// Every scalar operand is a slot: a place that holds one value per lane. Registers, immediates and special registers
// look alike to an instruction, so that `add` is one loop over 32 lanes whatever its operands were. A slot lies either
// in the warp's own file (registers and what a warp knows of itself: %tid, parameter addresses) or among the program's
// constants (immediates).

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/machine/trap.h"

namespace emu {

inline constexpr int kLanes = 32;
inline constexpr uint32_t kAllLanes = 0xFFFFFFFFu;

class Warp;
struct Instruction;

/// What the machine does after an instruction was executed.
enum class Flow : uint8_t {
  next,    ///< go on behind it
  jump,    ///< the instruction has set the group's pc
  parked,  ///< the group waits; its pc has been set to where it resumes
  ended,   ///< the group is gone (exit, or its lanes moved to other groups)
};

using Execute = Flow (*)(Warp&, const Instruction&);

struct Slot {
  enum Bank : uint8_t { warp, constant };
  uint32_t offset = 0;  ///< bytes from the start of the bank
  Bank bank = warp;
  uint8_t bytes = 0;     ///< per lane: 2, 4, 8, 16; 0: a predicate (one bit per lane in 4 bytes); kNone: absent
  bool negated = false;  ///< predicates: !p
  static constexpr uint8_t kNone = 0xFF;
  bool present() const { return bytes != kNone; }
  static Slot none() { return {.bytes = kNone}; }
};

/// [base + offset]; the base is 4 or 8 bytes per lane.
struct AddressOperand {
  Slot base;
  int64_t offset = 0;
};

struct Place {  ///< a line of source
  std::string file;
  int line = 0;
};

struct Location {
  Place kernel;   ///< the kernel's own line: outermost inlined_at
  Place wrapper;  ///< innermost line; equal to `kernel` where nothing was inlined
  int ptx_line = 0;
};

struct Instruction {
  Execute execute = nullptr;
  Slot guard = Slot::none();
  std::array<Slot, 5> operand{Slot::none(), Slot::none(), Slot::none(), Slot::none(), Slot::none()};
  AddressOperand address;  ///< of memory instructions; families with two addresses put the second base in an operand
  int64_t immediate = 0;   ///< a family's own
  uint64_t modifiers = 0;  ///< a family's own, packed
  uint32_t list = 0, list_count = 0;  ///< slots in Program::slot_lists (vectors)
  uint32_t list2 = 0, list2_count = 0;
  uint32_t target = 0;                      ///< branches: where to
  uint32_t reconverge = kNoReconvergence;   ///< where lanes that part here meet again
  uint32_t touched = 0, touched_count = 0;  ///< ranges of the warp's file in Program::touched
  uint32_t source = 0;  ///< number of the parser's instruction among all of the module, for text and location
  /// How a memory access or an mbarrier operation is ordered, for the hazard rules.
  uint8_t order = 0;
  static constexpr uint8_t kStrong = 1;  ///< .relaxed, .volatile, atomic: it does not race with others like it
  static constexpr uint8_t kAcquire = 2, kRelease = 4;
  static constexpr uint8_t kRelaxed = 8;     ///< of mbarrier operations, whose default is acquire or release
  static constexpr uint8_t kWide = 16;       ///< scope .cluster or wider
  static constexpr uint8_t kCopy = 32;       ///< cp.async: nothing that the thread does itself
  static constexpr uint8_t kNarrow = 64;     ///< a memory operation's scope is .cta or .cluster
  static constexpr uint8_t kConstant = 128;  ///< ld.global.nc
  bool aligned = false;                      ///< all lanes of the warp must be here together
  bool meets_elsewhere = false;              ///< bar.warp.sync: its lanes may wait at others like it
  bool visible = false;        ///< other clusters can tell when it happens: admitted in (clock, cluster) order
  bool changes_frame = false;  ///< a call, or a return from one
  bool drains = false;  ///< a register dependency on pending tensor-memory loads is resolved by the instruction itself
  static constexpr uint32_t kNoReconvergence = 0xFFFFFFFF;
};

/// Something a warp knows of itself, written into its file when it starts.
struct WarpValue {
  enum class What : uint8_t {
    tid_x,
    tid_y,
    tid_z,
    ntid_x,
    ntid_y,
    ntid_z,
    ctaid_x,
    ctaid_y,
    ctaid_z,
    nctaid_x,
    nctaid_y,
    nctaid_z,
    laneid,
    warpid,
    nwarpid,
    smid,
    nsmid,
    gridid,
    lanemask_eq,
    lanemask_le,
    lanemask_lt,
    lanemask_ge,
    lanemask_gt,
    clusterid_x,
    clusterid_y,
    clusterid_z,
    nclusterid_x,
    nclusterid_y,
    nclusterid_z,
    cluster_ctaid_x,
    cluster_ctaid_y,
    cluster_ctaid_z,
    cluster_nctaid_x,
    cluster_nctaid_y,
    cluster_nctaid_z,
    cluster_ctarank,
    cluster_nctarank,
    is_explicit_cluster,
    dynamic_smem_size,
    total_smem_size,
    aggr_smem_size,
    zero,
    shared_address,     ///< `value` = offset of a shared variable in the CTA's window; 32-bit shared::cta address
    dynamic_shared,     ///< same, relative to where dynamic shared memory starts
    parameter_address,  ///< `value` = offset in the parameter block; generic address
    local_address,      ///< `value` = offset in the frame's part of the thread's stack; not a generic address
    workspace_low,      ///< %envreg2, %envreg1: where a cooperative launch keeps its barrier; 0 in others
    workspace_high,
  };
  What what;
  uint32_t offset = 0;  ///< in the warp's file
  uint8_t bytes = 4;
  int64_t value = 0;
};

struct SharedVariable {
  std::string name;
  uint32_t offset = 0,
           bytes = 0;  ///< offset in the CTA's window; dynamic ones (extern): relative to the dynamic part, bytes 0
  bool dynamic = false;
};

struct Range {  ///< bytes of the warp's file
  uint32_t begin = 0, end = 0;
};

/// What a call takes and gives back: parameters in memory are copied between the frames of caller and callee, those in
/// registers from and to a register.
struct Argument {
  Slot slot = Slot::none();  ///< a register or a constant; absent: in memory
  uint32_t offset = 0;       ///< in memory: from the start of the frame's part of the thread's stack
  uint32_t bytes = 0;
};

struct CallSite {
  uint32_t function = kIndirect;  ///< index into the module's functions
  std::vector<Argument> arguments, results;
  std::vector<uint32_t> targets;  ///< .calltargets of an indirect call; empty: any function
  static constexpr uint32_t kIndirect = 0xFFFFFFFF;
};

struct Program {
  std::string name;         ///< mangled
  std::string pretty_name;  ///< demangled, without the parameter list
  std::vector<Instruction> code;
  std::vector<Slot> slot_lists;
  std::vector<Range> touched;
  std::vector<std::byte> constants;  ///< 64-byte aligned start not guaranteed: loads are unaligned
  std::vector<WarpValue> warp_values;
  std::vector<SharedVariable> shared_variables;
  uint32_t first_source = 0;          ///< Instruction::source of the first one
  std::vector<std::string> refusals;  ///< why instructions could not be bound
  uint32_t warp_file_bytes = 0;
  Range clock_values;                ///< registers that tell the time (ptx::clock_values), and no others
  uint32_t static_shared_bytes = 0;  ///< window offset of the end of static variables
  uint32_t dynamic_shared_align = 16;
  uint32_t local_bytes = 0;  ///< of .local variables
  uint32_t stack_bytes = 0,
           stack_align = 16;  ///< what a frame takes of its thread's stack: local memory, and parameters of calls
  std::vector<uint32_t> frame_values;         ///< indices into warp_values of those that depend on where the frame lies
  std::vector<Argument> parameters, results;  ///< of a .func
  std::vector<CallSite> calls;
  bool allocates = false;  ///< it has alloca or stackrestore
  uint8_t cta_group = 0;   ///< that the first tcgen05 instruction of the function names; 0: none does
};

}  // namespace emu
