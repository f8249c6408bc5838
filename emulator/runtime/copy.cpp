#include "emulator/runtime/copy.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "emulator/runtime/api.h"

namespace emu::runtime {
namespace {

// Up to here, an asynchronous copy out of pageable memory takes the bytes at the call, as CUDA's staging buffers do;
// beyond, it waits.
constexpr size_t kStagedUpTo = size_t{64} << 20;

uint64_t address_of(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

size_t span_bytes(const Side& side, const Extent& extent) {
  return (extent.slices - 1) * side.slice_pitch + (extent.rows - 1) * side.pitch + extent.row_bytes;
}

enum class Where { device, pinned, pageable };

// Where one side lies. Throws when it has to be reachable by the device and is not, or runs over the end of its
// allocation.
Where locate(Runtime& runtime, const Stream& stream, const Side& side, size_t bytes, bool must_be_on_device) {
  require(side.start != nullptr);
  const auto allocation = runtime.memory_for(stream, address_of(side.start));
  if (!allocation) {
    require(!must_be_on_device && !runtime.device().memory().is_device_address(address_of(side.start)));
    return Where::pageable;
  }
  const uint64_t offset = address_of(side.start) - allocation->address;
  const bool inside = bytes <= allocation->bytes - offset;
  if (allocation->host) {
    require(inside || !must_be_on_device);
    return inside ? Where::pinned : Where::pageable;
  }
  require(inside);
  return Where::device;
}

template <class Row>
void for_each_row(const Extent& extent, Row&& row) {
  for (size_t slice = 0; slice < extent.slices; ++slice)
    for (size_t line = 0; line < extent.rows; ++line) row(slice, line);
}

size_t offset_of(const Side& side, size_t slice, size_t row) {
  return slice * side.slice_pitch + row * side.pitch;
}

// Rows that touch become one: a dense matrix is a single memcpy.
Extent merged(Extent extent, const Side& a, const Side& b) {
  if (a.pitch == extent.row_bytes && b.pitch == extent.row_bytes) {
    extent.row_bytes *= extent.rows;
    extent.rows = 1;
  }
  return extent;
}

const std::byte* readable(Device& device, const Side& side, Where where, size_t bytes) {
  if (where == Where::pageable) return static_cast<const std::byte*>(side.start);
  return device.memory().reading(address_of(side.start), bytes);
}

std::byte* writable(Device& device, const Side& side, Where where, size_t bytes) {
  if (where == Where::pageable) return static_cast<std::byte*>(const_cast<void*>(side.start));
  return device.memory().writing(address_of(side.start), bytes);
}

cudaPitchedPtr pitched(const Side& side, const Extent& extent) {
  return {const_cast<void*>(side.start), side.pitch, extent.row_bytes, side.pitch ? side.slice_pitch / side.pitch : 0};
}

}  // namespace

void copy(Runtime& runtime, Side to, Side from, Extent extent, cudaMemcpyKind kind, Stream& stream, Wait wait) {
  bool to_device = false, from_device = false;
  switch (kind) {
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      break;
    case cudaMemcpyHostToDevice:
      to_device = true;
      break;
    case cudaMemcpyDeviceToHost:
      from_device = true;
      break;
    case cudaMemcpyDeviceToDevice:
      to_device = from_device = true;
      break;
    default:
      throw ApiError{cudaErrorInvalidMemcpyDirection};
  }
  Device& device = runtime.device();
  if (extent.empty()) return;
  const size_t to_bytes = span_bytes(to, extent), from_bytes = span_bytes(from, extent);
  const Where to_where = locate(runtime, stream, to, to_bytes, to_device);
  const Where from_where = locate(runtime, stream, from, from_bytes, from_device);
  const Extent rows = merged(extent, to, from);

  const auto run = [&runtime, &device, to, from, rows, to_bytes, from_bytes, to_where,
                    from_where](const std::byte* staged) {
    if (runtime.sticky_error() != cudaSuccess) return;
    const std::byte* source = staged ? staged : readable(device, from, from_where, from_bytes);
    std::byte* target = writable(device, to, to_where, to_bytes);
    for_each_row(rows, [&](size_t slice, size_t row) {
      std::memmove(target + offset_of(to, slice, row), source + offset_of(from, slice, row), rows.row_bytes);
    });
  };

  if (runtime.streams.captures(stream)) {
    // It reads and writes at each launch.
    if (wait == Wait::as_the_plain_call) runtime.streams.refuse_while_capturing(stream);
    NodeDescription what;
    what.type = cudaGraphNodeTypeMemcpy;
    what.copy.dstPtr = pitched(to, extent);
    what.copy.srcPtr = pitched(from, extent);
    what.copy.extent = {extent.row_bytes, extent.rows, extent.slices};
    what.copy.kind = kind;
    runtime.streams.submit(
        stream, [run] { run(nullptr); }, std::move(what));
    return;
  }

  bool must_wait = false;
  if (wait == Wait::as_the_plain_call) {
    must_wait = !(to_where == Where::device && from_where == Where::device);
  } else {
    const bool both_host = to_where != Where::device && from_where != Where::device;
    must_wait = to_where == Where::pageable || (both_host && from_where == Where::pageable);
  }
  if (!must_wait && from_where == Where::pageable) {
    if (from_bytes <= kStagedUpTo) {
      const auto* first = static_cast<const std::byte*>(from.start);
      auto staged = std::make_shared<std::vector<std::byte>>(first, first + from_bytes);
      runtime.streams.submit(stream, [run, staged] { run(staged->data()); });
      return;
    }
    must_wait = true;
  }
  const Ticket ticket = runtime.streams.submit(stream, [run] { run(nullptr); });
  if (must_wait) runtime.queue.wait(ticket);
}

void fill(Runtime& runtime, Side to, uint32_t value, size_t value_bytes, Extent extent, Stream& stream, Wait wait) {
  Device& device = runtime.device();
  if (extent.empty()) return;
  const size_t bytes = span_bytes(to, extent);
  const Where where = locate(runtime, stream, to, bytes, true);
  const Extent rows = merged(extent, to, to);
  if (wait == Wait::as_the_plain_call) runtime.streams.refuse_while_capturing(stream);
  NodeDescription what;
  what.type = cudaGraphNodeTypeMemset;
  what.fill = {const_cast<void*>(to.start),    to.pitch,   value, static_cast<unsigned>(value_bytes),
               extent.row_bytes / value_bytes, extent.rows};
  const auto run = [&runtime, &device, to, rows, bytes, where, value, value_bytes] {
    if (runtime.sticky_error() != cudaSuccess) return;
    std::byte* target = writable(device, to, where, bytes);
    for_each_row(rows, [&](size_t slice, size_t row) {
      std::byte* line = target + offset_of(to, slice, row);
      if (value_bytes == 1) {
        std::memset(line, static_cast<int>(value), rows.row_bytes);
      } else {
        for (size_t at = 0; at < rows.row_bytes; at += value_bytes) std::memcpy(line + at, &value, value_bytes);
      }
    });
  };
  const Ticket ticket = runtime.streams.submit(stream, run, std::move(what));
  // An H200 waits when the target is host memory.
  if (wait == Wait::as_the_plain_call && where != Where::device) runtime.queue.wait(ticket);
}

}  // namespace emu::runtime
