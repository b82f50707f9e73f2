#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "tracing/graphs/device_graphs.h"

namespace rondo {

/// Numbers of the host that a step on a device reads, such as a learning rate: a copy of them lies
/// on the device, and every launch begins by bringing it up to date. A graph that read them on the
/// host would repeat what they were when it was captured.
class MirroredNumbers {
 public:
  explicit MirroredNumbers(c10::Device device) : device_(device) {}

  /// \param number  on the CPU, one element; read at each update
  /// \return its copy on the device, once `allocate` was called
  void add(const at::Tensor& number);

  void allocate();

  /// In the order of `add`.
  const std::vector<at::Tensor>& copies() const { return copies_; }

  /// Starts a copy of what the numbers are now.
  void update(DeviceGraphs& graphs);

  int64_t bytes() const;

 private:
  c10::Device device_;
  std::vector<at::Tensor> numbers_;
  std::vector<at::Tensor> copies_;
  at::Tensor memory_;  // of the copies
};

}  // namespace rondo
