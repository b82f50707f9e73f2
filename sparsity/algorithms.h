#pragma once

#include <string>

#include "sparsity/algorithm.h"

namespace rondo {

/// The first mask stays. Source: Han et al. 2015, arXiv:1506.02626, with all pruning done before
/// training.
class StaticSparsity final : public SparsityAlgorithm {
 public:
  at::Tensor next_mask(const MaskedWeights& weights) override { return weights.mask; }

  bool changes_masks() const override { return false; }

  void check(const SparsitySchedule& schedule) const override;
};

/// Gradual magnitude pruning: of the weights that are left, those of smallest magnitude go; none
/// comes back. Source: Zhu and Gupta 2017, arXiv:1710.01878.
class GradualMagnitudePruning final : public SparsityAlgorithm {
 public:
  at::Tensor next_mask(const MaskedWeights& weights) override;
  void check(const SparsitySchedule& schedule) const override;
};

/// The kept weights of smallest magnitude go; weights at random places come, as zeros.
/// Source: Mocanu et al. 2018, arXiv:1707.04780.
class SparseEvolutionaryTraining final : public SparsityAlgorithm {
 public:
  struct Options {
    double drop_fraction = 0.3;      ///< in [0, 1): share of the kept weights replaced at a time
    std::string decay = "constant";  ///< or "cosine": that share falls to 0 in the window
  };

  explicit SparseEvolutionaryTraining(const Options& options);

  at::Tensor next_mask(const MaskedWeights& weights) override;

 private:
  Options options_;
};

/// The kept weights of smallest magnitude go; weights with the largest gradient come, as zeros.
/// One that goes and comes at once keeps its value. Source: Evci et al. 2020, arXiv:1911.11134.
class RigL final : public SparsityAlgorithm {
 public:
  struct Options {
    double drop_fraction = 0.3;    ///< in [0, 1): share of the kept weights replaced at a time
    std::string decay = "cosine";  ///< that share falls to 0 in the window; or "constant"
  };

  explicit RigL(const Options& options);

  at::Tensor next_mask(const MaskedWeights& weights) override;

  bool needs_gradient() const override { return true; }

 private:
  Options options_;
};

}  // namespace rondo
