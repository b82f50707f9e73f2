#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "callbacks/callback.h"
#include "core/media.h"
#include "core/metric_values.h"
#include "core/time.h"

namespace rondo {

/// Where a fit begins, or continues after a load.
struct LogPosition {
  int64_t update = 0;  ///< of the checkpoint; 0: the run begins
  /// Scopes that log their values of `update` again, because a validation was left unfinished.
  std::vector<std::string> repeated = {};

  /// True for a value that an earlier process logged and the run logs again from here.
  bool repeats(int64_t value_update, std::string_view name) const;
};

/// What a logger is not given: the options that all loggers of rondo have.
struct LogFilter {
  std::optional<Time> log_steps = {};     ///< of training: none, all log steps; else those of them
                                          ///< in which this falls due
  std::vector<std::string> exclude = {};  ///< globs of names that are left out

  bool takes(std::string_view name) const;
};

/// A callback that receives metrics. All values of one call belong to one update.
class Logger : public Callback {
 public:
  using Component = Logger;

  /// \param values  on the host; names carry their scope, such as "val/accuracy"
  /// \param update  the count of updates that they belong to
  virtual void log(const Metrics& values, int64_t update) = 0;

  /// Called when a fit begins, after the checkpoint is loaded and before the first update. A logger
  /// that keeps values drops those that `position` repeats: a process that came further and died
  /// has logged them.
  virtual void go_back(const LogPosition& /*position*/) {}

  /// Makes what was logged visible to readers.
  virtual void flush() {}

  /// A histogram, a picture, a text or a table. A logger that cannot hold them has nothing to do.
  virtual void log_media(const Media& /*media*/, int64_t /*update*/) {}

  /// What it is not given; by default nothing.
  virtual const LogFilter& filter() const;
};

/// A logger whose options have a filter.
class FilteredLogger : public Logger {
 public:
  explicit FilteredLogger(LogFilter filter) : filter_(std::move(filter)) {}

  const LogFilter& filter() const final { return filter_; }

 private:
  LogFilter filter_;
};

}  // namespace rondo
