#pragma once

#include <torch/library.h>

#include <utility>

#include "core/operator_facts.h"

namespace rondo {

/// Defines an operator for all devices, and registers its facts.
template <class Function>
void define_operator(torch::Library& library, OperatorFacts facts, Function* function) {
  library.def(facts.schema.c_str());
  library.impl(facts.name().c_str(),
               torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, function));
  register_operator_facts(std::move(facts));
}

}  // namespace rondo
