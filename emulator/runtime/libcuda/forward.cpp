#include "emulator/runtime/libcuda/forward.h"

#include <dlfcn.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

namespace emu::libcuda {
namespace {

using Find = void* (*)(const char* name, unsigned version);

void say(const std::string& line) {
  std::fflush(stdout);
  std::fprintf(stderr, "emulator: %s\n", line.c_str());
}

[[noreturn]] void refuse(const std::string& line) {
  say(line);
  std::fflush(nullptr);
  _exit(2);
}

std::string folder_of_this_library() {
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&refuse_own_runtime), &info);
  const std::string path = info.dli_fname ? info.dli_fname : "";
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

Find load() {
  // By path: another library of that name may be in the process already.
  const std::string path = folder_of_this_library() + "/libcudart.so.13";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* function = library ? dlsym(library, "__cudaDriverFunction") : nullptr;
  if (!function) refuse("libcuda.so.1 needs the emulator's libcudart.so.13 beside it: " + std::string(dlerror()));
  return reinterpret_cast<Find>(function);
}

}  // namespace

void* find(const char* name, unsigned version) {
  static const Find lookup = load();
  return lookup(name, version);
}

CUresult refuse_own_runtime(const void* caller) {
  Dl_info info{};
  const bool known = dladdr(caller, &info) != 0 && info.dli_fname;
  const std::string name = known ? info.dli_fname : "this program";
  if (name.find("libcudart.so") != std::string::npos)
    refuse(name +
           " is not the emulator's: an rpath in the program beats the library path; rebuild without it, or with "
           "-Wl,--enable-new-dtags");
  Dl_info executable{};
  dladdr(reinterpret_cast<void*>(getauxval(AT_ENTRY)), &executable);
  if (known && info.dli_fbase != executable.dli_fbase) {
    // An interpreter may load a library of which it needs something else, so what fails is the call alone. The compiler
    // launches nothing, and goes on without: not worth a word.
    if (name.find("libnvrtc.so") != std::string::npos) return CUDA_ERROR_NOT_SUPPORTED;
    static std::mutex mutex;
    static std::set<std::string> told;
    const std::lock_guard lock(mutex);
    if (told.insert(name).second)
      say(name +
          " carries a CUDA runtime of its own, linked statically, which the emulator cannot replace: use a build of it "
          "with the shared runtime (nvcc -cudart shared) and PTX for the chip");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  refuse(
      name +
      " has the CUDA runtime linked into it, which the emulator cannot replace: rebuild it with nvcc -cudart shared");
}

}  // namespace emu::libcuda
