#pragma once
// Runs a program as a child whose kernels may take so long and no longer. The child says when a kernel begins and ends,
// so that making inputs and checking results do not count.

#include <filesystem>
#include <string>
#include <vector>

namespace ladder {

struct ChildEnd {
  int status = 0;          ///< exit status; meaningless when timed_out or signal != 0
  int signal = 0;          ///< the signal that ended it
  bool timed_out = false;  ///< a kernel took longer than allowed, and the child was killed
};

/// Starts `program` with `argv` and `environment` ("name=value") and waits. The child dies with its parent.
/// Throws std::system_error when it cannot be started.
ChildEnd run_with_time_limit(const std::filesystem::path& program, char** argv, std::vector<std::string> environment,
                             double seconds);

/// In the child: tells the parent, if there is one that listens.
class KernelClock {
 public:
  KernelClock();
  void begin() const { tell('B'); }
  void end() const { tell('E'); }

 private:
  void tell(char what) const;
  int descriptor_ = -1;
};

}  // namespace ladder
