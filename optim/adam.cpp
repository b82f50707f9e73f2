#include "optim/adam.h"

#include "optim/internal/moments.h"
#include "optim/internal/relative_decay.h"

namespace rondo {

namespace {

using namespace rules;  // NOLINT: rondo's own

// The processor's estimates of roots and quotients, each with a step of Newton's method, were tried
// for `backend.exact = false`: on Zen 4 they take longer than the root and the divisions.
template <bool kIsDecoupled>
struct AdamRule : detail::EpsRule {
  static constexpr std::array kStates = {"exp_avg", "exp_avg_sq"};

  template <class N>
  struct Given {
    N lr, beta1, beta2, eps, weight_decay;
  };

  template <class N>
  struct Numbers {
    N keep;  ///< the decoupled weight decay, 1 - lr * decay
    N weight_decay;
    N beta1, one_minus_beta1, beta2, one_minus_beta2;
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

  /// The new moments. \return the gradient with what weight decay adds to it
  template <class By, class V>
  RONDO_INLINE static void move_moments(
      const By& by, V& param, const V& grad, V& exp_avg, V& exp_avg_sq) {
    const V slope = decayed<kIsDecoupled>(by, param, grad);
    exp_avg = add(exp_avg * by.beta1, slope, by.one_minus_beta1);
    exp_avg_sq = addcmul(exp_avg_sq * by.beta2, slope, slope, by.one_minus_beta2);
  }

  template <class By, class V>
  RONDO_INLINE static void move_param(const By& by, V& param, const V& exp_avg, const V& square) {
    const V denominator = sqrt(square) / by.sqrt_bias_correction2 + by.eps;
    param = addcdiv(param, exp_avg, denominator, by.minus_step_size);
  }

  template <class By, class V>
  RONDO_INLINE static void update(
      const By& by, V& param, const V& grad, V& exp_avg, V& exp_avg_sq) {
    move_moments(by, param, grad, exp_avg, exp_avg_sq);
    move_param(by, param, exp_avg, exp_avg_sq);
  }
};

struct RelativeAdamRule : AdamRule<true> {
  template <class N>
  struct Given {
    N lr, beta1, beta2, eps, weight_decay, initial_lr;
  };

  template <class N>
  static Numbers<N> numbers(const Given<N>& g, Counters<N>& count) {
    Numbers<N> by =
        AdamRule<true>::numbers<N>({g.lr, g.beta1, g.beta2, g.eps, g.weight_decay}, count);
    by.keep = kept_share(g.lr, g.initial_lr, g.weight_decay);
    return by;
  }
};

template <class Adam>
struct AmsgradRule : Adam {
  static constexpr std::array kStates = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};

  template <class By, class V>
  RONDO_INLINE static void update(
      const By& by, V& param, const V& grad, V& exp_avg, V& exp_avg_sq, V& max_exp_avg_sq) {
    Adam::move_moments(by, param, grad, exp_avg, exp_avg_sq);
    max_exp_avg_sq = maximum(exp_avg_sq, max_exp_avg_sq);
    Adam::move_param(by, param, exp_avg, max_exp_avg_sq);
  }
};

template <class Adam>
detail::UpdateOperator adam_operator(const char* name) {
  return {name,
          {detail::RuleCompiler<Adam>::compiled(),
           detail::RuleCompiler<AmsgradRule<Adam>>::compiled()}};
}

template <class Options>
OptimizerTable<Options> adam_table(const char* name, const char* doc, const char* decay) {
  MomentDocs docs;
  docs.weight_decay = decay;
  OptimizerTable<Options> table = table_of_moments<Options>(name, doc, docs);
  table.key("amsgrad", &Options::amsgrad, "divide by the largest second moment so far");
  return table;
}

}  // namespace

const detail::UpdateOperator& Adam::update_operator() {
  static const detail::UpdateOperator op = adam_operator<AdamRule<false>>("adam_");
  return op;
}

const detail::UpdateOperator& AdamW::update_operator() {
  static const detail::UpdateOperator op = adam_operator<AdamRule<true>>("adamw_");
  return op;
}

const detail::UpdateOperator& DecoupledAdamW::update_operator() {
  static const detail::UpdateOperator op = adam_operator<RelativeAdamRule>("decoupled_adamw_");
  return op;
}

const OptimizerTable<Adam::Options>& Adam::table() {
  static const auto made = adam_table<Options>("Adam",
                                               "Adaptive moments; weight decay goes through them.",
                                               "L2 penalty, added to the gradient");
  return made;
}

const OptimizerTable<AdamW::Options>& AdamW::table() {
  static const auto made =
      adam_table<Options>("AdamW",
                          "Adaptive moments with decoupled weight decay.",
                          "share of lr by which each weight shrinks at an update");
  return made;
}

const OptimizerTable<DecoupledAdamW::Options>& DecoupledAdamW::table() {
  static const auto made = [] {
    auto table = adam_table<Options>(
        "DecoupledAdamW",
        "AdamW whose weight decay is a share of the weights, as Composer has it.",
        "share by which each weight shrinks at an update, times lr / initial_lr");
    table.number("initial_lr",
                 &Options::initial_lr,
                 at_least(0),
                 "lr at which the whole of weight_decay counts; 0: the lr of these options");
    return table;
  }();
  return made;
}

Adam::Adam(const Options& options)
    : RuleOptimizer(update_operator(), options.amsgrad ? 1 : 0, table(), options) {}

AdamW::AdamW(const Options& options)
    : RuleOptimizer(update_operator(), options.amsgrad ? 1 : 0, table(), options) {}

DecoupledAdamW::DecoupledAdamW(const Options& options)
    : RuleOptimizer(
          update_operator(), options.amsgrad ? 1 : 0, table(), rules::with_initial_lr(options)) {}

}  // namespace rondo
