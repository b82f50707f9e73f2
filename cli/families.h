#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/registry.h"
#include "trainer/registries.h"

namespace rondo {

/// The keys of a component, and those that every one of its family has.
template <class Base>
std::vector<OptionKey> keys_of(const typename Registry<Base>::Entry& entry) {
  std::vector<OptionKey> keys = entry.keys->keys();
  if constexpr (detail::TakesLabel<Base>::value) {
    OptionKey label;
    label.name = "label";
    label.type = "a string";
    label.check = "of letters, digits, \"_\" and \"-\"";
    label.doc = "its name in the run and in checkpoints, instead of its class's";
    keys.push_back(std::move(label));
  }
  return keys;
}

/// Calls `visit` with the registry of every family.
template <class Visit>
void for_each_family(const Registries& registries, Visit visit) {
  visit(registries.models);
  visit(registries.losses);
  visit(registries.datasets);
  visit(registries.optimizers);
  visit(registries.schedulers);
  visit(registries.sparsity_algorithms);
  visit(registries.steps);
  visit(registries.metrics);
  visit(registries.algorithms);
  visit(registries.callbacks);
  visit(registries.loggers);
  visit(registries.slots);
}

}  // namespace rondo
