#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "callbacks/callback.h"
#include "core/metric_values.h"

namespace rondo {

/// Where a fit begins, or continues after a load.
struct LogPosition {
  int64_t update = 0;  ///< of the checkpoint; 0: the run begins
  /// Scopes that log their values of `update` again, because a validation was left unfinished.
  std::vector<std::string> repeated = {};

  /// True for a value that an earlier process logged and the run logs again from here.
  bool repeats(int64_t value_update, std::string_view name) const;
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
};

}  // namespace rondo
