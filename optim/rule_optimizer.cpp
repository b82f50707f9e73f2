#include "optim/rule_optimizer.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>
#include <utility>

#include "optim/internal/update_operator.h"

namespace rondo {

namespace {

const detail::CompiledRule& rule_of(const detail::UpdateOperator& op, int64_t variant) {
  return op.variants.at(static_cast<size_t>(variant));
}

}  // namespace

RuleOptimizer::RuleOptimizer(const detail::UpdateOperator& op,
                             int64_t variant,
                             Numbers numbers,
                             std::vector<ParamGroupOptions> groups)
    : Optimizer(std::move(numbers),
                rule_of(op, variant).states,
                std::move(groups),
                rule_of(op, variant).counters),
      op_(op),
      variant_(variant) {
  detail::define_update_operator(op_);
  update_ = std::make_shared<c10::OperatorHandle>(
      c10::Dispatcher::singleton().findSchemaOrThrow(("rondo::" + op_.name).c_str(), ""));
}

void RuleOptimizer::update(ParamGroup& group) {
  const detail::CompiledRule& rule = rule_of(op_, variant_);
  std::vector<at::Tensor> params;
  std::vector<at::Tensor> grads;
  std::vector<at::Tensor> states;
  std::vector<at::Tensor> counters;
  for (Parameter& parameter : group.params) {
    if (!parameter.grad().defined()) {
      continue;
    }
    params.push_back(parameter.value);
    grads.push_back(parameter.grad());
    for (const std::string& name : rule.states) {
      states.push_back(parameter.state(name));
    }
    for (const std::string& name : rule.counters) {
      counters.push_back(parameter.state(name));
    }
  }
  if (params.empty()) {
    return;
  }
  std::vector<at::Tensor> numbers;
  for (size_t i = 0; i < rule.given; ++i) {
    numbers.push_back(group.numbers()[i].second);
  }
  torch::jit::Stack stack;
  torch::jit::push(stack,
                   std::move(params),
                   std::move(grads),
                   std::move(states),
                   std::move(counters),
                   std::move(numbers),
                   variant_,
                   skip().defined() ? c10::IValue(skip()) : c10::IValue());
  update_->callBoxed(&stack);
}

}  // namespace rondo
