#include "optim/adadelta.h"

#include "optim/internal/rule.h"
#include "optim/internal/update_operator.h"
#include "optim/internal/verbs.h"

namespace rondo {

namespace {

using namespace rules;  // NOLINT: rondo's own

struct AdadeltaRule : detail::EpsRule {
  static constexpr std::array kStates = {"square_avg", "acc_delta"};

  template <class N>
  struct Given {
    N lr, rho, eps, weight_decay;
  };

  template <class N>
  struct Numbers {
    N minus_lr, rho, one_minus_rho, eps, weight_decay;
  };

  template <class N>
  static Numbers<N> numbers(const Given<N>& g, Counters<N>& count) {
    count.step = count.step + 1.0;
    return {-g.lr, g.rho, 1.0 - g.rho, g.eps, g.weight_decay};
  }

  template <class By, class V>
  RONDO_INLINE static void update(
      const By& by, V& param, const V& grad, V& square_avg, V& acc_delta) {
    const V slope = add_nonzero(grad, param, by.weight_decay);
    square_avg = addcmul(square_avg * by.rho, slope, slope, by.one_minus_rho);
    const V delta = sqrt(acc_delta + by.eps) / sqrt(square_avg + by.eps) * slope;
    acc_delta = addcmul(acc_delta * by.rho, delta, delta, by.one_minus_rho);
    param = add(param, delta, by.minus_lr);
  }
};

}  // namespace

const detail::UpdateOperator& Adadelta::update_operator() {
  static const detail::UpdateOperator op = {"adadelta_",
                                            {detail::RuleCompiler<AdadeltaRule>::compiled()}};
  return op;
}

const OptimizerTable<Adadelta::Options>& Adadelta::table() {
  static const auto made = [] {
    OptimizerTable<Options> table("Adadelta", "Steps in the size of earlier steps.");
    table.number("lr", &Options::lr, at_least(0), "factor of the step")
        .number("rho", &Options::rho, between(0, 1), "share of the means that is kept")
        .number("eps", &Options::eps, at_least(0), "added under both roots")
        .number("weight_decay",
                &Options::weight_decay,
                at_least(0),
                "L2 penalty, added to the gradient");
    return table;
  }();
  return made;
}

Adadelta::Adadelta(const Options& options)
    : RuleOptimizer(update_operator(), 0, table(), options) {}

}  // namespace rondo
