#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/refusal.h"
#include "tracing/program/step_program.h"
#include "tracing/recording/frozen_tensors.h"
#include "tracing/recording/host_numbers.h"
#include "tracing/recording/origins.h"
#include "tracing/recording/program_writer.h"
#include "tracing/recording/shared_memory.h"
#include "tracing/recording/slot_table.h"
#include "tracing/recording/state_index.h"

namespace rondo {

struct Objection;
struct RecordedCall;

/// Records what a step does: every operator that reaches the dispatcher below autograd, on tensors
/// named by their memory. It refuses what a replay could not repeat: numbers read on the host
/// that change from step to step, tensors that come from outside of the step and are not its state,
/// sparse tensors. Recording ends there; the step itself goes on as it is written. Flags and sizes
/// that the host reads become guards (program/guards.h). Values that the host reads without the
/// dispatcher (`data_ptr`) are found only by recording the step a second time.
///
/// Used on one thread: a `RecordingScope` switches it on there.
class Recorder {
 public:
  /// \param state      asked at once, and again when the step uses a tensor that is not known
  /// \param may_guard  whether values may be read on the host that each replay can compare; never
  ///                   on another device than the CPU
  Recorder(std::string step,
           const Batch& batch,
           std::function<CapturedState()> state,
           bool may_guard = true);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// What instructions and errors name from here on.
  void set_location(std::string_view callback, std::string_view hook) {
    writer_.set_location(callback, hook);
  }

  /// Notes the tensors of a closure that the step queues.
  void add_closure(const StepClosure& closure);

  /// Notes a host call. \return its number
  int64_t add_host_call(std::string name);

  /// Runs an operator and records it. Called by the dispatcher.
  void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack& stack);

  /// Where the operator stands whose gradient a node of autograd's graph computes.
  /// \param sequence_number  autograd's, of the node
  const Origin& forward_of(int64_t sequence_number) const {
    return writer_.forward_of(sequence_number);
  }

  /// The program, once the body is done; an empty one when the step was refused.
  StepProgram finish(const Outputs& outputs);

  /// Where the step runs: where its batch is.
  c10::Device device() const { return device_; }

  /// Why the step cannot be replayed; nothing when it can.
  const std::optional<Refusal>& refusal() const { return refusal_; }

  /// The numbers from outside that were frozen into the program.
  const std::vector<OutsideNumber>& outside_numbers() const { return frozen_.numbers(); }

 private:
  template <class Work>
  void unless_refused(const Work& work);
  void record(RecordedCall& call, c10::DispatchKeySet keys, torch::jit::Stack& stack);
  void read_arguments(RecordedCall& call, c10::ArrayRef<c10::IValue> values);
  Argument read_argument(RecordedCall& call, size_t index, const c10::IValue& value);
  Argument read_tensors(RecordedCall& call, size_t index, const c10::IValue& list);
  SlotId read_tensor(RecordedCall& call, size_t index, const at::Tensor& tensor);
  void read_results(RecordedCall& call, c10::ArrayRef<c10::IValue> values);
  Result read_result(const RecordedCall& call, const c10::IValue& value);
  SlotId add_result(const RecordedCall& call, const at::Tensor& tensor);
  void object_to_changed(const RecordedCall& call) const;
  void append_view_change(const RecordedCall& call, const at::Tensor& changed);
  void freeze_unwritten(const RecordedCall& call);
  void mark_written(const RecordedCall& call);

  SlotId use(const at::Tensor& tensor, const std::string& what);
  SlotId use_unknown(const at::Tensor& tensor, const std::string& what);
  SlotId use_outside(const at::Tensor& tensor, const std::string& what);
  SlotId use_after_step(const at::Tensor& tensor, const std::string& what);
  void refuse(const Objection& objection);
  bool refuse_strays();

  StepProgram program_;
  c10::Device device_;
  SlotTable table_;
  StateIndex state_;
  ProgramWriter writer_{program_, table_};
  FrozenTensors frozen_{program_, table_};
  HostNumbers host_numbers_{table_, state_};
  SharedMemory shared_{program_};
  std::vector<SlotId> read_after_step_;
  std::optional<Refusal> refusal_;
  const RecordedCall* call_ = nullptr;  // the operator that is being recorded
  bool may_guard_;
  int64_t strays_before_;  // see stray_operators
};

/// While it lives, operators of this thread go through `recorder`.
class RecordingScope {
 public:
  explicit RecordingScope(Recorder& recorder);
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;
  ~RecordingScope();

 private:
  Recorder* before_;
  BackwardWatch backward_;
  c10::impl::IncludeDispatchKeyGuard include_;
};

}  // namespace rondo
