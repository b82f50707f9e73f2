#include "backends/recording/recorder.h"

#include <algorithm>
#include <set>
#include <utility>

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include "backends/program/guards.h"
#include "backends/recording/dispatcher.h"
#include "backends/recording/recording_rules.h"
#include "backends/recording/whole_composites.h"
#include "backends/scoped.h"

namespace rondo {

namespace {

// Below autograd and out of the recording: what the recorder itself does with tensors.
struct Unrecorded {
  c10::impl::ExcludeDispatchKeyGuard recording{c10::DispatchKey::Fake};
  at::AutoDispatchBelowADInplaceOrView autograd;
};

c10::OperatorHandle operator_named(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

std::string describe(const at::Tensor& tensor) {
  return at::toString(tensor.scalar_type()) + c10::str(tensor.sizes());
}

bool contains(const std::vector<SlotId>& slots, SlotId slot) {
  return std::find(slots.begin(), slots.end(), slot) != slots.end();
}

}  // namespace

// One operator on its way through the recorder.
struct Recorder::Call {
  Call(const c10::OperatorHandle& handle, c10::ArrayRef<c10::IValue> given)
      : op(handle),
        values(given),
        name(operator_name(handle)),
        effects(effects_of(handle)),
        varies(!effects.follows_from_arguments) {}

