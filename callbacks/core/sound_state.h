#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>

#include "checkpoint/checkpoint_file.h"

namespace torch::nn {
class Module;
}

namespace rondo {

/// Which tensors must be finite for a run to go on from a state: trainable parameters, what the
/// optimizer keeps for them, and the floating-point buffers that were finite when they were noted.
/// So a constant such as a mask of -inf is not looked at, nor is what callbacks save.
class SoundState {
 public:
  /// Notes which buffers are finite now.
  void note_buffers(const torch::nn::Module& module);

  /// A check of what is saved of the module as it is now, for any thread.
  /// \param update  of the state, for the message
  /// \return a function that throws NonFiniteLossError, naming the first tensor that is not finite
  StateCheck check_of(const torch::nn::Module& module, int64_t update) const;

 private:
  std::unordered_set<std::string> finite_buffers_;
};

}  // namespace rondo
