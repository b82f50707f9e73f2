#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/body_requests.h"
#include "backends/executor.h"
#include "backends/refusal.h"
#include "backends/step_report.h"
#include "core/log.h"
#include "tracing/checks/operator_comparison.h"
#include "tracing/passes/kept_casts.h"
#include "tracing/program/step_program.h"
#include "tracing/program/step_work.h"
#include "tracing/recording/host_calls.h"
#include "tracing/recording/outside_number.h"
#include "tracing/traced_options.h"

namespace rondo {

struct CapturedStep;
class PlannedExecutor;
struct Verified;

/// A step as it is for certain answers of its guards: captured twice, then replayed. When the two
/// captures differ in their operators, because the first one made state, a third one must agree
/// with the second; where the first replay is verified, the run as written that it is compared with
/// is the third.
class StepVariant {
 public:
  /// \param name     of the step
  /// \param position    of a training step
  /// \param casts    of the steps of one backend
  /// \param answers  of its guards, in order
  StepVariant(std::string name,
              const GroupPosition& position,
              std::shared_ptr<KeptCasts> casts,
              const TracedOptions& options,
              TextLog log,
              std::vector<std::string> answers);
  ~StepVariant();

  const std::vector<std::string>& answers() const { return answers_; }

  /// A capture with these answers; it did the step.
  /// \param seconds  that it took
  void take(CapturedStep captured, const StepCall& call, double seconds);

  /// Whether it can be replayed.
  bool is_ready() const { return state_ == State::Unconfirmed || state_ == State::Ready; }

  /// Why it cannot, and never will; nothing while it may.
  const std::optional<Refusal>& refusal() const { return refusal_; }

  /// Replays the step.
  /// \return valid until the next run. Null: nothing was done, or it was undone. Then
  ///         `missed_guard` says which guard failed; where none did, the step must be captured
  /// \throws as `Backend::run`
  const Outputs* run(const StepCall& call);

  /// Begins a replay that `advance` goes on with. Which closures are due is asked now.
  /// \return false: nothing was begun, `run` may do it
  bool start(const StepCall& call);

  /// \return the outputs, or null: it is in progress, or a guard failed
  const Outputs* advance(const StepCall& call, const Deadline& deadline);

  const MissedGuard* missed_guard() const;

  int64_t replays() const { return stats_.replays; }

  int64_t arena_bytes() const { return stats_.arena_bytes; }

  bool writes_batch() const { return writes_batch_; }

  /// Whether its report is to tell how large all arenas were by the end of the newest run.
  bool wants_arenas() const { return has_tried_kernels_ || replays_since_capture_ == 1; }

  /// \param bytes  of the arenas of all steps that are ready
  void note_arenas(int64_t bytes);

  /// The program that is replayed, once it is ready.
  const StepProgram& program() const { return program_; }

  /// The program as it was recorded; null unless TracedOptions::explains.
  const std::shared_ptr<const StepProgram>& recorded() const { return recorded_; }

  /// Without a name.
  StepReport report() const;

  /// Of one replay.
  const StepWork& work() const { return work_; }

  /// How far its operators were from those recorded; nothing until that was asked for and done.
  const std::optional<OperatorErrors>& comparison() const { return comparison_; }

 private:
  enum class State {
    Empty,        ///< not captured, or no longer
    Captured,     ///< once
    Differed,     ///< the two captures differed: a third one must equal the second
    Unconfirmed,  ///< the same, but it can be replayed: the first replay's verification is the
                  ///< third
    Ready,        ///< can be replayed
    Refused       ///< never will be: see `refusal_`
  };

  struct Address {
    SlotId slot;
    const void* data;
  };

  void settle(CapturedStep second, const StepCall& call);
  void build(CapturedStep captured, State built, const StepCall& call);
  void plan(CapturedStep captured, const StepCall& call);
  std::optional<Refusal> objection_to(const CapturedStep& third);
  void refuse(Refusal refusal);
  Refusal differing_captures(const std::string& difference) const;
  const Slot* moved_state() const;
  void keep_numbers(const std::vector<OutsideNumber>& numbers);
  const OutsideNumber* changed_number() const;
  void look_at_state();
  void start_anew(const std::string& why, const std::string& advice);
  DueSet due_closures(const StepCall& call) const;
  template <class Work>
  auto replaying(const StepCall& call, const Work& work);
  const std::vector<at::Tensor>* replay(const StepCall& call, DueSet due);
  const Outputs* run_verified(const StepCall& call);
  bool is_to_be_compared() const;
  PlannedExecutor* planned() const;
  const Outputs* run_compared(const StepCall& call);
  void keep_as_written(const StepCall& call, Verified verified);
  const Outputs* finish(const StepCall& call, const std::vector<at::Tensor>* results);

  std::string name_;
  GroupPosition position_;
  std::shared_ptr<KeptCasts> casts_;
  KeptCasts::Use use_of_casts_;
  TracedOptions options_;
  TextLog log_;
  std::vector<std::string> answers_;
  State state_ = State::Empty;
  std::unique_ptr<StepProgram> captured_;  // that the next capture is compared with, if any
  std::optional<Refusal> refusal_;
  bool writes_batch_ = false;
  bool has_tried_kernels_ = false;
  DueSet due_ = 0;  // of the replay that is done, or in progress
  int64_t samples_ = 0;
  std::shared_ptr<const StepProgram> recorded_;
  StepProgram program_;  // cleaned up, with every closure
  std::vector<Address> addresses_;
  std::vector<OutsideNumber> numbers_;  // that somebody may still change
  std::vector<HostFunction> closures_;
  HostCalls host_calls_;
  std::unique_ptr<Executor> executor_;
  Outputs outputs_;
  int64_t capture_bytes_ = 0;
  int64_t arenas_at_capture_ = 0;
  int64_t arenas_at_first_ = 0;
  int64_t arenas_at_trial_ = 0;
  int moves_in_a_row_ = 0;
  int64_t replays_since_capture_ = 0;
  StepStats stats_;
  StepWork work_;
  std::optional<OperatorErrors> comparison_;
};

}  // namespace rondo
