#include "tracing/recording/recorder.h"

#include <algorithm>
#include <utility>

#include <ATen/Context.h>
#include <ATen/core/Generator.h>

#include "backends/scoped.h"
#include "tracing/program/guards.h"
#include "tracing/recording/conjugates.h"
#include "tracing/recording/dispatcher.h"
#include "tracing/recording/guard_rules.h"
#include "tracing/recording/objection.h"
#include "tracing/recording/recorded_call.h"
#include "tracing/recording/recording_rules.h"
#include "tracing/recording/tensor_rules.h"
#include "tracing/recording/unrecorded.h"
#include "tracing/recording/whole_composites.h"

namespace rondo {

namespace {

bool contains(const std::vector<SlotId>& slots, SlotId slot) {
  return std::find(slots.begin(), slots.end(), slot) != slots.end();
}

bool covers_storage(const at::Tensor& tensor) {
  return tensor.nbytes() >= tensor.storage().nbytes();
}

/// Whether there is a tensor without bytes, of which LibTorch asks a shape or a dtype. Lists are
/// not looked at.
bool has_meta_tensor(c10::ArrayRef<c10::IValue> values) {
  return std::any_of(values.begin(), values.end(), [](const c10::IValue& value) {
    return value.isTensor() && value.toTensor().defined() && value.toTensor().is_meta();
  });
}

/// That of the first tensor: a staged batch has all of them there.
c10::Device device_of(const Batch& batch) {
  for (const auto& item : batch.items()) {
    if (item.second.defined()) {
      return item.second.device();
    }
  }
  return c10::kCPU;
}

/// Nothing when there is none.
template <class Work>
std::optional<Objection> objection_in(const Work& work) {
  try {
    work();
    return std::nullopt;
  } catch (const Objection& objection) {
    return objection;
  }
}

}  // namespace

Recorder::Recorder(std::string step,
                   const Batch& batch,
                   std::function<CapturedState()> state,
                   bool may_guard)
    : device_(device_of(batch)),
      table_(program_.slots),
      state_(std::move(state)),
      may_guard_(may_guard && device_.is_cpu()),
      strays_before_(stray_operators().count) {
  program_.name = std::move(step);
  for (const auto& [name, tensor] : batch.items()) {
    if (tensor.defined() && tensor.has_storage() && table_.find(tensor) == kNoTensor) {
      const SlotId input = table_.add(SlotKind::Input, tensor, name);
      shared_.add_input(input, tensor);
      if (const auto entry = state_.find(tensor)) {
        shared_.add_input_of_state(entry->first, input);
      }
    }
  }
}

void Recorder::add_closure(const StepClosure& closure) {
  unless_refused([&] {
    ClosureOutput output{program_.closures.size(), {}, closure.cadence};
    for (const at::Tensor& tensor : closure.tensors) {
      output.tensors.push_back(use_after_step(tensor, "a tensor of a step closure"));
    }
    program_.closures.push_back(std::move(output));
  });
}

int64_t Recorder::add_host_call(std::string name) {
  program_.host_calls.push_back(std::move(name));
  return static_cast<int64_t>(program_.host_calls.size()) - 1;
}

StepProgram Recorder::finish(const Outputs& outputs) {
  unless_refused([&] {
    shared_.object_to_writes();
    for (const auto& [name, tensor] : outputs.items()) {
      program_.outputs.emplace_back(name, use_after_step(tensor, "output \"" + name + "\""));
    }
    for (const SlotId slot : read_after_step_) {
      if (table_.storage_of(slot).unwritten) {
        frozen_.freeze_allocation(table_.storage_of(slot));
      }
    }
  });
  if (refusal_ || refuse_strays()) {
    return {};
  }
  program_.storages = table_.storages();
  find_modules(program_);
  return std::move(program_);
}

template <class Work>
void Recorder::unless_refused(const Work& work) {
  if (refusal_) {
    return;
  }
  try {
    if (const auto objection = objection_in(work)) {
      refuse(*objection);
    }
  } catch (const std::exception& error) {
    if (call_ != nullptr && call_->progress == RecordedCall::Progress::Runs) {
      throw;  // the step itself did
    }
    refusal_ = Refusal{"recording step " + program_.name + " failed: " + error.what(),
                       "leave out what it names"};
  }
}

void Recorder::run(const c10::OperatorHandle& op,
                   c10::DispatchKeySet keys,
                   torch::jit::Stack& stack) {
  if (refusal_) {
    run_unrecorded(op, keys, stack);
    return;
  }
  RecordedCall call(op, torch::jit::last(stack, op.schema().arguments().size()));
  const Scoped<const RecordedCall*> current(call_, &call);
  unless_refused([&] { record(call, keys, stack); });
  if (call.progress == RecordedCall::Progress::Waits) {
    run_unrecorded(op, keys, stack);
  }
}

void Recorder::record(RecordedCall& call, c10::DispatchKeySet keys, torch::jit::Stack& stack) {
  const c10::impl::ExcludeDispatchKeyGuard unrecorded(c10::DispatchKey::Fake);
  if (host_numbers_.are_read_by(call)) {
    read_arguments(call, call.values);
    freeze_unwritten(call);
    return;
  }
  if (has_meta_tensor(call.values)) {
    return;
  }
  object_to_call(call, table_);
  const bool is_read_by_host = is_read(call, table_);
  if (call.effects.is_ignored || (call.effects.reads_host && !is_read_by_host)) {
    return;
  }
  if (is_read_by_host && !may_guard_) {
    throw Objection{"read a tensor on the host (" + call.name + "), which only plans compare",
                    device_.is_cpu()
                        ? "set backend.executor = \"plan\""
                        : "make it a tensor of the step: graphs of a device have no plan"};
  }
  if (is_read_by_host) {
    object_to_late_read(call, program_, table_);
  }
  const bool is_by_mask = is_indexed_by_mask(call);
  read_arguments(call, call.values);
  if (is_read_by_host) {
    object_to_read_of_constant(call, table_);
  }
  const size_t bytes_before =
      call.effects.changes_view_only ? call.values[0].toTensor().storage().nbytes() : 0;
  call.progress = RecordedCall::Progress::Runs;
  run_unrecorded(call.op, keys, stack);
  call.progress = RecordedCall::Progress::HasRun;
  if (call.effects.changes_view_only) {
    const at::Tensor& changed = stack.back().toTensor();
    if (changed.storage().nbytes() != bytes_before) {
      throw Objection{"gave a tensor more memory (" + call.name + ")", "make a new tensor instead"};
    }
    append_view_change(call, changed);
    return;
  }
  object_to_changed(call);
  const auto results = torch::jit::last(stack, call.op.schema().returns().size());
  if (has_meta_tensor(results)) {
    return;
  }
  read_results(call, results);
  if (is_by_mask) {
    call.op = operator_named(kIndexByMask);
  }
  if (const auto read = take_over_batch_count(program_, call.op, call.arguments)) {
    writer_.drop_instruction(*read);
  }
  freeze_unwritten(call);
  mark_written(call);
  writer_.append(call);
}

// A replay could not repeat it: the tensors of a plan keep their shapes and places.
void Recorder::object_to_changed(const RecordedCall& call) const {
  for (const auto& [slot, tensor] : call.lent) {
    if (table_.find(tensor) != slot) {
      throw Objection{
          "changed the shape or the memory of a tensor that it was given (" + call.name + ")",
          "let the operator return a new tensor instead"};
    }
  }
}

void Recorder::read_arguments(RecordedCall& call, c10::ArrayRef<c10::IValue> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    call.arguments.push_back(read_argument(call, i, values[i]));
  }
}

