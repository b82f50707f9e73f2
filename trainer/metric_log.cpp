#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "callbacks/logging_callback.h"
#include "core/error.h"
#include "core/glob.h"
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

/// A full disk must not end a run for its metrics.
void warn_of_lost_metrics(const TextLog& log, const IoError& error) {
  log.warning(fmt::format("{}; the run goes on, what cannot be written is lost", error.what()));
}

}  // namespace

void Trainer::log_metrics(const Metrics& values, const LogOptions& options) {
  if (!state_.backend->is_in_step()) {
    log_now(values, scopes_.path(), options);
    return;
  }
  std::vector<at::Tensor> tensors = tensors_of(values);
  Metrics names = with_tensors(values, std::vector<at::Tensor>(tensors.size()));
  const std::string inner = scopes_.path(step_scope_depth_);
  HostFunction log =
      [this, names = std::move(names), inner, options](const std::vector<at::Tensor>& now) {
        log_now(with_tensors(names, now), scopes_.path() + inner, options);
      };
  state_.backend->defer({std::move(tensors), std::move(log), {/*only_log_steps=*/true, 1}});
}

void Trainer::log_now(const Metrics& values, const std::string& scope, const LogOptions& options) {
  if (state_.executor != nullptr && !is_log_step()) {
    return;
  }
  Metrics host;
  for (const Metrics::Item& item : values.items()) {
    host.set(scope + item.first, to_host(item.second));
    state_.last_metrics.set(scope + item.first, to_host(item.second));
  }
  give_to_loggers(host, options.step.value_or(state_.global_step()), options.loggers);
}

void Trainer::give_to_loggers(const Metrics& values,
                              int64_t step,
                              const std::vector<std::string>& names) {
  const bool is_validation = state_.executor != nullptr && !state_.is_training;
  if (loggers().empty() && !is_validation) {  // a validation returns what it logs
    step_slots_.logging->tell_no_logger(*this);
  }
  for (const CallbackMap::Entry& entry : callbacks_.entries()) {
    const bool is_meant =
        names.empty() || std::find(names.begin(), names.end(), entry.class_name) != names.end();
    if (auto* logger = dynamic_cast<Logger*>(entry.callback.get()); logger != nullptr && is_meant) {
      try {
        logger->log(values, step);
      } catch (const IoError& error) {
        warn_of_lost_metrics(log_, error);
      }
    }
  }
  for (const std::string& name : names) {
    std::vector<std::string> known;
    for (const CallbackMap::Entry& entry : callbacks_.entries()) {
      if (dynamic_cast<Logger*>(entry.callback.get()) != nullptr) {
        known.push_back(entry.class_name);
      }
    }
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      log_.warning(
          fmt::format("log_metrics: there is no logger \"{}\"{}", name, suggestion(name, known)));
    }
  }
}

void Trainer::defer(std::vector<at::Tensor> tensors, HostFunction function, Time every) {
  StepClosure closure{std::move(tensors), std::move(function), {false, every}};
  if (state_.backend->is_in_step()) {
    state_.backend->defer(std::move(closure));
  } else if (state_.executor != nullptr) {
    state_.executor->defer(std::move(closure));
  } else {
    closure.run(closure.tensors);
  }
}

void Trainer::host_call(std::string name, std::vector<at::Tensor> tensors, HostFunction function) {
  state_.backend->host_call(std::move(name), std::move(tensors), std::move(function));
}

std::vector<Logger*> Trainer::loggers() const {
  std::vector<Logger*> found;
  for (const CallbackMap::Entry& entry : callbacks_.entries()) {
    if (auto* logger = dynamic_cast<Logger*>(entry.callback.get())) {
      found.push_back(logger);
    }
  }
  return found;
}

void Trainer::flush_loggers() {
  for (Logger* logger : loggers()) {
    try {
      logger->flush();
    } catch (const IoError& error) {
      warn_of_lost_metrics(log_, error);
    }
  }
}

}  // namespace rondo
