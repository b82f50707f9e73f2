#include <ATen/ops/_log_softmax_backward_data_cpu_dispatch.h>
#include <ATen/ops/_log_softmax_cpu_dispatch.h>
#include <ATen/ops/_softmax_backward_data_cpu_dispatch.h>
#include <ATen/ops/_softmax_cpu_dispatch.h>

#include <utility>

#include "tracing/kernels/kernels.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

// LibTorch's kernels themselves, called past the dispatcher.

class ForwardKernel final : public Kernel {
 public:
  using Function = at::Tensor& (*)(at::Tensor&, const at::Tensor&, int64_t, bool);

  ForwardKernel(Function function, at::Tensor input, int64_t dim, at::Tensor result)
      : function_(function), input_(std::move(input)), dim_(dim), result_(std::move(result)) {}

  void run() override { function_(result_, input_, dim_, /*half_to_float=*/false); }

 private:
  Function function_;
  at::Tensor input_;
  int64_t dim_;
  at::Tensor result_;
};

class BackwardKernel final : public Kernel {
 public:
  using Function =
      at::Tensor& (*)(at::Tensor&, const at::Tensor&, const at::Tensor&, int64_t, at::ScalarType);

  BackwardKernel(
      Function function, at::Tensor grad, at::Tensor output, int64_t dim, at::Tensor result)
      : function_(function),
        grad_(std::move(grad)),
        output_(std::move(output)),
        dim_(dim),
        result_(std::move(result)) {}

  void run() override { function_(result_, grad_, output_, dim_, at::kFloat); }

 private:
  Function function_;
  at::Tensor grad_;
  at::Tensor output_;
  int64_t dim_;
  at::Tensor result_;
};

bool accepts_forward(const StepProgram& program, const Instruction& instruction) {
  return is_plain_float(slot_at(program, instruction.arguments, 0)) &&
         is_plain_float(slot_at(program, instruction.results, 0));
}

bool accepts_backward(const StepProgram& program, const Instruction& instruction) {
  return accepts_forward(program, instruction) &&
         is_plain_float(slot_at(program, instruction.arguments, 1));
}

template <ForwardKernel::Function kFunction>
std::unique_ptr<Kernel> make_forward(const StepProgram&,
                                     const Instruction& instruction,
                                     const Operands& memory) {
  return std::make_unique<ForwardKernel>(kFunction,
                                         memory.tensor(id_at(instruction.arguments, 0)),
                                         instruction.arguments[1].constant.toInt(),
                                         memory.tensor(id_at(instruction.results, 0)));
}

template <BackwardKernel::Function kFunction>
std::unique_ptr<Kernel> make_backward(const StepProgram&,
                                      const Instruction& instruction,
                                      const Operands& memory) {
  return std::make_unique<BackwardKernel>(kFunction,
                                          memory.tensor(id_at(instruction.arguments, 0)),
                                          memory.tensor(id_at(instruction.arguments, 1)),
                                          instruction.arguments[2].constant.toInt(),
                                          memory.tensor(id_at(instruction.results, 0)));
}

}  // namespace

std::vector<OwnKernel> softmax_kernels() {
  return {
      {"aten::_log_softmax", accepts_forward, make_forward<at::cpu::_log_softmax_out>},
      {"aten::_softmax", accepts_forward, make_forward<at::cpu::_softmax_out>},
      {"aten::_log_softmax_backward_data",
       accepts_backward,
       make_backward<at::cpu::_log_softmax_backward_data_out>},
      {"aten::_softmax_backward_data",
       accepts_backward,
       make_backward<at::cpu::_softmax_backward_data_out>},
  };
}

}  // namespace rondo
