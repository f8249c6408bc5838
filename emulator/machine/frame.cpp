#include "emulator/machine/frame.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace emu {

// Uninitialised registers hold a pattern that is no plausible value: 0xA5A5A5A5 is a huge address and a tiny negative
// float. Fresh stacks hold what is a NaN as a float of 16 or 32 bits.
constexpr unsigned char kRegisters = 0xA5, kStack = 0xFF;

FramePointer::FramePointer(Frame* frame) : frame_(frame) {
  if (frame_) ++frame_->users;
}
FramePointer::FramePointer(const FramePointer& other) : FramePointer(other.frame_) {}
FramePointer::~FramePointer() {
  if (frame_ && --frame_->users == 0) frame_->frames.give_back(frame_);
}

Frame::Frame(Frames& frames_, const Program& program_) : frames(frames_), program(&program_) {
  size_t bytes = (size_t{program_.warp_file_bytes} + 63) / 64 * 64 + 64;
  file_ = static_cast<std::byte*>(std::aligned_alloc(64, bytes));
  if (!file_) throw std::bad_alloc();
  std::memset(file_, kRegisters, bytes);
}

Frame::~Frame() {
  std::free(file_);
}

Frame* Frames::take(const Program& program, bool& fresh) {
  auto spare = free_.find(&program);
  fresh = spare == free_.end() || spare->second.empty();
  if (fresh) {
    all_.push_back(std::make_unique<Frame>(*this, program));
    return all_.back().get();
  }
  Frame* frame = spare->second.back();
  spare->second.pop_back();
  return frame;
}

void Frames::give_back(Frame* frame) {
  // Its callers may end with it, each in turn: not by recursion, since there may be thousands.
  while (frame) {
    Frame* next = nullptr;
    if (frame->parent && frame->parent->users == 1) {
      next = frame->parent.get();
      ++next->users;  // until it is its turn
    }
    frame->parent = {};
    if (next) --next->users;
    if (frame->call) free_[frame->program].push_back(frame);  // a kernel runs once
    frame = next;
  }
}

void Frames::reserve(uint32_t bytes) {
  if (bytes <= stride_) return;
  uint32_t stride = stride_ == 0 ? bytes : std::max(bytes, stride_ * 2);
  std::vector<std::byte> grown(size_t{stride} * kLanes, std::byte{kStack});
  for (size_t lane = 0; lane < kLanes; ++lane)
    std::copy_n(stacks_.data() + lane * stride_, stride_, grown.data() + lane * stride);
  stacks_ = std::move(grown);
  stride_ = stride;
}

}  // namespace emu
