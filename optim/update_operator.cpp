#include "optim/internal/update_operator.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <fmt/format.h>
#include <torch/library.h>

#include <map>
#include <mutex>
#include <utility>

#include "core/operator_facts.h"
#include "optim/internal/update_call.h"

namespace rondo::detail {

namespace {

constexpr const char* kScaled = "scaled";
constexpr size_t kGradients = 1;  // their place in the schema

/// By full name, such as "rondo::adam_".
struct KnownOperators {
  std::mutex mutex;
  std::map<std::string, const UpdateOperator*> by_name;
  std::vector<torch::Library> libraries;
};

KnownOperators& known_operators() {
  static KnownOperators known;
  return known;
}

PreparedCall prepare(const UpdateOperator& op, const std::vector<c10::IValue>& arguments) {
  const auto variant = static_cast<size_t>(arguments[5].toInt());
  TORCH_CHECK(variant < op.variants.size(), "rondo::", op.name, ": no variant ", variant);
  return UpdateCall(op.variants[variant],
                    {arguments[0].toTensorVector(),
                     arguments[1].toTensorVector(),
                     arguments[2].toTensorVector(),
                     arguments[3].toTensorVector(),
                     arguments[4].toTensorVector(),
                     arguments[6].isNone() ? at::Tensor() : arguments[6].toTensor(),
                     arguments.size() > 7 ? arguments[7].toTensor() : at::Tensor()});
}

// Both overloads of every operator.
void call(const c10::OperatorHandle& handle, torch::jit::Stack* stack) {
  KnownOperators& known = known_operators();
  const UpdateOperator* op = nullptr;
  {
    const std::lock_guard lock(known.mutex);
    op = known.by_name.at(handle.schema().name());
  }
  prepare(*op, torch::jit::pop(*stack, handle.schema().arguments().size()))();
}

std::string schema(const std::string& name, bool is_scaled) {
  return fmt::format(
      "rondo::{}{}(Tensor(a!)[] params, Tensor{}[] grads, Tensor(b!)[] states, Tensor(c!)[] "
      "counters, "
      "Tensor[] numbers, int variant, Tensor? skip{}) -> ()",
      name,
      is_scaled ? std::string(".") + kScaled : "",
      is_scaled ? "(d!)" : "",
      is_scaled ? ", Tensor grad_scale" : "");
}

}  // namespace

void define_update_operator(const UpdateOperator& op) {
  const std::string full_name = "rondo::" + op.name;
  KnownOperators& known = known_operators();
  const std::lock_guard lock(known.mutex);
  if (!known.by_name.emplace(full_name, &op).second) {
    return;
  }
  // A fragment: other folders add their operators to the same namespace.
  torch::Library library(torch::Library::FRAGMENT, "rondo", {}, __FILE__, __LINE__);
  for (const bool is_scaled : {false, true}) {
    OperatorFacts facts{schema(op.name, is_scaled)};
    facts.prepare = [&op](const std::vector<c10::IValue>& arguments) {
      return prepare(op, arguments);
    };
    if (!is_scaled) {
      facts.scaled = ScaledForm{kScaled, kGradients};
    }
    library.def(facts.schema.c_str());
    library.impl(facts.name().c_str(),
                 torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd,
                                 torch::CppFunction::makeFromBoxedFunction<&call>()));
    register_operator_facts(std::move(facts));
  }
  known.libraries.push_back(std::move(library));
}

}  // namespace rondo::detail
