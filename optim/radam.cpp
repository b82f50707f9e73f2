#include "optim/radam.h"

#include "optim/internal/moments.h"

namespace rondo {

namespace {

using namespace rules;  // NOLINT: rondo's own

/// The least length of the mean of squares whose variance is finite enough.
constexpr double kReliableLength = 5.0;

template <bool kIsDecoupled>
struct RAdamRule : detail::EpsRule {
  static constexpr std::array kStates = {"exp_avg", "exp_avg_sq"};

  template <class N>
  struct Given {
    N lr, beta1, beta2, eps, weight_decay;
  };

  template <class N>
  struct Numbers {
    N keep, weight_decay, beta1, one_minus_beta1, beta2, one_minus_beta2;
    N bias_correction1, lr, sqrt_bias_correction2, eps, is_reliable, rectification;
  };

  template <class N>
  static Numbers<N> numbers(const Given<N>& g, Counters<N>& count) {
    count.step = count.step + 1.0;
    const N decayed2 = pow(g.beta2, count.step);
    const N longest = 2.0 / (1.0 - g.beta2) - 1.0;
    const N length = longest - 2.0 * count.step * decayed2 / (1.0 - decayed2);
    const N part = (length - 4.0) * (length - 2.0) * longest;
    return {1.0 - g.lr * g.weight_decay,
            g.weight_decay,
            g.beta1,
            1.0 - g.beta1,
            g.beta2,
            1.0 - g.beta2,
            1.0 - pow(g.beta1, count.step),
            g.lr,
            sqrt(1.0 - decayed2),
            g.eps,
            is_greater(length, kReliableLength),
            sqrt(part / ((longest - 4.0) * (longest - 2.0) * length))};
  }

  template <class By, class V>
  RONDO_INLINE static void update(
      const By& by, V& param, const V& grad, V& exp_avg, V& exp_avg_sq) {
    const V slope = decayed<kIsDecoupled>(by, param, grad);
    exp_avg = add(exp_avg * by.beta1, slope, by.one_minus_beta1);
    exp_avg_sq = addcmul(exp_avg_sq * by.beta2, slope, slope, by.one_minus_beta2);
    const V step = exp_avg / by.bias_correction1 * by.lr;
    const V adaptive = by.sqrt_bias_correction2 / (sqrt(exp_avg_sq) + by.eps);
    param = param - select(by.is_reliable, step * adaptive * by.rectification, step);
  }
};

}  // namespace

const detail::UpdateOperator& RAdam::update_operator() {
  static const detail::UpdateOperator op = rules::operator_of_decays<RAdamRule>("radam_");
  return op;
}

const OptimizerTable<RAdam::Options>& RAdam::table() {
  static const auto made = [] {
    auto table = rules::table_of_moments<Options>(
        "RAdam", "Adam that adapts once its squares are reliable.");
    table.key("decoupled_weight_decay",
              &Options::decoupled_weight_decay,
              "shrink weights by lr * weight_decay instead");
    return table;
  }();
  return made;
}

RAdam::RAdam(const Options& options)
    : RuleOptimizer(update_operator(), options.decoupled_weight_decay ? 1 : 0, table(), options) {}

}  // namespace rondo
