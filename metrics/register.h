#pragma once

#include "core/registry.h"
#include "metrics/metric.h"

namespace rondo {

namespace detail {

/// A key of options that `Options` derives from, as one of `Options` itself.
template <class Options, class Base, class Value>
Value Options::*key_in(Value Base::*key) {
  return key;
}

}  // namespace detail

void register_accuracy(Registry<Metric>& registry);
void register_class_scores(Registry<Metric>& registry);
void register_mean(Registry<Metric>& registry);
void register_rankings(Registry<Metric>& registry);
void register_regression_errors(Registry<Metric>& registry);
void register_token_losses(Registry<Metric>& registry);

/// Adds every metric that a config can name.
inline void register_builtin_metrics(Registry<Metric>& registry) {
  register_accuracy(registry);
  register_class_scores(registry);
  register_mean(registry);
  register_rankings(registry);
  register_regression_errors(registry);
  register_token_losses(registry);
}

}  // namespace rondo
