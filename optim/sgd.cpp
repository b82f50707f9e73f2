#include "optim/sgd.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "optim/internal/rule.h"
#include "optim/internal/update_operator.h"
#include "optim/internal/verbs.h"

namespace rondo {

namespace {

using namespace rules;  // NOLINT: rondo's own

template <class N>
struct SgdGiven {
  N lr, momentum, dampening, weight_decay;
};

struct SgdRule : detail::RuleDefaults {
  template <class N>
  using Given = SgdGiven<N>;

  template <class N>
  struct Numbers {
    N minus_lr, weight_decay;
  };

  template <class N>
  static Numbers<N> numbers(const Given<N>& g, Counters<N>& /*count*/) {
    if constexpr (std::is_same_v<N, double>) {
      if (g.momentum != 0) {
        throw UsageError(
            "SGD was built with momentum = 0 and keeps no buffers for it; "
            "give it a momentum > 0 to begin with");
      }
    }
    return {-g.lr, g.weight_decay};
  }

  template <class By, class V>
  RONDO_INLINE static void update(const By& by, V& param, const V& grad) {
    param = add(param, add_nonzero(grad, param, by.weight_decay), by.minus_lr);
  }
};

/// A group without momentum leaves the buffer as it is; the first update with momentum fills it.
template <bool kIsNesterov>
struct MomentumRule : detail::CountedRule {
  static constexpr std::array kStates = {"momentum_buffer"};

  template <class N>
  using Given = SgdGiven<N>;

  template <class N>
  struct Numbers {
    N minus_lr, weight_decay, momentum, one_minus_dampening, has_buffer;
  };

  template <class N>
  static Numbers<N> numbers(const Given<N>& g, Counters<N>& count) {
    const N updates = count.step;
    count.step = updates + is_greater(g.momentum, 0.0);
    return {-g.lr, g.weight_decay, g.momentum, 1.0 - g.dampening, updates};
  }

  template <class By, class V>
  RONDO_INLINE static void update(const By& by, V& param, const V& grad, V& momentum_buffer) {
    const V slope = add_nonzero(grad, param, by.weight_decay);
    const V moved = select(
        by.has_buffer, add(momentum_buffer * by.momentum, slope, by.one_minus_dampening), slope);
    momentum_buffer = select(by.momentum, moved, momentum_buffer);
    const V step = kIsNesterov ? add(slope, moved, by.momentum) : moved;
    param = add(param, select(by.momentum, step, slope), by.minus_lr);
  }
};

/// Momentum is a matter of any group that speaks of it.
bool has_momentum(const Sgd::Options& options) {
  const auto sets_momentum = [](const ParamGroupOptions& group) {
    return std::any_of(group.numbers.begin(), group.numbers.end(), [](const auto& number) {
      return number.first == "momentum";
    });
  };
  return options.momentum != 0 ||
         std::any_of(options.params.begin(), options.params.end(), sets_momentum);
}

int64_t variant_of(const Sgd::Options& options) {
  if (!has_momentum(options)) {
    return 0;
  }
  return options.nesterov ? 2 : 1;
}

}  // namespace

const detail::UpdateOperator& Sgd::update_operator() {
  static const detail::UpdateOperator op = {"sgd_",
                                            {detail::RuleCompiler<SgdRule>::compiled(),
                                             detail::RuleCompiler<MomentumRule<false>>::compiled(),
                                             detail::RuleCompiler<MomentumRule<true>>::compiled()}};
  return op;
}

const OptimizerTable<Sgd::Options>& Sgd::table() {
  static const auto made = [] {
    OptimizerTable<Options> table("SGD", "Stochastic gradient descent, with momentum.");
    table.number("lr", &Options::lr, at_least(0), "step size")
        .number("momentum", &Options::momentum, at_least(0), "share of the last step that is kept")
        .number("dampening",
                &Options::dampening,
                between(0, 1),
                "share of the gradient that momentum leaves out")
        .number("weight_decay",
                &Options::weight_decay,
                at_least(0),
                "L2 penalty, added to the gradient")
        .key("nesterov", &Options::nesterov, "look ahead along the momentum");
    return table;
  }();
  return made;
}

Sgd::Sgd(const Options& options)
    : RuleOptimizer(update_operator(), variant_of(options), table(), options) {
  if (options.nesterov && (options.momentum <= 0 || options.dampening != 0)) {
    throw UsageError(fmt::format(
        "SGD: nesterov needs momentum > 0 and dampening = 0, got momentum = {}, dampening = {}",
        options.momentum,
        options.dampening));
  }
}

}  // namespace rondo
