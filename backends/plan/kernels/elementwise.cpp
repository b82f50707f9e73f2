// Compiled with -ffp-contract=off (backends/CMakeLists.txt), see core/vector_loop.h.

#include <optional>

#include "backends/plan/kernels/arguments.h"
#include "backends/plan/kernels/kernels.h"
#include "backends/plan/kernels/rows.h"
#include "core/vector_loop.h"

namespace rondo {

namespace {

// One float from one float, or from two. `vec::` in LibTorch decides what becomes of -0 and NaN.

struct Relu {
  RONDO_INLINE float operator()(float x) const { return x < 0.0F ? 0.0F : x; }
};

struct ReluBackward {
  RONDO_INLINE float operator()(float grad, float x) const { return x <= 0.0F ? 0.0F : grad; }
};

struct Add {
  RONDO_INLINE float operator()(float a, float b) const { return a + b; }
};

struct Subtract {
  RONDO_INLINE float operator()(float a, float b) const { return a - b; }
};

struct Multiply {
  RONDO_INLINE float operator()(float a, float b) const { return a * b; }
};

template <class Function>
class UnaryKernel final : public Kernel {
 public:
  UnaryKernel(Operand input, Operand result, const Rows& rows)
      : input_(input), result_(result), rows_(rows) {}

  void run() override {
    for_each_row(rows_, [this](int64_t plane, int64_t row) {
      float* const y = result_.as<float>() + rows_.offset(0, plane, row);
      const float* const x = input_.as<float>() + rows_.offset(1, plane, row);
      vector_loop([=](int64_t i) RONDO_INLINE_LAMBDA { y[i] = Function()(x[i]); }, rows_.width);
    });
  }

 private:
  Operand input_;
  Operand result_;
  Rows rows_;
};

template <class Function>
class BinaryKernel final : public Kernel {
 public:
  BinaryKernel(Operand a, Operand b, Operand result, const Rows& rows)
      : a_(a), b_(b), result_(result), rows_(rows) {}

  void run() override {
    for_each_row(rows_, [this](int64_t plane, int64_t row) {
      float* const y = result_.as<float>() + rows_.offset(0, plane, row);
      const float* const a = a_.as<float>() + rows_.offset(1, plane, row);
      const float* const b = b_.as<float>() + rows_.offset(2, plane, row);
      vector_loop([=](int64_t i) RONDO_INLINE_LAMBDA { y[i] = Function()(a[i], b[i]); },
                  rows_.width);
    });
  }

 private:
  Operand a_;
  Operand b_;
  Operand result_;
  Rows rows_;
};

// One number for all elements, rounded to float as LibTorch does it first: the host's, or what a
// tensor of one element holds when the kernel runs.
class Number {
 public:
  explicit Number(double value) : value_(static_cast<float>(value)) {}

  Number(Operand tensor, at::ScalarType dtype)
      : tensor_(tensor), is_double_(dtype == at::kDouble), is_tensor_(true) {}

  float value() const {
    if (!is_tensor_) {
      return value_;
    }
    return is_double_ ? static_cast<float>(*tensor_.as<double>()) : *tensor_.as<float>();
  }

 private:
  float value_ = 0.0F;
  Operand tensor_;
  bool is_double_ = false;
  bool is_tensor_ = false;
};

template <class Function>
class NumberKernel final : public Kernel {
 public:
  NumberKernel(Operand input, Number number, Operand result, const Rows& rows)
      : input_(input), number_(number), result_(result), rows_(rows) {}

  void run() override {
    const float number = number_.value();
    for_each_row(rows_, [this, number](int64_t plane, int64_t row) {
      float* const y = result_.as<float>() + rows_.offset(0, plane, row);
      const float* const x = input_.as<float>() + rows_.offset(1, plane, row);
      vector_loop([=](int64_t i) RONDO_INLINE_LAMBDA { y[i] = Function()(x[i], number); },
                  rows_.width);
    });
  }

