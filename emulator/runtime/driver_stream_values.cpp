// Driver API: words in memory that streams write and wait for. A stream that waits holds up all that is issued later,
// in whatever stream: the word has to come from the host, or from what was issued before.

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <string_view>
#include <thread>

#include "emulator/runtime/driver_table.h"

namespace emu::runtime {
namespace {

using namespace std::chrono_literals;

template <class Word>
constexpr std::string_view kWaiting = sizeof(Word) == 4 ? "cuStreamWaitValue32" : "cuStreamWaitValue64";

template <class Word>
std::atomic_ref<Word> word_at(Runtime& runtime, uint64_t address) {
  return std::atomic_ref<Word>(*reinterpret_cast<Word*>(runtime.device().memory().writing(address, sizeof(Word))));
}

/// Makes `work` the stream's next operation. The word must lie in memory that the device reaches.
template <class Word>
CUresult submit(CUstream stream, CUdeviceptr address, std::function<void(Runtime&)> work) {
  return driver([&] {
    return answer([&](Runtime& runtime) {
      const auto in = runtime.streams.find(stream);
      const auto memory = runtime.memory_for(*in, address);
      require(address % sizeof(Word) == 0 && memory && memory->bytes - (address - memory->address) >= sizeof(Word));
      const auto run = [&runtime, work = std::move(work)] {
        if (runtime.sticky_error() == cudaSuccess) work(runtime);
      };
      // The runtime API has no name for such a node.
      runtime.streams.submit(*in, run, {.type = static_cast<cudaGraphNodeType>(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)});
    });
  });
}

template <class Word>
CUresult write_value(CUstream stream, CUdeviceptr address, Word value, unsigned flags) {
  // CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER is for the functions of before CUDA 11.7.
  if (flags != CU_STREAM_WRITE_VALUE_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
  return submit<Word>(stream, address, [=](Runtime& runtime) { word_at<Word>(runtime, address) = value; });
}

template <class Word>
bool holds(Word word, Word value, unsigned condition) {
  switch (condition) {
    case CU_STREAM_WAIT_VALUE_EQ:
      return word == value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (word & value) != 0;
    case CU_STREAM_WAIT_VALUE_NOR:
      return static_cast<Word>(~(word | value)) != 0;
    default:  // CU_STREAM_WAIT_VALUE_GEQ, which goes round
      return static_cast<std::make_signed_t<Word>>(word - value) >= 0;
  }
}

template <class Word>
void wait_for(Runtime& runtime, uint64_t address, Word value, unsigned condition) {
  const auto word = word_at<Word>(runtime, address);
  const auto text = [&] {
    constexpr std::string_view conditions[] = {">=", "==", "&", "nor"};
    return fmt::format(
        "{} waits for a word {} {:#x} at {:#x}, which is {:#x}; whoever else writes it must be issued "
        "before, since here streams do not overlap",
        kWaiting<Word>, conditions[condition], value, address, word.load());
  };
  const auto start = std::chrono::steady_clock::now();
  for (bool told = false; !holds(word.load(), value, condition); std::this_thread::sleep_for(50us)) {
    if (runtime.queue.ending()) return;
    if (!runtime.device().memory().find(address)->host)
      return runtime.poison({cudaErrorLaunchTimeout, "emulator: hang: " + text()});
    if (!told && std::chrono::steady_clock::now() - start > 2s) {
      say(text());
      told = true;
    }
  }
}

template <class Word>
CUresult wait_value(CUstream stream, CUdeviceptr address, Word value, unsigned flags) {
  if ((flags & ~unsigned{CU_STREAM_WAIT_VALUE_FLUSH}) > CU_STREAM_WAIT_VALUE_NOR) return CUDA_ERROR_INVALID_VALUE;
  if (flags & CU_STREAM_WAIT_VALUE_FLUSH) return CUDA_ERROR_NOT_SUPPORTED;  // CAN_FLUSH_REMOTE_WRITES says so
  return submit<Word>(stream, address, [=](Runtime& runtime) { wait_for<Word>(runtime, address, value, flags); });
}

// The functions of before CUDA 11.7: a driver refuses them unless its module was loaded with NVreg_EnableStreamMemOPs
// (CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1 says that it was not).
template <class Word>
CUresult not_enabled(CUstream, CUdeviceptr, Word, unsigned) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

std::span<const DriverFunction> driver_functions_of_stream_values() {
  static const DriverFunction table[] = {
      entry<PFN_cuStreamWriteValue32_v8000>("cuStreamWriteValue32", 8000, not_enabled<cuuint32_t>),
      entry<PFN_cuStreamWaitValue32_v8000>("cuStreamWaitValue32", 8000, not_enabled<cuuint32_t>),
      entry<PFN_cuStreamWriteValue64_v9000>("cuStreamWriteValue64", 9000, not_enabled<cuuint64_t>),
      entry<PFN_cuStreamWaitValue64_v9000>("cuStreamWaitValue64", 9000, not_enabled<cuuint64_t>),
      entry<PFN_cuStreamWriteValue32_v11070>("cuStreamWriteValue32", 11070, write_value<cuuint32_t>),
      entry<PFN_cuStreamWaitValue32_v11070>("cuStreamWaitValue32", 11070, wait_value<cuuint32_t>),
      entry<PFN_cuStreamWriteValue64_v11070>("cuStreamWriteValue64", 11070, write_value<cuuint64_t>),
      entry<PFN_cuStreamWaitValue64_v11070>("cuStreamWaitValue64", 11070, wait_value<cuuint64_t>),
  };
  return table;
}

}  // namespace emu::runtime
