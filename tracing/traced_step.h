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
#include "tracing/traced_options.h"

namespace rondo {

struct CapturedStep;
class StepVariant;

/// The steps of one key: captured on their first two runs, then replayed. Where the host reads a
/// flag or a size, there is a variant for each set of answers, of which the one that ran last is
/// tried first. What is baked into a replay, and what guards it:
/// - shapes, dtypes, the loop and the position: the key, compared before each run by the backend
/// - what trains, modes of modules, global switches: a fingerprint, compared likewise
/// - addresses of captured state: compared before each replay; another one starts the captures anew
/// - flags and sizes that the host reads: compared in each replay; another one undoes it
/// - other host values in the body: the recorder refuses them; the comparison of the two captures;
/// verification
/// - what else host code changes between steps: `Backend::invalidate`
///
/// A step that is refused runs as it is written from then on, or is a CaptureError: see
/// TracedOptions::throws_on_refusal.
class TracedStep {
 public:
  /// \param number  tells steps of one name apart: how many there were before
  /// \param position   of a training step
  /// \param casts   of the steps of one backend
  TracedStep(std::string name,
             int number,
             const GroupPosition& position,
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

  /// Lets it run as it is written from now on.
  /// \throws CaptureError  where TracedOptions::throws_on_refusal
  void refuse(Refusal refusal);

  /// Why it runs as it is written; nothing while it need not.
  const std::optional<Refusal>& refusal() const { return refusal_; }

  const std::string& name() const { return name_; }

  /// As it is written, since it was refused.
  int64_t eager_runs() const { return eager_.eager_runs; }

  double eager_s() const { return eager_.eager_s; }

  /// Whether the next run may change the batch that it gets; true until that is known.
  bool may_write_batch() const;

  int64_t replays() const;

  /// Of the variants that are ready.
  int64_t arena_bytes() const;

  /// Whether its report is to tell how large all arenas were by the end of the newest run.
  bool wants_arenas() const;

  /// \param bytes  of the arenas of all steps that are ready
  void note_arenas(int64_t bytes);

  /// The programs that are replayed, in the order in which they were first recorded.
  std::vector<StepProgram> programs() const;

  /// The program of the newest run as it was recorded; null when it was not, and unless
  /// TracedOptions::explains.
  const std::shared_ptr<const StepProgram>& recorded() const { return recorded_; }

  /// Of all replays together.
  WorkDone work_done() const;

  /// With what its steps are called in reports.
  std::vector<ComparedStep> comparisons() const;

  /// Of each variant that is ready; one of a step that was refused.
  std::vector<StepReport> reports() const;

 private:
  const Outputs& run_eagerly(const StepCall& call);
  const Outputs& capture(const StepCall& call);
  void keep(CapturedStep captured, const StepCall& call, double seconds);
  StepVariant* variant_for(const StepProgram& captured);
  Refusal too_many_variants(const StepProgram& captured) const;
  const Outputs* replay(const StepCall& call);
  StepVariant* ready_variant(const std::vector<std::string>& first_answers) const;
  std::string report_name(size_t variant) const;

  std::string name_;
  int number_;
  GroupPosition position_;
  std::shared_ptr<KeptCasts> casts_;
  TracedOptions options_;
  TextLog log_;
  std::optional<Refusal> refusal_;
  std::vector<std::unique_ptr<StepVariant>> variants_;
  StepVariant* newest_ = nullptr;  // that was replayed, or got ready, last
  std::shared_ptr<const StepProgram> recorded_;
  int64_t samples_ = 0;
  Outputs outputs_;
  StepStats eager_;
};

}  // namespace rondo
