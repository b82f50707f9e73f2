#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "callbacks/callback.h"
#include "core/time.h"
#include "data/data_loader.h"
#include "metrics/metric.h"

namespace rondo {

/// How the validations with one loader differ from those with the others: metrics, length and
/// interval of their own. A run has one for each loader that needs it:
/// `callbacks = [{ Evaluator = { loader = "rare", metrics = [{ Recall = true }], every_n_vals = 5 }
/// }]`. \capture safe Source: the Evaluator of Composer.
class Evaluator final : public Callback {
 public:
  struct Options {
    std::string loader = {};  ///< label of the loader, not empty
    /// What is measured beside the loss, instead of the model's metrics and those of the run; none:
    /// those.
    std::vector<Factory<Metric>> metrics = {};
    std::optional<Time> eval_steps = {};  ///< batches, or a share of the pass; absent: the loop's
    int64_t every_n_vals = 1;  ///< in every n-th validation of a fit and in the last one, >= 1
  };

  /// \throws UsageError  for options out of range
  static void check(const Options& options);

  /// \throws UsageError  for options out of range
  explicit Evaluator(const Options& options);

  const Options& options() const { return options_; }

  /// Whether the loader is evaluated. Outside of a fit, where `loop_idx` is empty, it always is.
  bool runs(std::optional<int64_t> loop_idx, bool is_last) const;

  /// \throws UsageError  when the fit validates, and not with this loader
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders& val, Loop&) override;

 private:
  Options options_;
};

/// Those of a Trainer, each of a loader of its own.
/// \throws UsageError  when two have the same loader
std::vector<const Evaluator*> evaluators_of(const Trainer& trainer);

/// The one of this loader, or null.
const Evaluator* evaluator_of(Trainer& trainer, const DataLoader& loader);

/// Whether validation `loop_idx` of a fit is one of every n, or the last. Nothing: outside of a
/// fit.
bool is_nth_validation(std::optional<int64_t> loop_idx, bool is_last, int64_t every_n);

}  // namespace rondo
