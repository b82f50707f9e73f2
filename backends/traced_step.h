#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/body_requests.h"
#include "backends/executor.h"
#include "backends/kept_casts.h"
#include "backends/program/step_program.h"
#include "backends/recording/host_calls.h"
#include "backends/refusal.h"
#include "backends/step_report.h"
#include "backends/traced_options.h"
#include "core/log.h"

namespace rondo {

struct CapturedStep;
struct Verified;

/// One step of one key: captured on its first two runs, which must agree, then replayed. When they
/// differ in their operators, because the first one made state, a third one must agree with the
/// second; where the first replay is verified, the run as written that it is compared with is the
/// third. What is baked into a replay, and what guards it:
/// - shapes, dtypes, the loop and the phase: the key, compared before each run by the backend
/// - addresses of captured state: compared before each replay; another one starts the captures anew
/// - host values in the body: the recorder refuses them; the comparison of the two captures;
/// verification
/// - what host code changes between steps: `Backend::invalidate`
///
/// A step that is refused runs as it is written from then on, or is a CaptureError: see
/// TracedOptions::throws_on_refusal.
class TracedStep {
 public:
  /// \param number  tells steps of one name apart: how many there were before
  /// \param phase   of a training step
  /// \param casts   of the steps of one backend
  TracedStep(std::string name,
             int number,
             const GroupPhase& phase,
             std::shared_ptr<KeptCasts> casts,
             const TracedOptions& options,
             TextLog log);
  ~TracedStep();

  /// \throws as `Backend::run`, where the state that is left is described
  /// \return valid until the next run
  const Outputs& run(const StepCall& call);

  /// As `run`, until the deadline has passed. Which closures are due is asked in `start`. The
  /// call's batch and queue must stay until `resume` has returned outputs. After a throw no step is
  /// in progress: `start` begins another one.
  const Outputs* start(const StepCall& call, const Deadline& deadline);
  const Outputs* resume(const StepCall& call, const Deadline& deadline);

  /// Whether captures are done but for one that a verified replay makes.
  bool is_ready() const { return is_ready_; }

  /// Lets it run as it is written from now on.
  /// \throws CaptureError  where TracedOptions::throws_on_refusal
  void refuse(Refusal refusal);

  /// Why it runs as it is written; nothing while it need not.
  const std::optional<Refusal>& refusal() const { return refusal_; }

  const std::string& name() const { return name_; }

  const StepStats& stats() const { return stats_; }

  /// Whether the next run may change the batch that it gets; true until that is known.
  bool may_write_batch() const { return !is_ready_ || writes_batch_; }

  int64_t replays() const { return stats_.replays; }

  int64_t arena_bytes() const { return stats_.arena_bytes; }

  /// Whether its report is to tell how large all arenas were by the end of the newest run.
  bool wants_arenas() const { return has_tried_kernels_ || replays_since_capture_ == 1; }

  /// \param bytes  of the arenas of all steps that are ready
  void note_arenas(int64_t bytes);

  /// The program that is replayed, once it is ready.
  const StepProgram& program() const { return program_; }

  /// The program of the newest run as it was recorded; null when it was not, and unless
  /// TracedOptions::explains.
  const std::shared_ptr<const StepProgram>& recorded() const { return recorded_; }

  StepReport report() const;

 private:
  struct Address {
    SlotId slot;
    const void* data;
  };

  const Outputs& run_eagerly(const StepCall& call);
  void capture(const StepCall& call);
  void settle(CapturedStep second, const StepCall& call);
  void build(CapturedStep captured, const StepCall& call);
  void plan(CapturedStep captured, const StepCall& call);
  std::optional<Refusal> objection_to(const CapturedStep& third);
  Refusal differing_captures(const std::string& difference) const;
  const Slot* moved_state() const;
  void look_at_state();
  DueSet due_closures(const StepCall& call) const;
  template <class Work>
  auto replaying(const StepCall& call, const Work& work);
  const std::vector<at::Tensor>& replay(const StepCall& call, DueSet due);
  const Outputs& run_verified(const StepCall& call);
  void keep_as_written(const StepCall& call, Verified verified);
  const Outputs& finish(const StepCall& call, const std::vector<at::Tensor>& results);

  std::string name_;
  int number_;
  GroupPhase phase_;
  std::shared_ptr<KeptCasts> casts_;
  KeptCasts::Use use_of_casts_;
  TracedOptions options_;
  TextLog log_;
  std::optional<Refusal> refusal_;
  bool is_ready_ = false;
  bool is_third_capture_ = false;
  std::unique_ptr<StepProgram> unconfirmed_;  // the second capture, until a third one agrees
  bool writes_batch_ = false;
  bool has_tried_kernels_ = false;
  DueSet due_ = 0;  // of the replay that is done, or in progress
  int64_t samples_ = 0;
  std::unique_ptr<StepProgram> first_;  // between the two captures
  std::shared_ptr<const StepProgram> recorded_;
  StepProgram program_;  // cleaned up, with every closure
  std::vector<Address> addresses_;
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
};

}  // namespace rondo
