#include "emulator/isa/lanes.h"

#include "emulator/machine/decoder.h"

namespace emu::isa {

Slot scratch(Binder& binder) {
  // Any place in the warp's file that nobody reads; the value tells it from other zeros.
  constexpr int64_t kScratch = 2;
  return binder.decoder().warp_value(WarpValue::What::zero, 16, kScratch);
}

}  // namespace emu::isa