  c10::OperatorHandle op;
  c10::ArrayRef<c10::IValue> values;  // the arguments, until it runs
  enum class Progress { Waits, Runs, HasRun } progress = Progress::Waits;
  std::string name;
  OperatorEffects effects;
  std::vector<Argument> arguments;
  std::vector<Result> results;
  std::vector<SlotId> writes;
  std::vector<SlotId> unwritten_reads;              // of fresh memory
  std::vector<std::pair<SlotId, at::Tensor>> lent;  // to an operator that may do anything
  bool varies;                                      // what it gives, from step to step
};

Recorder::Recorder(std::string step,
                   const Batch& batch,
                   std::function<CapturedState()> state,
                   bool may_guard)
    : table_(program_.slots),
      state_(std::move(state)),
      may_guard_(may_guard),
      strays_before_(stray_operators().count) {
  program_.name = std::move(step);
  for (const auto& [name, tensor] : batch.items()) {
    if (tensor.defined() && tensor.has_storage() && table_.find(tensor) == kNoTensor) {
      const SlotId input = table_.add(SlotKind::Input, tensor, name);
      inputs_.emplace_back(input, tensor.storage());
      if (const auto entry = state_.find(tensor)) {
        shared_.push_back({entry->first, input, input});
      }
    }
  }
}

void Recorder::set_location(std::string_view callback, std::string_view hook) {
  auto& known = program_.locations;
  const auto place = std::find_if(known.begin(), known.end(), [&](const Location& location) {
    return location.callback == callback && location.hook == hook;
  });
  location_ = static_cast<int32_t>(place - known.begin());
  if (place == known.end()) {
    known.push_back({std::string(callback), std::string(hook)});
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
    refuse_strays();
    refuse_written_shared_memory();
    for (const auto& [name, tensor] : outputs.items()) {
      program_.outputs.emplace_back(name, use_after_step(tensor, "output \"" + name + "\""));
    }
    for (const SlotId slot : read_after_step_) {
      if (table_.storage_of(slot).unwritten) {
        freeze_allocation(table_.storage_of(slot));
      }
    }
  });
  if (refusal_) {
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
    work();
  } catch (const Refused&) {
  } catch (const std::exception& error) {
    if (call_ != nullptr && call_->progress == Call::Progress::Runs) {
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
  Call call(op, torch::jit::last(stack, op.schema().arguments().size()));
  const Scoped<const Call*> current(call_, &call);
  unless_refused([&] { record(call, keys, stack); });
  if (call.progress == Call::Progress::Waits) {
    run_unrecorded(op, keys, stack);
  }
}

void Recorder::record(Call& call, c10::DispatchKeySet keys, torch::jit::Stack& stack) {
  const c10::impl::ExcludeDispatchKeyGuard unrecorded(c10::DispatchKey::Fake);
  // A number that the host made, of a shape for instance, is no data of the step.
  // What the host makes of it is in the program, and captures compare that.
  if (reads_number_of_host(call)) {
    read_arguments(call, call.values);
    freeze_unwritten(call);
    return;
  }
  if (const auto objection = objection_to(call.op, call.effects, call.values, table_)) {
    refuse(objection->what, objection->advice);
  }
  const bool is_read_by_host = is_read(call.op, call.effects, call.values, table_);
  if (call.effects.is_ignored || (call.effects.reads_host && !is_read_by_host)) {
    return;
  }
  if (is_read_by_host) {
    refuse_what_cannot_be_undone(call);
  }
  const bool is_by_mask = is_indexed_by_mask(call.op, call.values);
  read_arguments(call, call.values);
  if (is_read_by_host) {
    refuse_constants(call);
  }
  const size_t bytes_before =
      call.effects.changes_view_only ? call.values[0].toTensor().storage().nbytes() : 0;
  call.progress = Call::Progress::Runs;
  run_unrecorded(call.op, keys, stack);
  call.progress = Call::Progress::HasRun;
  if (call.effects.changes_view_only) {
    const at::Tensor& changed = stack.back().toTensor();
    if (changed.storage().nbytes() != bytes_before) {
      refuse("gave a tensor more memory (" + call.name + ")", "make a new tensor instead");
    }
    append_view_change(call, changed);
    return;
  }
  refuse_changed(call);
  read_results(call, torch::jit::last(stack, call.op.schema().returns().size()));
  if (is_by_mask) {
    call.op = operator_named(kIndexByMask);
  }
  if (const auto read = take_over_batch_count(program_, call.op, call.arguments)) {
    drop_instruction(*read);
  }
  append(call);
}

// A replay could not repeat it: the tensors of a plan keep their shapes and places.
void Recorder::refuse_changed(const Call& call) {
  for (const auto& [slot, tensor] : call.lent) {
    if (table_.find(tensor) != slot) {
      refuse("changed the shape or the memory of a tensor that it was given (" + call.name + ")",
             "let the operator return a new tensor instead");
    }
  }
}

// When a guard fails, what came before it is undone.
void Recorder::refuse_what_cannot_be_undone(const Call& call) {
  constexpr int64_t kMostBytes = int64_t{16} << 20;
  const std::string read = "read a tensor on the host (" + call.name + ")";
  if (!may_guard_) {
    refuse(read + ", which only plans compare", "set backend.executor = \"plan\"");
  }
  std::set<SlotId> written;
  int64_t bytes = 0;
  for (const Instruction& instruction : program_.instructions) {
    if (instruction.is_opaque) {
      refuse(read + " after " + operator_name(instruction.op) + ", which cannot be undone",
             "read it before that");
    }
    for (const SlotId id : instruction.writes) {
      if (table_.storage_of(id).kind != SlotKind::Produced && written.insert(id).second) {
        const Slot& slot = program_.slots[static_cast<size_t>(id)];
        bytes += numel(slot) * static_cast<int64_t>(c10::elementSize(slot.dtype));
      }
    }
  }
  if (bytes > kMostBytes) {
    refuse(read + " after the step had written " + std::to_string(bytes >> 20) +
               " MiB of its state, of which each replay would need a copy",
           "read it before the update");
  }
}

// A replay has a copy of what it was, and would not see it change.
void Recorder::refuse_constants(const Call& call) {
  for_each_slot(call.arguments, [&](SlotId slot) {
    if (table_.storage_of(slot).kind == SlotKind::Constant) {
      refuse("read a tensor on the host (" + call.name + ") that was made outside of the step",
             "make it a buffer of the model, or state of the optimizer or callback");
    }
  });
}

void Recorder::read_arguments(Call& call, c10::ArrayRef<c10::IValue> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    call.arguments.push_back(read_argument(call, i, values[i]));
  }
}

Argument Recorder::read_argument(Call& call, size_t index, const c10::IValue& value) {
  if (value.isTensor()) {
    return Argument::tensor_of(read_tensor(call, index, value.toTensor()));
  }
  if (value.isTensorList() || value.isOptionalTensorList()) {
    return read_tensors(call, index, value);
  }
  if (value.isGenerator()) {
    if (value.toGenerator() != at::globalContext().defaultGenerator(at::kCPU)) {
      refuse("drew random numbers from a generator of its own (" + call.name + ")",
             "its state is not part of the step: use the default generator");
    }
    return Argument::constant_of(c10::IValue());  // the default is found again at each replay
  }
  const bool is_plain =
      value.isNone() || value.isScalar() || value.isString() || value.isDevice() || value.isList();
  if (!is_plain) {
    refuse("gave " + call.name + " an argument of kind " + value.tagKind(),
           "such an argument cannot be written into a program");
  }
  return Argument::constant_of(value);
}

Argument Recorder::read_tensors(Call& call, size_t index, const c10::IValue& list) {
  Argument argument{Argument::Kind::TensorList, c10::IValue(), {}};
  for (const c10::IValue& item : list.toListRef()) {
    argument.slots.push_back(item.isNone() ? kNoTensor : read_tensor(call, index, item.toTensor()));
  }
  return argument;
}

SlotId Recorder::read_tensor(Call& call, size_t index, const at::Tensor& tensor) {
  const std::string& name = call.op.schema().arguments()[index].name();
  const SlotId slot = use(tensor, "argument \"" + name + "\" of " + call.name);
  if (slot == kNoTensor) {
    return slot;
  }
  const bool is_written = call.effects.writes[index] || call.effects.is_opaque;
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
  } else if (call.effects.reads_what_it_writes) {
    freeze_allocation(storage);  // now: the operator is about to change the bytes
  }
  return slot;
}

void Recorder::read_results(Call& call, c10::ArrayRef<c10::IValue> values) {
  for (const c10::IValue& value : values) {
    call.results.push_back(read_result(call, value));
  }
}

Result Recorder::read_result(const Call& call, const c10::IValue& value) {
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

SlotId Recorder::add_result(const Call& call, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return kNoTensor;
  }
  if (!tensor.has_storage() || tensor.layout() != at::kStrided) {
    refuse(
        "got a tensor without plain memory (sparse, or a library's own layout) from " + call.name,
        "only dense tensors can be recorded");
  }
  const SlotId known = table_.find(tensor);
  if (known != kNoTensor) {
    return known;
  }
  refuse_other_device(tensor, "a result of " + call.name);
  const SlotId slot = table_.add(SlotKind::Produced, tensor);
  KnownStorage& storage = table_.storage_of(slot);
  storage.varies = storage.varies || (call.varies && storage.slots.size() == 1);
  if (call.effects.allocates && storage.slots.size() == 1) {
    storage.unwritten = tensor.storage();
    storage.allocation = program_.instructions.size();
  }
  return slot;
}

void Recorder::append(Call& call) {
  freeze_unwritten(call);
  mark_written(call);
  Instruction instruction{
      call.op, std::move(call.arguments), std::move(call.results), std::move(call.writes)};
  instruction.draws_random = call.effects.draws_random;
  instruction.is_opaque = call.effects.is_opaque;
  instruction.is_allocation = call.effects.allocates;
  instruction.needs_grad_mode = call.effects.asks_for_grad_mode && c10::GradMode::is_enabled();
  instruction.location = location_;
  origins_.note(program_, instruction);
  program_.instructions.push_back(std::move(instruction));
}

// transpose_, squeeze_ …: no byte changes, and at a replay the tensor object is another one each
// time. What follows gets the changed view of the same memory instead.
void Recorder::append_view_change(const Call& call, const at::Tensor& changed) {
  if (table_.find(changed) == kNoTensor) {
    append_as_strided(call.arguments[0].slots[0], changed);
  }
}

void Recorder::append_as_strided(SlotId source, const at::Tensor& view) {
  const SlotId result = table_.add(SlotKind::Produced, view);
  Instruction instruction{operator_named("aten::as_strided"),
                          {Argument::tensor_of(source),
                           Argument::constant_of(view.sizes().vec()),
                           Argument::constant_of(view.strides().vec()),
                           Argument::constant_of(view.storage_offset())},
                          {Result::tensor_of(result)},
                          {}};
  instruction.location = location_;
  origins_.note(program_, instruction);
  program_.instructions.push_back(std::move(instruction));
}

// Fresh memory that something reads was filled by host code through a pointer.
void Recorder::freeze_unwritten(const Call& call) {
  for (const SlotId slot : call.unwritten_reads) {
    KnownStorage& storage = table_.storage_of(slot);
    const auto is_view = [&](const Result& result) {
      return std::any_of(result.slots.begin(), result.slots.end(), [&](SlotId id) {
        return id != kNoTensor && &table_.storage_of(id) == &storage && !contains(call.writes, id);
      });
    };
    if (storage.unwritten && std::none_of(call.results.begin(), call.results.end(), is_view)) {
      freeze_allocation(storage);
    }
  }
}

// The allocation becomes a copy of the bytes, made anew in each replay: later instructions may
// write into it.
void Recorder::freeze_allocation(KnownStorage& known) {
  const Unrecorded scope;
  const SlotId root = known.slots[0];
  const Slot slot = program_.slots[static_cast<size_t>(root)];
  const at::Tensor bytes =
      at::empty({0}, slot.dtype).set_(known.unwritten, slot.offset, slot.sizes, slot.strides);
  const SlotId constant = freeze(bytes.clone());
  Instruction& allocation = program_.instructions[known.allocation];
  allocation.op = operator_named("aten::clone");
  allocation.arguments = {Argument::tensor_of(constant), Argument::constant_of(c10::IValue())};
  allocation.is_allocation = false;
  known.unwritten = c10::Storage();
}

void Recorder::mark_written(const Call& call) {
  for (const SlotId slot : call.writes) {
    KnownStorage& storage = table_.storage_of(slot);
    if (storage.kind == SlotKind::Constant) {
      refuse("wrote with " + call.name + " into a tensor that was made outside of the step",
             "make it a buffer of the model, or state of the optimizer or callback");
    }
    storage.unwritten = c10::Storage();
    storage.varies = storage.varies || call.varies;
  }
}

void Recorder::drop_instruction(size_t place) {
  program_.instructions.erase(program_.instructions.begin() + static_cast<std::ptrdiff_t>(place));
  for (size_t i = place; i < program_.instructions.size(); ++i) {
    for_each_slot(program_.instructions[i].results, [&](SlotId slot) {
      KnownStorage& storage = table_.storage_of(slot);
      storage.allocation -= storage.unwritten && storage.allocation > place ? 1 : 0;
    });
  }
}

bool Recorder::reads_number_of_host(const Call& call) {
  return call.effects.reads_host && call.effects.gives_numbers_only &&
         call.effects.follows_from_arguments && !any_varies(call.values);
}

bool Recorder::varies(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return false;
  }
  if (!tensor.has_storage()) {
    return true;
  }
  if (const KnownStorage* const known = table_.find_storage(tensor)) {
    return known->varies;
  }
  const Unrecorded scope;
  return tensor.numel() > 1 || state_.find(tensor);  // else it will be frozen
}