Argument Recorder::read_argument(RecordedCall& call, size_t index, const c10::IValue& value) {
  if (value.isTensor()) {
    return Argument::tensor_of(read_tensor(call, index, value.toTensor()));
  }
  if (value.isTensorList() || value.isOptionalTensorList()) {
    return read_tensors(call, index, value);
  }
  if (value.isGenerator()) {
    const at::Generator generator = value.toGenerator();
    if (generator != at::globalContext().defaultGenerator(generator.device())) {
      throw Objection{"drew random numbers from its own generator (" + call.name + ")",
                      "its state is not part of the step: use the default generator"};
    }
    return Argument::constant_of(c10::IValue());  // the default is found again at each replay
  }
  const bool is_plain =
      value.isNone() || value.isScalar() || value.isString() || value.isDevice() || value.isList();
  if (!is_plain) {
    throw Objection{"gave " + call.name + " an argument of kind " + value.tagKind(),
                    "such an argument cannot be written into a program"};
  }
  return Argument::constant_of(value);
}

Argument Recorder::read_tensors(RecordedCall& call, size_t index, const c10::IValue& list) {
  Argument argument{Argument::Kind::TensorList, c10::IValue(), {}};
  for (const c10::IValue& item : list.toListRef()) {
    argument.slots.push_back(item.isNone() ? kNoTensor : read_tensor(call, index, item.toTensor()));
  }
  return argument;
}

