#include "optim/adamax.h"

#include "optim/internal/moments.h"

namespace rondo {

namespace {

using namespace rules;  // NOLINT: rondo's own

struct AdamaxRule : detail::EpsRule {
  static constexpr std::array kStates = {"exp_avg", "exp_inf"};

  template <class N>
  struct Given {
    N lr, beta1, beta2, eps, weight_decay;
  };

  template <class N>
  struct Numbers {
    N minus_step_size, beta1, one_minus_beta1, beta2, eps, weight_decay;
  };

  template <class N>
  static Numbers<N> numbers(const Given<N>& g, Counters<N>& count) {
    count.step = count.step + 1.0;
    return {-(g.lr / (1.0 - pow(g.beta1, count.step))),
            g.beta1,
            1.0 - g.beta1,
            g.beta2,
            g.eps,
            g.weight_decay};
  }

  template <class By, class V>
  RONDO_INLINE static void update(const By& by, V& param, const V& grad, V& exp_avg, V& exp_inf) {
    const V slope = add_nonzero(grad, param, by.weight_decay);
    exp_avg = add(exp_avg * by.beta1, slope, by.one_minus_beta1);
    exp_inf = maximum(exp_inf * by.beta2, abs(slope) + by.eps);
    param = addcdiv(param, exp_avg, exp_inf, by.minus_step_size);
  }
};

}  // namespace

const detail::UpdateOperator& Adamax::update_operator() {
  static const detail::UpdateOperator op = {"adamax_",
                                            {detail::RuleCompiler<AdamaxRule>::compiled()}};
  return op;
}

const OptimizerTable<Adamax::Options>& Adamax::table() {
  static const auto made = [] {
    rules::MomentDocs docs;
    docs.betas = "decay rates of the moment and of the largest gradient";
    docs.eps = "added to the size of gradients";
    docs.weight_decay = "L2 penalty, added to the gradient";
    return rules::table_of_moments<Options>(
        "Adamax", "Adam that divides by the largest gradient, decayed.", docs);
  }();
  return made;
}

Adamax::Adamax(const Options& options) : RuleOptimizer(update_operator(), 0, table(), options) {}

}  // namespace rondo
