#include "optim/nadam.h"

#include "optim/internal/moments.h"

namespace rondo {

namespace {

using namespace rules;  // NOLINT: rondo's own

template <bool kIsDecoupled>
struct NAdamRule : detail::EpsRule {
  static constexpr std::array kStates = {"exp_avg", "exp_avg_sq"};
  static constexpr std::array kCounters = {"step", "mu_product"};

  template <class N>
  struct Counters {
    N step, mu_product;
  };

  template <class N>
  struct Given {
    N lr, beta1, beta2, eps, weight_decay, momentum_decay;
  };

  template <class N>
  struct Numbers {
    N keep, weight_decay, beta1, one_minus_beta1, beta2, one_minus_beta2;
    N bias_correction2, eps, minus_grad_step, minus_avg_step;
  };

  template <class N>
  static N momentum_at(const Given<N>& g, const N& step) {
    return g.beta1 * (1.0 - 0.5 * pow(0.96, step * g.momentum_decay));
  }

  template <class N>
  static Numbers<N> numbers(const Given<N>& g, Counters<N>& count) {
    const N before = select(count.step, count.mu_product, filled(count.mu_product, 1.0));
    count.step = count.step + 1.0;
    const N mu = momentum_at(g, count.step);
    const N mu_next = momentum_at(g, N(count.step + 1.0));
    count.mu_product = before * mu;
    return {1.0 - g.lr * g.weight_decay,
            g.weight_decay,
            g.beta1,
            1.0 - g.beta1,
            g.beta2,
            1.0 - g.beta2,
            1.0 - pow(g.beta2, count.step),
            g.eps,
            -(g.lr * (1.0 - mu) / (1.0 - count.mu_product)),
            -(g.lr * mu_next / (1.0 - count.mu_product * mu * mu_next))};
  }

  template <class By, class V>
  RONDO_INLINE static void update(
      const By& by, V& param, const V& grad, V& exp_avg, V& exp_avg_sq) {
    const V slope = decayed<kIsDecoupled>(by, param, grad);
    exp_avg = add(exp_avg * by.beta1, slope, by.one_minus_beta1);
    exp_avg_sq = addcmul(exp_avg_sq * by.beta2, slope, slope, by.one_minus_beta2);
    const V denominator = sqrt(exp_avg_sq / by.bias_correction2) + by.eps;
    param = addcdiv(param, slope, denominator, by.minus_grad_step);
    param = addcdiv(param, exp_avg, denominator, by.minus_avg_step);
  }
};

}  // namespace

const detail::UpdateOperator& NAdam::update_operator() {
  static const detail::UpdateOperator op = rules::operator_of_decays<NAdamRule>("nadam_");
  return op;
}

const OptimizerTable<NAdam::Options>& NAdam::table() {
  static const auto made = [] {
    auto table = rules::table_of_moments<Options>("NAdam", "Adam with Nesterov's momentum.");
    table
        .number(
            "momentum_decay", &Options::momentum_decay, at_least(0), "how fast momentum warms up")
        .key("decoupled_weight_decay",
             &Options::decoupled_weight_decay,
             "shrink weights by lr * weight_decay instead");
    return table;
  }();
  return made;
}

NAdam::NAdam(const Options& options)
    : RuleOptimizer(update_operator(), options.decoupled_weight_decay ? 1 : 0, table(), options) {}

}  // namespace rondo
