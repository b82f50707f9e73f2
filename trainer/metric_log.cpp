#include "trainer/metric_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "callbacks/core/logging_callback.h"
#include "callbacks/core/run_plan.h"
#include "callbacks/writes_on_thread.h"
#include "core/error.h"
#include "core/glob.h"
#include "core/quiet_metrics.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// The tensors among the values, and the values without them.
std::vector<at::Tensor> tensors_of(const Metrics& values) {
  std::vector<at::Tensor> tensors;
  for (const Metrics::Item& item : values.items()) {
    if (const at::Tensor* tensor = std::get_if<at::Tensor>(&item.second)) {
      tensors.push_back(*tensor);
    }
  }
  return tensors;
}

/// The values with their tensors, in order, replaced by `tensors`.
Metrics with_tensors(Metrics values, const std::vector<at::Tensor>& tensors) {
  size_t next = 0;
  for (Metrics::Item& item : values.items()) {
    if (std::holds_alternative<at::Tensor>(item.second)) {
      item.second = tensors[next++];
    }
  }
  return values;
}

bool is_named(const CallbackMap::Entry& entry, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return name == entry.name || name == entry.class_name;
  });
}

Metrics without(const Metrics& values, const LogFilter& filter) {
  Metrics kept;
  for (const Metrics::Item& item : values.items()) {
    if (filter.takes(item.first)) {
      kept.set(item.first, item.second);
    }
  }
  return kept;
}

}  // namespace

void MetricLog::log(const Metrics& values, const LogOptions& options) {
  if (QuietMetrics::is_on()) {
    return;
  }
  Backend& backend = *trainer_.state().backend;
  if (!backend.is_in_step()) {
    log_now(values, scope_path(), options);
    return;
  }
  std::vector<at::Tensor> tensors = tensors_of(values);
  Metrics names = with_tensors(values, std::vector<at::Tensor>(tensors.size()));
  const std::string inner = scopes_.path(step_scope_depth_);
  HostFunction log =
      [this, names = std::move(names), inner, options](const std::vector<at::Tensor>& now) {
        log_now(with_tensors(names, now), scope_path() + inner, options);
      };
  backend.defer({std::move(tensors), std::move(log), {/*only_log_steps=*/true, 1}});
}

bool MetricLog::is_log_step() const {
  const State& state = trainer_.state();
  return state.is_training ? is_log_step_at(state.timestamp)
                           : trainer_.step_slots().logging->is_log_batch(trainer_);
}

bool MetricLog::is_log_step_at(const Timestamp& after) const {
  return trainer_.step_slots().logging->is_log_update(trainer_, after);
}

std::string MetricLog::scope_of(const DataLoader& loader) {
  if (!loader.label().empty()) {
    return loader.label();
  }
  const auto known = std::find_if(unlabelled_.begin(),
                                  unlabelled_.end(),
                                  [&](const DataLoader& other) { return other.is_same(loader); });
  const auto number = known - unlabelled_.begin();
  if (known == unlabelled_.end()) {
    unlabelled_.push_back(loader);
  }
  return fmt::format("validate_{}", number);
}

std::vector<Logger*> MetricLog::loggers() const {
  std::vector<Logger*> found;
  for (const CallbackMap::Entry& entry : trainer_.callbacks().entries()) {
    if (auto* logger = dynamic_cast<Logger*>(entry.callback.get())) {
      found.push_back(logger);
    }
  }
  return found;
}

void MetricLog::flush() {
  for (Logger* logger : loggers()) {
    try {
      logger->flush();
    } catch (const IoError& error) {
      warn_of_lost_values(trainer_.log(), error);
    }
  }
}

void MetricLog::go_back(const LogPosition& position) {
  if (newest_ && *newest_ <= position.update) {
    return;  // a further fit of this Trainer, which continues where the last one ended
  }
  newest_ = position.update;
  for (Logger* logger : loggers()) {
    try {
      logger->go_back(position);
    } catch (const IoError&) {
      trainer_.log().warning(fmt::format("{}; values after update {} stay and are logged twice",
                                         describe(std::current_exception()),
                                         position.update));
    }
  }
}

