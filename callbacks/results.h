#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "backends/step_report.h"
#include "core/metric_values.h"

namespace rondo {

/// Statistics of saves.
struct SaveStats {
  int64_t written = 0;       ///< checkpoints
  int64_t failed = 0;        ///< saves that failed and were ignored (on_error = "warn")
  int64_t not_uploaded = 0;  ///< checkpoints that are missing from the remote store
  double pause_s = 0.0;      ///< seconds for which training waited for saves
};

/// The result of a fit.
struct FitResult {
  int64_t steps = 0;                    ///< updates of the run so far, including earlier processes
  int64_t steps_now = 0;                ///< updates of this fit
  int64_t skipped_now = 0;              ///< those of this fit that loss scaling skipped
  double seconds = 0.0;                 ///< wall time of this fit, including validations and saves
  double steps_per_s = 0.0;             ///< updates of this fit per second of training
  bool was_already_done = false;        ///< the run had reached its total before this fit
  std::string stop_reason;              ///< why it stopped early; "" when it reached its end
  SaveStats saves;                      ///< of this fit
  std::vector<EagerSteps> eager_steps;  ///< steps that could not be recorded, of all fits
  Metrics metrics;                      ///< the newest value of each metric
  std::filesystem::path artifact_dir;
  std::optional<std::filesystem::path> last_checkpoint;
};

/// The metrics of one checkpoint.
struct ValidationRow {
  std::optional<std::filesystem::path> checkpoint;  ///< absent: the current model
  int64_t step = 0;
  Metrics metrics;
};

/// Which checkpoints `validate_all` evaluates.
struct ValidateAllOptions {
  int64_t since = 0;   ///< skips checkpoints from before this update
  int64_t every = 1;   ///< only those whose update is a multiple of this, >= 1
  bool force = false;  ///< repeats those whose row is known: see ValidationResults
  bool watch = false;  ///< evaluates new checkpoints too, until the run is stopped
  /// Seconds between looks for new ones; not given: 0.5, and 10 with addresses among the globs.
  std::optional<double> seconds_between_looks = {};
};

/// A checkpoint that `validate_all` skipped.
struct SkippedCheckpoint {
  std::filesystem::path checkpoint;
  std::string reason;
};

/// The results of `validate_all`, one row per checkpoint.
struct ValidationTable {
  std::vector<ValidationRow> rows;
  std::vector<SkippedCheckpoint> skipped;  ///< unreadable, or do not fit the run

  /// CSV with a header line; RFC 4180.
  std::string to_csv() const;
  /// A JSON array of objects, one per line.
  std::string to_json() const;
  /// The same on one line: {"rows": […]}.
  std::string to_json_line() const;
};

/// Aligned columns for human readers.
std::ostream& operator<<(std::ostream& out, const ValidationTable& table);

}  // namespace rondo
