#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/executor.h"
#include "core/log.h"
#include "tracing/plan/memory_report.h"
#include "tracing/plan/plan.h"
#include "tracing/plan/replay_stopwatch.h"
#include "tracing/plan/undo.h"

namespace rondo {

/// Runs a program as a plan: a flat list of kernels over memory that was laid out once. Neither
/// autograd nor an interpreter is asked; the dispatcher only for operators that have no kernel of
/// rondo's own, and an allocator only by those of them whose results are adopted or copied, in each
/// run, and by what operators need inside. Each kernel is compared with the operator as it was
/// recorded, by `try_kernels` or else in the first runs; the executor uses the operator from then
/// on where a byte differs.
class PlannedExecutor final : public Executor {
 public:
  /// \param log     gets the kernels that were dropped
  /// \param timing  which replays to time; the time of a chain is its first instruction's
  PlannedExecutor(StepProgram program,
                  TextLog log,
                  const PlanOptions& options = {},
                  const TimingSchedule& timing = {});

  /// \throws CaptureError  when an instruction throws, naming it, its module and line of code; the
  ///                       cause is nested. A part of the step's writes is done then
  const std::vector<at::Tensor>& run(const Batch& batch, DueSet due) override;

  bool start(const Batch& batch, DueSet due) override;
  const std::vector<at::Tensor>* advance(const Deadline& deadline) override;

  /// Runs the instructions once, without those that change what is outside and make nothing: host
  /// calls, updates. What another one writes outside is undone before the next one runs, so no copy
  /// of the state is needed; what reads it finds the numbers of the step before, on which kernels
  /// can be compared as well. Kernels that no probe has shown to agree are tried in further runs.
  void try_kernels(const Batch& batch) override;

  const MissedGuard* missed_guard() const override { return missed_ ? &*missed_ : nullptr; }

  bool has_trials() const override { return on_trial_ > 0; }

  StepMemory memory() const override { return memory_; }

  StepTimeline timeline() const override { return stopwatch_.timeline(plan_); }

  PassCounts applied() const override;

  OperatorCounts adopted_operators() const override;

  std::string to_text() const override { return rondo::to_text(plan_); }

  const Plan& plan() const { return plan_; }

 private:
  void add_result(SlotId slot);
  void find_inputs(const Batch& batch);
  void begin(const Batch& batch);
  void bind(const Batch& batch);
  void run_one(PlannedInstruction& planned);
  size_t run_from(PlannedInstruction* planned);
  void undo(const PlannedInstruction& guard, std::string answer);
  void release_all();
  [[noreturn]] void throw_failed(const PlannedInstruction& planned) const;
  void keep_parts_of_batch();
  void try_kernel(PlannedInstruction& planned, Trial::Effect effect);
  void try_all_kernels();
  bool lies_as_recorded(const Batch& batch) const;
  void clear_results(const Instruction& instruction);
  std::vector<SlotId> written_outside(const Instruction& instruction) const;

  Plan plan_;
  TextLog log_;
  StepMemory memory_;
  std::vector<std::pair<size_t, SlotId>> inputs_;  // position in the batch, slot
  std::vector<at::Tensor> results_;
  Undo undo_;
  std::optional<MissedGuard> missed_;
  ReplayStopwatch stopwatch_;
  std::vector<std::pair<size_t, SlotId>> parts_of_batch_;  // place among the results, slot
  int64_t on_trial_ = 0;                                   // kernels
  bool is_first_ = true;
  size_t next_ = 0;  // instruction of a run in pieces
  DueSet due_ = 0;   // in a run in pieces
};

}  // namespace rondo
