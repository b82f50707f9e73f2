#pragma once

#include <string>

#include "callbacks/callback.h"
#include "callbacks/core/metric_direction.h"
#include "callbacks/not_in_dry_runs.h"

namespace rondo {

struct Timestamp;

/// A callback that ends a run because of a metric. It is told the metric's values and says when it
/// has seen enough; a run that it ended ends at once when it is resumed.
class MetricStopper : public Callback, public NotInDryRuns {
 public:
  /// What is looked at, and when.
  struct Watch {
    std::string metric;     ///< as it is logged, such as "val/accuracy"
    std::string direction;  ///< which values are better: "min", "max", or "auto": see
                            ///< MetricDirection
    std::string
        when;  ///< after each "validation" of a fit, "epoch", or "update" that is a log step
  };

  void post_setup(Trainer& trainer) override;

  /// \throws UsageError  where the direction is "auto" and no metric knows it
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;
  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t batch_idx) override;

  /// \throws UsageError  when nothing logged the metric so far
  void run_validation(Trainer& trainer, std::optional<int64_t> loop_idx, bool is_last) override;

  std::string state_subject() const override { return direction_.subject(); }

 protected:
  /// \param name    the class, for messages
  /// \param reason  why the run ended; a string that lives as long as the program
  /// \throws UsageError  for options out of range
  MetricStopper(std::string name, Watch watch, const char* reason);

  /// The metric's value at `now`.
  virtual void look(const Timestamp& now, double value) = 0;

  /// True when the run has to end, by what was seen so far.
  virtual bool is_over() const = 0;

  bool is_better(double a, double b) const { return direction_.is_better(a, b); }

 private:
  void look_now(Trainer& trainer);
  void stop_when_over(Trainer& trainer);

  std::string name_;
  MetricDirection direction_;
  std::string when_;
  const char* reason_;
};

}  // namespace rondo