SlotId Recorder::read_tensor(RecordedCall& call, size_t index, const at::Tensor& tensor) {
  const std::string& name = call.op.schema().arguments()[index].name();
  const SlotId slot = use(tensor, "argument \"" + name + "\" of " + call.name);
  if (slot == kNoTensor) {
    return slot;
  }
  const bool is_written = call.effects.writes[index] || call.effects.is_opaque;
  if (call.effects.writes[index]) {
    object_to_write_of_conjugate(tensor);
  }
  if (is_written) {
    call.writes.push_back(slot);
  }
  if (call.effects.is_opaque) {
    call.lent.emplace_back(slot, tensor);
  }
  KnownStorage& storage = table_.storage_of(slot);
  call.varies = call.varies || (storage.varies && !call.effects.reads_shape_only);
  if (!storage.unwritten || tensor.numel() == 0 || call.effects.reads_shape_only) {
    return slot;
  }
  if (!is_written) {
    call.unwritten_reads.push_back(slot);
  } else if ((call.effects.reads_what_it_writes || call.effects.is_opaque ||
              !covers_storage(tensor)) &&
             !frozen_.is_fresh(storage)) {
    frozen_.freeze_allocation(storage);  // now: the operator is about to change the bytes
  }
  return slot;
}

void Recorder::read_results(RecordedCall& call, c10::ArrayRef<c10::IValue> values) {
  for (const c10::IValue& value : values) {
    call.results.push_back(read_result(call, value));
  }
}

Result Recorder::read_result(const RecordedCall& call, const c10::IValue& value) {
  if (value.isTensor()) {
    return Result::tensor_of(add_result(call, value.toTensor()));
  }
  if (value.isTensorList()) {
    Result result{Argument::Kind::TensorList, c10::IValue(), {}};
    for (const c10::IValue& item : value.toListRef()) {
      result.slots.push_back(add_result(call, item.toTensor()));
    }
    return result;
  }
  return Result::constant_of(value);
}

SlotId Recorder::add_result(const RecordedCall& call, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return kNoTensor;
  }
  object_to_layout_of_result(tensor, call.name);
  const SlotId known = table_.find(tensor);
  if (known != kNoTensor) {
    return known;
  }
  object_to_device(tensor, "a result of " + call.name, device_);
  const SlotId slot = table_.add(SlotKind::Produced, tensor);
  KnownStorage& storage = table_.storage_of(slot);
  storage.varies = storage.varies || (call.varies && storage.slots.size() == 1);
  if (call.effects.allocates && storage.slots.size() == 1) {
    storage.unwritten = tensor.storage();
    storage.allocation = program_.instructions.size();
    frozen_.mark_fresh(tensor);
  }
  return slot;
}

// transpose_, squeeze_ …: no byte changes, and at a replay the tensor object is another one each
// time. What follows gets the changed view of the same memory instead.
void Recorder::append_view_change(const RecordedCall& call, const at::Tensor& changed) {
  if (table_.find(changed) == kNoTensor) {
    writer_.append_as_strided(call.arguments[0].slots[0], changed);
  }
}

