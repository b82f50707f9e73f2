#pragma once

#include <map>
#include <string>
#include <vector>

#include "callbacks/callback.h"
#include "callbacks/core/ranked_sums.h"
#include "data/rank_range.h"
#include "metrics/metric_set.h"

namespace rondo {

/// Computes the metrics of a run; fills slot `metrics`. At the end of a validation: the mean loss,
/// the model's metrics and those of `metrics`, or those that an Evaluator names for its loader,
/// over all samples. At each log step of training: those of `train_metrics` over the updates since
/// the last one. A metric skips a batch that lacks what it needs. The sums are tensors in the step.
class MetricsCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "metrics";

  void setup(Trainer& trainer) override;
  void on_train_step_start(Trainer& trainer, Model&, const Batch&) override;
  void on_train_step_end(Trainer& trainer,
                         Model&,
                         const Outputs& outputs,
                         const Batch& batch) override;
  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs& outputs, const Batch& batch, int64_t) override;
  void on_validate_start(Trainer& trainer, Model&, const DataLoader& loader, Loop&) override;
  void on_validate_batch_start(Trainer& trainer, Model&, const Batch&, int64_t batch_idx) override;
  void on_validate_step_end(Trainer&, Model&, const Outputs& outputs, const Batch& batch) override;
  void on_validate_batch_end(
      Trainer&, Model&, const Outputs& outputs, const Batch& batch, int64_t) override;
  void on_validate_end(Trainer& trainer, Model&, Loop&) override;

  void on_save_checkpoint(Trainer&, StateDict& state) override;
  void check_checkpoint(Trainer&, const StateDict& state) override;
  void on_load_checkpoint(Trainer&, const StateDict& state) override;

  /// The sums of all metrics.
  NamedTensors captured_state() override;

  /// The virtual ranks that share a validation in this scope: batch i is evaluated by number i
  /// modulo `all`. None where a metric is no sum, which processes cannot add.
  RankRange ranks_of_validation(const Trainer& trainer, const std::string& scope) const;

  /// The metrics of training.
  const std::vector<MetricSet::Entry>& of_training() const;

  /// The metrics of a validation in this scope, in the order in which they are logged.
  const std::vector<MetricSet::Entry>& of_validation(const std::string& scope) const;

 private:
  /// What was measured, for a warning about metrics that lacked their inputs in every batch.
  struct Pass {
    const char* name;
    const MetricSet& metrics;
    const std::string& batch;  ///< the tensors of a batch; empty: there was none
    bool& has_warned;
  };

  void sum_over_ranks(Trainer& trainer);
  void warn_of_unused(Trainer& trainer, const Pass& pass);
  void add_evaluators(Trainer& trainer);

  MetricSet training_;
  MetricSet validation_;
  std::map<std::string, MetricSet>
      own_;                            // of loaders with an Evaluator that names metrics, by label
  MetricSet* current_ = &validation_;  // of the running validation
  RankRange ranks_;                    // that share the running validation
  RankedSums sums_;                    // its sums
  std::string batch_;                  // the tensors of a batch of the running validation
  std::string train_batch_;            // the tensors of a training batch
  bool has_warned_ = false;            // of a validation's metrics without their inputs
  bool has_warned_of_training_ = false;
};

}  // namespace rondo
