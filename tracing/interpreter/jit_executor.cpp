#include "tracing/interpreter/jit_executor.h"

#include <algorithm>
#include <utility>

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include "tracing/program/kernels_only.h"

namespace rondo {

namespace {

bool needs_grad_mode(const StepProgram& program) {
  return std::any_of(program.instructions.begin(),
                     program.instructions.end(),
                     [](const Instruction& instruction) { return instruction.needs_grad_mode; });
}

}  // namespace

JitExecutor::JitExecutor(const StepProgram& program)
    : graph_(to_jit_graph(program)),
      needs_grad_mode_(needs_grad_mode(program)),
      code_(std::make_unique<torch::jit::Code>(graph_.graph, program.name)) {
  for (const SlotId slot : graph_.inputs) {
    inputs_.push_back(program.slots[static_cast<size_t>(slot)].name);
  }
  for (const SlotId slot : graph_.captured) {
    captured_.push_back(program.slots[static_cast<size_t>(slot)].value);
  }
}

JitExecutor::~JitExecutor() = default;

const std::vector<at::Tensor>& JitExecutor::run(const Batch& batch, DueSet) {
  const KernelsOnly scope;
  const c10::AutoGradMode mode(needs_grad_mode_);
  torch::jit::Stack stack;
  stack.reserve(inputs_.size() + captured_.size());
  for (const std::string& name : inputs_) {
    stack.emplace_back(batch[name]);
  }
  for (const at::Tensor& tensor : captured_) {
    stack.emplace_back(tensor);
  }
  torch::jit::InterpreterState(*code_).run(stack);
  results_.clear();
  for (c10::IValue& value : stack) {
    results_.push_back(std::move(value).toTensor());
  }
  return results_;
}

}  // namespace rondo
