#include "callbacks/core/evaluator.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/glob.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

void Evaluator::check(const Options& options) {
  detail::require(!options.loader.empty(), "Evaluator: loader", "the label of a loader", "\"\"");
  detail::require(
      options.every_n_vals >= 1, "Evaluator: every_n_vals", ">= 1", options.every_n_vals);
  const std::optional<Time>& steps = options.eval_steps;
  const bool is_share = steps && steps->unit() == TimeUnit::Fraction && steps->value() <= 1.0;
  detail::require(
      !steps || (steps->value() > 0.0 && (is_share || steps->unit() == TimeUnit::Update)),
      "Evaluator: eval_steps",
      "a number of batches, or a share of the pass in (0, 1]",
      steps ? steps->to_string() : "");
}

Evaluator::Evaluator(const Options& options) : options_(options) {
  check(options);
}

bool Evaluator::runs(std::optional<int64_t> loop_idx, bool is_last) const {
  return is_nth_validation(loop_idx, is_last, options_.every_n_vals);
}

void Evaluator::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders& val, Loop&) {
  std::vector<std::string> labels;
  for (const DataLoader& loader : val) {
    labels.push_back(trainer.metric_log().scope_of(loader));
  }
  if (!labels.empty() && std::find(labels.begin(), labels.end(), options_.loader) == labels.end()) {
    throw UsageError(fmt::format("Evaluator: no validation loader is labelled \"{}\"{}",
                                 options_.loader,
                                 suggestion(options_.loader, labels)));
  }
}

std::vector<const Evaluator*> evaluators_of(const Trainer& trainer) {
  std::vector<const Evaluator*> found;
  for (const CallbackMap::Entry& entry : trainer.callbacks().entries()) {
    const auto* const evaluator = dynamic_cast<const Evaluator*>(entry.callback.get());
    if (evaluator == nullptr) {
      continue;
    }
    for (const Evaluator* other : found) {
      if (other->options().loader == evaluator->options().loader) {
        throw UsageError(fmt::format("two Evaluators have the loader \"{}\": merge them",
                                     evaluator->options().loader));
      }
    }
    found.push_back(evaluator);
  }
  return found;
}

const Evaluator* evaluator_of(Trainer& trainer, const DataLoader& loader) {
  for (const CallbackMap::Entry& entry : trainer.callbacks().entries()) {
    const auto* evaluator = dynamic_cast<const Evaluator*>(entry.callback.get());
    if (evaluator != nullptr &&
        evaluator->options().loader == trainer.metric_log().scope_of(loader)) {
      return evaluator;
    }
  }
  return nullptr;
}

bool is_nth_validation(std::optional<int64_t> loop_idx, bool is_last, int64_t every_n) {
  return !loop_idx || is_last || (*loop_idx + 1) % every_n == 0;
}

}  // namespace rondo
