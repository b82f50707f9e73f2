// Compiled with -ffp-contract=off (backends/CMakeLists.txt), see core/vector_loop.h.

#include <optional>

#include "backends/plan/kernels/arguments.h"
#include "backends/plan/kernels/kernels.h"
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
  UnaryKernel(Operand input, Operand result, int64_t count)
      : input_(input), result_(result), count_(count) {}

  void run() override {
    const float* const x = input_.as<float>();
    float* const y = result_.as<float>();
    vector_loop([=](int64_t i) RONDO_INLINE_LAMBDA { y[i] = Function()(x[i]); }, count_);
  }

 private:
  Operand input_;
  Operand result_;
  int64_t count_;
};

template <class Function>
class BinaryKernel final : public Kernel {
 public:
  BinaryKernel(Operand a, Operand b, Operand result, int64_t count)
      : a_(a), b_(b), result_(result), count_(count) {}

  void run() override {
    const float* const a = a_.as<float>();
    const float* const b = b_.as<float>();
    float* const y = result_.as<float>();
    vector_loop([=](int64_t i) RONDO_INLINE_LAMBDA { y[i] = Function()(a[i], b[i]); }, count_);
  }

 private:
  Operand a_;
  Operand b_;
  Operand result_;
  int64_t count_;
};

// Tensor and host number, which LibTorch rounds to float first.
template <class Function>
class NumberKernel final : public Kernel {
 public:
  NumberKernel(Operand input, float number, Operand result, int64_t count)
      : input_(input), number_(number), result_(result), count_(count) {}

  void run() override {
    const float* const x = input_.as<float>();
    const float number = number_;
    float* const y = result_.as<float>();
    vector_loop([=](int64_t i) RONDO_INLINE_LAMBDA { y[i] = Function()(x[i], number); }, count_);
  }

 private:
  Operand input_;
  float number_;
  Operand result_;
  int64_t count_;
};

// Elements are paired by their place in memory: shapes and strides must agree.
bool same_layout(const Slot& a, const Slot& b) {
  return a.sizes == b.sizes && a.strides == b.strides;
}

bool is_dense(const Slot& slot) {
  return numel(slot) * static_cast<int64_t>(sizeof(float)) ==
         extent_of(slot) - slot.offset * static_cast<int64_t>(sizeof(float));
}

bool accepts_floats(const StepProgram& program, const Instruction& instruction, size_t inputs) {
  const Slot* const result = slot_at(program, instruction.results, 0);
  if (result == nullptr || result->dtype != at::kFloat || !is_dense(*result) ||
      !instruction.writes.empty()) {
    return false;
  }
  for (size_t i = 0; i < inputs; ++i) {
    const Slot* const input = slot_at(program, instruction.arguments, i);
    if (input == nullptr || input->dtype != at::kFloat || !same_layout(*input, *result)) {
      return false;
    }
  }
  return true;
}

bool accepts_one(const StepProgram& program, const Instruction& instruction) {
  return accepts_floats(program, instruction, 1);
}

bool accepts_two(const StepProgram& program, const Instruction& instruction) {
  return accepts_floats(program, instruction, 2);
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
std::optional<double> number_of(const StepProgram& program, const Argument& argument) {
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

bool accepts_number(const StepProgram& program, const Instruction& instruction) {
  return accepts_floats(program, instruction, 1) && number_of(program, instruction.arguments[1]);
}

int64_t count_of(const StepProgram& program, const Instruction& instruction) {
  return numel(*slot_at(program, instruction.results, 0));
}

template <class Function>
std::unique_ptr<Kernel> make_unary(const StepProgram& program,
                                   const Instruction& instruction,
                                   const PlanMemory& memory) {
  return std::make_unique<UnaryKernel<Function>>(memory.operand(id_at(instruction.arguments, 0)),
                                                 memory.operand(id_at(instruction.results, 0)),
                                                 count_of(program, instruction));
}

template <class Function>
std::unique_ptr<Kernel> make_binary(const StepProgram& program,
                                    const Instruction& instruction,
                                    const PlanMemory& memory) {
  return std::make_unique<BinaryKernel<Function>>(memory.operand(id_at(instruction.arguments, 0)),
                                                  memory.operand(id_at(instruction.arguments, 1)),
                                                  memory.operand(id_at(instruction.results, 0)),
                                                  count_of(program, instruction));
}

template <class Function>
std::unique_ptr<Kernel> make_with_number(const StepProgram& program,
                                         const Instruction& instruction,
                                         const PlanMemory& memory) {
  const double number = *number_of(program, instruction.arguments[1]);
  return std::make_unique<NumberKernel<Function>>(memory.operand(id_at(instruction.arguments, 0)),
                                                  static_cast<float>(number),
                                                  memory.operand(id_at(instruction.results, 0)),
                                                  count_of(program, instruction));
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
      {"aten::mul.Tensor", accepts_number, make_with_number<Multiply>, 0, kInPlace},
      {"aten::mul.Scalar", accepts_number, make_with_number<Multiply>, 0, kInPlace},
  };
}

}  // namespace rondo
