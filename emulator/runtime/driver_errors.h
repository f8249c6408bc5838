#pragma once
// cuGetErrorName and cuGetErrorString.

#include <cuda.h>

namespace emu::runtime {

CUresult driver_error_name(CUresult code, const char** name);
CUresult driver_error_text(CUresult code, const char** text);

}  // namespace emu::runtime