void MetricLog::log_now(const Metrics& values,
                        const std::string& scope,
                        const LogOptions& options) {
  State& state = trainer_.state();
  if (state.executor != nullptr && !is_log_step()) {
    return;
  }
  Metrics host;
  for (const Metrics::Item& item : values.items()) {
    host.set(scope + item.first, to_host(item.second));
    state.last_metrics.set(scope + item.first, to_host(item.second));
  }
  give_to_loggers(host, options.step.value_or(state.global_step()), options.loggers);
}

void MetricLog::give_to_loggers(const Metrics& host_values,
                                int64_t step,
                                const std::vector<std::string>& names) {
  const State& state = trainer_.state();
  if (newest_) {
    newest_ = std::max(*newest_, step);
  }
  const bool is_validation = state.executor != nullptr && !state.is_training;
  if (loggers().empty() && !is_validation) {  // a validation returns what it logs
    trainer_.step_slots().logging->tell_no_logger(trainer_);
  }
  for (const CallbackMap::Entry& entry : trainer_.callbacks().entries()) {
    auto* const logger = dynamic_cast<Logger*>(entry.callback.get());
    if (logger == nullptr) {
      continue;
    }
    const bool is_unasked = names.empty() && gets_unasked(entry, *logger);
    if (is_named(entry, names) || (is_unasked && logger->filter().exclude.empty())) {
      call_logger(entry, [&] { logger->log(host_values, step); });
    } else if (is_unasked) {
      const Metrics kept = without(host_values, logger->filter());
      call_logger(entry, [&] { kept.empty() ? void() : logger->log(kept, step); });
    }
  }
  for (HearsMetrics* const listener : trainer_.step_slots().logging->listeners()) {
    listener->on_metrics(trainer_, host_values, step);
  }
  warn_of_unknown(names);
}

bool MetricLog::is_due(const LogFilter& filter) const {
  const State& state = trainer_.state();
  return !filter.log_steps || state.plan == nullptr || !state.is_training ||
         state.plan->is_over(state.timestamp) ||
         state.falls_due(*filter.log_steps, state.previous, state.timestamp);
}

bool MetricLog::gets_unasked(const CallbackMap::Entry& entry, const Logger& logger) const {
  return is_due(logger.filter()) && !is_named(entry, trainer_.step_slots().logging->removed());
}

void MetricLog::call_logger(const CallbackMap::Entry& entry,
                            const std::function<void()>& log) const {
  try {
    log();
  } catch (const IoError& error) {
    warn_of_lost_values(trainer_.log(), error);
  } catch (...) {
    std::throw_with_nested(HookError(fmt::format("error when calling {}.log", entry.class_name)));
  }
}

void MetricLog::log_media(const Media& media) {
  const Media scoped{scope_path() + media.name, media.value};
  for (const CallbackMap::Entry& entry : trainer_.callbacks().entries()) {
    auto* const logger = dynamic_cast<Logger*>(entry.callback.get());
    const bool is_meant = logger != nullptr && logger->filter().takes(scoped.name);
    if (is_meant && gets_unasked(entry, *logger)) {
      call_logger(entry, [&] { logger->log_media(scoped, trainer_.state().global_step()); });
    }
  }
}

void MetricLog::remove_destination(std::string logger) {
  trainer_.step_slots().logging->remove_destination(std::move(logger));
}

void MetricLog::warn_of_unknown(const std::vector<std::string>& names) const {
  if (names.empty()) {
    return;
  }
  std::vector<std::string> known;
  for (const CallbackMap::Entry& entry : trainer_.callbacks().entries()) {
    if (dynamic_cast<Logger*>(entry.callback.get()) != nullptr) {
      known.push_back(entry.name);
      known.push_back(entry.class_name);
    }
  }
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      trainer_.log().warning(
          fmt::format("log_metrics: there is no logger \"{}\"{}", name, suggestion(name, known)));
    }
  }
}

}  // namespace rondo
