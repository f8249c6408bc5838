// Events. Their times are the host's wall clock: see event.h.

#include "emulator/runtime/api.h"

using namespace emu::runtime;

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return answer([&](Runtime& runtime) {
    require(event != nullptr);
    runtime.device();
    *event = runtime.events.create(flags);
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return answer([&](Runtime& runtime) { runtime.events.destroy(event); });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return answer([&](Runtime& runtime) {
    require(flags == cudaEventRecordDefault || flags == cudaEventRecordExternal);
    runtime.events.record(event, *runtime.streams.find(stream), flags == cudaEventRecordExternal);
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return answer([&](Runtime& runtime) { require(runtime.events.done(event), cudaErrorNotReady); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return answer([&](Runtime& runtime) { runtime.events.wait(event); });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return answer([&](Runtime& runtime) {
    require(milliseconds != nullptr);
    *milliseconds = runtime.events.elapsed_ms(start, end);
  });
}