bool Recorder::any_varies(c10::ArrayRef<c10::IValue> values) {
  return std::any_of(values.begin(), values.end(), [this](const c10::IValue& value) {
    if (value.isTensor()) {
      return varies(value.toTensor());
    }
    return (value.isTensorList() || value.isOptionalTensorList()) && any_varies(value.toListRef());
  });
}

SlotId Recorder::use(const at::Tensor& tensor, const std::string& what) {
  if (!tensor.defined()) {
    return kNoTensor;
  }
  if (!tensor.has_storage() || tensor.layout() != at::kStrided) {
    refuse("used a tensor without plain memory (sparse, or a library's own layout) as " + what,
           "only dense tensors can be recorded");
  }
  if (tensor.is_conj() || tensor.is_neg()) {
    refuse("used a tensor whose bytes stand for their conjugates or negatives as " + what,
           "make its values with resolve_conj or resolve_neg before the step");
  }
  const SlotId slot = table_.find(tensor);
  if (slot != kNoTensor) {
    return slot;
  }
  refuse_other_device(tensor, what);
  return use_unknown(tensor, what);
}

void Recorder::refuse_other_device(const at::Tensor& tensor, const std::string& what) {
  if (!tensor.device().is_cpu()) {
    refuse("used device " + tensor.device().str() + " for " + what,
           "steps are replayed on the CPU: keep their tensors there");
  }
}

