// Compiled with -ffp-contract=off (tracing/CMakeLists.txt), see core/vector_loop.h.

#include <ATen/ops/add_cpu_dispatch.h>
#include <ATen/ops/div_cpu_dispatch.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul_cpu_dispatch.h>
#include <ATen/ops/sub_cpu_dispatch.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/vector_loop.h"
#include "tracing/kernels/elementwise/rows_kernel.h"
#include "tracing/kernels/kernels.h"
#include "tracing/kernels/stored_numbers.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

// One number from one, or from two. `vec::` in LibTorch decides what becomes of -0 and NaN.

struct Itself {
  RONDO_INLINE float operator()(float x) const { return x; }
};

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

struct Divide {
  RONDO_INLINE float operator()(float a, float b) const { return a / b; }
};

/// b - a, for a number that comes first.
struct SubtractFrom {
  RONDO_INLINE float operator()(float a, float b) const { return b - a; }
};

struct Negate {
  RONDO_INLINE float operator()(float x) const { return -x; }
};

struct Reciprocal {
  RONDO_INLINE float operator()(float x) const { return 1.0F / x; }
};

struct Square {
  RONDO_INLINE float operator()(float x) const { return x * x; }
};

struct Cube {
  RONDO_INLINE float operator()(float x) const { return x * x * x; }
};

struct SquareRoot {
  RONDO_INLINE float operator()(float x) const { return __builtin_sqrtf(x); }
};

struct NoMoreThan {
  RONDO_INLINE float operator()(float x, float limit) const { return x > limit ? limit : x; }
};

// The loops of a function of one element, or of two.
template <class Function>
struct Loop {
  template <class Y, class X>
  static void run(Y* y, const X* x, int64_t count) {
    stored_loop<Y>([=](int64_t i) RONDO_INLINE_LAMBDA { store(Function()(number_in(x[i])), y[i]); },
                   count);
  }

  template <class Y, class A, class B>
  static void run(Y* y, const A* a, const B* b, int64_t count) {
    stored_loop<Y>(
        [=](int64_t i)
            RONDO_INLINE_LAMBDA { store(Function()(number_in(a[i]), number_in(b[i])), y[i]); },
        count);
  }
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

// The loop of a function of an element and the number.
template <class Function>
struct LoopWithNumber {
  template <class Stored>
  void run(Stored* y, const Stored* x, int64_t count) const {
    const float value = is_rounded ? rounded(number.value()) : number.value();
    stored_loop<Stored>(
        [=](int64_t i) RONDO_INLINE_LAMBDA { store(Function()(number_in(x[i]), value), y[i]); },
        count);
  }

  Number number;
  bool is_rounded;  // to bfloat16
};

// The number in all elements.
template <class Stored>
class FillKernel final : public ElementwiseKernel {
 public:
  FillKernel(float number, Operand result, const Rows& rows)
      : number_(number), result_(result), rows_(rows) {}

  void run() override {
    run_in_parts_or_rows(*this, rows_, [this](int64_t plane, int64_t row) {
      loop(rows_.offset(0, plane, row), rows_.width);
    });
  }

  int64_t elements() const override { return rows_.elements(); }

  void run_part(int64_t first, int64_t count) override { loop(first, count); }

 private:
  void loop(int64_t to, int64_t count) const {
    const float number = number_;
    Stored* const y = result_.as<Stored>() + to;
    stored_loop<Stored>([=](int64_t i) RONDO_INLINE_LAMBDA { store(number, y[i]); }, count);
  }

