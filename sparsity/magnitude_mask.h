#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "core/named_tensor.h"
#include "core/state_dict.h"

namespace rondo {

/// Which weights are held at zero.
struct SparsityOptions {
  double sparsity = 0.0;  ///< share of each weight that is zero, in [0, 1); 0: none
  std::vector<std::string> params =
      {};  ///< globs of names; none: every one of two or more dimensions
};

/// Static unstructured sparsity: of each weight the elements of smallest magnitude are zero from
/// the beginning and stay so. Source: Han et al. 2015, arXiv:1506.02626, with all pruning done
/// before training.
class MagnitudeMask {
 public:
  /// \throws UsageError  when the share is not in [0, 1)
  explicit MagnitudeMask(SparsityOptions options);

  /// Chooses what to prune in the model's parameters and sets it to zero. Exactly
  /// `round(sparsity * numel)` elements of each; of equal magnitudes the later ones.
  /// \throws UsageError  when the globs match nothing, or it was done before
  /// \throws NotSupportedError  when a parameter is not floating
  void apply(const NamedTensors& parameters);

  /// Sets the pruned elements of every defined gradient to zero, so that nothing an optimizer keeps
  /// for them moves: call it before the update.
  /// \capture safe
  void mask_gradients();

  /// Sets the pruned elements to exactly +0, whatever the update made of them.
  /// \capture safe
  void after_update();

  /// {"masks": {parameter: bool tensor, false where the element is zero}}
  StateDict state_dict() const;

  /// \throws CheckpointError  when `load` would
  void check(const StateDict& state) const;

  /// Takes the masks of a checkpoint in place of those chosen here, and sets what they prune to
  /// zero.
  /// \throws CheckpointError  when parameters or shapes differ; nothing is changed then
  void load(const StateDict& state);

  /// The share of the masked weights that is zero; 0 before `apply`.
  double sparsity() const;

  /// The masks, for those who record a step.
  NamedTensors captured_state() const;

 private:
  struct Masked {
    std::string name;
    at::Tensor weight;
    at::Tensor keep;  // integers of the same width: all bits set, none where it is pruned
  };

  SparsityOptions options_;
  std::vector<Masked> masked_;
};

}  // namespace rondo
