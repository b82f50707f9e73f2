#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "backends/backend.h"

namespace rondo {

/// Drives batches through a step: fetches and stages them, counts, and runs step closures after
/// each iteration, in the order in which they were queued. Owned by the stage that uses it, for one
/// stage of training or one loader of a validation.
class DataExecutor {
 public:
  using Source = std::function<std::optional<Batch>()>;

  /// \param backend      borrowed
  /// \param source       yields host batches; nothing at the end
  /// \param num_batches  iterations after which it ends, where that is known
  DataExecutor(Backend& backend, Source source, std::optional<int64_t> num_batches);
  DataExecutor(const DataExecutor&) = delete;
  DataExecutor& operator=(const DataExecutor&) = delete;

  /// The next batch on the device; nothing when the iterations are over.
  std::optional<Batch> next();

  /// Runs the step; the closures that are due are queued. Its outputs stay until the next one.
  const Outputs& run(const StepKey& key,
                     const Batch& batch,
                     const StepBody& body,
                     const IsDue& is_due);

  /// The same in pieces, each until a deadline: see `Backend::start`. Null while the step is in
  /// progress.
  const Outputs* start(const StepKey& key,
                       const Batch& batch,
                       const StepBody& body,
                       const IsDue& is_due,
                       const Deadline& deadline);
  const Outputs* resume(const Deadline& deadline);

  /// Queues host work for the end of this iteration; from within a closure it runs at once.
  void defer(StepClosure closure);

  /// Ends the iteration: runs what was queued. What a closure throws comes out as it is.
  void finish();

  /// Undoes the last iterations: drops what was queued.
  void forget(int64_t iterations) {
    queue_.clear();
    iteration_ -= iterations;
  }

  /// Ends the pass. \param is_whole  false when a stop left batches of it out
  void end(bool is_whole) { was_whole_ = is_whole; }

  /// What `end` was told; nothing while the pass goes on.
  std::optional<bool> was_whole() const { return was_whole_; }

  /// Iterations that were begun, minus one: the 0-based number of the current one.
  int64_t iteration() const { return iteration_; }

  /// True in the last iteration, where it can be known: not when a clock, or the end of a stream,
  /// ends the stage.
  bool is_final_iteration() const { return is_last_ || has_run_all(); }

  /// Says whether the current iteration is the last one of a stage that no number of batches ends.
  void set_final_iteration(bool is_last) { is_last_ = is_last; }

  std::optional<int64_t> num_batches() const { return num_batches_; }

 private:
  bool has_run_all() const { return num_batches_ && iteration_ + 1 >= *num_batches_; }

  const Outputs* kept(const Outputs* outputs);

  Backend& backend_;
  Source source_;
  std::optional<int64_t> num_batches_;
  int64_t iteration_ = -1;
  bool is_last_ = false;
  std::optional<bool> was_whole_;
  Outputs outputs_;
  ClosureQueue queue_;
  bool is_running_closures_ = false;
};

}  // namespace rondo
