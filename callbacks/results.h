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

/// What saving did.
struct SaveStats {
  int64_t written = 0;       ///< checkpoints
  int64_t failed = 0;        ///< saves that failed and were passed over (on_error = "warn")
  int64_t not_uploaded = 0;  ///< checkpoints that are not in the store elsewhere
  double pause_s = 0.0;      ///< that training stood still for them
};

/// What a fit did.
struct FitResult {
  int64_t steps = 0;         ///< updates of the run so far, those of earlier processes included
  int64_t steps_now = 0;     ///< updates of this fit
  double seconds = 0.0;      ///< wall time of this fit, validations and saves included
  double steps_per_s = 0.0;  ///< updates of this fit by its seconds of training alone
  bool was_already_done = false;        ///< the run had reached its total before this fit
  std::string stop_reason;              ///< why it stopped early; "" when it reached its end
  SaveStats saves;                      ///< of this fit
  std::vector<EagerSteps> eager_steps;  ///< that could not be recorded, of all fits
  Metrics metrics;                      ///< the newest value of each metric
  std::filesystem::path artifact_dir;
  std::optional<std::filesystem::path> last_checkpoint;
};

/// The metrics of one checkpoint.
struct ValidationRow {
  std::optional<std::filesystem::path> checkpoint;  ///< nothing: the model as it was
  int64_t step = 0;
  Metrics metrics;
};

/// Which checkpoints `validate_all` evaluates.
struct ValidateAllOptions {
  int64_t since = 0;   ///< none of an update before this
  int64_t every = 1;   ///< only those whose update is a multiple of this, >= 1
  bool force = false;  ///< also those whose row is known: see ValidationResults
  bool watch = false;  ///< go on with checkpoints that appear, until the run is stopped
};

/// A checkpoint that `validate_all` had to leave out.
struct SkippedCheckpoint {
  std::filesystem::path checkpoint;
  std::string reason;
};

/// What `validate_all` found, one row a checkpoint.
struct ValidationTable {
  std::vector<ValidationRow> rows;
  std::vector<SkippedCheckpoint> skipped;  ///< could not be read, or does not fit

  /// Comma-separated, with a line of names; RFC 4180.
  std::string to_csv() const;
  /// A JSON array of objects, one a line.
  std::string to_json() const;
  /// The same on one line: {"rows": […]}.
  std::string to_json_line() const;
};

/// Aligned columns for people.
std::ostream& operator<<(std::ostream& out, const ValidationTable& table);

}  // namespace rondo
