// Streams, and functions of the host in them.

#include "emulator/runtime/api.h"

using namespace emu::runtime;

namespace {

cudaError_t create(cudaStream_t* stream, unsigned flags, int priority) {
  return answer([&](Runtime& runtime) {
    require(stream != nullptr);
    runtime.device();
    *stream = runtime.streams.create(flags, priority);
  });
}

bool is_stream_attribute(cudaLaunchAttributeID id) {
  switch (id) {
    case cudaLaunchAttributeAccessPolicyWindow:
    case cudaLaunchAttributeSynchronizationPolicy:
    case cudaLaunchAttributePriority:
    case cudaLaunchAttributeMemSyncDomainMap:
    case cudaLaunchAttributeMemSyncDomain:
      return true;
    default:
      return false;
  }
}

}  // namespace

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return create(stream, cudaStreamDefault, kLowestPriority);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return create(stream, flags, kLowestPriority);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return create(stream, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return answer([&](Runtime& runtime) { runtime.streams.destroy(stream); });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return answer(Needs::no_capture, [&](Runtime& runtime) {
    const auto in = runtime.streams.find(stream);
    runtime.streams.refuse_while_capturing(*in);
    runtime.queue.wait(runtime.streams.last_of(*in));
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return answer(Needs::no_capture, [&](Runtime& runtime) {
    runtime.device();
    const auto in = runtime.streams.find(stream);
    runtime.streams.refuse_while_capturing(*in);
    require(runtime.queue.done(runtime.streams.last_of(*in)), cudaErrorNotReady);
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return answer([&](Runtime& runtime) {
    require(flags == cudaEventWaitDefault || flags == cudaEventWaitExternal);
    runtime.events.make_wait(*runtime.streams.find(stream), event, flags == cudaEventWaitExternal);
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return answer([&](Runtime& runtime) {
    require(flags != nullptr);
    *flags = runtime.streams.find(stream)->flags;
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return answer([&](Runtime& runtime) {
    require(priority != nullptr);
    *priority = runtime.streams.find(stream)->priority;
  });
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return answer([&](Runtime& runtime) {
    require(id != nullptr);
    *id = runtime.streams.find(stream)->id;
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return answer([&](Runtime& runtime) {
    require(device != nullptr);
    runtime.streams.find(stream);
    *device = 0;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return answer([&](Runtime& runtime) {
    require(function != nullptr);
    runtime.streams.submit(*runtime.streams.find(stream),
                           [&runtime, function, data] {
                             if (runtime.sticky_error() == cudaSuccess) function(data);
                           },
                           {.type = cudaGraphNodeTypeHost, .host = {function, data}});
  });
}

// Unlike cudaLaunchHostFunc's, a callback is told of an error and called all the same.
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned flags) {
  return answer([&](Runtime& runtime) {
    require(callback && flags == 0);
    const auto in = runtime.streams.find(stream);
    runtime.streams.refuse_while_capturing(*in);
    runtime.streams.submit(*in, [&runtime, stream, callback, data] { callback(stream, runtime.sticky_error(), data); });
  });
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  return answer(
      [&](Runtime& runtime) { runtime.streams.find(to)->attributes = runtime.streams.find(from)->attributes; });
}

// Hints, which are kept and have no effect.
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID id,
                                   const cudaLaunchAttributeValue* value) {
  return answer([&](Runtime& runtime) {
    require(value && is_stream_attribute(id));
    runtime.streams.find(stream)->attributes[id] = *value;
  });
}

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID id, cudaLaunchAttributeValue* value) {
  return answer([&](Runtime& runtime) {
    require(value && is_stream_attribute(id));
    const auto in = runtime.streams.find(stream);
    const auto found = in->attributes.find(id);
    *value = found == in->attributes.end() ? cudaLaunchAttributeValue{} : found->second;
    if (id == cudaLaunchAttributePriority) value->priority = in->priority;
  });
}
