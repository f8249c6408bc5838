#pragma once
// Who waits in a cluster, for what, since when, and whom that leaves to blame: groups whose wait nobody else would end
// come first, those that wait for others that wait themselves come after.

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/machine/cluster.h"
#include "emulator/report/look_ahead.h"

namespace emu {

/// What a wait or a loop asks for.
struct Wanted {
  enum class Kind : uint8_t { mbarrier, word } kind;
  uint64_t address;  ///< mbarrier: shared::cluster; word: generic
  uint32_t parity;   ///< mbarrier
  uint32_t source;   ///< the instruction that asks
};

/// Groups of one CTA that wait in the same place for the same.
struct Stuck {
  const Cta* cta;
  std::vector<Group*> groups = {};
  std::string who = {};  ///< "warps 0-3, all lanes"
  uint32_t source;       ///< where
  std::vector<std::string> calls = {};
  std::vector<Wanted> wanted = {};  ///< of an mbarrier wait: one; of a loop: what it reads
  bool loops = false;               ///< it does not wait, but asks again and again
  uint64_t since = 0;               ///< clock when the first of them began to wait
  struct Helper {
    size_t stuck;     ///< who would end the wait, once its own ends
    uint32_t source;  ///< with this instruction; kNowhere: by coming here too
    std::string who;  ///< of those: "warp 0, lane 0"
    static constexpr uint32_t kNowhere = ~0u;
  };
  std::vector<Helper> helpers = {};
  uint32_t itself = Helper::kNowhere;  ///< the instruction with which it would end its own wait, behind it
  bool nobody = false;                 ///< it is certain that nobody else would
  bool unsure = false;                 ///< nobody has ever signalled it, and who would cannot be told
  bool root = false;
  uint32_t behind = 0;  ///< over how many others it waits for a root; 0: it is one
  std::string cause = {};
};

/// All of a cluster, roots first. `for_ever`: nothing can change any more.
std::vector<Stuck> find_stuck(Cluster& cluster, bool for_ever);

/// A wait on an mbarrier, that somebody waits in or has given up.
struct BarrierWait {
  const Warp& warp;
  uint32_t lanes;
  uint32_t address, parity;
  const Program* program;  ///< and where it waits there: nullptr where that does not matter
  uint32_t pc;
};

// What most likely keeps a wait from ending; "" where nothing points anywhere (hang_cause.cpp).
/// The waiter itself asks for the wrong phase, or the bytes can never fit.
std::string own_mistake(const Cluster& cluster, const BarrierWait& wait);
/// One that fills a buffer or an accumulator, and should not have waited in the first round. `for_arrivals`: threads'
/// arrivals would end the wait.
std::string waits_in_first_round(const Cluster& cluster, const BarrierWait& wait, bool for_arrivals);
/// Nobody would signal it any more.
std::string missing_signal(const Cluster& cluster, const BarrierWait& wait);

/// Two instructions of one source line: a loop that the compiler has unrolled has several.
bool same_statement(const Cluster& cluster, uint32_t source, uint32_t other);

/// The loop around an instruction; empty where there is none.
struct Loop {
  uint32_t begin = 0, end = 0;
};
Loop loop_around(const Cluster& cluster, const Group& group);

/// Where a group stands: the instruction.
const Instruction& stands_at(const Group& group);
/// "waits for tile_full[0]", "waits at barrier 1", "runs".
std::string short_wait(const Cluster& cluster, const Group& group);
/// Which lanes of a warp have ended, or where those that have not are: "has ended", "waits for tile_full[0] at ...".
/// lanes 0: any of the warp.
std::string where_now(const Cluster& cluster, uint32_t cta_rank, uint32_t warp, uint32_t lanes);
// Texts for reports (wait_report.cpp).
inline constexpr const char* kInto = "\n=========         ";
inline constexpr const char* kDeeper = "\n=========           ";
/// The kernel's own line of an instruction.
std::string place(const Cluster& cluster, uint32_t source);
/// "warp 0, lane 0", with its CTA where there are several.
std::string who(const Stuck& stuck);
/// A wait that is for no mbarrier.
std::string describe_wait(const Cluster& cluster, const Group& group);
std::string describe_mbarrier_wait(const Cluster& cluster, const Wanted& wanted);
/// What a group that does not wait asks for, again and again. `for_ever`: in vain.
std::string describe_loop(const Cluster& cluster, const Stuck& stuck, bool for_ever);
/// Waits on mbarriers that lanes have asked for in vain and that none of `all` waits for now (given_up_report.cpp).
/// `only`: of that warp.
std::string describe_given_up(const Cluster& cluster, const std::vector<Stuck>& all, const Warp* only = nullptr);

/// "all lanes", "lane 3", "lanes 0x0000000f". `live`: the lanes that the warp has.
std::string describe_lanes(uint32_t mask, uint32_t live);
/// "warps 0-3, all lanes; warp 4, lane 0".
std::string who_text(const std::vector<Group*>& groups);

}  // namespace emu
