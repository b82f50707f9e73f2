#include "tracing/program/program_file.h"

#include <ATen/core/List.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "tracing/program/arguments.h"
#include "tracing/program/program_checks.h"

namespace rondo {

namespace {

void require(bool holds, const char* what) {
  if (!holds) {
    throw CheckpointError(what);
  }
}

/// \param end  behind the largest
void require_range(const char* what, int64_t value, int64_t least, int64_t end) {
  if (value < least || value >= end) {
    throw CheckpointError(
        fmt::format("{} {}, expected one from {} to {}", what, value, least, end - 1));
  }
}

template <class Number>
StateList list_of(const std::vector<Number>& numbers) {
  StateList list;
  for (const Number number : numbers) {
    list.emplace_back(number);
  }
  return list;
}

template <class Integer>
std::vector<Integer> numbers_in(const StateValue& value) {
  std::vector<Integer> numbers;
  for (const StateValue& item : value.as_list()) {
    numbers.push_back(static_cast<Integer>(item.as_int()));
  }
  return numbers;
}

/// A constant argument as {kind: value}; nothing for one that has no such form.
StateDict constant_state(const c10::IValue& value, const std::string& op) {
  if (value.isNone()) {
    return {{"none", StateValue()}};
  }
  if (value.isBool()) {
    return {{"bool", value.toBool()}};
  }
  if (value.isInt()) {
    return {{"int", value.toInt()}};
  }
  if (value.isDouble()) {
    return {{"float", value.toDouble()}};
  }
  if (value.isString()) {
    return {{"text", value.toStringRef()}};
  }
  if (value.isDevice() && value.toDevice().is_cpu()) {
    return {{"device", "cpu"}};
  }
  if (value.isIntList()) {
    return {{"ints", list_of(value.toIntVector())}};
  }
  if (value.isDoubleList()) {
    return {{"floats", list_of(value.toDoubleVector())}};
  }
  if (value.isBoolList()) {
    return {{"bools", list_of(value.toBoolList().vec())}};
  }
  throw NotSupportedError(
      fmt::format("the step calls {} with an argument of kind {}, which cannot be exported",
                  op,
                  value.tagKind()));
}

c10::IValue constant_from(const StateDict& state) {
  require(state.size() == 1, "a constant without a kind");
  const auto& [kind, value] = state.items().front();
  if (kind == "none") {
    return {};
  }
  if (kind == "bool") {
    return value.as_bool();
  }
  if (kind == "int") {
    return value.as_int();
  }
  if (kind == "float") {
    return value.as_double();
  }
  if (kind == "text") {
    return value.as_string();
  }
  if (kind == "device") {
    return c10::Device(c10::kCPU);
  }
  if (kind == "ints") {
    return numbers_in<int64_t>(value);
  }
  if (kind == "floats") {
    c10::List<double> items;
    for (const StateValue& item : value.as_list()) {
      items.push_back(item.as_double());
    }
    return items;
  }
  require(kind == "bools", "a constant of an unknown kind");
  c10::List<bool> items;
  for (const StateValue& item : value.as_list()) {
    items.push_back(item.as_bool());
  }
  return items;
}

std::vector<int64_t> wide(const std::vector<SlotId>& slots) {
  return {slots.begin(), slots.end()};
}

StateDict argument_state(const Argument& argument, const std::string& op) {
  switch (argument.kind) {
    case Argument::Kind::Constant:
      return constant_state(argument.constant, op);
    case Argument::Kind::Tensor:
      return {{"tensor", static_cast<int64_t>(argument.slots[0])}};
    case Argument::Kind::TensorList:
      break;
  }
  return {{"tensors", list_of(wide(argument.slots))}};
}

StateList arguments_state(const std::vector<Argument>& arguments, const std::string& op) {
  StateList list;
  for (const Argument& argument : arguments) {
    list.emplace_back(argument_state(argument, op));
  }
  return list;
}

/// The name of a captured tensor in `state`; another one when it stands for another tensor.
std::string name_in(ProgramState& state, const Slot& slot) {
  std::string name = slot.name;
  for (int number = 2;; ++number) {
    const auto [place, is_new] = state.emplace(name, slot.value);
    if (is_new || place->second.is_same(slot.value) ||
        (place->second.is_alias_of(slot.value) && place->second.sizes() == slot.value.sizes() &&
         place->second.strides() == slot.value.strides() &&
         place->second.storage_offset() == slot.value.storage_offset())) {
      return name;
    }
    name = slot.name + " " + std::to_string(number);
  }
}

StateDict slot_state(const Slot& slot, ProgramState& state) {
  StateDict saved{{"kind", static_cast<int64_t>(slot.kind)},
                  {"dtype", static_cast<int64_t>(slot.dtype)},
                  {"sizes", list_of(slot.sizes)},
                  {"strides", list_of(slot.strides)},
                  {"offset", slot.offset},
                  {"storage", static_cast<int64_t>(slot.storage)}};
  if (slot.is_wrapped_number) {
    saved.set("number", true);
  }
  if (slot.kind == SlotKind::Captured) {
    saved.set("name", name_in(state, slot));
  } else if (!slot.name.empty()) {
    saved.set("name", slot.name);
  }
  if (slot.kind == SlotKind::Constant) {
    saved.set("value", slot.value.detach());
  }
  return saved;
}

c10::OperatorHandle operator_named(const std::string& name, const std::string& overload) {
  const auto found = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!found) {
    throw NotSupportedError(fmt::format(
        "the step needs the operator {}{}{}, which this program does not have: load the library "
        "that registers it first",
        name,
        overload.empty() ? "" : ".",
        overload));
  }
  return *found;
}

/// Reads one program, and checks while it does.
class Reader {
 public:
  Reader(const StateDict& saved, const ProgramState& state) : saved_(saved), state_(state) {}

