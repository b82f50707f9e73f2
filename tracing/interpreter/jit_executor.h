#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "backends/executor.h"
#include "tracing/interpreter/jit_graph.h"
#include "tracing/program/step_program.h"

namespace torch::jit {
struct Code;
}

namespace rondo {

/// Runs a program with LibTorch's TorchScript interpreter: no autograd, no optimisation, an
/// operator after the other in the recorded order, whatever is due. The reference for plans, but
/// where one instruction needs grad mode and another of its operator does not: it has one for all.
class JitExecutor final : public Executor {
 public:
  explicit JitExecutor(const StepProgram& program);
  ~JitExecutor() override;

  const std::vector<at::Tensor>& run(const Batch& batch, DueSet due) override;

 private:
  JitGraph graph_;
  std::vector<std::string> inputs_;
  std::vector<at::Tensor> captured_;
  bool needs_grad_mode_;
  std::unique_ptr<torch::jit::Code> code_;
  std::vector<at::Tensor> results_;
};

}  // namespace rondo
