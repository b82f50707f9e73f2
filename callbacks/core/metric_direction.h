#pragma once

#include <optional>
#include <string>

#include "data/data_loader.h"
#include "metrics/metric.h"

namespace rondo {

class Trainer;

/// A callback's metric, and which of its values are better.
class MetricDirection {
 public:
  /// \param callback   its class, for messages
  /// \param metric     as it is logged, such as "val/accuracy"
  /// \param direction  "min", "max", or "auto": what the metric says, and lower for `loss`,
  ///                   `<label>/loss` and `loss/<name>`
  /// \throws UsageError  for another direction, or no metric
  MetricDirection(std::string callback, std::string metric, std::string direction);

  /// Asks the metrics of the Trainer's model, whatever the labels of its loaders: before a
  /// checkpoint is loaded they may be unknown. For `post_setup`.
  void guess(Trainer& trainer);

  /// Asks them again, with the labels, unless the fit has no loader to validate. For
  /// `on_fit_start`.
  /// \throws UsageError  when no metric answers; lists the names that need no direction
  void resolve(Trainer& trainer, const Loaders& val);

  const std::string& metric() const { return metric_; }

  /// The newest value that was logged.
  /// \throws UsageError  when nothing logged the metric so far; names what was
  double newest_value(const Trainer& trainer) const;

  /// After `resolve`.
  bool is_better(double a, double b) const { return better_ == Better::Lower ? a < b : a > b; }

  /// "val/loss, of which lower values are better"; "" before the direction is known.
  std::string subject() const;

 private:
  std::string callback_;
  std::string metric_;
  std::string direction_;
  std::optional<Better> better_;
};

/// Which values of a metric are better, as the metrics of the Trainer's model say, whatever the
/// labels of its loaders; none when no metric answers for the name.
std::optional<Better> better_of(const Trainer& trainer, const std::string& metric);

/// True at the end of a batch after which a metric is looked at that is followed "update" by update
/// (on log steps) or "epoch" by epoch. What the step logs is known after its closures.
bool is_followed_now(const Trainer& trainer, const std::string& when);

}  // namespace rondo