SlotId Recorder::use_unknown(const at::Tensor& tensor, const std::string& what) {
  KnownStorage* const storage = table_.find_storage(tensor);
  const bool is_number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  if (is_number || (storage != nullptr && storage->kind == SlotKind::Constant)) {
    return freeze(tensor);
  }
  if (storage == nullptr || storage->kind == SlotKind::Captured) {
    return use_outside(tensor, what);
  }
  const SlotId root = storage->slots[0];
  if (program_.slots[static_cast<size_t>(root)].dtype != tensor.scalar_type()) {
    refuse("used as " + what + " memory of the step under another dtype",
           "convert it with Tensor.view(dtype)");
  }
  append_as_strided(root, tensor);
  return table_.find(tensor);
}

// A tensor that the step did not make: its state, or a number of the host, or a mistake.
SlotId Recorder::use_outside(const at::Tensor& tensor, const std::string& what) {
  const Unrecorded scope;
  if (auto entry = state_.find(tensor)) {
    const SlotId slot = table_.add(SlotKind::Captured, tensor, entry->first);
    note_shared_memory(entry->first, slot, tensor.storage());
    program_.slots[static_cast<size_t>(slot)].value = std::move(entry->second);
    return slot;
  }
  if (tensor.numel() > 1) {
    refuse("used as " + what + " a tensor " + describe(tensor) +
               " that was made outside of the step and is neither its batch nor its state",
           "put it into the batch, make it a buffer of the model, or make it inside the step");
  }
  return freeze(tensor);
}

