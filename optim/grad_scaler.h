#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/named_tensor.h"
#include "core/state_dict.h"

namespace rondo {

/// Multiplies losses, so that small gradients do not vanish in float16, and divides the gradients
/// again before they are used. A dynamic scale shrinks where a gradient is not finite, and grows
/// after a number of updates without such a gradient. Tensor code alone: a recorded step repeats
/// all of it.
/// Source: Micikevicius et al. 2017, arXiv:1710.03740, section 3.2; PyTorch's GradScaler.
class GradScaler {
 public:
  struct Options {
    double initial = 65536.0;                   ///< > 0
    bool is_dynamic = true;                     ///< false: the scale stays as it is
    double growth = 2.0;                        ///< > 1
    double backoff = 0.5;                       ///< in (0, 1)
    int64_t steps_per_increase = 2000;          ///< >= 1: updates without a bad gradient
    double least = 0.0;                         ///< >= 0
    std::optional<double> most = std::nullopt;  ///< none: float32's largest number
  };

  GradScaler(const Options& options, c10::Device device);

  /// \return the loss to go backward, float32 or wider  \capture safe
  at::Tensor scaled(const at::Tensor& loss) const;

  /// Divides gradients in place.
  /// \return 0-dim bool: whether one of them is not finite  \capture safe
  at::Tensor unscale_(const std::vector<at::Tensor>& grads) const;

  /// Moves the scale on after an update.
  /// \param found_bad  0-dim bool: whether a gradient of the update was not finite
  /// \return 0-dim bool: whether that happened at the least scale  \capture safe
  at::Tensor move_on(const at::Tensor& found_bad);

  /// 0-dim, float32
  const at::Tensor& scale() const { return scale_; }

  /// 0-dim, int64: updates with a bad gradient
  const at::Tensor& skipped_steps() const { return skipped_; }

  const Options& options() const { return options_; }

  NamedTensors captured_state() const;
  StateDict state_dict() const;

  /// \throws CheckpointError  when a tensor is missing or of another kind
  void check(const StateDict& state) const;

  /// Copies in place. \throws CheckpointError  as `check`; nothing is changed then
  void load(const StateDict& state);

 private:
  Options options_;
  at::Tensor scale_;
  at::Tensor growth_tracker_;  // 0-dim, int64: good updates since the scale moved
  at::Tensor skipped_;
};

}  // namespace rondo
