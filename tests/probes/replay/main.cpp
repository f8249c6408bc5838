// Runs the programs that the probe tests dumped (LADDER_PROBE_DUMP) on this machine's GPU, compares what they leave
// with what the emulator left, and writes the record that the probe tests are held to from then on.
//
// probe_replay FOLDER RECORD.json [DATE]. On a chip other than the B200 the target is rewritten; what the driver does
// not take for the chip is counted and left out, and so is what does not end twice alike. A program that never ends is
// recorded as 702, the error of a launch that timed out. A program that faults takes the process that ran it along,
// never another program: workers are processes, and the parent, which does not touch the GPU, replaces them; it is
// asked a second time in a process of its own. Exit status 0 when GPU and emulator agree on every program.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/probes/digest.h"
#include "tests/probes/replay/gpu.h"
#include "tests/probes/replay/program.h"

namespace replay {
namespace {

constexpr size_t kShown = 4;      // differing values of a program
constexpr int kHangSeconds = 15;  // no probe runs for a tenth of that
constexpr unsigned kMostWorkers = 16;
constexpr size_t kNone = SIZE_MAX;
constexpr int kTimedOut = 702;

enum class State : uint32_t { waiting, running, suspect, invalid, unstable, ended, faulted, hung };

/// What a worker says of a program, in memory that all processes share.
struct Slot {
  std::atomic<State> state;
  std::atomic<int64_t> since;  // seconds of the steady clock
  pid_t worker;
  uint64_t digest;
  int error;
};
struct Shared {
  std::atomic<size_t> next;
  char gpu[128], target[16];
  int driver;
};

int64_t now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void print(const Program& program, const std::string& text) {
  std::string all = instruction(program) + " (" + program.name + ")\n  " + text + "\n";
  if (write(STDOUT_FILENO, all.data(), all.size()) < 0) std::abort();  // at once: workers share the stream
}

std::string ending(int error) {
  return error ? "ends with error " + std::to_string(error) : "ends well";
}

/// Runs one program twice. False when the context is of no more use.
bool try_program(Gpu& gpu, const std::filesystem::path& path, Slot& slot, bool alone) {
  slot.since = now();
  slot.worker = getpid();
  slot.state = State::running;
  Program program = read_program(path);
  Gpu::Result first = gpu.run(program);
  if (!first.refusal.empty()) {
    if (std::getenv("PROBE_REPLAY_REFUSALS")) print(program, first.refusal);
    slot.state = State::invalid;
    return true;
  }
  Gpu::Result second;
  if (!first.error) second = gpu.run(program);
  if (first.error || second.error) {
    // Some faults show only after the kernel has ended, so this may be the one of the program before: ask again.
    slot.error = first.error ? first.error : second.error;
    if (alone && static_cast<uint64_t>(slot.error) != program.error)
      print(program, "GPU " + ending(slot.error) + ", emulator " + ending(static_cast<int>(program.error)));
    slot.state = alone ? State::faulted : State::suspect;
    return false;
  }
  if (second.after != first.after) {
    slot.state = State::unstable;
    print(program, "does not end twice alike");
    return true;
  }
  slot.digest = probe::Digest().add(first.after.data(), first.after.size()).value();
  if (program.error)
    print(program, "GPU ends well, emulator " + ending(static_cast<int>(program.error)));
  else if (first.after != program.after)
    print(program, differences(program, first.after, kShown));
  slot.state = State::ended;
  return true;
}

/// Takes programs until none are left, or until one faults; or program `only` alone.
void work(const std::vector<std::filesystem::path>& paths, Shared& shared, Slot* slots, size_t only) {
  Gpu gpu;
  std::snprintf(shared.gpu, sizeof(shared.gpu), "%s", gpu.name.c_str());
  std::snprintf(shared.target, sizeof(shared.target), "%s", gpu.target.c_str());
  shared.driver = gpu.driver;
  if (only != kNone) {
    try_program(gpu, paths[only], slots[only], true);
    return;
  }
  for (size_t i; (i = shared.next++) < paths.size();)
    if (!try_program(gpu, paths[i], slots[i], false)) return;
}

/// Keeps workers going until every program has been taken and has an outcome.
void run_all(const std::vector<std::filesystem::path>& paths, Shared& shared, Slot* slots) {
  std::set<pid_t> workers;
  int failures = 0;
  auto start = [&](size_t only) {
    if (only != kNone) slots[only].state = State::running, slots[only].since = now(), slots[only].worker = 0;
    pid_t worker = fork();
    if (worker < 0) throw std::runtime_error("fork failed");
    if (worker == 0) {
      try {
        work(paths, shared, slots, only);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        _exit(2);
      }
      _exit(0);
    }
    workers.insert(worker);
  };
  unsigned count = std::clamp(std::thread::hardware_concurrency(), 1u, kMostWorkers);
  for (unsigned i = 0; i < count; ++i) start(kNone);
  while (!workers.empty()) {
    int status = 0;
    pid_t gone = waitpid(-1, &status, WNOHANG);
    if (gone > 0) {
      workers.erase(gone);
      if (WIFEXITED(status) && WEXITSTATUS(status) == 2 && ++failures > 8)
        throw std::runtime_error("workers fail again and again");
      size_t suspect = 0;
      while (suspect < paths.size() && slots[suspect].state != State::suspect) ++suspect;
      if (suspect < paths.size())
        start(suspect);
      else if (shared.next < paths.size())
        start(kNone);
      continue;
    }
    for (size_t i = 0; i < paths.size(); ++i)
      if (slots[i].state == State::running && slots[i].worker && now() - slots[i].since > kHangSeconds) {
        slots[i].state = State::hung;
        kill(slots[i].worker, SIGKILL);
        Program program = read_program(paths[i]);
        if (program.error != kTimedOut)
          print(program, "never ends on the GPU, emulator " + ending(static_cast<int>(program.error)));
      }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

template <class T>
T* share(size_t count) {
  void* memory =
      mmap(nullptr, sizeof(T) * std::max<size_t>(count, 1), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("mmap failed");
  return static_cast<T*>(memory);  // zero bytes: the first State, and so on
}

int command(const std::string& folder, const std::string& record, const std::string& date) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".run") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  Shared& shared = *share<Shared>(1);
  Slot* slots = share<Slot>(paths.size());
  run_all(paths, shared, slots);

  std::map<State, int> counts;
  int disagree = 0;
  std::ofstream out(record);
  out << "{\n\"label\": \"measured\",\n\"what\": \"what the probes' programs leave in their buffers (FNV-1a of all "
         "bytes), or the CUDA error in which they end\",\n\"chip\": \""
      << shared.gpu << "\",\n\"driver\": " << shared.driver << ",\n\"date\": \"" << date << "\",\n\"programs\": {";
  const char* comma = "\n";
  for (size_t i = 0; i < paths.size(); ++i) {
    const Slot& slot = slots[i];
    State state = slot.state;
    ++counts[state];
    if (state != State::ended && state != State::faulted && state != State::hung) continue;
    Program program = read_program(paths[i]);
    char value[32];
    if (state == State::ended)
      std::snprintf(value, sizeof(value), "%016llx", static_cast<unsigned long long>(slot.digest));
    else
      std::snprintf(value, sizeof(value), "error %d", state == State::hung ? kTimedOut : slot.error);
    bool same =
        state == State::ended
            ? !program.error && probe::Digest().add(program.after.data(), program.after.size()).value() == slot.digest
            : program.error == static_cast<uint64_t>(state == State::hung ? kTimedOut : slot.error);
    disagree += !same;
    out << comma << '"' << program.name << "\": \"" << value << '"';
    comma = ",\n";
  }
  out << "\n}\n}\n";
  std::printf(
      "%zu programs on %s (%s): %d end well, %d with an error, %d never; %d are not for this chip, %d do not end "
      "twice alike. The emulator disagrees on %d.\n",
      paths.size(), shared.gpu, shared.target, counts[State::ended], counts[State::faulted], counts[State::hung],
      counts[State::invalid], counts[State::unstable], disagree);
  return disagree ? 1 : 0;
}

}  // namespace
}  // namespace replay

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr,
                 "usage: probe_replay FOLDER RECORD.json [DATE]; the probe tests write FOLDER when "
                 "LADDER_PROBE_DUMP names it\n");
    return 2;
  }
  try {
    return replay::command(argv[1], argv[2], argc == 4 ? argv[3] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