  float number_;
  Operand result_;
  Rows rows_;
};

// Float32 or bfloat16, all the same.
bool are_of_one_type(const std::vector<const Slot*>& tensors) {
  const at::ScalarType dtype = tensors.front()->dtype;
  return is_stored(dtype) && std::all_of(tensors.begin(), tensors.end(), [=](const Slot* slot) {
           return slot->dtype == dtype;
         });
}

// Or of both, as autocast's sums: what is added to a tensor in place may be of the other type.
bool are_numbers(const std::vector<const Slot*>& tensors) {
  return std::all_of(
      tensors.begin(), tensors.end(), [](const Slot* slot) { return is_stored(slot->dtype); });
}

bool are_two_types(const std::vector<const Slot*>& tensors) {
  return is_stored(tensors[0]->dtype) && is_stored(tensors[1]->dtype) &&
         tensors[0]->dtype != tensors[1]->dtype;
}

std::optional<Rows> rows_of_one_type(const StepProgram& program,
                                     const Instruction& instruction,
                                     size_t inputs) {
  return instruction_rows(program, instruction, inputs, are_of_one_type);
}

std::optional<Rows> rows_of_two(const StepProgram& program, const Instruction& instruction) {
  return instruction_rows(program, instruction, 2, are_numbers);
}

std::optional<Rows> rows_of_cast(const StepProgram& program, const Instruction& instruction) {
  return instruction_rows(program, instruction, 1, are_two_types);
}

bool accepts_one(const StepProgram& program, const Instruction& instruction) {
  return rows_of_one_type(program, instruction, 1).has_value();
}

bool accepts_two(const StepProgram& program, const Instruction& instruction) {
  return rows_of_two(program, instruction).has_value();
}

bool accepts_cast(const StepProgram& program, const Instruction& instruction) {
  return rows_of_cast(program, instruction).has_value();
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

bool is_number(const StepProgram& program, const Argument& argument) {
  return host_number(program, argument) || is_single_number(program, argument);
}

bool accepts_number(const StepProgram& program, const Instruction& instruction) {
  return accepts_one(program, instruction) && is_number(program, instruction.arguments[1]);
}

// alpha = 1
bool accepts_sum_with_number(const StepProgram& program, const Instruction& instruction) {
  return accepts_number(program, instruction) && is_constant(instruction.arguments[2], 1.0);
}

// The same with the first two arguments exchanged.
Instruction exchanged(Instruction instruction) {
  std::swap(instruction.arguments[0], instruction.arguments[1]);
  return instruction;
}

bool accepts_number_first(const StepProgram& program, const Instruction& instruction) {
  return instruction.arguments[1].kind == Argument::Kind::Tensor &&
         accepts_sum_with_number(program, exchanged(instruction));
}

bool accepts_fill(const StepProgram& program, const Instruction& instruction) {
  return rows_of_one_type(program, instruction, 0) &&
         host_number(program, instruction.arguments[1]);
}

template <int exponent>
bool accepts_power(const StepProgram& program, const Instruction& instruction) {
  return accepts_one(program, instruction) && is_constant(instruction.arguments[1], exponent);
}

// What LibTorch computes of a tensor and a number.
at::Tensor of_libtorch(Add, const at::Tensor& x, const at::Tensor& number) {
  return at::cpu::add(x, number);
}

at::Tensor of_libtorch(Subtract, const at::Tensor& x, const at::Tensor& number) {
  return at::cpu::sub(x, number);
}

at::Tensor of_libtorch(SubtractFrom, const at::Tensor& x, const at::Tensor& number) {
  return at::cpu::sub(number, x);
}

at::Tensor of_libtorch(Multiply, const at::Tensor& x, const at::Tensor& number) {
  return at::cpu::mul(x, number);
}

at::Tensor of_libtorch(Divide, const at::Tensor& x, const at::Tensor& number) {
  return at::cpu::div(x, number);
}

// Whether this LibTorch rounds a number to bfloat16 before it computes with it; versions and
// operators differ. Asked of an element for which it matters: a probe on random ones hardly sees
// what a small number adds to them.
template <class Function>
bool rounds_number() {
  static const bool rounds = [] {
    constexpr float kNumber = 0.1F;
    for (uint16_t bits = 0x3D00; bits < 0x4000; ++bits) {  // from 1/32 to 2
      const float x = number_in(BFloat16Bits{bits});
      const float with_rounded = rounded(Function()(-x, rounded(kNumber)));
      if (with_rounded != rounded(Function()(-x, kNumber))) {
        const at::Tensor elements = at::full({2}, -x, at::kBFloat16);
        const at::Tensor number = at::full({}, kNumber, at::kFloat);
        return of_libtorch(Function(), elements, number)[0].template item<float>() == with_rounded;
      }
    }
    return false;
  }();
  return rounds;
}

// The smaller one of an element and a number, rounded, is the element or the rounded number: it
// does not matter when the number is rounded.
template <>
bool rounds_number<NoMoreThan>() {
  return false;
}

at::ScalarType type_of_result(const StepProgram& program, const Instruction& instruction) {
  return slot_at(program, instruction.results, 0)->dtype;
}

template <class Function>
std::unique_ptr<Kernel> make_unary(const StepProgram& program,
                                   const Instruction& instruction,
                                   const Operands& memory) {
  return with_stored(type_of_result(program, instruction),
                     [&](auto stored) -> std::unique_ptr<Kernel> {
                       return std::make_unique<UnaryKernel<Loop<Function>, decltype(stored)>>(
                           memory.operand(id_at(instruction.arguments, 0)),
                           memory.operand(id_at(instruction.results, 0)),
                           *rows_of_one_type(program, instruction, 1));
                     });
}

std::unique_ptr<Kernel> make_cast(const StepProgram& program,
                                  const Instruction& instruction,
                                  const Operands& memory) {
  const Operand from = memory.operand(id_at(instruction.arguments, 0));
  const Operand to = memory.operand(id_at(instruction.results, 0));
  const Rows rows = *rows_of_cast(program, instruction);
  if (type_of_result(program, instruction) == at::kFloat) {
    return std::make_unique<UnaryKernel<Loop<Itself>, float, BFloat16Bits>>(from, to, rows);
  }
  return std::make_unique<UnaryKernel<Loop<Itself>, BFloat16Bits, float>>(from, to, rows);
}

template <class Function>
std::unique_ptr<Kernel> make_binary(const StepProgram& program,
                                    const Instruction& instruction,
                                    const Operands& memory) {
  const Operand a = memory.operand(id_at(instruction.arguments, 0));
  const Operand b = memory.operand(id_at(instruction.arguments, 1));
  const Operand y = memory.operand(id_at(instruction.results, 0));
  const Rows rows = *rows_of_two(program, instruction);
  const auto type_of = [&](size_t i) { return slot_at(program, instruction.arguments, i)->dtype; };
  return with_stored(type_of_result(program, instruction), [&](auto of_y) {
    return with_stored(type_of(0), [&](auto of_a) {
      return with_stored(type_of(1), [&](auto of_b) -> std::unique_ptr<Kernel> {
        return std::make_unique<
            BinaryKernel<Loop<Function>, decltype(of_y), decltype(of_a), decltype(of_b)>>(
            a, b, y, rows);
      });
    });
  });
}

template <class Function>
std::unique_ptr<Kernel> make_with_number(const StepProgram& program,
                                         const Instruction& instruction,
                                         const Operands& memory) {
  const Argument& argument = instruction.arguments[1];
  const auto fixed = host_number(program, argument);
  const Number number =
      fixed ? Number(*fixed)
            : Number(memory.operand(argument.slots[0]), slot_at(program, {argument}, 0)->dtype);
  const bool is_rounded =
      type_of_result(program, instruction) == at::kBFloat16 && rounds_number<Function>();
  return with_stored(
      type_of_result(program, instruction), [&](auto stored) -> std::unique_ptr<Kernel> {
        return std::make_unique<UnaryKernel<LoopWithNumber<Function>, decltype(stored)>>(
            memory.operand(id_at(instruction.arguments, 0)),
            memory.operand(id_at(instruction.results, 0)),
            *rows_of_one_type(program, instruction, 1),
            LoopWithNumber<Function>{number, is_rounded});
      });
}

std::unique_ptr<Kernel> make_fill(const StepProgram& program,
                                  const Instruction& instruction,
                                  const Operands& memory) {
  return with_stored(type_of_result(program, instruction),
                     [&](auto stored) -> std::unique_ptr<Kernel> {
                       return std::make_unique<FillKernel<decltype(stored)>>(
                           static_cast<float>(*host_number(program, instruction.arguments[1])),
                           memory.operand(id_at(instruction.results, 0)),
                           *rows_of_one_type(program, instruction, 0));
                     });
}

std::unique_ptr<Kernel> make_number_first(const StepProgram& program,
                                          const Instruction& instruction,
                                          const Operands& memory) {
  return make_with_number<SubtractFrom>(program, exchanged(instruction), memory);
}

}  // namespace

std::vector<OwnKernel> elementwise_kernels() {
  constexpr bool kInPlace = true;
  return {
      {"aten::relu", accepts_one, make_unary<Relu>, 0, kInPlace},
      {"aten::relu_", accepts_one, make_unary<Relu>},
      {"aten::threshold_backward", accepts_relu_backward, make_binary<ReluBackward>, 0, kInPlace},
      {"aten::neg", accepts_one, make_unary<Negate>, 0, kInPlace},
      {"aten::reciprocal", accepts_one, make_unary<Reciprocal>, 0, kInPlace},
      {"aten::sqrt", accepts_one, make_unary<SquareRoot>, 0, kInPlace},
      {"aten::pow.Tensor_Scalar", accepts_power<2>, make_unary<Square>, 0, kInPlace},
      {"aten::pow.Tensor_Scalar", accepts_power<3>, make_unary<Cube>, 0, kInPlace},
      {"aten::add.Tensor", accepts_sum, make_binary<Add>, 0, kInPlace},
      {"aten::sub.Tensor", accepts_sum, make_binary<Subtract>, 0, kInPlace},
      {"aten::mul.Tensor", accepts_two, make_binary<Multiply>, 0, kInPlace},
      {"aten::div.Tensor", accepts_two, make_binary<Divide>, 0, kInPlace},
      {"aten::add_.Tensor", accepts_sum, make_binary<Add>},
      {"aten::sub_.Tensor", accepts_sum, make_binary<Subtract>},
      {"aten::mul_.Tensor", accepts_two, make_binary<Multiply>},
      {"aten::div_.Tensor", accepts_two, make_binary<Divide>},
      {"aten::add.Tensor", accepts_sum_with_number, make_with_number<Add>, 0, kInPlace},
      {"aten::sub.Tensor", accepts_sum_with_number, make_with_number<Subtract>, 0, kInPlace},
      {"aten::sub.Tensor", accepts_number_first, make_number_first, 0, kInPlace},
      {"aten::div.Tensor", accepts_number, make_with_number<Divide>, 0, kInPlace},
      {"aten::div_.Tensor", accepts_number, make_with_number<Divide>},
      {"aten::add.Scalar", accepts_sum_with_number, make_with_number<Add>, 0, kInPlace},
      {"aten::sub.Scalar", accepts_sum_with_number, make_with_number<Subtract>, 0, kInPlace},
      {"aten::rsub.Scalar", accepts_sum_with_number, make_with_number<SubtractFrom>, 0, kInPlace},
      {"aten::div.Scalar", accepts_number, make_with_number<Divide>, 0, kInPlace},
      {"aten::clamp_max", accepts_number, make_with_number<NoMoreThan>, 0, kInPlace},
      {"aten::add_.Scalar", accepts_sum_with_number, make_with_number<Add>},
      {"aten::sub_.Scalar", accepts_sum_with_number, make_with_number<Subtract>},
      {"aten::div_.Scalar", accepts_number, make_with_number<Divide>},
      {"aten::fill_.Scalar", accepts_fill, make_fill},
      {"aten::_to_copy", accepts_cast, make_cast},
      {"aten::mul.Tensor", accepts_number, make_with_number<Multiply>, 0, kInPlace},
      {"aten::mul.Scalar", accepts_number, make_with_number<Multiply>, 0, kInPlace},
      {"aten::mul_.Tensor", accepts_number, make_with_number<Multiply>},
      {"aten::mul_.Scalar", accepts_number, make_with_number<Multiply>},
  };
}

}  // namespace rondo
