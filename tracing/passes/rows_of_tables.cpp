#include <optional>
#include <utility>

#include "tracing/kernels/recurrent/lstm_arguments.h"
#include "tracing/passes/passes.h"
#include "tracing/program/arguments.h"
#include "tracing/program/storages.h"

namespace rondo {

namespace {

// Of aten::embedding: (table, numbers, padding, scale by frequency, sparse).
constexpr size_t kTable = 0;
constexpr size_t kNumbers = 1;
constexpr size_t kPadding = 2;
constexpr size_t kScales = 3;
constexpr size_t kIsSparse = 4;

// Of aten::embedding_dense_backward: (gradient, numbers, rows, padding, scale by frequency).
constexpr size_t kGradient = 0;
constexpr size_t kRows = 2;
constexpr size_t kPaddingOfGradient = 3;
constexpr size_t kScalesGradient = 4;

/// How a layer's inputs, [steps, batch], lie among the numbers that were looked up.
struct Order {
  int64_t step;      ///< numbers from one step to the next
  int64_t sequence;  ///< the same of sequences
};

/// The gradient of a layer whose inputs were looked up in a table, by number of the instructions.
struct Gradient {
  size_t of_layer;
  size_t look_up;
  size_t of_table;
  Order order;
};

bool is_contiguous_matrix(const Slot& slot) {
  return slot.sizes.size() == 2 && slot.strides[1] == 1 && slot.strides[0] == slot.sizes[1];
}

class Finder {
 public:
  explicit Finder(const StepProgram& program) : program_(program), facts_(program) {}

  std::optional<Gradient> first() const {
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      if (has_name(program_.instructions[i], "rondo::lstm_layer_backward")) {
        if (const auto found = at_gradient(i)) {
          return found;
        }
      }
    }
    return std::nullopt;
  }

 private:
  std::optional<Gradient> at_gradient(size_t of_layer) const {
    const Instruction& gradient = program_.instructions[of_layer];
    const Slot* const x = slot_at(program_, gradient.arguments, lstm_backward::X);
    const Slot* const dx = slot_at(program_, gradient.results, 0);
    if (!is_plain_float(x) || x->sizes.size() != 3 || !is_plain_float(dx)) {
      return std::nullopt;
    }
    const Slot& looked_up = before_copy(*x, id_at(gradient.arguments, lstm_backward::X));
    const auto look_up = maker_of(looked_up);
    const auto of_table = only_reader(*dx, of_layer);
    if (!look_up || !of_table) {
      return std::nullopt;
    }
    const auto order = order_of(looked_up, program_.instructions[*look_up]);
    const Gradient found = {of_layer, *look_up, *of_table, order.value_or(Order())};
    const bool fits = order && are_of_one_table(found, *x) && comes_back_in(*order, found, *x) &&
                      are_unwritten(found);
    return fits ? std::optional(found) : std::nullopt;
  }

  /// What a tensor is a copy of, in another order; the tensor itself, if it is none.
  const Slot& before_copy(const Slot& slot, SlotId id) const {
    const auto maker = maker_of(slot);
    const bool is_copy = maker && has_name(program_.instructions[*maker], "aten::clone") &&
                         id_at(program_.instructions[*maker].results, 0) == id &&
                         facts_.writes[static_cast<size_t>(slot.storage)].empty();
    return is_copy ? slot_of(program_, id_at(program_.instructions[*maker].arguments, 0)) : slot;
  }

  /// The instruction that made the memory of a tensor.
  std::optional<size_t> maker_of(const Slot& slot) const {
    const auto storage = static_cast<size_t>(slot.storage);
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const Instruction& instruction = program_.instructions[i];
      if (any_in_storage(program_, instruction.results, storage) &&
          !any_in_storage(program_, instruction.arguments, storage)) {
        return i;
      }
    }
    return std::nullopt;
  }

