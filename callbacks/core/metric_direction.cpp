#include "callbacks/core/metric_direction.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "callbacks/core/metrics_callback.h"
#include "callbacks/core/validation_callback.h"
#include "core/error.h"
#include "core/glob.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

using IsScope = std::function<bool(const std::string&)>;

const std::vector<MetricSet::Entry>& metrics_of(const Trainer& trainer, const std::string& scope) {
  return trainer.slot<MetricsCallback>().of_validation(scope);
}

/// `loss`, and the parts of it that a model logs.
bool is_loss(const std::string& name) {
  return name == "loss" || name.rfind("loss/", 0) == 0;
}

/// What metrics say of a name without the scope of a validation.
std::optional<Better> better_among(const std::vector<MetricSet::Entry>& metrics,
                                   const std::string& name) {
  for (const MetricSet::Entry& entry : metrics) {
    // One of its numbers too, such as that of a class.
    const bool is_of_it = name == entry.name || name.rfind(entry.name + "/", 0) == 0;
    if (is_of_it && entry.metric->better()) {
      return entry.metric->better();
    }
  }
  return is_loss(name) ? std::optional(Better::Lower) : std::nullopt;
}

/// \param is_scope  of a validation, before a "/" of the name
std::optional<Better> better_of(const Trainer& trainer,
                                const std::string& name,
                                const IsScope& is_scope) {
  for (size_t slash = name.find('/'); slash != std::string::npos;
       slash = name.find('/', slash + 1)) {
    const std::string scope = name.substr(0, slash);
    if (is_scope(scope)) {
      if (const auto better = better_among(metrics_of(trainer, scope), name.substr(slash + 1))) {
        return better;
      }
    }
  }
  return better_among(trainer.slot<MetricsCallback>().of_training(), name);
}

std::vector<std::string> labels_of(Trainer& trainer, const Loaders& loaders) {
  std::vector<std::string> labels;
  for (const DataLoader& loader : loaders) {
    labels.push_back(trainer.metric_log().scope_of(loader));
  }
  return labels;
}

/// Whether a validation of a callback logs in this scope, or one below its own.
bool is_scope_of_callback(const Trainer& trainer, const std::string& scope) {
  const auto callbacks = validation_callbacks(trainer);
  return std::any_of(callbacks.begin(), callbacks.end(), [&](const ValidationCallback* callback) {
    const std::string& own = callback->scope();
    return own.empty() || scope == own || scope.rfind(own + "/", 0) == 0;
  });
}

/// The names of which it is known which values are better.
std::vector<std::string> known_names(const Trainer& trainer,
                                     const std::vector<std::string>& labels) {
  std::vector<std::string> names{"loss"};
  const auto add = [&](const std::string& scope, const std::vector<MetricSet::Entry>& metrics) {
    for (const MetricSet::Entry& entry : metrics) {
      if (better_among(metrics, entry.name)) {
        names.push_back(scope + entry.name);
      }
    }
  };
  add("", trainer.slot<MetricsCallback>().of_training());
  for (const std::string& label : labels) {
    add(label + "/", metrics_of(trainer, label));
  }
  return names;
}

}  // namespace

MetricDirection::MetricDirection(std::string callback, std::string metric, std::string direction)
    : callback_(std::move(callback)), metric_(std::move(metric)), direction_(std::move(direction)) {
  detail::require(!metric_.empty(), callback_ + ".metric", "a metric's name", "nothing");
  detail::require(direction_ == "min" || direction_ == "max" || direction_ == "auto",
                  callback_ + ".direction",
                  R"("min", "max" or "auto")",
                  direction_);
  if (direction_ != "auto") {
    better_ = direction_ == "min" ? Better::Lower : Better::Higher;
  }
}

void MetricDirection::guess(Trainer& trainer) {
  if (direction_ == "auto") {
    better_ = better_of(trainer, metric_);
  }
}

void MetricDirection::resolve(Trainer& trainer, const Loaders& val) {
  if (direction_ != "auto") {
    return;
  }
  const std::vector<std::string> labels = labels_of(trainer, val);
  better_ = better_of(trainer, metric_, [&](const std::string& scope) {
    return labels.empty() || std::find(labels.begin(), labels.end(), scope) != labels.end() ||
           is_scope_of_callback(trainer, scope);
  });
  if (!better_) {
    throw UsageError(
        fmt::format("{}: no metric says which values of \"{}\" are better; set direction to "
                    "\"min\" or \"max\"{}",
                    callback_,
                    metric_,
                    suggestion(metric_, known_names(trainer, labels))));
  }
}

std::optional<Better> better_of(const Trainer& trainer, const std::string& metric) {
  return better_of(trainer, metric, [](const std::string&) { return true; });
}

std::string MetricDirection::subject() const {
  if (!better_) {
    return "";
  }
  return fmt::format(
      "{}, of which {} values are better", metric_, *better_ == Better::Lower ? "lower" : "higher");
}

double MetricDirection::newest_value(const Trainer& trainer) const {
  const Metrics& metrics = trainer.state().last_metrics;
  if (const std::optional<double> value = metrics.number(metric_)) {
    return *value;
  }
  std::vector<std::string> known;
  for (const Metrics::Item& item : metrics.items()) {
    known.push_back(item.first);
  }
  throw UsageError(fmt::format("{}: nothing logged the metric \"{}\" until update {}{}",
                               callback_,
                               metric_,
                               trainer.state().global_step(),
                               known.empty() ? "; training logs every logging.log_steps updates"
                                             : suggestion(metric_, known)));
}

bool is_followed_now(const Trainer& trainer, const std::string& when) {
  const State& state = trainer.state();
  const bool ends_epoch = state.timestamp.epoch > state.previous.epoch;
  const bool is_due =
      (when == "update" && trainer.is_log_step()) || (when == "epoch" && ends_epoch);
  return state.position.is_last && is_due;
}

}  // namespace rondo