void Recorder::note_shared_memory(const std::string& state,
                                  SlotId slot,
                                  const c10::Storage& storage) {
  const auto bytes_of = [&](SlotId id, const c10::Storage& in) {
    const Slot& of = program_.slots[static_cast<size_t>(id)];
    const auto* const start = static_cast<const char*>(in.data());
    const int64_t begin = of.offset * static_cast<int64_t>(c10::elementSize(of.dtype));
    return std::pair(start + begin, start + extent_of(of));
  };
  const auto [begin, end] = bytes_of(slot, storage);
  for (const auto& [input, memory] : inputs_) {
    const auto [input_begin, input_end] = bytes_of(input, memory);
    if (std::max(begin, input_begin) < std::min(end, input_end)) {
      shared_.push_back({state, slot, input});
    }
  }
}

// The program would not know that writing one changes the other, nor which of them is meant where
// they are one.
void Recorder::refuse_written_shared_memory() {
  const auto slot_at = [&](SlotId id) -> const Slot& {
    return program_.slots[static_cast<size_t>(id)];
  };
  std::set<int32_t> written;
  for (const Instruction& instruction : program_.instructions) {
    for (const SlotId slot : instruction.writes) {
      written.insert(slot_at(slot).storage);
    }
  }
  for (const SharedMemory& shared : shared_) {
    const Slot& input = slot_at(shared.input);
    if (written.count(slot_at(shared.slot).storage) + written.count(input.storage) > 0) {
      refuse("wrote state " + shared.state + " and batch entry " + input.name +
                 ", which share memory,",
             "let the data set copy what it takes from the state");
    }
  }
}

