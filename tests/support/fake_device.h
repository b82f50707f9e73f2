#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace rondo::test {

/// A device whose memory is the host's and whose operators are the CPU's, with graphs that repeat
/// what was captured: for what recorded steps do on a device, on a machine without one. It notes
/// what would wait for a device, refuses that during a capture, gives memory that a capture let go
/// to others, and fills freed memory with NaN.
///
/// \return false with a LibTorch before 2.4, which has no such devices; the test is to say so
bool has_fake_device();

/// "fake:0"; `BackendOptions::device` takes "fake".
c10::Device fake_device();

/// Since the program began.
struct FakeDeviceCounts {
  int64_t launches = 0;      ///< of graphs
  int64_t reads = 0;         ///< of the device's memory by the host
  int64_t graph_memory = 0;  ///< bytes that captures took
};

const FakeDeviceCounts& fake_device_counts();

}  // namespace rondo::test
