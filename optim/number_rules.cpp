#include "optim/internal/number_rules.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"

namespace rondo::detail {

namespace {

/// A rule in words, and whether a number keeps it.
struct Rule {
  const char* text;
  bool holds;
};

Rule rule_for(const std::string& name, double value) {
  if (name == "beta1" || name == "beta2") {
    return {"in [0, 1)", value >= 0 && value < 1};
  }
  if (name == "dampening") {
    return {"in [0, 1]", value >= 0 && value <= 1};
  }
  return {">= 0", value >= 0 && std::isfinite(value)};
}

void check(const std::string& where, const Optimizer::Numbers& numbers) {
  for (const auto& [name, value] : numbers) {
    const Rule rule = rule_for(name, value);
    if (!rule.holds) {
      throw UsageError(
          fmt::format("{}.{}: expected a number {}, got {}", where, name, rule.text, value));
    }
  }
}

}  // namespace

void check_numbers(const char* optimizer,
                   const Optimizer::Numbers& numbers,
                   const std::vector<ParamGroupOptions>& groups) {
  check(optimizer, numbers);
  for (size_t i = 0; i < groups.size(); ++i) {
    check(fmt::format("{}.params[{}]", optimizer, i), groups[i].numbers);
  }
}

}  // namespace rondo::detail
