#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "backends/step.h"

namespace rondo {

/// A copy of everything a step may change: the memory of its state and batch, and LibTorch's
/// default generators of the CPU and of the devices where these are. Memory is copied by storage,
/// on its own device, so tensors that share it stay consistent.
class StateSnapshot {
 public:
  StateSnapshot(const CapturedState& state, const Batch& batch);

  /// Copies everything anew, into the same memory.
  /// \return false, and nothing is copied, when `state` lies in other memory than was copied
  ///         before, or in more or less of it
  bool retake(const CapturedState& state);

  /// Exchanges the copy with what is there now. Memory that was resized since keeps what it holds.
  void swap();

  /// Name of the first tensor (or "the random number generator") whose bytes differ between the
  /// copy and what is there now; "" when none does.
  std::string first_difference() const;

 private:
  struct Copy {
    c10::Storage storage;
    at::Tensor bytes;
  };

  struct Generator {
    c10::Device device;
    at::Tensor state;
  };

  static bool has_its_size(const Copy& copy);
  std::vector<Copy>::const_iterator find(const at::Tensor& tensor) const;
  void add(const std::string& name, const at::Tensor& tensor);
  void add_generator(c10::Device device);

  CapturedState tensors_;
  std::vector<Copy> copies_;
  std::vector<Generator> generators_;
};

}  // namespace rondo
