#include "tracing/recording/program_writer.h"

#include <algorithm>
#include <utility>

#include <c10/core/GradMode.h>

namespace rondo {

void ProgramWriter::set_location(std::string_view callback, std::string_view hook) {
  auto& known = program_.locations;
  const auto place = std::find_if(known.begin(), known.end(), [&](const Location& location) {
    return location.callback == callback && location.hook == hook;
  });
  location_ = static_cast<int32_t>(place - known.begin());
  if (place == known.end()) {
    known.push_back({std::string(callback), std::string(hook)});
  }
}

void ProgramWriter::append(RecordedCall& call) {
  Instruction instruction{
      call.op, std::move(call.arguments), std::move(call.results), std::move(call.writes)};
  instruction.draws_random = call.effects.draws_random;
  instruction.is_opaque = call.effects.is_opaque;
  instruction.is_allocation = call.effects.allocates;
  instruction.needs_grad_mode = call.effects.asks_for_grad_mode && c10::GradMode::is_enabled();
  append(std::move(instruction));
}

void ProgramWriter::append_as_strided(SlotId source, const at::Tensor& view) {
  const SlotId result = table_.add(SlotKind::Produced, view);
  append({operator_named("aten::as_strided"),
          {Argument::tensor_of(source),
           Argument::constant_of(view.sizes().vec()),
           Argument::constant_of(view.strides().vec()),
           Argument::constant_of(view.storage_offset())},
          {Result::tensor_of(result)},
          {}});
}

void ProgramWriter::drop_instruction(size_t place) {
  program_.instructions.erase(program_.instructions.begin() + static_cast<std::ptrdiff_t>(place));
  for (size_t i = place; i < program_.instructions.size(); ++i) {
    for_each_slot(program_.instructions[i].results, [&](SlotId slot) {
      KnownStorage& storage = table_.storage_of(slot);
      storage.allocation -= storage.unwritten && storage.allocation > place ? 1 : 0;
    });
  }
}

std::string ProgramWriter::place_of(const RecordedCall& call) {
  append(as_far_as_read(call));
  program_.storages = table_.storages();
  find_modules(program_);
  const Instruction& noted = program_.instructions.back();
  const std::string source = source_of(program_, noted);
  return ", in " + to_string(program_.origins[static_cast<size_t>(noted.origin)]) +
         (source.empty() ? "" : " at " + source);
}

void ProgramWriter::append(Instruction instruction) {
  instruction.location = location_;
  origins_.note(program_, instruction);
  program_.instructions.push_back(std::move(instruction));
}

Instruction ProgramWriter::as_far_as_read(const RecordedCall& call) const {
  Instruction instruction{call.op, call.arguments, {}, {}};
  const auto add = [&](const c10::IValue& value) {
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().has_storage()) {
      if (const SlotId slot = table_.find(value.toTensor()); slot != kNoTensor) {
        instruction.arguments.push_back(Argument::tensor_of(slot));
      }
    }
  };
  const size_t read = call.arguments.size();
  const bool has_values = call.progress == RecordedCall::Progress::Waits;
  for (size_t i = read; has_values && i < call.values.size(); ++i) {
    if (call.values[i].isTensorList() || call.values[i].isOptionalTensorList()) {
      const auto items = call.values[i].toListRef();
      std::for_each(items.begin(), items.end(), add);
    } else {
      add(call.values[i]);
    }
  }
  return instruction;
}

}  // namespace rondo
