#include "tracing/program/program_checks.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

/// A part of a program, for messages.
struct Part {
  const char* kind;
  size_t number;
};

void require(Part part, bool holds, const std::string& what) {
  if (!holds) {
    throw CheckpointError(fmt::format("{} {}: {}", part.kind, part.number, what));
  }
}

/// Nothing is read that neither is there from the beginning nor was made before.
void require_made(const StepProgram& program) {
  std::vector<bool> made(program.slots.size());
  for (size_t i = 0; i < made.size(); ++i) {
    made[i] = program.slots[i].kind != SlotKind::Produced;
  }
  const auto use = [&](SlotId slot, Part by) {
    if (!made[static_cast<size_t>(slot)]) {
      require(by, false, fmt::format("tensor {} is used before it is made", slot));
    }
  };
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    for_each_slot(program.instructions[i].arguments, [&](SlotId slot) {
      use(slot, {"instruction", i});
    });
    for_each_slot(program.instructions[i].results,
                  [&](SlotId slot) { made[static_cast<size_t>(slot)] = true; });
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    use(program.outputs[i].second, {"output", i});
  }
}

/// Gradients are as large as what they belong to, where LibTorch does not look and would write
/// beside its memory.
void require_sizes(const StepProgram& program) {
  static const std::set<std::string> kTrusting = {"aten::_log_softmax_backward_data",
                                                  "aten::_softmax_backward_data",
                                                  "aten::native_batch_norm_backward",
                                                  "aten::native_layer_norm_backward"};
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (kTrusting.count(operator_name(instruction.op)) > 0) {
      const Slot* const gradient = slot_at(program, instruction.arguments, 0);
      const Slot* const other = slot_at(program, instruction.arguments, 1);
      require({"instruction", i},
              gradient != nullptr && other != nullptr && gradient->sizes == other->sizes,
              "a gradient of another size than its tensor");
    }
  }
}

bool has_place_for_each(const Slot& slot) {
  const auto item = static_cast<int64_t>(c10::elementSize(slot.dtype));
  double bytes = static_cast<double>(item);  // there may be more than an int64_t counts
  for (const int64_t size : slot.sizes) {
    bytes *= static_cast<double>(size);
  }
  return bytes == 0.0 || static_cast<double>(extent_of(slot) - slot.offset * item) >= bytes;
}

/// A result that is no view has memory for each of its elements: LibTorch may write them row
/// after row, whatever its strides.
void require_apart(const StepProgram& program) {
  std::vector<bool> is_there(static_cast<size_t>(program.storages));
  const auto enter = [&](const Slot& slot) { is_there[static_cast<size_t>(slot.storage)] = true; };
  for (const Slot& slot : program.slots) {
    if (slot.kind != SlotKind::Produced) {
      enter(slot);
    }
  }
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    for_each_slot(program.instructions[i].results, [&](SlotId id) {
      const Slot& slot = program.slots[static_cast<size_t>(id)];
      require({"instruction", i},
              is_there[static_cast<size_t>(slot.storage)] || has_place_for_each(slot),
              "elements of a result lie in one place");
      enter(slot);
    });
  }
}

/// Every view lies in memory that is there: that of the state, of a constant, or of an input.
void require_room(const StepProgram& program) {
  struct Room {
    const at::Tensor* outside = nullptr;
    bool is_input = false;
    int64_t begin = 0;  // in bytes, as the program counts them
    int64_t end = 0;
  };

  std::vector<Room> rooms(static_cast<size_t>(program.storages));
  for (size_t i = 0; i < program.slots.size(); ++i) {
    const Slot& slot = program.slots[i];
    Room& room = rooms[static_cast<size_t>(slot.storage)];
    const auto item = static_cast<int64_t>(c10::elementSize(slot.dtype));
    if (slot.kind == SlotKind::Input) {
      require({"tensor", i},
              !room.is_input && room.outside == nullptr,
              "it shares the memory of another input");
      room = {nullptr, true, slot.offset * item, extent_of(slot)};
    } else if (slot.value.defined()) {
      require({"tensor", i},
              !room.is_input && (room.outside == nullptr || room.outside->is_alias_of(slot.value)),
              "the program says it shares memory with a tensor that lies elsewhere");
      const int64_t shift = (slot.value.storage_offset() - slot.offset) * item;
      room.outside = &slot.value;
      room.begin = -shift;
      room.end = static_cast<int64_t>(slot.value.storage().nbytes()) - shift;
    }
  }
  for (size_t i = 0; i < program.slots.size(); ++i) {
    const Slot& slot = program.slots[i];
    const Room& room = rooms[static_cast<size_t>(slot.storage)];
    const auto item = static_cast<int64_t>(c10::elementSize(slot.dtype));
    const bool is_inside = slot.offset * item >= room.begin && extent_of(slot) <= room.end;
    require({"tensor", i},
            (!room.is_input && room.outside == nullptr) || extent_of(slot) == 0 || is_inside,
            "it reaches outside of its memory");
  }
}

}  // namespace

void check_program(const StepProgram& program) {
  require_made(program);
  require_room(program);
  require_sizes(program);
  require_apart(program);
}

}  // namespace rondo
