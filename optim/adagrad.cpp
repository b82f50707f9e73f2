#include "optim/adagrad.h"

#include "optim/internal/rule.h"
#include "optim/internal/update_operator.h"
#include "optim/internal/verbs.h"

namespace rondo {

namespace {

using namespace rules;  // NOLINT: rondo's own

struct AdagradRule : detail::EpsRule {
  static constexpr std::array kStates = {"sum"};

  template <class N>
  struct Given {
    N lr, lr_decay, eps, weight_decay, initial_accumulator_value;
  };

  template <class N>
  struct Numbers {
    N minus_lr, eps, weight_decay, updates, initial;
  };

  template <class N>
  static Numbers<N> numbers(const Given<N>& g, Counters<N>& count) {
    const N updates = count.step;
    count.step = updates + 1.0;
    return {-(g.lr / (1.0 + updates * g.lr_decay)),
            g.eps,
            g.weight_decay,
            updates,
            g.initial_accumulator_value};
  }

  template <class By, class V>
  RONDO_INLINE static void update(const By& by, V& param, const V& grad, V& sum) {
    const V slope = add_nonzero(grad, param, by.weight_decay);
    sum = addcmul(select(by.updates, sum, filled(sum, by.initial)), slope, slope);
    param = addcdiv(param, slope, sqrt(sum) + by.eps, by.minus_lr);
  }
};

}  // namespace

const detail::UpdateOperator& Adagrad::update_operator() {
  static const detail::UpdateOperator op = {"adagrad_",
                                            {detail::RuleCompiler<AdagradRule>::compiled()}};
  return op;
}

const OptimizerTable<Adagrad::Options>& Adagrad::table() {
  static const auto made = [] {
    OptimizerTable<Options> table("Adagrad",
                                  "Divides by the root of the sum of squared gradients.");
    table.number("lr", &Options::lr, at_least(0), "step size")
        .number(
            "lr_decay", &Options::lr_decay, at_least(0), "what each update adds to lr's divisor")
        .number("eps", &Options::eps, at_least(0), "added to the denominator")
        .number("weight_decay",
                &Options::weight_decay,
                at_least(0),
                "L2 penalty, added to the gradient")
        .number("initial_accumulator_value",
                &Options::initial_accumulator_value,
                at_least(0),
                "what the sums begin with");
    return table;
  }();
  return made;
}

Adagrad::Adagrad(const Options& options) : RuleOptimizer(update_operator(), 0, table(), options) {}

}  // namespace rondo
