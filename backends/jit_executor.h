#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "backends/jit_graph.h"
#include "backends/step_program.h"

namespace torch::jit {
struct Code;
}

namespace rondo {

/// Runs a program with LibTorch's TorchScript interpreter: no autograd, no optimisation, an
/// operator after the other in the recorded order.
class JitExecutor {
 public:
  explicit JitExecutor(const StepProgram& program);
  JitExecutor(const JitExecutor&) = delete;
  JitExecutor& operator=(const JitExecutor&) = delete;
  ~JitExecutor();

  /// \param batch  of the structure that was recorded
  /// \return the program's outputs, then the tensors of its closures; new ones in each run
  std::vector<at::Tensor> run(const Batch& batch) const;

  const JitGraph& graph() const { return graph_; }

 private:
  JitGraph graph_;
  std::vector<std::string> inputs_;
  std::vector<at::Tensor> captured_;
  std::unique_ptr<torch::jit::Code> code_;
};

}  // namespace rondo
