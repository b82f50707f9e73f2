#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "callbacks/core/loop.h"
#include "core/time.h"
#include "core/timestamp.h"

namespace rondo {

/// When a run ends and when it validates: pure functions of the absolute time, so that a resumed
/// run does what an uninterrupted one does. A plan of another kind overrides what it answers; see
/// RunScheduleCallback.
class RunPlan {
 public:
  /// \param start              where the run begins or resumes
  /// \param updates_per_epoch  of the training loader, where known
  /// \throws UsageError  when a duration cannot be converted
  RunPlan(const LoopOptions& options,
          const Timestamp& start,
          std::optional<int64_t> updates_per_epoch);
  RunPlan(const RunPlan&) = delete;
  RunPlan& operator=(const RunPlan&) = delete;
  virtual ~RunPlan() = default;

  /// Says that the run begins in the middle of an epoch that has `updates` more: with other batches
  /// than before, these and those that were done are not `updates_per_epoch` together. Lengths that
  /// are counted in epochs follow.
  void set_left_of_epoch(const Timestamp& start, int64_t updates);

  const RunLength& length() const { return length_; }

  virtual bool is_over(const Timestamp& time) const;

  /// True when a stage of training ends between the two: a validation is due, or the run is over.
  virtual bool ends_stage(const Timestamp& before, const Timestamp& after) const;

  virtual bool validates() const { return eval_frequency_.value() > 0.0; }

  /// Number of validations due up to `time`: the index of the stage that begins there.
  virtual int64_t loop_idx(const Timestamp& time) const;

  /// Updates of the stage that begins at `time`, where they can be told.
  virtual std::optional<int64_t> updates_of_stage(const Timestamp& time) const;

  /// The share of the run that is done at `time`, in [0, 1]: by the limit that is nearest.
  double elapsed_share(const Timestamp& time) const;

 private:
  bool validates_only_at_end() const;
  void resolve();
  Time in_updates(const Time& limit) const;

  std::vector<Time> limits_;  // any of them ends the run
  Time given_eval_frequency_;
  RunLength length_;
  int64_t extra_updates_ = 0;  // that the run's epochs have beyond `updates_per_epoch` each
  Time eval_frequency_;        // a fraction only as 0.0, never, or 1.0, at the end
};

}  // namespace rondo