// All of its storage is copied, once: another constant, or a view, may lie elsewhere in it.
SlotId Recorder::freeze(const at::Tensor& tensor) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  const Unrecorded scope;
  if (tensor.storage().nbytes() > kMostBytes) {
    refuse("used a number of a large tensor " + describe(tensor) +
               " that was made outside of the step",
           "use a copy of the number (clone), or make the tensor a buffer of the model");
  }
  const SlotId slot = table_.add(SlotKind::Constant, tensor);
  at::Tensor& frozen = table_.storage_of(slot).frozen;
  if (!frozen.defined()) {
    frozen = at::empty({0}, at::kByte).set_(tensor.storage()).clone();
  }
  at::Tensor value =
      at::empty({0}, tensor.options())
          .set_(frozen.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
    value.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
  program_.slots[static_cast<size_t>(slot)].value = value;
  if (tensor.numel() == 1) {
    numbers_.emplace_back(tensor, value);
  }
  return slot;
}

SlotId Recorder::use_after_step(const at::Tensor& tensor, const std::string& what) {
  const SlotId slot = use(tensor, what);
  if (slot == kNoTensor) {
    refuse("gave an undefined tensor as " + what, "leave it out");
  }
  read_after_step_.push_back(slot);
  return slot;
}

void Recorder::refuse_strays() {
  const StrayOperators strays = stray_operators();
  if (strays.count != strays_before_) {
    refusal_ = Refusal{"operator " + strays.newest + " ran on another thread while step " +
                           program_.name + " was captured",
                       "a step runs on one thread"};
    throw Refused();
  }
}

void Recorder::refuse(const std::string& what, const std::string& advice) {
  refuse_strays();  // what is not known may come from there
  refusal_ = Refusal{to_string(program_.locations[static_cast<size_t>(location_)]) + " " + what +
                         (call_ == nullptr ? "" : place_of(*call_)) + " while step " +
                         program_.name + " was captured",
                     advice};
  throw Refused();
}

// ", in forward of net.0 at Net::forward (net.cpp:41)". The operator ends the recording.
std::string Recorder::place_of(const Call& call) {
  Instruction instruction{call.op, call.arguments, {}, {}};
  const auto add = [&](const c10::IValue& value) {
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().has_storage()) {
      if (const SlotId slot = table_.find(value.toTensor()); slot != kNoTensor) {
        instruction.arguments.push_back(Argument::tensor_of(slot));
      }
    }
  };
  const size_t read = call.arguments.size();
  for (size_t i = read; call.progress == Call::Progress::Waits && i < call.values.size(); ++i) {
    if (call.values[i].isTensorList() || call.values[i].isOptionalTensorList()) {
      const auto items = call.values[i].toListRef();
      std::for_each(items.begin(), items.end(), add);
    } else {
      add(call.values[i]);
    }
  }
  origins_.note(program_, instruction);
  program_.storages = table_.storages();
  program_.instructions.push_back(std::move(instruction));
  find_modules(program_);
  const Instruction& noted = program_.instructions.back();
  const std::string source = source_of(program_, noted);
  return ", in " + to_string(program_.origins[static_cast<size_t>(noted.origin)]) +
         (source.empty() ? "" : " at " + source);
}

RecordingScope::RecordingScope(Recorder& recorder)
    : before_(exchange_recorder(&recorder)),
      include_(c10::DispatchKeySet({c10::DispatchKey::Fake, kWholeComposites})) {}

RecordingScope::~RecordingScope() {
  exchange_recorder(before_);
}

}  // namespace rondo
