#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/batch_structure.h"
#include "backends/body_requests.h"
#include "core/heap_without_holes.h"
#include "core/log.h"
#include "core/stopwatch.h"
#include "tracing/checks/operator_comparison.h"
#include "tracing/program/step_program.h"
#include "tracing/program/step_work.h"
#include "tracing/traced_options.h"

namespace rondo {

class KeptCasts;
class StepHistory;
class TracedStep;
struct Refusal;
struct StepCall;

/// A program with the key that it was recorded for.
struct RecordedStep {
  StepKey key;
  StepProgram program;
};

/// Captures each step twice, then replays it: as a plan on the CPU, where its numbers are those of
/// `EagerBackend`, bit for bit, and as graphs on another device.
class TracedBackend final : public Backend {
 public:
  TracedBackend(const TracedOptions& options, TextLog log);
  ~TracedBackend() override;

  c10::Device device() const override { return options_.device; }

  void set_state(std::function<CapturedState()> state) override;
  void set_fingerprint(std::function<uint64_t()> fingerprint) override;
  Batch stage(Batch host) override;

  void synchronize() override;

  const Outputs& run(const StepKey& key,
                     const Batch& batch,
                     const StepBody& body,
                     const IsDue& is_due,
                     ClosureQueue& queue) override;

  const Outputs* start(const StepKey& key,
                       const Batch& batch,
                       const StepBody& body,
                       const IsDue& is_due,
                       ClosureQueue& queue,
                       const Deadline& deadline) override;
  const Outputs* resume(const Deadline& deadline) override;

  bool is_in_step() const override { return is_in_step_ || in_progress_ != nullptr; }

  bool is_capturing() const override { return requests_ != nullptr && requests_->is_recording(); }

  void defer(StepClosure closure) override;
  void host_call(std::string name, std::vector<at::Tensor> tensors, HostFunction function) override;
  void set_location(std::string_view callback, std::string_view hook) override;
  void invalidate(const std::string& why) override;
  std::vector<StepReport> reports() const override;
  std::vector<EagerSteps> eager_steps() const override;
  bool is_settled() const override;

  /// The programs that are replayed, in the order in which they were first recorded.
  std::vector<RecordedStep> recorded_steps() const;

  /// What the replays of all steps together asked of the machine.
  WorkDone work_done() const;

  /// The steps that were compared operator by operator; none unless
  /// Instruments::compares_operators.
  std::vector<ComparedStep> comparisons() const;

  std::string explain_non_finite() override;
  void check_state() override;

 private:
  struct Entry;

  uint64_t fingerprint() const;
  TracedStep& step_for(const StepKey& key, const Batch& batch);
  struct StepInProgress;

  TracedStep& begin_step(const StepKey& key, const Batch& batch);
  void end_step(TracedStep& step);
  bool make_room(const StepKey& key, const Batch& batch);
  TracedStep& add_step(Entry entry);
  bool retire(const Entry& entry);
  void warn_of_refusal(const Refusal& refusal);
  template <class Work>
  const Outputs* go_on(const Work& work);

  TracedOptions options_;
  TextLog log_;
  std::function<CapturedState()> state_;
  std::function<uint64_t()> fingerprint_;
  std::shared_ptr<KeptCasts> casts_;  // of the steps
  std::vector<Entry> steps_;
  int64_t runs_ = 0;                       // of steps
  std::map<std::string, int> steps_made_;  // by name
  std::vector<StepReport> retired_;        // of steps that were run and then forgotten
  std::vector<EagerSteps> retired_eager_;  // with the seconds they took
  WorkDone retired_work_;
  std::vector<ComparedStep> retired_comparisons_;
  std::set<std::string> told_;  // refusals
  Stopwatch age_;
  BodyRequests* requests_ = nullptr;
  bool is_in_step_ = false;
  std::unique_ptr<StepInProgress> in_progress_;
  std::vector<char>* answers_ = nullptr;  // where host calls' answers go; null: nowhere
  std::unique_ptr<StepHistory> history_;  // of training; null unless TracedOptions::explains
  int useless_generations_ = 0;           // in a row: captured something, replayed nothing
  std::optional<HeapWithoutHoles> heap_{std::in_place};  // from set-up to a first replay
};

}  // namespace rondo