  StepProgram read() {
    try {
      read_all();
    } catch (const CheckpointError& error) {
      throw CheckpointError(fmt::format("not a step that rondo exported: program \"{}\": {}{}",
                                        program_.name,
                                        place_,
                                        error.what()));
    }
    return std::move(program_);
  }

 private:
  void read_all() {
    program_.name = saved_.at("name").as_string();
    const int64_t storages = saved_.at("storages").as_int();
    const StateList& slots = saved_.at("slots").as_list();
    require_range("number of storages", storages, 0, static_cast<int64_t>(slots.size()) + 1);
    program_.storages = static_cast<int32_t>(storages);
    for (const StateValue& slot : slots) {
      look_at("tensor", program_.slots.size());
      program_.slots.push_back(read_slot(slot.as_dict()));
    }
    for (const StateValue& instruction : saved_.at("instructions").as_list()) {
      look_at("instruction", program_.instructions.size());
      program_.instructions.push_back(read_instruction(instruction.as_dict()));
    }
    for (const StateValue& output : saved_.at("outputs").as_list()) {
      look_at("output", program_.outputs.size());
      const StateList& pair = output.as_list();
      require(pair.size() == 2, "expected a name and a tensor");
      program_.outputs.emplace_back(pair[0].as_string(), slot_id(pair[1].as_int(), false));
    }
    place_.clear();
    for (const StateValue& name : saved_.at("host_calls").as_list()) {
      program_.host_calls.push_back(name.as_string());
    }
    check_program(program_);
  }

  /// What is read, or checked, from here on: for messages.
  void look_at(const char* what, size_t number) { place_ = fmt::format("{} {}: ", what, number); }

  Slot read_slot(const StateDict& saved) const {
    Slot slot;
    const int64_t kind = saved.at("kind").as_int();
    const int64_t dtype = saved.at("dtype").as_int();
    require_range("kind", kind, 0, static_cast<int64_t>(SlotKind::Produced) + 1);
    if (dtype != static_cast<int64_t>(at::ScalarType::BFloat16)) {
      require_range("dtype", dtype, 0, static_cast<int64_t>(at::ScalarType::QInt8));
    }
    slot.kind = static_cast<SlotKind>(kind);
    slot.dtype = static_cast<at::ScalarType>(dtype);
    slot.sizes = numbers_in<int64_t>(saved.at("sizes"));
    slot.strides = numbers_in<int64_t>(saved.at("strides"));
    slot.offset = saved.at("offset").as_int();
    const int64_t storage = saved.at("storage").as_int();
    require_range("storage", storage, 0, program_.storages);
    slot.storage = static_cast<int32_t>(storage);
    slot.is_wrapped_number = saved.contains("number");
    if (const StateValue* name = saved.find("name")) {
      slot.name = name->as_string();
    }
    check_extent(slot);
    fill(slot, saved);
    return slot;
  }

  static void check_extent(const Slot& slot) {
    constexpr int64_t kMost = int64_t{1} << 40;  // elements; more are a mistake
    require_range("number of sizes", static_cast<int64_t>(slot.sizes.size()), 0, 65);
    require(slot.sizes.size() == slot.strides.size(), "it has not one stride for each size");
    require_range("offset", slot.offset, 0, kMost);
    int64_t last = slot.offset;
    for (size_t d = 0; d < slot.sizes.size(); ++d) {
      require_range("size", slot.sizes[d], 0, kMost);
      require_range("stride", slot.strides[d], 0, kMost / std::max<int64_t>(slot.sizes[d], 1) + 1);
      last += std::max<int64_t>(slot.sizes[d] - 1, 0) * slot.strides[d];
      require_range("place of the last element", last, 0, kMost);
    }
  }

