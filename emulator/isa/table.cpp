// One table of instructions: every opcode name with the function that binds it.

#include <algorithm>
#include <stdexcept>
#include <string>

#include "emulator/isa/families.h"

namespace emu::isa {

const std::vector<Entry>& table() {
  static const std::vector<Entry> kTable = [] {
    std::vector<Entry> all;
    // One a line, so that families that are added at the same time do not meet.
    // clang-format off
    for (std::span<const Entry> family : {
             move_entries(),
             arithmetic_entries(),
             convert_entries(),
             compare_entries(),
             memory_entries(),
             control_entries(),
             call_entries(),
             warp_entries(),
             barrier_entries(),
             mbarrier_entries(),
             tma_entries(),
             tensormap_entries(),
             launch_entries(),
             tcgen05_entries(),
             wgmma_entries(),
             mma_entries(),
             wmma_entries(),
             matrix_entries(),
             register_entries(),
             video_entries(),
             refused_entries(),
         })
      // clang-format on
      all.insert(all.end(), family.begin(), family.end());
    std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.opcode < b.opcode; });
    for (size_t i = 1; i < all.size(); ++i)
      if (all[i].opcode == all[i - 1].opcode)
        throw std::logic_error("two families bind the opcode " + std::string(all[i].opcode));
    return all;
  }();
  return kTable;
}

Bind find(std::string_view opcode) {
  const std::vector<Entry>& all = table();
  auto it = std::lower_bound(all.begin(), all.end(), opcode,
                             [](const Entry& entry, std::string_view name) { return entry.opcode < name; });
  return it != all.end() && it->opcode == opcode ? it->bind : nullptr;
}

}  // namespace emu::isa
