#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/named_tensor.h"
#include "core/random.h"
#include "sparsity/algorithm.h"
#include "sparsity/mask.h"
#include "sparsity/sparsity_options.h"

namespace rondo {

/// Masks that share options, and how they change.
class MaskGroup {
 public:
  /// \throws UsageError  when an option is out of its range
  explicit MaskGroup(SparsityOptions options);

  /// Whose updates its masks follow; null: everybody's.
  const void* owner() const { return owner_; }

  void set_owner(const void* owner) { owner_ = owner; }

  void add(Mask mask) { masks_.push_back(std::move(mask)); }

  std::vector<Mask>& masks() { return masks_; }

  const std::vector<Mask>& masks() const { return masks_; }

  const SparsityOptions& options() const { return options_; }

  bool changes_masks() const { return algorithm_->changes_masks(); }

  /// Chooses the first mask from the weights as they are. Exactly `round(share * elements)` are
  /// pruned, but with "from_zeros"; of equal magnitudes the later ones.
  void choose();

  /// Makes the coming step one that changes the masks, when `done` of the window is over.
  /// \param keys  of the random numbers of this change; the same in all processes
  /// \capture host only
  void aim(double done, KeyedRandom keys);

  /// Makes the coming step one that does not.
  /// \capture host only
  void rest() { is_due_ = false; }

  bool is_due() const { return is_due_; }

  /// Keeps what the algorithm needs of the gradients, which are not yet masked.  \capture safe
  void keep_gradients();

  /// Changes the masks.  \capture safe
  void change();

  /// What `change` reads besides weights and masks.
  NamedTensors numbers(const std::string& prefix) const;

 private:
  bool is_global() const { return options_.distribution == "global"; }

  at::Tensor first_scores(const Mask& mask) const;
  void count_kept(double share);
  at::Tensor next_mask(const MaskedWeights& weights) const;

  SparsityOptions options_;
  const void* owner_ = nullptr;
  std::unique_ptr<SparsityAlgorithm> algorithm_;
  std::vector<Mask> masks_;
  std::vector<at::Tensor> kept_;  // int64 []: one a mask, or one for all of them
  at::Tensor progress_;           // float64 []
  std::vector<at::Tensor> keys_;  // int64 []: as many as `kept_`
  bool is_due_ = false;
  std::vector<at::Tensor> gradients_;  // one a mask, within a step that changes masks
};

}  // namespace rondo
