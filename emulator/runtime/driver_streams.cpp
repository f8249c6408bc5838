// Driver API: streams and events.

#include "emulator/runtime/driver_table.h"

namespace emu::runtime {
namespace {

CUresult stream_create(CUstream* stream, unsigned flags) {
  return driver([&] { return cudaStreamCreateWithFlags(stream, flags); });
}
CUresult stream_create_with_priority(CUstream* stream, unsigned flags, int priority) {
  return driver([&] { return cudaStreamCreateWithPriority(stream, flags, priority); });
}
CUresult stream_destroy(CUstream stream) {
  return driver([&] { return cudaStreamDestroy(stream); });
}
CUresult stream_synchronize(CUstream stream) {
  return driver([&] { return cudaStreamSynchronize(stream); });
}
CUresult stream_query(CUstream stream) {
  return driver([&] { return cudaStreamQuery(stream); });
}
CUresult stream_wait_event(CUstream stream, CUevent event, unsigned flags) {
  return driver([&] { return cudaStreamWaitEvent(stream, event, flags); });
}
CUresult stream_flags(CUstream stream, unsigned* flags) {
  return driver([&] { return cudaStreamGetFlags(stream, flags); });
}
CUresult stream_priority(CUstream stream, int* priority) {
  return driver([&] { return cudaStreamGetPriority(stream, priority); });
}
CUresult launch_host_function(CUstream stream, CUhostFn function, void* data) {
  return driver([&] { return cudaLaunchHostFunc(stream, function, data); });
}
CUresult event_create(CUevent* event, unsigned flags) {
  return driver([&] { return cudaEventCreateWithFlags(event, flags); });
}
CUresult event_destroy(CUevent event) {
  return driver([&] { return cudaEventDestroy(event); });
}
CUresult event_record(CUevent event, CUstream stream) {
  return driver([&] { return cudaEventRecord(event, stream); });
}
CUresult event_synchronize(CUevent event) {
  return driver([&] { return cudaEventSynchronize(event); });
}
CUresult event_query(CUevent event) {
  return driver([&] { return cudaEventQuery(event); });
}
CUresult event_elapsed(float* milliseconds, CUevent start, CUevent end) {
  return driver([&] { return cudaEventElapsedTime(milliseconds, start, end); });
}

}  // namespace

std::span<const DriverFunction> driver_functions_of_streams() {
  static const DriverFunction table[] = {
      entry<PFN_cuStreamCreate_v2000>("cuStreamCreate", 2000, stream_create),
      entry<PFN_cuStreamCreateWithPriority_v5050>("cuStreamCreateWithPriority", 5050, stream_create_with_priority),
      entry<PFN_cuStreamDestroy_v4000>("cuStreamDestroy", 4000, stream_destroy),
      entry<PFN_cuStreamSynchronize_v2000>("cuStreamSynchronize", 2000, stream_synchronize),
      entry<PFN_cuStreamQuery_v2000>("cuStreamQuery", 2000, stream_query),
      entry<PFN_cuStreamWaitEvent_v3020>("cuStreamWaitEvent", 3020, stream_wait_event),
      entry<PFN_cuStreamGetFlags_v5050>("cuStreamGetFlags", 5050, stream_flags),
      entry<PFN_cuStreamGetPriority_v5050>("cuStreamGetPriority", 5050, stream_priority),
      entry<PFN_cuLaunchHostFunc_v10000>("cuLaunchHostFunc", 10000, launch_host_function),
      entry<PFN_cuEventCreate_v2000>("cuEventCreate", 2000, event_create),
      entry<PFN_cuEventDestroy_v4000>("cuEventDestroy", 4000, event_destroy),
      entry<PFN_cuEventRecord_v2000>("cuEventRecord", 2000, event_record),
      entry<PFN_cuEventSynchronize_v2000>("cuEventSynchronize", 2000, event_synchronize),
      entry<PFN_cuEventQuery_v2000>("cuEventQuery", 2000, event_query),
      entry<PFN_cuEventElapsedTime_v2000>("cuEventElapsedTime", 2000, event_elapsed),
  };
  return table;
}

}  // namespace emu::runtime
