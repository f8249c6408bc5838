#include "common/harness/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <system_error>

namespace ladder {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* kDescriptor = "LADDER_CLOCK_FD";

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// Until the pipe closes (the child has ended) or a kernel is over its time: then false.
bool watch(int pipe, double seconds) {
  std::optional<Clock::time_point> deadline;
  while (true) {
    int wait_ms = -1;
    if (deadline) {
      const auto left = std::chrono::duration<double, std::milli>(*deadline - Clock::now()).count();
      if (left <= 0) return false;
      wait_ms = static_cast<int>(std::min(std::ceil(left), 1e6));
    }
    pollfd entry{pipe, POLLIN, 0};
    const int ready = poll(&entry, 1, wait_ms);
    if (ready < 0 && errno != EINTR) fail("poll");
    if (ready <= 0) continue;
    char what = 0;
    const ssize_t got = read(pipe, &what, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    deadline = what == 'B'
                   ? std::optional(Clock::now() +
                                   std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)))
                   : std::nullopt;
  }
}

}  // namespace

ChildEnd run_with_time_limit(const std::filesystem::path& program, char** argv, std::vector<std::string> environment,
                             double seconds) {
  int ends[2];
  int failure[2];  // closes when the program starts; its errno when it cannot
  if (pipe2(ends, O_CLOEXEC) != 0 || pipe2(failure, O_CLOEXEC) != 0) fail("pipe");
  environment.push_back(fmt::format("{}={}", kDescriptor, ends[1]));
  std::vector<char*> pointers;
  for (std::string& entry : environment) pointers.push_back(entry.data());
  pointers.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    // Between fork and exec only calls that are safe in a copy of a process with threads.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    fcntl(ends[1], F_SETFD, 0);
    execve(program.c_str(), argv, pointers.data());
    const int why = errno;
    if (write(failure[1], &why, sizeof(why)) != sizeof(why)) _exit(126);
    _exit(127);
  }
  close(ends[1]);
  close(failure[1]);
  int why = 0;
  ssize_t got;
  while ((got = read(failure[0], &why, sizeof(why))) < 0 && errno == EINTR) {
  }
  close(failure[0]);
  if (got == sizeof(why)) {
    close(ends[0]);
    waitpid(child, nullptr, 0);
    throw std::system_error(why, std::generic_category(), "starting " + program.string());
  }
  ChildEnd end;
  end.timed_out = !watch(ends[0], seconds);
  close(ends[0]);
  if (end.timed_out) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) fail("waitpid");
  }
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
  } else {
    end.status = WEXITSTATUS(status);
  }
  return end;
}

KernelClock::KernelClock() {
  if (const char* text = std::getenv(kDescriptor)) {
    descriptor_ = std::atoi(text);
    unsetenv(kDescriptor);
  }
}

void KernelClock::tell(char what) const {
  if (descriptor_ < 0) return;
  while (write(descriptor_, &what, 1) < 0 && errno == EINTR) {
  }
}

}  // namespace ladder
