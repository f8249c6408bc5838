// Instructions that the emulator knows of and has no machine for. They are refused by name when they are reached.

#include "emulator/isa/families.h"

namespace emu::isa {
namespace {

void refuse_texture(Binder& binder) {
  binder.refuse("textures are not emulated: read the data from global memory");
}
void refuse_surface(Binder& binder) {
  binder.refuse("surfaces are not emulated: use global memory");
}
void refuse_multimem(Binder& binder) {
  binder.refuse("multimem addresses memory of several GPUs at once, and one GPU is emulated");
}

constexpr Entry kEntries[] = {
    {"tex", refuse_texture},     {"tld4", refuse_texture}, {"txq", refuse_texture},
    {"istypep", refuse_texture}, {"suld", refuse_surface}, {"sust", refuse_surface},
    {"sured", refuse_surface},   {"suq", refuse_surface},  {"multimem", refuse_multimem},
};

}  // namespace

std::span<const Entry> refused_entries() {
  return kEntries;
}

}  // namespace emu::isa
