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
  /// Scopes that log their values of `update` again, because a validation was unfinished.
  std::vector<std::string> repeated = {};

  /// True for a value that an earlier process logged and the run logs again from here.
  bool repeats(int64_t value_update, std::string_view name) const;
};

/// What a logger skips: the options that all of rondo's loggers have.
struct LogFilter {
  std::optional<Time> log_steps = {};     ///< of training: only the log steps at which this falls
                                          ///< due; absent: all log steps
  std::vector<std::string> exclude = {};  ///< globs of names to skip

  bool takes(std::string_view name) const;
};

/// A callback that receives metrics. All values of one call belong to one update.
class Logger : public Callback {
 public:
  using Component = Logger;

  /// \param values  on the host; names carry their scope, such as "val/accuracy"
  /// \param update  the update that they belong to
  virtual void log(const Metrics& values, int64_t update) = 0;

  /// Called when a fit begins, after the checkpoint is loaded and before the first update. A logger
  /// that keeps values drops those that `position` repeats: an earlier process logged them before
  /// it died.
  virtual void go_back(const LogPosition& /*position*/) {}

  /// Makes what was logged visible to readers.
  virtual void flush() {}

  /// A histogram, a picture, a text or a table. A logger that cannot store them ignores the call.
  virtual void log_media(const Media& /*media*/, int64_t /*update*/) {}

  /// What the logger skips; by default nothing.
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
