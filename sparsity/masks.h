#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "core/named_tensor.h"
#include "core/state_dict.h"
#include "sparsity/mask_group.h"
#include "sparsity/sparsity_options.h"

namespace rondo {

/// Which optimizer updates a weight; null for none.
using OwnerOf = std::function<const void*(const at::Tensor& weight)>;

/// Unstructured sparsity of a model: masked weights are exactly zero from the beginning, through
/// every update, and wherever masks change.
class SparsityMasks {
 public:
  /// \throws UsageError  when an option is out of its range
  explicit SparsityMasks(const SparsityOptions& options);

  /// Chooses the first masks for the model's parameters and sets what they prune to zero. Tied
  /// weights have one mask, under their first name. A group whose weights several optimizers update
  /// becomes one for each of them.
  /// \throws UsageError  when the globs of a group match nothing, or it was done before
  /// \throws NotSupportedError  when a parameter is not floating
  void apply(const NamedTensors& parameters, const OwnerOf& owner_of = {});

  /// Chooses the first masks again, from the weights as they are now.
  void choose();

  /// Masks what an optimizer keeps for a weight too, where it has the weight's shape.
  /// \param updated  the weight, or its float32 master, which is masked with it
  void add_states(const at::Tensor& weight, const NamedTensors& states, const at::Tensor& updated);

  /// The mask of a weight; null when it has none.
  const Mask* mask_of(const at::Tensor& weight) const;

  /// Sets the pruned elements of every defined gradient to zero, so that nothing an optimizer keeps
  /// for them moves: call it before the update.
  /// \param owner  the optimizer whose weights alone are meant; null: all weights
  /// \capture safe
  void mask_gradients(const void* owner = nullptr);

  /// Sets the pruned elements to exactly +0, whatever the update made of them. Changes the masks of
  /// the groups that are due, with what the optimizer keeps.
  /// \param owner  as for `mask_gradients`
  /// \capture safe
  void after_update(const void* owner = nullptr);

  /// {"masks": {parameter: bool tensor, false where the element is zero}}
  StateDict state_dict() const;

  /// \throws CheckpointError  when `load` would
  void check(const StateDict& state) const;

  /// Takes the masks of a checkpoint instead of those chosen here, and sets the weights that they
  /// prune to zero.
  /// \throws CheckpointError  when parameters or shapes differ; nothing is changed then
  void load(const StateDict& state);

  /// The share of the masked weights that is zero; 0 before `apply`.
  double sparsity() const;

  /// Masks, and the numbers by which they change, for those who record a step.
  NamedTensors captured_state() const;

  std::vector<MaskGroup>& groups() { return groups_; }

  const std::vector<MaskGroup>& groups() const { return groups_; }

 private:
  std::vector<const Mask*> all() const;
  void zero_weights() const;

  std::vector<MaskGroup> groups_;
};

}  // namespace rondo
