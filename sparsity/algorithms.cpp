#include "sparsity/algorithms.h"

#include <ATen/ops/minimum.h>
#include <ATen/ops/where.h>

#include "core/error.h"
#include "core/registry.h"
#include "core/require.h"
#include "sparsity/register.h"

namespace rondo {

namespace {

// Below every magnitude and every random number.
constexpr double kLast = -1.0;

/// The magnitude where the weight is kept, else less than any.
at::Tensor magnitude_of_kept(const MaskedWeights& weights) {
  return weights.weight.abs().masked_fill(weights.mask.logical_not(), kLast);
}

/// The mask without the smallest kept weights.
template <class Options>
at::Tensor survivors(const MaskedWeights& weights, const Options& options) {
  constexpr double kPi = 3.14159265358979323846;
  at::Tensor dropped = weights.kept.to(at::kDouble).mul(options.drop_fraction);
  if (options.decay == "cosine") {
    dropped = dropped.mul(weights.progress.mul(kPi).cos().add(1.0).div(2.0));
  }
  const at::Tensor stay = weights.kept.sub(dropped.round().to(at::kLong));
  return top_mask(magnitude_of_kept(weights), stay).logical_and(weights.mask);
}

/// Fills the mask up to the number of the schedule, by score.
at::Tensor grown(const at::Tensor& stay, const at::Tensor& scores, const MaskedWeights& weights) {
  const at::Tensor missing = weights.kept.sub(stay.sum());
  return top_mask(scores.masked_fill(stay, kLast), missing).logical_or(stay);
}

template <class Options>
void check_options(const std::string& component, const Options& options) {
  detail::require(options.drop_fraction >= 0.0 && options.drop_fraction < 1.0,
                  component + ": drop_fraction",
                  "in [0, 1)",
                  options.drop_fraction);
  detail::require(options.decay == "cosine" || options.decay == "constant",
                  component + ": decay",
                  "\"cosine\" or \"constant\"",
                  options.decay);
}

template <class Algorithm>
void add(Registry<SparsityAlgorithm>& registry, const std::string& name, const std::string& doc) {
  using Options = typename Algorithm::Options;
  registry.add<Algorithm>(name, doc)
      .key("drop_fraction",
           &Options::drop_fraction,
           below_one(),
           "share of the kept weights that is replaced at a time")
      .key("decay",
           &Options::decay,
           one_of({"cosine", "constant"}),
           "whether that share falls to 0 at update.stop, or stays");
}

}  // namespace

void StaticSparsity::check(const SparsitySchedule& schedule) const {
  if (!schedule.is_constant()) {
    throw UsageError(
        "sparsity: Static keeps its first mask, and the sparsity follows a schedule; choose the "
        "algorithm GMP, SET or RigL, or a constant sparsity");
  }
}

at::Tensor GradualMagnitudePruning::next_mask(const MaskedWeights& weights) {
  return top_mask(magnitude_of_kept(weights), weights.kept).logical_and(weights.mask);
}

void GradualMagnitudePruning::check(const SparsitySchedule& schedule) const {
  if (schedule.from > schedule.to) {
    throw UsageError(
        "sparsity: GMP only prunes, and the sparsity falls; let it rise, or choose "
        "the algorithm SET or RigL");
  }
}

SparseEvolutionaryTraining::SparseEvolutionaryTraining(const Options& options) : options_(options) {
  check_options("SET", options_);
}

at::Tensor SparseEvolutionaryTraining::next_mask(const MaskedWeights& weights) {
  const at::Tensor scores = keyed_uniform(weights.key, weights.weight.sizes());
  return grown(survivors(weights, options_), scores, weights);
}

RigL::RigL(const Options& options) : options_(options) {
  check_options("RigL", options_);
}

at::Tensor RigL::next_mask(const MaskedWeights& weights) {
  return grown(survivors(weights, options_), weights.gradient.abs(), weights);
}

void register_builtin_sparsity_algorithms(Registry<SparsityAlgorithm>& registry) {
  registry.add<StaticSparsity>("Static", "The first mask stays.");
  registry.add<GradualMagnitudePruning>(
      "GMP", "Gradual magnitude pruning: the smallest weights go, none comes back.");
  add<SparseEvolutionaryTraining>(
      registry, "SET", "The smallest weights go, weights at random places come.");
  add<RigL>(registry, "RigL", "The smallest weights go, those of largest gradient come.");
}

}  // namespace rondo