// Fresh memory that something reads was filled by host code through a pointer.
void Recorder::freeze_unwritten(const RecordedCall& call) {
  for (const SlotId slot : call.unwritten_reads) {
    KnownStorage& storage = table_.storage_of(slot);
    const auto is_view = [&](const Result& result) {
      return std::any_of(result.slots.begin(), result.slots.end(), [&](SlotId id) {
        return id != kNoTensor && &table_.storage_of(id) == &storage && !contains(call.writes, id);
      });
    };
    if (storage.unwritten && std::none_of(call.results.begin(), call.results.end(), is_view)) {
      frozen_.freeze_allocation(storage);
    }
  }
}

void Recorder::mark_written(const RecordedCall& call) {
  for (const SlotId slot : call.writes) {
    KnownStorage& storage = table_.storage_of(slot);
    if (storage.kind == SlotKind::Constant) {
      throw Objection{
          "wrote with " + call.name + " into a tensor that was made outside of the step",
          "make it a buffer of the model, or state of the optimizer or callback"};
    }
    storage.unwritten = c10::Storage();
    storage.varies = storage.varies || call.varies;
  }
}

SlotId Recorder::use(const at::Tensor& tensor, const std::string& what) {
  if (!tensor.defined()) {
    return kNoTensor;
  }
  object_to_layout(tensor, what);
  const SlotId slot = table_.find(tensor);
  if (slot != kNoTensor) {
    return slot;
  }
  object_to_device(tensor, what, device_);
  return use_unknown(tensor, what);
}

SlotId Recorder::use_unknown(const at::Tensor& tensor, const std::string& what) {
  KnownStorage* const storage = table_.find_storage(tensor);
  const bool is_number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  if (is_number || (storage != nullptr && storage->kind == SlotKind::Constant)) {
    return frozen_.freeze(tensor);
  }
  if (storage == nullptr || storage->kind == SlotKind::Captured) {
    return use_outside(tensor, what);
  }
  const SlotId root = storage->slots[0];
  if (program_.slots[static_cast<size_t>(root)].dtype != tensor.scalar_type()) {
    throw Objection{"used as " + what + " memory of the step under another dtype",
                    "convert it with Tensor.view(dtype)"};
  }
  writer_.append_as_strided(root, tensor);
  return table_.find(tensor);
}

// A tensor that the step did not make: its state, or a number of the host, or a mistake.
SlotId Recorder::use_outside(const at::Tensor& tensor, const std::string& what) {
  const Unrecorded scope;
  if (auto entry = state_.find(tensor)) {
    const SlotId slot = table_.add(SlotKind::Captured, tensor, entry->first);
    shared_.add_state(entry->first, slot, tensor);
    program_.slots[static_cast<size_t>(slot)].value = std::move(entry->second);
    return slot;
  }
  object_to_outside(tensor, what);
  return frozen_.freeze(tensor);
}

SlotId Recorder::use_after_step(const at::Tensor& tensor, const std::string& what) {
  const SlotId slot = use(tensor, what);
  if (slot == kNoTensor) {
    throw Objection{"gave an undefined tensor as " + what, "leave it out"};
  }
  read_after_step_.push_back(slot);
  return slot;
}

void Recorder::refuse(const Objection& objection) {
  if (refuse_strays()) {
    return;  // what is not known may come from there
  }
  const std::string where = call_ == nullptr ? "" : writer_.place_of(*call_);
  refusal_ = Refusal{to_string(writer_.location()) + " " + objection.what + where + " while step " +
                         program_.name + " was captured",
                     objection.advice};
}

bool Recorder::refuse_strays() {
  const StrayOperators strays = stray_operators();
  if (strays.count == strays_before_) {
    return false;
  }
  refusal_ = Refusal{"operator " + strays.newest + " ran on another thread while step " +
                         program_.name + " was captured",
                     "a step runs on one thread"};
  return true;
}

RecordingScope::RecordingScope(Recorder& recorder)
    : before_(exchange_recorder(&recorder)),
      include_(c10::DispatchKeySet({c10::DispatchKey::Fake, kWholeComposites})) {}

RecordingScope::~RecordingScope() {
  exchange_recorder(before_);
}

}  // namespace rondo