  void fill(Slot& slot, const StateDict& saved) const {
    if (slot.kind == SlotKind::Captured) {
      const auto found = state_.find(slot.name);
      require(found != state_.end(), "the state has no tensor of its name");
      slot.value = found->second;
    } else if (slot.kind == SlotKind::Constant) {
      slot.value = saved.at("value").as_tensor();
    }
    if (slot.value.defined()) {
      require(slot.value.scalar_type() == slot.dtype && slot.value.sizes() == slot.sizes &&
                  (slot.value.numel() <= 1 || slot.value.strides() == slot.strides),
              "its value has another shape or dtype than the program says");
      if (slot.is_wrapped_number) {
        require(slot.value.dim() == 0, "a number has dimensions");
        slot.value.unsafeGetTensorImpl()->set_wrapped_number(true);
      }
    }
  }

  SlotId slot_id(int64_t id, bool may_be_none) const {
    require_range("number of a tensor",
                  id,
                  may_be_none ? kNoTensor : 0,
                  static_cast<int64_t>(program_.slots.size()));
    return static_cast<SlotId>(id);
  }

  Argument read_argument(const StateDict& saved) const {
    Argument argument;
    if (const StateValue* tensor = saved.find("tensor")) {
      return Argument::tensor_of(slot_id(tensor->as_int(), true));
    }
    const StateValue* tensors = saved.find("tensors");
    if (tensors == nullptr) {
      return Argument::constant_of(constant_from(saved));
    }
    argument.kind = Argument::Kind::TensorList;
    for (const int64_t id : numbers_in<int64_t>(*tensors)) {
      argument.slots.push_back(slot_id(id, true));
    }
    return argument;
  }

  Instruction read_instruction(const StateDict& saved) const {
    Instruction instruction{
        operator_named(saved.at("op").as_string(), saved.at("overload").as_string()), {}, {}, {}};
    for (const StateValue& argument : saved.at("arguments").as_list()) {
      instruction.arguments.push_back(read_argument(argument.as_dict()));
    }
    for (const StateValue& result : saved.at("results").as_list()) {
      instruction.results.push_back(read_argument(result.as_dict()));
    }
    const c10::FunctionSchema& schema = instruction.op.schema();
    require(instruction.arguments.size() == schema.arguments().size() &&
                instruction.results.size() == schema.returns().size(),
            "it has other arguments or results than its operator takes");
    for (const int64_t id : numbers_in<int64_t>(saved.at("writes"))) {
      instruction.writes.push_back(slot_id(id, false));
    }
    instruction.draws_random = saved.contains("draws_random");
    instruction.is_opaque = saved.contains("is_opaque");
    instruction.is_allocation = saved.contains("is_allocation");
    instruction.needs_grad_mode = saved.contains("needs_grad_mode");
    return instruction;
  }

  const StateDict& saved_;
  const ProgramState& state_;
  StepProgram program_;
  std::string place_;  // "tensor 17: "
};

StateDict instruction_state(const Instruction& instruction) {
  const std::string op = operator_name(instruction.op);
  StateDict saved{{"op", instruction.op.schema().name()},
                  {"overload", instruction.op.schema().overload_name()},
                  {"arguments", arguments_state(instruction.arguments, op)},
                  {"results", arguments_state(instruction.results, op)},
                  {"writes", list_of(wide(instruction.writes))}};
  for (const auto& [name, is_set] : {std::pair("draws_random", instruction.draws_random),
                                     std::pair("is_opaque", instruction.is_opaque),
                                     std::pair("is_allocation", instruction.is_allocation),
                                     std::pair("needs_grad_mode", instruction.needs_grad_mode)}) {
    if (is_set) {
      saved.set(name, true);
    }
  }
  return saved;
}

}  // namespace

StateDict to_state(const StepProgram& program, ProgramState& state) {
  StateList slots;
  const std::vector<bool> used = used_slots(program);
  for (size_t i = 0; i < program.slots.size(); ++i) {
    Slot slot = program.slots[i];
    if (!used[i] && slot.kind != SlotKind::Input) {
      slot.kind = SlotKind::Produced;  // nothing reads it: its bytes need not be saved
      slot.value = at::Tensor();
    }
    slots.emplace_back(slot_state(slot, state));
  }
  StateList instructions;
  for (const Instruction& instruction : program.instructions) {
    instructions.emplace_back(instruction_state(instruction));
  }
  StateList outputs;
  for (const auto& [name, slot] : program.outputs) {
    outputs.emplace_back(StateList{name, static_cast<int64_t>(slot)});
  }
  return {{"name", program.name},
          {"storages", static_cast<int64_t>(program.storages)},
          {"slots", slots},
          {"instructions", instructions},
          {"outputs", outputs},
          {"host_calls", StateList(program.host_calls.begin(), program.host_calls.end())}};
}

StepProgram program_from(const StateDict& saved, const ProgramState& state) {
  return Reader(saved, state).read();
}

}  // namespace rondo