 private:
  Operand input_;
  Number number_;
  Operand result_;
  Rows rows_;
};

bool accepts_one(const StepProgram& program, const Instruction& instruction) {
  return float_rows(program, instruction, 1).has_value();
}

bool accepts_two(const StepProgram& program, const Instruction& instruction) {
  return float_rows(program, instruction, 2).has_value();
}

// alpha = 1
bool accepts_sum(const StepProgram& program, const Instruction& instruction) {
  return accepts_two(program, instruction) && is_constant(instruction.arguments[2], 1.0);
}

// threshold = 0
bool accepts_relu_backward(const StepProgram& program, const Instruction& instruction) {
  return accepts_two(program, instruction) && is_constant(instruction.arguments[2], 0.0);
}

// A number of the host: given as such, or as a constant tensor that counts as one.
std::optional<double> host_number(const StepProgram& program, const Argument& argument) {
  if (argument.kind == Argument::Kind::Constant) {
    const bool is_real = argument.constant.isDouble() || argument.constant.isInt();
    return is_real ? std::optional(argument.constant.toScalar().toDouble()) : std::nullopt;
  }
  const Slot* const slot = slot_at(program, {argument}, 0);
  const bool is_number = slot != nullptr && slot->kind == SlotKind::Constant &&
                         slot->is_wrapped_number &&
                         (slot->dtype == at::kDouble || slot->dtype == at::kLong);
  return is_number ? std::optional(slot->value.item().toDouble()) : std::nullopt;
}

bool is_single_number(const StepProgram& program, const Argument& argument) {
  const Slot* const slot = slot_at(program, {argument}, 0);
  return slot != nullptr && slot->sizes.empty() &&
         (slot->dtype == at::kFloat || slot->dtype == at::kDouble);
}

bool accepts_number(const StepProgram& program, const Instruction& instruction) {
  const Argument& number = instruction.arguments[1];
  return accepts_one(program, instruction) &&
         (host_number(program, number) || is_single_number(program, number));
}

template <class Function>
std::unique_ptr<Kernel> make_unary(const StepProgram& program,
                                   const Instruction& instruction,
                                   const PlanMemory& memory) {
  return std::make_unique<UnaryKernel<Function>>(memory.operand(id_at(instruction.arguments, 0)),
                                                 memory.operand(id_at(instruction.results, 0)),
                                                 *float_rows(program, instruction, 1));
}

template <class Function>
std::unique_ptr<Kernel> make_binary(const StepProgram& program,
                                    const Instruction& instruction,
                                    const PlanMemory& memory) {
  return std::make_unique<BinaryKernel<Function>>(memory.operand(id_at(instruction.arguments, 0)),
                                                  memory.operand(id_at(instruction.arguments, 1)),
                                                  memory.operand(id_at(instruction.results, 0)),
                                                  *float_rows(program, instruction, 2));
}

template <class Function>
std::unique_ptr<Kernel> make_with_number(const StepProgram& program,
                                         const Instruction& instruction,
                                         const PlanMemory& memory) {
  const Argument& argument = instruction.arguments[1];
  const auto fixed = host_number(program, argument);
  const Number number =
      fixed ? Number(*fixed)
            : Number(memory.operand(argument.slots[0]), slot_at(program, {argument}, 0)->dtype);
  return std::make_unique<NumberKernel<Function>>(memory.operand(id_at(instruction.arguments, 0)),
                                                  number,
                                                  memory.operand(id_at(instruction.results, 0)),
                                                  *float_rows(program, instruction, 1));
}

}  // namespace

std::vector<OwnKernel> elementwise_kernels() {
  constexpr bool kInPlace = true;
  return {
      {"aten::relu", accepts_one, make_unary<Relu>, 0, kInPlace},
      {"aten::threshold_backward", accepts_relu_backward, make_binary<ReluBackward>, 0, kInPlace},
      {"aten::add.Tensor", accepts_sum, make_binary<Add>, 0, kInPlace},
      {"aten::sub.Tensor", accepts_sum, make_binary<Subtract>, 0, kInPlace},
      {"aten::mul.Tensor", accepts_two, make_binary<Multiply>, 0, kInPlace},
      {"aten::add_.Tensor", accepts_sum, make_binary<Add>},
      {"aten::sub_.Tensor", accepts_sum, make_binary<Subtract>},
      {"aten::mul_.Tensor", accepts_two, make_binary<Multiply>},
      {"aten::mul.Tensor", accepts_number, make_with_number<Multiply>, 0, kInPlace},
      {"aten::mul.Scalar", accepts_number, make_with_number<Multiply>, 0, kInPlace},
      {"aten::mul_.Tensor", accepts_number, make_with_number<Multiply>},
      {"aten::mul_.Scalar", accepts_number, make_with_number<Multiply>},
  };
}

}  // namespace rondo
