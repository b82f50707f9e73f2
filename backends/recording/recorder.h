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

#include "backends/program/step_program.h"
#include "backends/recording/operator_effects.h"
#include "backends/recording/origins.h"
#include "backends/recording/outside_number.h"
#include "backends/recording/slot_table.h"
#include "backends/recording/state_index.h"
#include "backends/refusal.h"

namespace rondo {

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
  /// \param may_guard  whether values may be read on the host that each replay can compare
  Recorder(std::string step,
           const Batch& batch,
           std::function<CapturedState()> state,
           bool may_guard = true);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// What instructions and errors name from here on.
  void set_location(std::string_view callback, std::string_view hook);

  /// Notes the tensors of a closure that the step queues.
  void add_closure(const StepClosure& closure);

  /// Notes a host call. \return its number
  int64_t add_host_call(std::string name);

  /// Runs an operator and records it. Called by the dispatcher.
  void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack& stack);

  /// The program, once the body is done; an empty one when the step was refused.
  StepProgram finish(const Outputs& outputs);

  /// Why the step cannot be replayed; nothing when it can.
  const std::optional<Refusal>& refusal() const { return refusal_; }

  /// The numbers from outside that were frozen into the program.
  const std::vector<OutsideNumber>& outside_numbers() const { return numbers_; }

 private:
  struct Call;

  struct Refused {};  // thrown and caught in here

  /// State of which some bytes are those of an entry of the batch.
  struct SharedMemory {
    std::string state;
    SlotId slot;
    SlotId input;
  };

  template <class Work>
  void unless_refused(const Work& work);
  void record(Call& call, c10::DispatchKeySet keys, torch::jit::Stack& stack);
  void read_arguments(Call& call, c10::ArrayRef<c10::IValue> values);
  Argument read_argument(Call& call, size_t index, const c10::IValue& value);
  Argument read_tensors(Call& call, size_t index, const c10::IValue& list);
  SlotId read_tensor(Call& call, size_t index, const at::Tensor& tensor);
  void read_results(Call& call, c10::ArrayRef<c10::IValue> values);
  Result read_result(const Call& call, const c10::IValue& value);
  SlotId add_result(const Call& call, const at::Tensor& tensor);
  void refuse_changed(const Call& call);
  void append(Call& call);
  void append_view_change(const Call& call, const at::Tensor& changed);
  void append_as_strided(SlotId source, const at::Tensor& view);
  void freeze_unwritten(const Call& call);
  void freeze_allocation(KnownStorage& known);
  void mark_written(const Call& call);

  void drop_instruction(size_t place);
  bool reads_number_of_host(const Call& call);
  bool varies(const at::Tensor& tensor);
  bool any_varies(c10::ArrayRef<c10::IValue> values);

  SlotId use(const at::Tensor& tensor, const std::string& what);
  void refuse_other_device(const at::Tensor& tensor, const std::string& what);
  SlotId use_unknown(const at::Tensor& tensor, const std::string& what);
  SlotId use_outside(const at::Tensor& tensor, const std::string& what);
  void note_shared_memory(const std::string& state, SlotId slot, const c10::Storage& storage);
  void refuse_written_shared_memory();
  SlotId freeze(const at::Tensor& tensor);
  SlotId use_after_step(const at::Tensor& tensor, const std::string& what);
  void refuse_what_cannot_be_undone(const Call& call);
  void refuse_constants(const Call& call);
  void refuse_strays();
  [[noreturn]] void refuse(const std::string& what, const std::string& advice);
  std::string place_of(const Call& call);

  StepProgram program_;
  SlotTable table_;
  std::vector<std::pair<SlotId, c10::Storage>> inputs_;
  std::vector<SharedMemory> shared_;
  StateIndex state_;
  OriginTracker origins_;
  std::vector<SlotId> read_after_step_;
  std::vector<OutsideNumber> numbers_;
  std::optional<Refusal> refusal_;
  const Call* call_ = nullptr;  // the operator that is being recorded
  bool may_guard_;
  int64_t strays_before_;  // see stray_operators
  int32_t location_ = 0;
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
