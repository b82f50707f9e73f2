#include "optim/adabelief.h"

#include "optim/internal/moments.h"

namespace rondo {

namespace {

using namespace rules;  // NOLINT: rondo's own

template <bool kIsDecoupled>
struct AdaBeliefRule : detail::CountedRule {
  static constexpr std::array kStates = {"exp_avg", "exp_avg_var"};

  template <class N>
  struct Given {
    N lr, beta1, beta2, eps, weight_decay;
  };

  template <class N>
  struct Numbers {
    N keep, weight_decay, beta1, one_minus_beta1, beta2, one_minus_beta2;
    N sqrt_bias_correction2, eps, minus_step_size;
  };

  template <class N>
  static Numbers<N> numbers(const Given<N>& g, Counters<N>& count) {
    count.step = count.step + 1.0;
    return {1.0 - g.lr * g.weight_decay,
            g.weight_decay,
            g.beta1,
            1.0 - g.beta1,
            g.beta2,
            1.0 - g.beta2,
            sqrt(1.0 - pow(g.beta2, count.step)),
            g.eps,
            -(g.lr / (1.0 - pow(g.beta1, count.step)))};
  }

  /// The squares themselves are eps at least.
  template <class By>
  static bool flushes(const By& by) {
    return by.eps >= detail::kLeastEpsToFlush * detail::kLeastEpsToFlush;
  }

  template <class By, class V>
  RONDO_INLINE static void update(
      const By& by, V& param, const V& grad, V& exp_avg, V& exp_avg_var) {
    const V slope = decayed<kIsDecoupled>(by, param, grad);
    exp_avg = add(exp_avg * by.beta1, slope, by.one_minus_beta1);
    const V surprise = slope - exp_avg;
    exp_avg_var = addcmul(exp_avg_var * by.beta2, surprise, surprise, by.one_minus_beta2) + by.eps;
    const V denominator = sqrt(exp_avg_var) / by.sqrt_bias_correction2 + by.eps;
    param = addcdiv(param, exp_avg, denominator, by.minus_step_size);
  }
};

}  // namespace

const detail::UpdateOperator& AdaBelief::update_operator() {
  static const detail::UpdateOperator op = rules::operator_of_decays<AdaBeliefRule>("adabelief_");
  return op;
}

const OptimizerTable<AdaBelief::Options>& AdaBelief::table() {
  static const auto made = [] {
    rules::MomentDocs docs;
    docs.betas = "decay rates of the mean and of the squared surprise";
    docs.eps = "added to the squares and to the denominator";
    docs.weight_decay = "share of lr by which each weight shrinks at an update";
    auto table = rules::table_of_moments<Options>(
        "AdaBelief", "Adam that divides by the surprise in gradients.", docs);
    table.key("decoupled_weight_decay",
              &Options::decoupled_weight_decay,
              "false: add weight_decay to the gradient instead");
    return table;
  }();
  return made;
}

AdaBelief::AdaBelief(const Options& options)
    : RuleOptimizer(update_operator(), options.decoupled_weight_decay ? 1 : 0, table(), options) {}

}  // namespace rondo
