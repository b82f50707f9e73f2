#include <optional>
#include <utility>

#include "tracing/kernels/kernels.h"
#include "tracing/onednn/call_for_threads.h"
#include "tracing/onednn/convolution.h"
#include "tracing/onednn/recorded_convolution.h"
#include "tracing/program/arguments.h"
#include "tracing/program/image.h"

namespace rondo {

namespace {

using Prepare = CallForThreads::Prepare;

class ConvolutionKernel final : public Kernel {
 public:
  ConvolutionKernel(
      CallForThreads call, Operand x, Operand weight, Operand bias, bool has_bias, Operand y)
      : call_(std::move(call)), x_(x), weight_(weight), bias_(bias), has_bias_(has_bias), y_(y) {}

  void run() override {
    call_.run(
        {x_.as<void>(), weight_.as<void>(), y_.as<void>(), has_bias_ ? bias_.as<void>() : nullptr});
  }

  int64_t bytes() const override { return call_.bytes(); }

 private:
  CallForThreads call_;
  Operand x_;
  Operand weight_;
  Operand bias_;
  bool has_bias_;
  Operand y_;
};

class ConvolutionBackwardKernel final : public Kernel {
 public:
  struct Tensors {
    Operand dy;
    Operand x;
    Operand weight;
    Operand dx;
    Operand dweight;
    Operand dbias;
    bool has_dbias;
  };

  ConvolutionBackwardKernel(const Tensors& tensors,
                            std::optional<CallForThreads> of_x,
                            std::optional<CallForThreads> of_weight)
      : t_(tensors), of_x_(std::move(of_x)), of_weight_(std::move(of_weight)) {}

  void run() override {
    if (of_x_) {
      of_x_->run({t_.dy.as<void>(), t_.weight.as<void>(), t_.dx.as<void>()});
    }
    if (of_weight_) {
      of_weight_->run({t_.dy.as<void>(),
                       t_.x.as<void>(),
                       t_.dweight.as<void>(),
                       t_.has_dbias ? t_.dbias.as<void>() : nullptr});
    }
  }

  int64_t bytes() const override {
    return (of_x_ ? of_x_->bytes() : 0) + (of_weight_ ? of_weight_->bytes() : 0);
  }

 private:
  Tensors t_;
  std::optional<CallForThreads> of_x_;
  std::optional<CallForThreads> of_weight_;
};

/// Absent, or a tensor. A file may give anything else.
bool is_tensor_or_none(const StepProgram& program,
                       const std::vector<Argument>& arguments,
                       size_t i) {
  return is_none(arguments[i]) || slot_at(program, arguments, i) != nullptr;
}

/// Absent, or one number for each channel.
bool is_for_channels(const Slot* slot, int64_t channels) {
  return slot == nullptr || (is_plain_float(slot) && numel(*slot) == channels);
}

ImageLayout layout_at(const StepProgram& program,
                      const std::vector<Argument>& arguments,
                      size_t i) {
  return {block_of(*slot_at(program, arguments, i))};
}

// (input, weight, bias, …)
Prepare forward_call(const StepProgram& program, const Instruction& instruction) {
  return
      [shape = *shape_of_convolution(program, instruction),
       x = layout_at(program, instruction.arguments, 0),
       y = layout_at(program, instruction.results, 0)] { return prepare_convolution(shape, x, y); };
}

bool accepts_forward(const StepProgram& program, const Instruction& instruction) {
  const auto shape = shape_of_convolution(program, instruction);
  return shape && is_tensor_or_none(program, instruction.arguments, 2) &&
         is_for_channels(slot_at(program, instruction.arguments, 2), shape->out) &&
         can_prepare(forward_call(program, instruction));
}

std::unique_ptr<Kernel> make_forward(const StepProgram& program,
                                     const Instruction& instruction,
                                     const Operands& memory) {
  const auto argument = [&](size_t i) { return memory.operand(id_at(instruction.arguments, i)); };
  const bool has_bias = !is_none(instruction.arguments[2]);
  return std::make_unique<ConvolutionKernel>(CallForThreads(forward_call(program, instruction)),
                                             argument(0),
                                             argument(1),
                                             has_bias ? argument(2) : Operand(),
                                             has_bias,
                                             memory.operand(id_at(instruction.results, 0)));
}

/// Of the gradient of the input, or of weight and bias; null where it is not asked for.
struct BackwardCalls {
  Prepare of_input;
  Prepare of_weight;
};

// (gradient, input, weight, …)
BackwardCalls backward_calls(const StepProgram& program, const Instruction& instruction) {
  const ConvolutionShape shape = *shape_of_convolution_backward(program, instruction);
  const ImageLayout x = layout_at(program, instruction.arguments, 1);
  const ImageLayout y = layout_at(program, instruction.arguments, 0);
  BackwardCalls calls;
  if (!is_none(instruction.results[0])) {
    calls.of_input = [=] { return prepare_gradient_of_input(shape, x, y); };
  }
  if (!is_none(instruction.results[1])) {
    calls.of_weight = [=] { return prepare_gradient_of_weight(shape, x, y); };
  }
  return calls;
}

bool is_like(const Slot* gradient, const Slot& of) {
  return gradient == nullptr || (is_plain_float(gradient) && gradient->sizes == of.sizes);
}

bool accepts_backward(const StepProgram& program, const Instruction& instruction) {
  const auto shape = shape_of_convolution_backward(program, instruction);
  const Slot* const dweight = slot_at(program, instruction.results, 1);
  const Slot* const dbias = slot_at(program, instruction.results, 2);
  const bool fits = shape && is_tensor_or_none(program, instruction.results, 0) &&
                    is_tensor_or_none(program, instruction.results, 1) &&
                    is_tensor_or_none(program, instruction.results, 2) &&
                    is_for_channels(dbias, shape->out) &&
                    (dweight != nullptr || dbias == nullptr) &&
                    is_like(slot_at(program, instruction.results, 0),
                            *slot_at(program, instruction.arguments, 1)) &&
                    is_like(dweight, *slot_at(program, instruction.arguments, 2));
  if (!fits) {
    return false;
  }
  const BackwardCalls calls = backward_calls(program, instruction);
  return can_prepare(calls.of_input) && can_prepare(calls.of_weight);
}

std::unique_ptr<Kernel> make_backward(const StepProgram& program,
                                      const Instruction& instruction,
                                      const Operands& memory) {
  const auto argument = [&](size_t i) { return memory.operand(id_at(instruction.arguments, i)); };
  const auto result = [&](size_t i) {
    const Result& tensor = instruction.results[i];
    return is_none(tensor) ? Operand() : memory.operand(tensor.slots[0]);
  };
  const auto call_of = [](const Prepare& prepare) {
    return prepare == nullptr ? std::nullopt : std::optional(CallForThreads(prepare));
  };
  const BackwardCalls calls = backward_calls(program, instruction);
  return std::make_unique<ConvolutionBackwardKernel>(
      ConvolutionBackwardKernel::Tensors{argument(0),
                                         argument(1),
                                         argument(2),
                                         result(0),
                                         result(1),
                                         result(2),
                                         !is_none(instruction.results[2])},
      call_of(calls.of_input),
      call_of(calls.of_weight));
}

}  // namespace

std::vector<OwnKernel> convolution_kernels() {
  return {{"aten::convolution", accepts_forward, make_forward},
          {"rondo::convolution", accepts_forward, make_forward},
          {"aten::convolution_backward", accepts_backward, make_backward},
          {"rondo::convolution_backward", accepts_backward, make_backward}};
}

}  // namespace rondo
