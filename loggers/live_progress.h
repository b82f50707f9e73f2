#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/metric_values.h"
#include "loggers/progress_block.h"
#include "metrics/metric.h"

namespace rondo {

class Trainer;

/// The block at the end of a terminal that shows how a fit goes (`progress_block.h`), drawn at most
/// ten times a second. It is there from construction to destruction.
class LiveProgress {
 public:
  /// Whether standard error is a terminal that a block can be drawn on: not one with `TERM=dumb`.
  static bool is_possible();

  /// \param trainer  outlives it
  /// \param globs    of metrics that it shows; none: up to four that say which values are better
  explicit LiveProgress(const Trainer& trainer, std::vector<std::string> globs = {});
  LiveProgress(const LiveProgress&) = delete;
  LiveProgress& operator=(const LiveProgress&) = delete;
  ~LiveProgress();

  /// Training begins or goes on after something else: its speed is measured from here.
  void start_training();

  /// After a batch of training, or of a validation.
  void add_batch(int64_t samples);

  void take(const Metrics& values, int64_t update);

 private:
  using Clock = std::chrono::steady_clock;

  void start_measuring(Clock::time_point now);
  void measure_speed(Clock::time_point now);
  void take(const std::string& metric, double value, int64_t update);
  bool shows(const std::string& metric, bool has_direction) const;
  void draw();

  const Trainer& trainer_;
  std::vector<std::string> globs_;
  ProgressFacts facts_;
  std::map<std::string, std::optional<Better>> directions_;  // of the metrics that were logged
  Clock::time_point drawn_;
  Clock::time_point since_;  // when what follows began
  int64_t updates_before_ = 0;
  int64_t stage_begin_ = 0;  // update at which this stage of training began
  std::optional<int64_t> stage_updates_;
  int64_t samples_ = 0;
};

}  // namespace rondo
