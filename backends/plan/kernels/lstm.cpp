#include <optional>

#include "backends/plan/kernels/kernels.h"
#include "backends/plan/kernels/lstm_layer.h"
#include "backends/program/arguments.h"

namespace rondo {

namespace {

using Arguments = std::vector<Argument>;

// The operators' arguments and results: see recording/lstm_operators.h.
namespace forward {

enum Place : size_t { kX, kInputWeight, kStateWeight, kInputBias, kStateBias, kStates, kCells };

enum Result : size_t { kY, kLastStates, kLastCells, kKept };

}  // namespace forward

namespace backward {

enum Place : size_t {
  kDy,
  kDLastStates,
  kDLastCells,
  kX,
  kInputWeight,
  kStateWeight,
  kStates,
  kCells,
  kY,
  kKept
};

enum Result : size_t {
  kDx,
  kDInputWeight,
  kDStateWeight,
  kDInputBias,
  kDStateBias,
  kDStates,
  kDCells
};

}  // namespace backward

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

std::optional<LstmShape> shape_of_forward(const StepProgram& program,
                                          const Instruction& instruction) {
  using namespace forward;
  const Arguments& given = instruction.arguments;
  const Arguments& made = instruction.results;
  const auto shape = shape_of(slot_at(program, given, kX), slot_at(program, given, kStates));
  const bool fits = shape &&
                    have_floats(program, given, {kInputWeight}, shape->gates() * shape->inputs) &&
                    have_floats(program, given, {kStateWeight}, shape->gates() * shape->hidden) &&
                    have_floats(program, given, {kInputBias, kStateBias}, shape->gates()) &&
                    have_floats(program, given, {kStates, kCells}, shape->states()) &&
                    have_floats(program, made, {kY}, shape->rows() * shape->hidden) &&
                    have_floats(program, made, {kLastStates, kLastCells}, shape->states()) &&
                    have_floats(program, made, {kKept}, shape->kept());
  return fits ? shape : std::nullopt;
}

std::optional<LstmShape> shape_of_backward(const StepProgram& program,
                                           const Instruction& instruction) {
  using namespace backward;
  const Arguments& given = instruction.arguments;
  const Arguments& made = instruction.results;
  const auto shape = shape_of(slot_at(program, given, kX), slot_at(program, given, kStates));
  if (!shape) {
    return std::nullopt;
  }
  const int64_t input_weight = shape->gates() * shape->inputs;
  const int64_t state_weight = shape->gates() * shape->hidden;
  const int64_t y = shape->rows() * shape->hidden;
  const bool fits =
      are_absent_or_fit(program, given, {kDy}, y) &&
      are_absent_or_fit(program, given, {kDLastStates, kDLastCells}, shape->states()) &&
      have_floats(program, given, {kInputWeight}, input_weight) &&
      have_floats(program, given, {kStateWeight}, state_weight) &&
      have_floats(program, given, {kStates, kCells}, shape->states()) &&
      have_floats(program, given, {kY}, y) && have_floats(program, given, {kKept}, shape->kept()) &&
      have_floats(program, made, {kDx}, shape->rows() * shape->inputs) &&
      have_floats(program, made, {kDInputWeight}, input_weight) &&
      have_floats(program, made, {kDStateWeight}, state_weight) &&
      have_floats(program, made, {kDInputBias, kDStateBias}, shape->gates()) &&
      have_floats(program, made, {kDStates, kDCells}, shape->states());
  return fits ? shape : std::nullopt;
}

/// The tensors of an instruction, where some may be absent.
class Operands {
 public:
  Operands(const Arguments& tensors, const PlanMemory& memory) {
    for (const Argument& tensor : tensors) {
      places_.push_back(is_none(tensor) ? std::nullopt
                                        : std::optional(memory.operand(tensor.slots[0])));
    }
  }

  float* operator[](size_t i) const { return places_[i] ? places_[i]->as<float>() : nullptr; }

 private:
  std::vector<std::optional<Operand>> places_;
};

class LstmKernel final : public Kernel {
 public:
  LstmKernel(const LstmShape& shape, const Instruction& instruction, const PlanMemory& memory)
      : layer_(shape), given_(instruction.arguments, memory), made_(instruction.results, memory) {}

  void run() override {
    using namespace forward;
    layer_.run({given_[kX],
                given_[kInputWeight],
                given_[kStateWeight],
                given_[kInputBias],
                given_[kStateBias],
                given_[kStates],
                given_[kCells],
                made_[kY],
                made_[kLastStates],
                made_[kLastCells],
                made_[kKept]});
  }

  int64_t bytes() const override { return layer_.bytes(); }

 private:
  LstmLayer layer_;
  Operands given_;
  Operands made_;
};

class LstmBackwardKernel final : public Kernel {
 public:
  LstmBackwardKernel(const LstmShape& shape,
                     const Instruction& instruction,
                     const PlanMemory& memory)
      : layer_(shape), given_(instruction.arguments, memory), made_(instruction.results, memory) {}

  void run() override {
    using namespace backward;
    layer_.run({given_[kDy],
                given_[kDLastStates],
                given_[kDLastCells],
                given_[kX],
                given_[kInputWeight],
                given_[kStateWeight],
                given_[kStates],
                given_[kCells],
                given_[kY],
                given_[kKept],
                made_[kDx],
                made_[kDInputWeight],
                made_[kDStateWeight],
                made_[kDInputBias],
                made_[kDStateBias],
                made_[kDStates],
                made_[kDCells]});
  }

  int64_t bytes() const override { return layer_.bytes(); }

 private:
  LstmLayerGradient layer_;
  Operands given_;
  Operands made_;
};

template <std::optional<LstmShape> (*shape_of)(const StepProgram&, const Instruction&)>
bool accepts(const StepProgram& program, const Instruction& instruction) {
  return shape_of(program, instruction).has_value();
}

template <class LayerKernel,
          std::optional<LstmShape> (*shape_of)(const StepProgram&, const Instruction&)>
std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const PlanMemory& memory) {
  return std::make_unique<LayerKernel>(*shape_of(program, instruction), instruction, memory);
}

}  // namespace

std::vector<OwnKernel> lstm_kernels() {
  return {{"rondo::lstm_layer", accepts<shape_of_forward>, make<LstmKernel, shape_of_forward>},
          {"rondo::lstm_layer_backward",
           accepts<shape_of_backward>,
           make<LstmBackwardKernel, shape_of_backward>}};
}

}  // namespace rondo
