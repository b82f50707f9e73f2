#include <algorithm>
#include <limits>
#include <optional>

#include "tracing/kernels/kernels.h"
#include "tracing/kernels/recurrent/lstm_arguments.h"
#include "tracing/kernels/recurrent/lstm_layer.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

// Sums of rows in another order.
constexpr int kUlps = 256;

using Arguments = std::vector<Argument>;

/// None where the input is no batch of sequences, or the machine cannot run it.
std::optional<LstmShape> shape_of(const Slot* x, const Slot* states) {
  if (!is_plain_float(x) || !is_plain_float(states) || x->sizes.size() != 3 ||
      states->sizes.empty()) {
    return std::nullopt;
  }
  const LstmShape shape = {x->sizes[0], x->sizes[1], x->sizes[2], states->sizes.back()};
  return can_run_lstm(shape) ? std::optional(shape) : std::nullopt;
}

/// An absent tensor counts as one that fits.
bool are_absent_or_fit(const StepProgram& program,
                       const Arguments& arguments,
                       std::initializer_list<size_t> places,
                       int64_t count) {
  return std::all_of(places.begin(), places.end(), [&](size_t i) {
    return is_none(arguments[i]) || have_floats(program, arguments, {i}, count);
  });
}

/// The numbers of a state side by side, steps and sequences anywhere.
bool are_sequences(const Slot* slot, const LstmShape& shape) {
  return slot != nullptr && slot->dtype == at::kFloat &&
         slot->sizes == std::vector<int64_t>{shape.steps, shape.batch, shape.hidden} &&
         slot->strides[2] == 1;
}

std::optional<LstmShape> shape_of_forward(const StepProgram& program,
                                          const Instruction& instruction) {
  using namespace lstm_forward;
  const Arguments& given = instruction.arguments;
  const Arguments& made = instruction.results;
  const auto shape = shape_of(slot_at(program, given, X), slot_at(program, given, States));
  const bool fits = shape &&
                    have_floats(program, given, {InputWeight}, shape->gates() * shape->inputs) &&
                    have_floats(program, given, {StateWeight}, shape->gates() * shape->hidden) &&
                    have_floats(program, given, {InputBias, StateBias}, shape->gates()) &&
                    have_floats(program, given, {States, Cells}, shape->states()) &&
                    have_floats(program, made, {Y}, shape->rows() * shape->hidden) &&
                    have_floats(program, made, {LastStates, LastCells}, shape->states()) &&
                    have_floats(program, made, {Kept}, shape->kept());
  return fits ? shape : std::nullopt;
}

/// \param inputs  numbers of the tensor in the place of X
bool fits_backward(const StepProgram& program,
                   const Instruction& instruction,
                   const LstmShape& shape,
                   int64_t inputs) {
  using namespace lstm_backward;
  const Arguments& given = instruction.arguments;
  const Arguments& made = instruction.results;
  const int64_t input_weight = shape.gates() * shape.inputs;
  const int64_t state_weight = shape.gates() * shape.hidden;
  return (is_none(given[Dy]) || are_sequences(slot_at(program, given, Dy), shape)) &&
         are_absent_or_fit(program, given, {DLastStates, DLastCells}, shape.states()) &&
         have_floats(program, given, {InputWeight}, input_weight) &&
         have_floats(program, given, {StateWeight}, state_weight) &&
         have_floats(program, given, {States, Cells}, shape.states()) &&
         have_floats(program, given, {Y}, shape.rows() * shape.hidden) &&
         have_floats(program, given, {Kept}, shape.kept()) &&
         have_floats(program, made, {Dx}, inputs) &&
         have_floats(program, made, {DInputWeight}, input_weight) &&
         have_floats(program, made, {DStateWeight}, state_weight) &&
         have_floats(program, made, {DInputBias, DStateBias}, shape.gates()) &&
         have_floats(program, made, {DStates, DCells}, shape.states());
}

std::optional<LstmShape> shape_of_backward(const StepProgram& program,
                                           const Instruction& instruction) {
  using namespace lstm_backward;
  const Arguments& given = instruction.arguments;
  const auto shape = shape_of(slot_at(program, given, X), slot_at(program, given, States));
  const bool fits =
      shape && fits_backward(program, instruction, *shape, shape->rows() * shape->inputs);
  return fits ? shape : std::nullopt;
}

std::optional<LstmShape> shape_of_table_backward(const StepProgram& program,
                                                 const Instruction& instruction) {
  using namespace lstm_backward;
  const Arguments& given = instruction.arguments;
  const Slot* const table = slot_at(program, given, X);
  const Slot* const numbers = slot_at(program, given, kNumbers);
  const Slot* const states = slot_at(program, given, States);
  if (!is_plain_float(table) || table->sizes.size() != 2 || numbers == nullptr ||
      numbers->dtype != at::kLong || numbers->sizes.size() != 2 || !is_plain_float(states) ||
      states->sizes.empty() || !is_integer(given[kPadding]) ||
      given[kPadding].constant.toInt() >= table->sizes[0] || table->sizes[0] < 1) {
    return std::nullopt;
  }
  const LstmShape shape = {
      numbers->sizes[0], numbers->sizes[1], table->sizes[1], states->sizes.back()};
  const bool fits = can_run_lstm(shape) && numel(*table) <= std::numeric_limits<int32_t>::max() &&
                    fits_backward(program, instruction, shape, numel(*table));
  return fits ? std::optional(shape) : std::nullopt;
}

