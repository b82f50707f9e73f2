#pragma once

#include <ATen/core/Tensor.h>

#include "core/factory.h"
#include "sparsity/sparsity_schedule.h"

namespace rondo {

/// What an algorithm sees when masks change: one parameter, or, with a global distribution, all
/// parameters of a group, flattened and joined. Tensors of one shape but for the two numbers.
struct MaskedWeights {
  at::Tensor weight;    ///< after the optimizer's update; zero where it is pruned
  at::Tensor gradient;  ///< of the loss, also where the weight is pruned; undefined unless
                        ///< `needs_gradient`
  at::Tensor mask;      ///< bool: true where the weight is kept
  at::Tensor kept;      ///< int64 []: how many elements the schedule keeps
  at::Tensor progress;  ///< float64 []: share of the window of mask updates that is over
  at::Tensor key;       ///< int64 []: of random numbers. It differs from update to update and from
                        ///< weight to weight, and is the same in all processes
};

/// How masks change. A user's own derives from it and is registered with
/// `Registries::sparsity_algorithms`. The rest is done around it: the first mask, schedules, when
/// masks change, zeroes in weights, gradients and the optimizer's state, saving and logging.
class SparsityAlgorithm {
 public:
  using Component = SparsityAlgorithm;
  using Options = NoOptions;

  SparsityAlgorithm() = default;
  SparsityAlgorithm(const SparsityAlgorithm&) = delete;
  SparsityAlgorithm& operator=(const SparsityAlgorithm&) = delete;
  virtual ~SparsityAlgorithm() = default;

  /// The mask from here on. Runs inside of the training step, outside of autograd.
  /// \return bool, of the weight's shape
  /// \capture safe: tensor work only; `kept`, `progress` and `key` are other numbers in each replay
  virtual at::Tensor next_mask(const MaskedWeights& weights) = 0;

  /// False when the first mask stays.
  virtual bool changes_masks() const { return true; }

  /// Whether `next_mask` reads the gradient.
  virtual bool needs_gradient() const { return false; }

  /// \throws UsageError  when it cannot follow the schedule
  virtual void check(const SparsitySchedule&) const {}
};

/// True for the `count` largest scores; of equal ones the first.
/// \param count  int64 []
/// \capture safe
at::Tensor top_mask(const at::Tensor& scores, const at::Tensor& count);

/// Uniform random numbers that follow from the key alone. The generators of processes differ, so
/// masks that were drawn from those would differ too.
/// \param key  int64 []
/// \return float64 in [0, 1), on the key's device
/// Source: Steele et al. 2014, SplitMix64
/// \capture safe
at::Tensor keyed_uniform(const at::Tensor& key, at::IntArrayRef sizes);

}  // namespace rondo
