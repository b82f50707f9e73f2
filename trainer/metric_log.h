#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "callbacks/callback_map.h"
#include "core/media.h"
#include "core/metric_values.h"
#include "core/name_scopes.h"
#include "core/timestamp.h"
#include "data/data_loader.h"

namespace rondo {

class Logger;
struct LogFilter;
struct LogPosition;
class Trainer;

/// How a metric is logged, where it differs from the usual.
struct LogOptions {
  std::optional<int64_t> step;       ///< instead of the global step
  std::vector<std::string> loggers;  ///< names or classes of the loggers that get it; none: all
};

/// What metrics are called, when they are logged, and who gets them. A part of the Trainer, from
/// whose callbacks it finds the loggers.
class MetricLog {
 public:
  /// \param trainer  which owns it
  explicit MetricLog(Trainer& trainer) : trainer_(trainer) {}

  MetricLog(const MetricLog&) = delete;
  MetricLog& operator=(const MetricLog&) = delete;

  /// See `Trainer::log_metrics`.
  void log(const Metrics& values, const LogOptions& options);

  /// See `Trainer::log_media`.
  void log_media(const Media& media);

  /// See `Trainer::remove_logger_destination`.
  void remove_destination(std::string logger);

  /// True where metrics are given to loggers.
  bool is_log_step() const;

  /// The same for the batch of training that ends at `after`.
  bool is_log_step_at(const Timestamp& after) const;

  /// Whether a logger with this filter is given values now, where it is a log step.
  bool is_due(const LogFilter& filter) const;

  NameScopes& scopes() { return scopes_; }

  /// The open scopes, each followed by "/".
  std::string scope_path() const { return scopes_.path(); }

  /// Scope of a loader's metrics: its label, else `validate_<k>`, the same for the Trainer's life.
  std::string scope_of(const DataLoader& loader);

  /// Marks the open scopes as lying outside of the step that begins.
  void begin_step() { step_scope_depth_ = scopes_.depth(); }

  std::vector<Logger*> loggers() const;

  /// What a logger cannot write is lost with a warning.
  void flush();

  /// Lets the loggers go back to where a fit begins, when they hold values beyond it.
  void go_back(const LogPosition& position);

 private:
  void log_now(const Metrics& values, const std::string& scope, const LogOptions& options);
  void give_to_loggers(const Metrics& host_values,
                       int64_t step,
                       const std::vector<std::string>& names);
  bool gets_unasked(const CallbackMap::Entry& entry, const Logger& logger) const;
  void call_logger(const CallbackMap::Entry& entry, const std::function<void()>& log) const;
  void warn_of_unknown(const std::vector<std::string>& names) const;

  Trainer& trainer_;
  NameScopes scopes_;
  size_t step_scope_depth_ = 0;         // scopes that were open when the step began
  std::optional<int64_t> newest_;       // the latest update of a value, once a fit has begun
  std::vector<DataLoader> unlabelled_;  // loaders that got a number, in that order
};

}  // namespace rondo
