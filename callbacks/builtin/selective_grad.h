#pragma once

#include <string>
#include <vector>

#include "callbacks/callback.h"
#include "sparsity/mask.h"

namespace rondo {

/// Trains a part of the elements of parameters: the gradients of the others are zero in each
/// update. Which part it is is chosen once and saved. The others keep their values under optimizers
/// that move nothing without a gradient; weight decay shrinks them, unless it is off for their
/// group. Source: SelectiveGrad of Cerebras' ModelZoo trainer.
class SelectiveGrad final : public Callback {
 public:
  struct Options {
    std::vector<std::string> params =
        {};              ///< globs of names; none: every one of two or more dimensions
    double share = 0.5;  ///< of a parameter's elements that are trained, in (0, 1]
    std::string init_method = "random";  ///< which: "random", or "topk", the largest magnitudes
  };

  /// \throws UsageError  for options out of range
  explicit SelectiveGrad(const Options& options);

  /// \throws UsageError  when the globs pick no parameter
  void setup(Trainer& trainer) override;

  void on_before_optimizer_step(Trainer&, Model&, Optimizer&) override;

  /// Bits of an integer of the parameter's width: all where it is trained, none elsewhere.
  NamedTensors captured_state() override;

  /// The globs.
  std::string state_subject() const override;

 private:
  at::Tensor chosen(const at::Tensor& weight) const;

  Options options_;
  std::vector<Mask> masks_;
};

}  // namespace rondo
