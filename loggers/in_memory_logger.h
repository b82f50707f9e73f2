#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "loggers/logger.h"

namespace rondo {

/// Keeps what was logged, for the program that trains: `trainer.callback<InMemoryLogger>()`. A fit
/// that resumes drops the values that it logs again.
/// Source: Composer's InMemoryLogger.
class InMemoryLogger final : public FilteredLogger {
 public:
  using Options = LogFilter;

  struct Entry {
    int64_t update = 0;
    std::string name;
    MetricValue value;
  };

  explicit InMemoryLogger(const Options& options) : FilteredLogger(options) {}

  void log(const Metrics& values, int64_t update) override;
  void go_back(const LogPosition& position) override;

  /// In the order in which they came.
  const std::vector<Entry>& entries() const { return entries_; }

  /// The numbers of a metric, by update.
  std::vector<std::pair<int64_t, double>> numbers(const std::string& name) const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace rondo