  /// The one instruction that reads a result of `maker`, views of it aside.
  std::optional<size_t> only_reader(const Slot& made, size_t maker) const {
    const auto storage = static_cast<size_t>(made.storage);
    if (facts_.escapes[storage] || !facts_.writes[storage].empty()) {
      return std::nullopt;
    }
    std::optional<size_t> reader;
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const Instruction& instruction = program_.instructions[i];
      if (i == maker || !any_in_storage(program_, instruction.arguments, storage) ||
          any_in_storage(program_, instruction.results, storage)) {
        continue;
      }
      if (reader || !has_name(instruction, "aten::embedding_dense_backward")) {
        return std::nullopt;
      }
      reader = i;
    }
    return reader;
  }

  /// None where the tensor is not all that was looked up.
  std::optional<Order> order_of(const Slot& inputs, const Instruction& look_up) const {
    if (!has_name(look_up, "aten::embedding")) {
      return std::nullopt;
    }
    const Slot* const numbers = slot_at(program_, look_up.arguments, kNumbers);
    const Slot* const rows = slot_at(program_, look_up.results, 0);
    if (numbers == nullptr || numbers->dtype != at::kLong || !is_contiguous_matrix(*numbers) ||
        !is_plain_float(rows) || rows->offset != 0 || inputs.offset != 0 ||
        inputs.sizes.size() != 3 || inputs.strides[2] != 1) {
      return std::nullopt;
    }
    const int64_t width = inputs.sizes[2];
    const int64_t steps = inputs.sizes[0];
    const int64_t batch = inputs.sizes[1];
    const bool steps_first = inputs.strides[0] == batch * width && inputs.strides[1] == width;
    const bool batch_first = inputs.strides[0] == width && inputs.strides[1] == steps * width;
    const std::vector<int64_t> sizes =
        steps_first ? std::vector<int64_t>{steps, batch} : std::vector<int64_t>{batch, steps};
    if ((!steps_first && !batch_first) || numbers->sizes != sizes) {
      return std::nullopt;
    }
    return steps_first ? Order{batch, 1} : Order{1, steps};
  }

  /// Whether the gradient is that of the table, and adding up for each row of it is less work.
  bool are_of_one_table(const Gradient& found, const Slot& x) const {
    constexpr int64_t kLessWork = 4;
    const Instruction& look_up = program_.instructions[found.look_up];
    const Instruction& of_table = program_.instructions[found.of_table];
    const Slot* const table = slot_at(program_, look_up.arguments, kTable);
    const Slot* const dtable = slot_at(program_, of_table.results, 0);
    return is_plain_float(table) && is_plain_float(dtable) && dtable->sizes == table->sizes &&
           table->sizes.size() == 2 && table->sizes[1] == x.sizes[2] &&
           table->sizes[0] * kLessWork <= x.sizes[0] * x.sizes[1] &&
           look_up.arguments[kNumbers].slots == of_table.arguments[kNumbers].slots &&
           is_integer(look_up.arguments[kPadding]) &&
           is_constant(of_table.arguments[kPaddingOfGradient],
                       static_cast<double>(look_up.arguments[kPadding].constant.toInt())) &&
           is_constant(of_table.arguments[kRows], static_cast<double>(table->sizes[0])) &&
           is_constant(look_up.arguments[kScales], 0) &&
           is_constant(look_up.arguments[kIsSparse], 0) &&
           is_constant(of_table.arguments[kScalesGradient], 0);
  }

  /// Whether what comes back lies among the numbers as the inputs did.
  bool comes_back_in(const Order& order, const Gradient& found, const Slot& x) const {
    const Slot* const gradient =
        slot_at(program_, program_.instructions[found.of_table].arguments, kGradient);
    const int64_t width = x.sizes[2];
    const int64_t batch = x.sizes[1];
    const bool steps_first = order.sequence == 1;
    const std::vector<int64_t> strides = steps_first
                                             ? std::vector<int64_t>{batch * width, width, 1}
                                             : std::vector<int64_t>{width, batch * width, 1};
    const std::vector<int64_t> sizes =
        steps_first ? x.sizes : std::vector<int64_t>{batch, x.sizes[0], width};
    return gradient != nullptr && gradient->offset == 0 && gradient->strides == strides &&
           gradient->sizes == sizes;
  }

  /// Whether table, numbers and inputs are still what they were when the gradient is computed.
  bool are_unwritten(const Gradient& found) const {
    const Instruction& look_up = program_.instructions[found.look_up];
    const auto is_written = [&](SlotId slot) {
      return facts_.is_written(storage_of(program_, slot), found.look_up, found.of_table);
    };
    return !is_written(id_at(look_up.arguments, kTable)) &&
           !is_written(id_at(look_up.arguments, kNumbers)) &&
           !is_written(id_at(look_up.results, 0));
  }

  const StepProgram& program_;
  StorageFacts facts_;
};

/// view = numbers.as_strided(…), a part of what `by` is replaced with
Instruction view_of(const StepProgram& program,
                    SlotId numbers,
                    SlotId view,
                    const Instruction& by) {
  const Slot& slot = slot_of(program, view);
  Instruction made{c10::Dispatcher::singleton().findSchemaOrThrow("aten::as_strided", ""),
                   {Argument::tensor_of(numbers),
                    Argument::constant_of(slot.sizes),
                    Argument::constant_of(slot.strides),
                    Argument::constant_of(slot.offset)},
                   {Argument::tensor_of(view)},
                   {}};
  made.location = by.location;
  made.origin = by.origin;
  return made;
}

void replace(StepProgram& program, const Gradient& gradient) {
  const Instruction look_up = program.instructions[gradient.look_up];
  Instruction& of_layer = program.instructions[gradient.of_layer];
  const Slot x = *slot_at(program, of_layer.arguments, lstm_backward::X);
  const Slot dx = *slot_at(program, of_layer.results, 0);
  const SlotId numbers = id_at(look_up.arguments, kNumbers);

  Slot in_order = slot_of(program, numbers);
  in_order.kind = SlotKind::Produced;
  in_order.name.clear();
  in_order.value = at::Tensor();
  in_order.sizes = {x.sizes[0], x.sizes[1]};
  in_order.strides = {gradient.order.step, gradient.order.sequence};
  const auto result = static_cast<SlotId>(program.slots.size());
  program.slots.push_back(std::move(in_order));

  of_layer.op = c10::Dispatcher::singleton().findSchemaOrThrow("rondo::lstm_table_backward", "");
  of_layer.arguments[lstm_backward::X] = look_up.arguments[kTable];
  of_layer.arguments.push_back(Argument::tensor_of(result));
  of_layer.arguments.push_back(look_up.arguments[kPadding]);
  of_layer.results[0] = program.instructions[gradient.of_table].results[0];

  std::vector<bool> keep(program.instructions.size(), true);
  for (size_t i = 0; i < keep.size(); ++i) {
    keep[i] = !any_in_storage(
        program, program.instructions[i].arguments, static_cast<size_t>(dx.storage));
  }
  const Instruction view = view_of(program, numbers, result, of_layer);
  program.instructions.insert(
      program.instructions.begin() + static_cast<std::ptrdiff_t>(gradient.of_layer), view);
  keep.insert(keep.begin() + static_cast<std::ptrdiff_t>(gradient.of_layer), true);
  keep_instructions(program, keep);
}

}  // namespace

StepProgram add_up_rows_of_tables(StepProgram program) {
  while (const auto gradient = Finder(program).first()) {
    replace(program, *gradient);
  }
  return program;
}

}  // namespace rondo
