#pragma once
// Which CUDA runtime this process has, and how it gets the other one.
//
// A rung is linked against libcudart.so.13 and finds the emulator's by its RUNPATH, so that main is reached on any
// machine, without a driver or a toolkit. main parses the options, decides where to run and starts the program once
// more with an environment that fixes the decision:
//   emulated   LD_LIBRARY_PATH begins with the emulator's folder, LADDER_CHIP names the chip
//   real GPU   LD_LIBRARY_PATH begins with the toolkit's folder and the emulator's is not in it
// LADDER_STAGE tells the second start what it is. It then verifies that the runtime it was given is the one it was
// promised, so that an emulated run is never reported as a GPU's, or the reverse.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ladder {

enum class Stage { first, emulator, gpu };

/// From LADDER_STAGE, which is removed from the environment. Throws std::runtime_error on another value.
Stage take_stage();

std::filesystem::path executable_path();

/// The folder of the emulator's libcudart.so.13: ../lib or, for guard builds, ../../lib from the executable's folder.
/// Nothing when there is none.
std::optional<std::filesystem::path> emulator_folder();

/// The folder of the toolkit's libcudart.so.13: the one this was built with, else a folder of LD_LIBRARY_PATH, else the
/// usual places. Never the emulator's. Nothing when there is none.
std::optional<std::filesystem::path> toolkit_folder();

/// This executable, or its guard build (guard/<name> beside it). Throws UserError when there is no guard build.
std::filesystem::path executable_to_start(bool guard);

/// Changes to the environment of the second start; an empty value removes the variable.
using Changes = std::map<std::string, std::string>;
Changes changes_for_emulator(const std::filesystem::path& emulator, const std::string& chip);
Changes changes_for_gpu(const std::filesystem::path& toolkit, const std::filesystem::path& emulator);

/// The environment of this process with `changes`, as "name=value".
std::vector<std::string> changed_environment(const Changes& changes);

/// Replaces this process. Throws std::system_error when that fails.
[[noreturn]] void start_again(const std::filesystem::path& program, char** argv,
                              const std::vector<std::string>& environment);

/// Throws std::runtime_error unless the CUDA runtime of this process comes from the emulator's folder (Stage::emulator)
/// or from elsewhere (Stage::gpu).
void verify_runtime(Stage stage);

}  // namespace ladder
