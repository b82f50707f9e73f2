#include "optim/rmsprop.h"

#include "core/error.h"
#include "optim/internal/rule.h"
#include "optim/internal/update_operator.h"
#include "optim/internal/verbs.h"

namespace rondo {

namespace {

using namespace rules;  // NOLINT: rondo's own

template <bool kIsCentered, bool kHasMomentum>
constexpr auto state_names() {
  if constexpr (kIsCentered && kHasMomentum) {
    return std::array{"square_avg", "grad_avg", "momentum_buffer"};
  } else if constexpr (kIsCentered) {
    return std::array{"square_avg", "grad_avg"};
  } else if constexpr (kHasMomentum) {
    return std::array{"square_avg", "momentum_buffer"};
  } else {
    return std::array{"square_avg"};
  }
}

template <bool kIsCentered, bool kHasMomentum>
struct RMSpropRule : detail::EpsRule {
  static constexpr auto kStates = state_names<kIsCentered, kHasMomentum>();

  template <class N>
  struct Given {
    N lr, alpha, eps, weight_decay, momentum;
  };

  template <class N>
  struct Numbers {
    N minus_lr, alpha, one_minus_alpha, eps, weight_decay, momentum, minus_one;
  };

  template <class N>
  static Numbers<N> numbers(const Given<N>& g, Counters<N>& count) {
    if constexpr (std::is_same_v<N, double> && !kHasMomentum) {
      if (g.momentum != 0) {
        throw UsageError(
            "RMSprop was built with momentum = 0 and keeps no buffers for it; "
            "give it a momentum > 0 to begin with");
      }
    }
    count.step = count.step + 1.0;
    return {
        -g.lr, g.alpha, 1.0 - g.alpha, g.eps, g.weight_decay, g.momentum, filled(g.momentum, -1.0)};
  }

  template <class By, class V>
  RONDO_INLINE static void update(
      const By& by, V& param, const V& grad, V& square_avg, V& grad_avg, V& momentum_buffer) {
    const V slope = add_nonzero(grad, param, by.weight_decay);
    square_avg = addcmul(square_avg * by.alpha, slope, slope, by.one_minus_alpha);
    V spread = square_avg;
    if constexpr (kIsCentered) {
      grad_avg = add(grad_avg * by.alpha, slope, by.one_minus_alpha);
      spread = addcmul(spread, grad_avg, grad_avg, by.minus_one);
    }
    const V denominator = sqrt(spread) + by.eps;
    const V plain = addcdiv(param, slope, denominator, by.minus_lr);
    if constexpr (kHasMomentum) {
      const V moved = addcdiv(momentum_buffer * by.momentum, slope, denominator);
      momentum_buffer = select(by.momentum, moved, momentum_buffer);
      param = select(by.momentum, add(param, moved, by.minus_lr), plain);
    } else {
      param = plain;
    }
  }

  template <class By, class V>
  RONDO_INLINE static void update(const By& by, V& param, const V& grad, V& square_avg, V& other) {
    V unused = grad;
    if constexpr (kIsCentered) {
      update(by, param, grad, square_avg, other, unused);
    } else {
      update(by, param, grad, square_avg, unused, other);
    }
  }

  template <class By, class V>
  RONDO_INLINE static void update(const By& by, V& param, const V& grad, V& square_avg) {
    V unused = grad;
    update(by, param, grad, square_avg, unused, unused);
  }
};

}  // namespace

const detail::UpdateOperator& RMSprop::update_operator() {
  static const detail::UpdateOperator op = {
      "rmsprop_",
      {detail::RuleCompiler<RMSpropRule<false, false>>::compiled(),
       detail::RuleCompiler<RMSpropRule<false, true>>::compiled(),
       detail::RuleCompiler<RMSpropRule<true, false>>::compiled(),
       detail::RuleCompiler<RMSpropRule<true, true>>::compiled()}};
  return op;
}

const OptimizerTable<RMSprop::Options>& RMSprop::table() {
  static const auto made = [] {
    OptimizerTable<Options> table("RMSprop", "Divides by the root of the mean of squares.");
    table.number("lr", &Options::lr, at_least(0), "step size")
        .number("alpha", &Options::alpha, between(0, 1), "share of the mean that is kept")
        .number("eps", &Options::eps, at_least(0), "added to the denominator")
        .number("weight_decay",
                &Options::weight_decay,
                at_least(0),
                "L2 penalty, added to the gradient")
        .number("momentum", &Options::momentum, at_least(0), "share of the last step that is kept")
        .key("centered", &Options::centered, "divide by the root of the variance");
    return table;
  }();
  return made;
}

RMSprop::RMSprop(const Options& options)
    : RuleOptimizer(update_operator(),
                    (options.centered ? 2 : 0) +
                        (sets_number(options.momentum, "momentum", options.params) ? 1 : 0),
                    table(),
                    options) {}

}  // namespace rondo
