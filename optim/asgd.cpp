#include "optim/asgd.h"

#include "optim/internal/rule.h"
#include "optim/internal/update_operator.h"
#include "optim/internal/verbs.h"

namespace rondo {

namespace {

using namespace rules;  // NOLINT: rondo's own

/// An update takes the `eta` and `mu` that the one before computed, as in PyTorch.
struct AsgdRule : detail::RuleDefaults {
  static constexpr std::array kStates = {"ax"};
  static constexpr std::array kCounters = {"step", "eta", "mu"};

  template <class N>
  struct Counters {
    N step, eta, mu;
  };

  template <class N>
  struct Given {
    N lr, lambd, alpha, t0, weight_decay;
  };

  template <class N>
  struct Numbers {
    N minus_eta, keep, weight_decay, averages, mu;
  };

  template <class N>
  static Numbers<N> numbers(const Given<N>& g, Counters<N>& count) {
    const N eta = select(count.step, count.eta, g.lr);
    const N mu = select(count.step, count.mu, filled(count.mu, 1.0));
    count.step = count.step + 1.0;
    count.eta = g.lr / pow(1.0 + g.lambd * g.lr * count.step, g.alpha);
    count.mu = 1.0 / clamp_min(count.step - g.t0, 1.0);
    return {-eta, 1.0 - g.lambd * eta, g.weight_decay, is_greater(1.0 - mu, 0.0), mu};
  }

  template <class By, class V>
  RONDO_INLINE static void update(const By& by, V& param, const V& grad, V& ax) {
    const V slope = add_nonzero(grad, param, by.weight_decay);
    param = add(param * by.keep, slope, by.minus_eta);
    ax = select(by.averages, ax + (param - ax) * by.mu, param);
  }
};

}  // namespace

const detail::UpdateOperator& ASGD::update_operator() {
  static const detail::UpdateOperator op = {"asgd_", {detail::RuleCompiler<AsgdRule>::compiled()}};
  return op;
}

const OptimizerTable<ASGD::Options>& ASGD::table() {
  static const auto made = [] {
    OptimizerTable<Options> table("ASGD", "SGD that also keeps the mean of the weights.");
    table.number("lr", &Options::lr, at_least(0), "first step size")
        .number("lambd", &Options::lambd, at_least(0), "decay of the weights")
        .number("alpha", &Options::alpha, at_least(0), "power by which the step size falls")
        .number("t0", &Options::t0, at_least(0), "update at which averaging begins")
        .number("weight_decay",
                &Options::weight_decay,
                at_least(0),
                "L2 penalty, added to the gradient");
    return table;
  }();
  return made;
}

ASGD::ASGD(const Options& options) : RuleOptimizer(update_operator(), 0, table(), options) {}

}  // namespace rondo
