#include "tracing/program/step_program.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <set>
#include <sstream>

#include <c10/core/ScalarType.h>

namespace rondo {

namespace {

std::string exact(double value) {
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.17g", value);  // 17 digits name a double uniquely
  const std::string text = digits;
  // Never the text of an integer, which takes another part in type promotion.
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

template <class Items, class Text>
std::string joined(const Items& items, Text text) {
  std::string line;
  for (const auto& item : items) {
    line += (line.empty() ? "" : ", ") + text(item);
  }
  return line;
}

std::string slot_name(SlotId slot) {
  return slot == kNoTensor ? "none" : "%" + std::to_string(slot);
}

std::string argument_text(const Argument& argument) {
  switch (argument.kind) {
    case Argument::Kind::Constant:
      return to_text(argument.constant);
    case Argument::Kind::Tensor:
      return slot_name(argument.slots[0]);
    case Argument::Kind::TensorList:
      return "[" + joined(argument.slots, slot_name) + "]";
  }
  return "";
}

std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

std::string numbers(const std::vector<int64_t>& values) {
  return "[" + joined(values, [](int64_t value) { return std::to_string(value); }) + "]";
}

void write_slots(std::ostream& out, const StepProgram& program, SlotKind kind, const char* title) {
  const std::vector<bool> used = used_slots(program);
  out << title << '\n';
  for (size_t i = 0; i < program.slots.size(); ++i) {
    const Slot& slot = program.slots[i];
    if (slot.kind == kind && used[i]) {
      out << "  %" << i << ' ' << slot.name << (slot.name.empty() ? "" : ": ") << to_text(slot);
      if (kind == SlotKind::Constant && slot.value.numel() == 1) {
        out << " = " << to_text(c10::IValue(slot.value.item()));
      }
      out << '\n';
    }
  }
}

void write_instructions(std::ostream& out, const StepProgram& program) {
  out << "instructions\n";
  std::string place;
  for (const Instruction& instruction : program.instructions) {
    const Origin& origin = program.origins[static_cast<size_t>(instruction.origin)];
    std::string now = to_string(program.locations[static_cast<size_t>(instruction.location)]) +
                      ", " + to_string(origin);
    if (now != place) {
      place = std::move(now);
      out << "  # " << place << '\n';
    }
    out << "  " << to_text(instruction);
    for (const SlotId slot : instruction.writes) {
      out << " !" << slot_name(slot);
    }
    out << '\n';
  }
}

// "forward of net.0", "backward after net.0".
std::string phase_and_module(const Origin& origin) {
  const bool is_after = origin.module.compare(0, 6, "after ") == 0;
  const char* const between = origin.module.empty() ? "" : is_after ? " " : " of ";
  return std::string(to_string(origin.phase)) + between + origin.module;
}

}  // namespace

std::string operator_name(const c10::OperatorHandle& op) {
  const std::string& overload = op.schema().overload_name();
  return op.schema().name() + (overload.empty() ? "" : "." + overload);
}

c10::OperatorHandle operator_named(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

std::string to_string(const Location& location) {
  return location.callback.empty() ? "the step" : location.callback + "." + location.hook;
}

const char* to_string(StepPhase phase) {
  switch (phase) {
    case StepPhase::Forward:
      return "forward";
    case StepPhase::Backward:
      return "backward";
    case StepPhase::Update:
      return "update";
  }
  return "";
}

std::string to_string(const Origin& origin) {
  return phase_and_module(origin) + (origin.node.empty() ? "" : " (" + origin.node + ")");
}

std::string module_of(const StepProgram& program, const Instruction& instruction) {
  const Location& location = program.locations[static_cast<size_t>(instruction.location)];
  if (!location.callback.empty()) {
    return to_string(location);
  }
  return phase_and_module(program.origins[static_cast<size_t>(instruction.origin)]);
}

std::string source_of(const StepProgram& program, const Instruction& instruction) {
  const Origin& own = program.origins[static_cast<size_t>(instruction.origin)];
  return source_of(
      own.phase == StepPhase::Backward ? program.origins[static_cast<size_t>(own.forward)] : own);
}

std::string source_of(const Origin& origin) {
  // Between an operator and the code that asked for it lie the recorder and its dispatcher.
  static const std::vector<std::string> kRecording = {"rondo::Recorder::",
                                                      "void rondo::Recorder::",
                                                      "rondo::ProgramWriter::",
                                                      "rondo::OriginTracker::",
                                                      "rondo::call_stack",
                                                      "rondo::(anonymous namespace)::record("};
  return origin.script.empty() ? source_of(origin.stack, kRecording) : origin.script;
}

std::string to_text(const c10::IValue& constant) {
  if (constant.isDouble()) {
    return exact(constant.toDouble());
  }
  if (constant.isComplexDouble()) {
    const auto value = constant.toComplexDouble();
    return exact(value.real()) + "+" + exact(value.imag()) + "j";
  }
  if (constant.isString()) {
    return "\"" + constant.toStringRef() + "\"";
  }
  if (constant.isList()) {
    const c10::List<c10::IValue> list = constant.toList();
    return "[" + joined(list, [](const c10::IValue& item) { return to_text(item); }) + "]";
  }
  if (constant.isBool()) {
    return constant.toBool() ? "true" : "false";
  }
  std::ostringstream out;
  out << constant;
  return out.str();
}

std::string to_text(const Slot& slot) {
  std::string text = at::toString(slot.dtype) + numbers(slot.sizes);
  if (slot.strides != contiguous_strides(slot.sizes)) {
    text += " strides " + numbers(slot.strides);
  }
  if (!slot.device.is_cpu()) {
    text += " on " + slot.device.str();
  }
  return text + (slot.is_wrapped_number ? " number" : "");
}

std::string to_text(const Instruction& instruction) {
  std::string line;
  if (!instruction.results.empty()) {
    line = joined(instruction.results, argument_text) + " = ";
  }
  line += operator_name(instruction.op) + "(";
  for (size_t i = 0; i < instruction.arguments.size(); ++i) {
    const Argument& argument = instruction.arguments[i];
    line += i == 0 ? "" : ", ";
    if (argument.kind == Argument::Kind::Constant) {
      line += instruction.op.schema().arguments()[i].name() + "=";
    }
    line += argument_text(argument);
  }
  return line + ")";
}

std::string to_text(const StepProgram& program) {
  std::ostringstream out;
  out << "step " << program.name << '\n';
  write_slots(out, program, SlotKind::Input, "inputs");
  write_slots(out, program, SlotKind::Captured, "captured");
  write_slots(out, program, SlotKind::Constant, "constants");
  write_instructions(out, program);
  out << "outputs\n";
  for (const auto& [name, slot] : program.outputs) {
    out << "  " << name << " = " << slot_name(slot) << '\n';
  }
  out << "closures\n";
  for (const ClosureOutput& closure : program.closures) {
    out << "  " << closure.index << ": [" << joined(closure.tensors, slot_name) << "] every "
        << closure.cadence.every.to_string()
        << (closure.cadence.only_log_steps ? ", log steps only" : "") << '\n';
  }
  return out.str();
}

bool is_contiguous(const Slot& slot) {
  int64_t stride = 1;
  for (size_t d = slot.sizes.size(); d-- > 0;) {
    if (slot.sizes[d] != 1 && slot.strides[d] != stride) {
      return false;
    }
    stride *= slot.sizes[d];
  }
  return true;
}

int64_t numel(const Slot& slot) {
  int64_t count = 1;
  for (const int64_t size : slot.sizes) {
    count *= size;
  }
  return count;
}

bool is_on(const StepProgram& program, const Instruction& instruction, c10::DeviceType device) {
  bool all = true;
  const auto check = [&](SlotId slot) {
    all = all && program.slots[static_cast<size_t>(slot)].device.type() == device;
  };
  for_each_slot(instruction.arguments, check);
  for_each_slot(instruction.results, check);
  return all;
}

int64_t extent_of(const Slot& slot) {
  int64_t last = slot.offset;
  for (size_t d = 0; d < slot.sizes.size(); ++d) {
    if (slot.sizes[d] == 0) {
      return 0;
    }
    last += (slot.sizes[d] - 1) * slot.strides[d];
  }
  return (last + 1) * static_cast<int64_t>(c10::elementSize(slot.dtype));
}

bool may_share_bytes(const Slot& a, const Slot& b) {
  const auto begin_of = [](const Slot& slot) {
    return slot.offset * static_cast<int64_t>(c10::elementSize(slot.dtype));
  };
  return a.storage == b.storage && begin_of(a) < extent_of(b) && begin_of(b) < extent_of(a);
}

std::vector<int64_t> bytes_of_storages(const StepProgram& program) {
  std::vector<int64_t> bytes(static_cast<size_t>(program.storages), 0);
  for (const Slot& slot : program.slots) {
    int64_t& needed = bytes[static_cast<size_t>(slot.storage)];
    needed = std::max(needed, extent_of(slot));
  }
  return bytes;
}

std::vector<bool> used_slots(const StepProgram& program) {
  std::vector<bool> used(program.slots.size(), false);
  const auto use = [&](SlotId slot) { used[static_cast<size_t>(slot)] = true; };
  for (const Instruction& instruction : program.instructions) {
    for_each_slot(instruction.arguments, use);
    for_each_slot(instruction.results, use);
  }
  for (const auto& output : program.outputs) {
    use(output.second);
  }
  for (const ClosureOutput& closure : program.closures) {
    std::for_each(closure.tensors.begin(), closure.tensors.end(), use);
  }
  return used;
}

SlotId written_input(const StepProgram& program) {
  std::vector<bool> is_written(static_cast<size_t>(program.storages));
  for (const Instruction& instruction : program.instructions) {
    for (const SlotId slot : instruction.writes) {
      is_written[static_cast<size_t>(program.slots[static_cast<size_t>(slot)].storage)] = true;
    }
  }
  for (size_t i = 0; i < program.slots.size(); ++i) {
    const Slot& slot = program.slots[i];
    if (slot.kind == SlotKind::Input && is_written[static_cast<size_t>(slot.storage)]) {
      return static_cast<SlotId>(i);
    }
  }
  return kNoTensor;
}

int64_t captured_bytes(const StepProgram& program) {
  const std::vector<bool> used = used_slots(program);
  std::set<int32_t> counted;
  int64_t bytes = 0;
  for (size_t i = 0; i < program.slots.size(); ++i) {
    const Slot& slot = program.slots[i];
    if (slot.kind == SlotKind::Captured && used[i] && counted.insert(slot.storage).second) {
      bytes += static_cast<int64_t>(slot.value.storage().nbytes());
    }
  }
  return bytes;
}

int64_t peak_of_results(const StepProgram& program) {
  constexpr size_t kNever = static_cast<size_t>(-1);
  const size_t end = program.instructions.size();
  std::vector<size_t> first(static_cast<size_t>(program.storages), kNever);
  std::vector<size_t> last(first.size(), 0);
  const auto touch = [&](SlotId id, size_t moment) {
    const auto storage = static_cast<size_t>(program.slots[static_cast<size_t>(id)].storage);
    first[storage] = std::min(first[storage], moment);
    last[storage] = moment;
  };
  for (size_t i = 0; i < end; ++i) {
    for_each_slot(program.instructions[i].arguments, [&](SlotId slot) { touch(slot, i); });
    for_each_slot(program.instructions[i].results, [&](SlotId slot) { touch(slot, i); });
  }
  std::vector<int64_t> bytes = bytes_of_storages(program);
  for (const Slot& slot : program.slots) {
    if (slot.kind != SlotKind::Produced) {
      bytes[static_cast<size_t>(slot.storage)] = 0;  // views of it are no new memory
    }
  }
  std::vector<int64_t> changes(end + 1, 0);
  for (size_t storage = 0; storage < first.size(); ++storage) {
    if (first[storage] != kNever) {
      changes[first[storage]] += bytes[storage];
      changes[last[storage] + 1] -= bytes[storage];
    }
  }
  std::partial_sum(changes.begin(), changes.end(), changes.begin());
  return *std::max_element(changes.begin(), changes.end());
}

}  // namespace rondo
