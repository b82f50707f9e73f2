#include "optim/lion.h"

#include "optim/internal/rule.h"
#include "optim/internal/update_operator.h"
#include "optim/internal/verbs.h"

namespace rondo {

namespace {

using namespace rules;  // NOLINT: rondo's own

struct LionRule : detail::RuleDefaults {
  static constexpr std::array kStates = {"exp_avg"};

  template <class N>
  struct Given {
    N lr, beta1, beta2, weight_decay;
  };

  template <class N>
  struct Numbers {
    N minus_lr, keep, beta1, one_minus_beta1, beta2, one_minus_beta2;
  };

  template <class N>
  static Numbers<N> numbers(const Given<N>& g, Counters<N>& /*count*/) {
    return {-g.lr, 1.0 - g.lr * g.weight_decay, g.beta1, 1.0 - g.beta1, g.beta2, 1.0 - g.beta2};
  }

  template <class By, class V>
  RONDO_INLINE static void update(const By& by, V& param, const V& grad, V& exp_avg) {
    const V direction = add(exp_avg * by.beta1, grad, by.one_minus_beta1);
    param = add(param * by.keep, sign(direction), by.minus_lr);
    exp_avg = add(exp_avg * by.beta2, grad, by.one_minus_beta2);
  }
};

}  // namespace

const detail::UpdateOperator& Lion::update_operator() {
  static const detail::UpdateOperator op = {"lion_", {detail::RuleCompiler<LionRule>::compiled()}};
  return op;
}

const OptimizerTable<Lion::Options>& Lion::table() {
  static const auto made = [] {
    OptimizerTable<Options> table("Lion", "Steps by the sign of momentum and gradient.");
    table.number("lr", &Options::lr, at_least(0), "step size")
        .numbers("betas",
                 {"beta1", "beta2"},
                 &Options::betas,
                 below_one(),
                 "share of momentum in the step, decay rate of momentum")
        .number("weight_decay",
                &Options::weight_decay,
                at_least(0),
                "share of lr by which each weight shrinks at an update");
    return table;
  }();
  return made;
}

Lion::Lion(const Options& options) : RuleOptimizer(update_operator(), 0, table(), options) {}

}  // namespace rondo
