#include "emulator/hazards/record.h"

#include <array>

namespace emu::hazards {

const KindTraits& traits(Kind kind) {
  static constexpr std::array<KindTraits, 23> kTraits = {{
      {"load", Proxy::generic, false},
      {"store", Proxy::generic, true},
      {"atomic", Proxy::generic, true},
      {"mbarrier.init", Proxy::generic, true},
      {"operation on the mbarrier", Proxy::generic, false},
      {"tcgen05.alloc", Proxy::generic, true},
      {"cp.async", Proxy::generic, true},
      {"TMA load", Proxy::async, true},
      {"TMA store", Proxy::async, false},
      {"bulk copy", Proxy::async, false},
      {"asynchronous store", Proxy::generic, true},
      {"clusterlaunchcontrol.try_cancel", Proxy::async, true},
      {"tcgen05.mma", Proxy::async, false},
      {"wgmma", Proxy::async, false},
      {"tcgen05.cp", Proxy::async, false},
      {"tcgen05.mma", Proxy::tensor, false, true},
      {"tcgen05.mma", Proxy::tensor, true, true},
      {"tcgen05.cp", Proxy::tensor, true, true},
      {"tcgen05.shift", Proxy::tensor, true, true},
      {"tcgen05.ld", Proxy::tensor, false},
      {"tcgen05.st", Proxy::tensor, true},
      {"tcgen05.alloc", Proxy::tensor, true},
      {"tcgen05.dealloc", Proxy::tensor, true},
  }};
  return kTraits[static_cast<size_t>(kind)];
}

}  // namespace emu::hazards
