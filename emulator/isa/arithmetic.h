#pragma once
// Arithmetic opcodes exist on several kinds of numbers; each kind has a file and takes what is of its type.

#include <string_view>

#include "emulator/isa/binder.h"

namespace emu::isa {

// Each binds the instruction and returns true, or returns false when the opcode does not exist on its kind of number.
bool bind_integer(Binder& binder, std::string_view type);        // arithmetic_integer.cpp: u16 ... s64
bool bind_integer_pair(Binder& binder, std::string_view type);   // arithmetic_pair.cpp: u16x2, s16x2, dp4a, dp2a
bool bind_bit_field(Binder& binder, std::string_view type);      // arithmetic_bits.cpp
bool bind_carry(Binder& binder, std::string_view type);          // arithmetic_carry.cpp: .cc, addc, subc, madc
bool bind_real(Binder& binder, std::string_view type);           // arithmetic_real.cpp: f32, f64, f32x2
bool bind_real_function(Binder& binder, std::string_view type);  // arithmetic_function.cpp: rcp, sqrt, sin, ...
bool bind_half(Binder& binder, std::string_view type);           // arithmetic_half.cpp: f16, bf16 and pairs of them

}  // namespace emu::isa