/// The tensors of an instruction, where some may be absent.
class TensorsOfLayer {
 public:
  TensorsOfLayer(const Arguments& tensors, const Operands& memory) {
    for (const Argument& tensor : tensors) {
      const bool is_there = tensor.kind == Argument::Kind::Tensor && !is_none(tensor);
      places_.push_back(is_there ? std::optional(memory.operand(tensor.slots[0])) : std::nullopt);
    }
  }

  float* operator[](size_t i) const { return places_[i] ? places_[i]->as<float>() : nullptr; }

 private:
  std::vector<std::optional<Operand>> places_;
};

class LstmKernel final : public Kernel {
 public:
  LstmKernel(const LstmShape& shape, const Instruction& instruction, const Operands& memory)
      : layer_(shape), given_(instruction.arguments, memory), made_(instruction.results, memory) {}

  void run() override {
    using namespace lstm_forward;
    layer_.run({given_[X],
                given_[InputWeight],
                given_[StateWeight],
                given_[InputBias],
                given_[StateBias],
                given_[States],
                given_[Cells],
                made_[Y],
                made_[LastStates],
                made_[LastCells],
                made_[Kept]});
  }

  int64_t bytes() const override { return layer_.bytes(); }

 private:
  LstmLayer layer_;
  TensorsOfLayer given_;
  TensorsOfLayer made_;
};

class LstmBackwardKernel final : public Kernel {
 public:
  /// What the inputs are rows of.
  struct Table {
    int64_t rows = 0;  ///< 0: there is none
    std::optional<Operand> numbers = {};
    LstmLayerGradient::Lookup lookup = {};  ///< without numbers
  };

  /// \param dy  null: none comes
  LstmBackwardKernel(const LstmShape& shape,
                     const Slot* dy,
                     const Table& table,
                     const Instruction& instruction,
                     const Operands& memory)
      : layer_(shape, table.rows),
        step_of_dy_(dy != nullptr ? dy->strides[0] : 0),
        sequence_of_dy_(dy != nullptr ? dy->strides[1] : 0),
        table_(table),
        given_(instruction.arguments, memory),
        made_(instruction.results, memory) {}

  void run() override {
    using namespace lstm_backward;
    LstmLayerGradient::Lookup lookup = table_.lookup;
    lookup.numbers = table_.numbers ? table_.numbers->as<int64_t>() : nullptr;
    layer_.run({{given_[Dy], step_of_dy_, sequence_of_dy_},
                given_[DLastStates],
                given_[DLastCells],
                given_[X],
                given_[InputWeight],
                given_[StateWeight],
                given_[States],
                given_[Cells],
                given_[Y],
                given_[Kept],
                made_[Dx],
                made_[DInputWeight],
                made_[DStateWeight],
                made_[DInputBias],
                made_[DStateBias],
                made_[DStates],
                made_[DCells],
                lookup});
  }

  int64_t bytes() const override { return layer_.bytes(); }

 private:
  LstmLayerGradient layer_;
  int64_t step_of_dy_;
  int64_t sequence_of_dy_;
  Table table_;
  TensorsOfLayer given_;
  TensorsOfLayer made_;
};

bool accepts_forward(const StepProgram& program, const Instruction& instruction) {
  return shape_of_forward(program, instruction).has_value();
}

std::unique_ptr<Kernel> make_forward(const StepProgram& program,
                                     const Instruction& instruction,
                                     const Operands& memory) {
  const LstmShape shape = *shape_of_forward(program, instruction);
  return std::make_unique<LstmKernel>(shape, instruction, memory);
}

bool accepts_backward(const StepProgram& program, const Instruction& instruction) {
  return shape_of_backward(program, instruction).has_value();
}

std::unique_ptr<Kernel> make_backward(const StepProgram& program,
                                      const Instruction& instruction,
                                      const Operands& memory) {
  const LstmShape shape = *shape_of_backward(program, instruction);
  const Slot* const dy = slot_at(program, instruction.arguments, lstm_backward::Dy);
  return std::make_unique<LstmBackwardKernel>(
      shape, dy, LstmBackwardKernel::Table(), instruction, memory);
}

bool accepts_table_backward(const StepProgram& program, const Instruction& instruction) {
  return shape_of_table_backward(program, instruction).has_value();
}

std::unique_ptr<Kernel> make_table_backward(const StepProgram& program,
                                            const Instruction& instruction,
                                            const Operands& memory) {
  using namespace lstm_backward;
  const std::vector<Argument>& given = instruction.arguments;
  const Slot& numbers = *slot_at(program, given, kNumbers);
  LstmBackwardKernel::Table table;
  table.rows = slot_at(program, given, X)->sizes[0];
  table.numbers = memory.operand(id_at(given, kNumbers));
  table.lookup.step = numbers.strides[0];
  table.lookup.sequence = numbers.strides[1];
  table.lookup.padding = given[kPadding].constant.toInt();
  return std::make_unique<LstmBackwardKernel>(*shape_of_table_backward(program, instruction),
                                              slot_at(program, given, Dy),
                                              table,
                                              instruction,
                                              memory);
}

}  // namespace

std::vector<OwnKernel> lstm_kernels() {
  return {{"rondo::lstm_layer", accepts_forward, make_forward},
          {"rondo::lstm_layer_backward", accepts_backward, make_backward},
          {"rondo::lstm_table_backward", accepts_table_backward, make_table_backward, kUlps}};
}

}  // namespace rondo
