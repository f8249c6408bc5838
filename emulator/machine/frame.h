#pragma once
// Frames: what a function that runs has of its own. A warp starts with the kernel's frame; a call makes another, for
// the lanes that call together, and it lasts until the last of them has returned.
//
// A frame's registers are a file for all 32 lanes, and its part of each thread's stack starts at the same place in all
// of its lanes. Threads' stacks are local memory: .local variables and the parameters of calls lie there.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "emulator/machine/program.h"

namespace emu {

class Frames;
struct Frame;

/// Counts who needs a frame: groups whose registers it holds, frames that return to it, operations that will write its
/// registers. All of a warp's belong to one host thread at a time.
class FramePointer {
 public:
  FramePointer() = default;
  explicit FramePointer(Frame* frame);
  FramePointer(const FramePointer& other);
  FramePointer(FramePointer&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  FramePointer& operator=(FramePointer other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  ~FramePointer();

  Frame* get() const { return frame_; }
  Frame& operator*() const { return *frame_; }
  Frame* operator->() const { return frame_; }
  explicit operator bool() const { return frame_ != nullptr; }
  bool operator==(const FramePointer& other) const { return frame_ == other.frame_; }

 private:
  Frame* frame_ = nullptr;
};

struct Frame {
  Frame(Frames& frames, const Program& program);
  ~Frame();
  Frame(const Frame&) = delete;

  Frames& frames;
  const Program* const program;
  FramePointer parent;               ///< who called; none for the kernel
  const CallSite* call = nullptr;    ///< in the parent
  uint32_t return_pc = 0;            ///< in the parent
  uint32_t base = 0;                 ///< where its part of the threads' stacks starts
  uint32_t depth = 0;                ///< calls above it
  uint32_t charged = 0;              ///< bytes of stack that it and its callers count for
  std::array<uint32_t, kLanes> top;  ///< end of its part, by lane: only where the function has alloca
  uint32_t users = 0;

  std::byte* file() const { return file_; }
  uint32_t top_of(int lane) const {
    return program->allocates ? top[static_cast<size_t>(lane)] : base + program->stack_bytes;
  }

 private:
  std::byte* file_;
};

/// The frames of a warp, and its threads' stacks.
class Frames {
 public:
  Frames() = default;
  Frames(const Frames&) = delete;

  /// A frame with fresh registers, or one that its function has used before.
  Frame* take(const Program& program, bool& fresh);
  void give_back(Frame* frame);

  /// Bytes of one thread's stack; `end`: where the access ends, which must be within the thread's stack.
  std::byte* stack(int lane, uint32_t offset) { return stacks_.data() + size_t(lane) * stride_ + offset; }
  /// Makes room for `bytes` in each thread's stack.
  void reserve(uint32_t bytes);

  /// What a thread's stack may hold: the most local memory that a thread can have. CUDA programming guide, "Technical
  /// Specifications".
  static constexpr uint32_t kMostStack = 512 * 1024;

 private:
  std::vector<std::unique_ptr<Frame>> all_;
  std::map<const Program*, std::vector<Frame*>> free_;
  std::vector<std::byte> stacks_;  // thread-major
  uint32_t stride_ = 0;
};

}  // namespace emu
