#pragma once

#include <cstdint>

#include "core/state_dict.h"
#include "core/time.h"

namespace rondo {

/// The progress of a run. A batch is what the loader yields; an update is a group of batches and
/// one optimizer step. Wall clocks are seconds of training, without validation.
/// Source: Composer's Timestamp.
struct Timestamp {
  int64_t epoch = 0;  ///< completed passes over the training data
  int64_t update = 0;
  int64_t update_in_epoch = 0;
  int64_t batch = 0;
  int64_t batch_in_epoch = 0;
  int64_t sample = 0;
  int64_t sample_in_epoch = 0;
  int64_t token = 0;
  int64_t token_in_epoch = 0;
  double total_seconds = 0.0;
  double epoch_seconds = 0.0;
  double batch_seconds = 0.0;

  /// What one batch adds.
  struct Advance {
    int64_t samples = 0;
    int64_t tokens = 0;
    double seconds = 0.0;
    bool is_update = true;  ///< false within a group of accumulated batches
  };

  void advance_batch(const Advance& by);
  void advance_epoch();

  /// Back to the beginning of the epoch; totals stay.
  void restart_epoch();

  /// The total in `unit`; Second is whole seconds.
  /// \throws UsageError  for Fraction
  int64_t get(TimeUnit unit) const;

  /// As `get`, with fractions of seconds.
  double amount(TimeUnit unit) const;

  /// True when the total in the unit of `time` is at least `time`.
  bool reached(const Time& time) const { return get(time.unit()) >= time.count(); }

  StateDict state_dict() const;

  /// Missing fields keep zero.
  void load(const StateDict& state);
};

/// True when going from `before` to `after` crosses a multiple of `interval`. An interval of zero
/// never fires. It depends on the absolute time only: a resumed run fires where the first one
/// would.
bool crosses(const Time& interval,
             const Timestamp& before,
             const Timestamp& after,
             const RunLength& run);

}  // namespace rondo
