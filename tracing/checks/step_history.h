#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tracing/checks/nan_hunt.h"
#include "tracing/checks/state_snapshot.h"

namespace rondo {

/// When the state is copied anew: seldom enough that copies take no time that could be measured,
/// and often enough that what is kept between two of them stays bounded.
struct SnapshotPace {
  using Duration = std::chrono::steady_clock::duration;

  int64_t share = 400;                    ///< a copy may take one part in so many of the time
  size_t most_steps = 1024;               ///< kept between two copies
  int64_t most_bytes = int64_t{1} << 28;  ///< of their batches

  /// \param since  time since the last copy  \param cost  time that it took
  bool is_due(Duration since, Duration cost, size_t steps, int64_t bytes) const {
    return since >= cost * share || steps >= most_steps || bytes >= most_bytes;
  }
};

/// The last steps of a run and the state from which they began, so that they can be run once more
/// and the operator be named that spoiled them. Batches are kept by reference, so that a step that
/// writes its own is to be given a copy here; the state is one copy in memory. CPU only.
class StepHistory {
 public:
  explicit StepHistory(std::function<CapturedState()> state) : state_(std::move(state)) {}

  /// A step will run on `batch`.
  /// \return where its host calls' answers go
  /// \throws NonFiniteLossError  when the state has gone bad since it was copied last, explained
  std::vector<char>& begin_step(const Batch& batch);

  /// It ran as `program`; null: it was not recorded, and cannot be run once more.
  void end_step(std::shared_ptr<const StepProgram> program);

  /// Something else than these steps may change the state from here on: what was kept is let go.
  /// \throws NonFiniteLossError  when these steps spoiled the state, explained. What did not come
  ///                             from them is left to who changes the state.
  void forget();

  /// Looks at the state now, as no step may follow that would; what was kept is let go.
  /// \throws NonFiniteLossError  as `begin_step`
  void check();

  /// Runs the kept steps once more. The state and the random numbers are then as they were before
  /// this call; nothing is kept any more.
  /// \return what is to be told; "" when nothing was kept
  std::string explain();

  /// Copies of the state that were made, for tests.
  int64_t snapshots() const { return snapshots_; }

 private:
  using Clock = std::chrono::steady_clock;

  using Counts = std::vector<std::pair<std::string, int64_t>>;

  void take_snapshot();
  std::string spoiled_part(const Counts& now) const;
  void require_sound(const Counts& now);
  std::optional<std::string> blame();
  void let_go();

  std::function<CapturedState()> state_;
  SnapshotPace pace_;
  std::unique_ptr<StateSnapshot> snapshot_;
  Counts non_finite_;  // in the copy, by name
  Clock::time_point taken_;
  Clock::duration cost_{};
  std::vector<KeptStep> steps_;  // entries are used again
  size_t count_ = 0;             // how many of them are kept
  size_t unrecorded_ = 0;        // of these, were not recorded although they ran to their end
  int64_t bytes_ = 0;
  int64_t snapshots_ = 0;
};

}  // namespace rondo
