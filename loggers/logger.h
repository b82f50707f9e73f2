#pragma once

#include <cstdint>
#include <string>

#include "callbacks/callback.h"
#include "core/metric_values.h"

namespace rondo {

/// A callback that receives metrics. All values of one call belong to one update.
class Logger : public Callback {
 public:
  using Component = Logger;

  /// \param values  on the host; names carry their scope, such as "val/accuracy"
  /// \param update  the count of updates that they belong to
  virtual void log(const Metrics& values, int64_t update) = 0;

  /// Makes what was logged visible to readers.
  virtual void flush() {}
};

}  // namespace rondo
