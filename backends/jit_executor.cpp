#include "backends/jit_executor.h"

#include <utility>

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/interpreter.h>

namespace rondo {

namespace {

// Straight to the kernels: what autograd and autocast do is recorded in the program.
struct KernelsOnly {
  c10::AutoGradMode no_grad{false};
  at::AutoDispatchBelowADInplaceOrView autograd;
  c10::impl::ExcludeDispatchKeyGuard autocast{c10::autocast_dispatch_keyset};
};

}  // namespace

JitExecutor::JitExecutor(const StepProgram& program)
    : graph_(to_jit_graph(program)),
      code_(std::make_unique<torch::jit::Code>(graph_.graph, program.name)) {
  for (const SlotId slot : graph_.inputs) {
    inputs_.push_back(program.slots[static_cast<size_t>(slot)].name);
  }
  for (const SlotId slot : graph_.captured) {
    captured_.push_back(program.slots[static_cast<size_t>(slot)].value);
  }
}

JitExecutor::~JitExecutor() = default;

std::vector<at::Tensor> JitExecutor::run(const Batch& batch) const {
  const KernelsOnly scope;
  torch::jit::Stack stack;
  stack.reserve(inputs_.size() + captured_.size());
  for (const std::string& name : inputs_) {
    stack.emplace_back(batch[name]);
  }
  for (const at::Tensor& tensor : captured_) {
    stack.emplace_back(tensor);
  }
  torch::jit::InterpreterState(*code_).run(stack);
  std::vector<at::Tensor> results;
  results.reserve(stack.size());
  for (c10::IValue& value : stack) {
    results.push_back(std::move(value).toTensor());
  }
  return results;
}

}  // namespace rondo
