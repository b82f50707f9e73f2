#include "optim/sgd.h"

#include <fmt/format.h>

#include <type_traits>

#include "core/error.h"
#include "optim/internal/relative_decay.h"
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

template <class N>
struct DecoupledSgdGiven {
  N lr, momentum, dampening, weight_decay, initial_lr;
};

/// What SGD with and without momentum share.
template <bool kIsDecoupled, class Base>
struct SgdParts : Base {
  template <class N>
  using Given = std::conditional_t<kIsDecoupled, DecoupledSgdGiven<N>, SgdGiven<N>>;

  template <class N>
  static N keep(const Given<N>& g) {
    if constexpr (kIsDecoupled) {
      return kept_share(g.lr, g.initial_lr, g.weight_decay);
    } else {
      return filled(g.lr, 1.0);
    }
  }

  /// The gradient with what weight decay adds to it, or the weights without what it takes.
  template <class By, class V>
  RONDO_INLINE static V decay(const By& by, V& param, const V& grad) {
    if constexpr (kIsDecoupled) {
      param = param * by.keep;
      return grad;
    } else {
      return add_nonzero(grad, param, by.weight_decay);
    }
  }
};

template <bool kIsDecoupled>
struct SgdRule : SgdParts<kIsDecoupled, detail::RuleDefaults> {
  using Parts = SgdParts<kIsDecoupled, detail::RuleDefaults>;

  template <class N>
  struct Numbers {
    N minus_lr, weight_decay, keep;
  };

  template <class N>
  static Numbers<N> numbers(const typename Parts::template Given<N>& g,
                            typename Parts::template Counters<N>& /*count*/) {
    if constexpr (std::is_same_v<N, double>) {
      if (g.momentum != 0) {
        throw UsageError(
            "SGD was built with momentum = 0 and keeps no buffers for it; "
            "give it a momentum > 0 to begin with");
      }
    }
    return {-g.lr, g.weight_decay, Parts::template keep<N>(g)};
  }

  template <class By, class V>
  RONDO_INLINE static void update(const By& by, V& param, const V& grad) {
    const V slope = Parts::decay(by, param, grad);
    param = add(param, slope, by.minus_lr);
  }
};

/// A group without momentum leaves the buffer as it is; the first update with momentum fills it.
template <bool kIsDecoupled, bool kIsNesterov>
struct MomentumRule : SgdParts<kIsDecoupled, detail::CountedRule> {
  using Parts = SgdParts<kIsDecoupled, detail::CountedRule>;

  static constexpr std::array kStates = {"momentum_buffer"};

  template <class N>
  struct Numbers {
    N minus_lr, weight_decay, keep, momentum, one_minus_dampening, has_buffer;
  };

  template <class N>
  static Numbers<N> numbers(const typename Parts::template Given<N>& g,
                            typename Parts::template Counters<N>& count) {
    const N updates = count.step;
    count.step = updates + is_greater(g.momentum, 0.0);
    return {
        -g.lr, g.weight_decay, Parts::template keep<N>(g), g.momentum, 1.0 - g.dampening, updates};
  }

  template <class By, class V>
  RONDO_INLINE static void update(const By& by, V& param, const V& grad, V& momentum_buffer) {
    const V slope = Parts::decay(by, param, grad);
    const V moved = select(
        by.has_buffer, add(momentum_buffer * by.momentum, slope, by.one_minus_dampening), slope);
    momentum_buffer = select(by.momentum, moved, momentum_buffer);
    const V step = kIsNesterov ? add(slope, moved, by.momentum) : moved;
    param = add(param, select(by.momentum, step, slope), by.minus_lr);
  }
};

template <bool kIsDecoupled>
detail::UpdateOperator sgd_operator(const char* name) {
  return {name,
          {detail::RuleCompiler<SgdRule<kIsDecoupled>>::compiled(),
           detail::RuleCompiler<MomentumRule<kIsDecoupled, false>>::compiled(),
           detail::RuleCompiler<MomentumRule<kIsDecoupled, true>>::compiled()}};
}

template <class Options>
int64_t variant_of(const Options& options) {
  if (!sets_number(options.momentum, "momentum", options.params)) {
    return 0;
  }
  return options.nesterov ? 2 : 1;
}

template <class Options>
OptimizerTable<Options> sgd_table(const char* name, const char* doc, const char* decay) {
  OptimizerTable<Options> table(name, doc);
  table.number("lr", &Options::lr, at_least(0), "step size")
      .number("momentum", &Options::momentum, at_least(0), "share of the last step that is kept")
      .number("dampening",
              &Options::dampening,
              between(0, 1),
              "share of the gradient that momentum leaves out")
      .number("weight_decay", &Options::weight_decay, at_least(0), decay)
      .key("nesterov", &Options::nesterov, "look ahead along the momentum");
  return table;
}

template <class Options>
void check_nesterov(const char* name, const Options& options) {
  if (options.nesterov && (options.momentum <= 0 || options.dampening != 0)) {
    throw UsageError(fmt::format(
        "{}: nesterov needs momentum > 0 and dampening = 0, got momentum = {}, dampening = {}",
        name,
        options.momentum,
        options.dampening));
  }
}

}  // namespace

const detail::UpdateOperator& Sgd::update_operator() {
  static const detail::UpdateOperator op = sgd_operator<false>("sgd_");
  return op;
}

const detail::UpdateOperator& DecoupledSGDW::update_operator() {
  static const detail::UpdateOperator op = sgd_operator<true>("decoupled_sgdw_");
  return op;
}

const OptimizerTable<Sgd::Options>& Sgd::table() {
  static const auto made = sgd_table<Options>(
      "SGD", "Stochastic gradient descent, with momentum.", "L2 penalty, added to the gradient");
  return made;
}

const OptimizerTable<DecoupledSGDW::Options>& DecoupledSGDW::table() {
  static const auto made = [] {
    auto table = sgd_table<Options>(
        "DecoupledSGDW",
        "SGD with decoupled weight decay, as Composer has it.",
        "share by which each weight shrinks at an update, times lr / initial_lr");
    table.number("initial_lr",
                 &Options::initial_lr,
                 at_least(0),
                 "lr at which the whole of weight_decay counts; 0: the lr of these options");
    return table;
  }();
  return made;
}

Sgd::Sgd(const Options& options)
    : RuleOptimizer(update_operator(), variant_of(options), table(), options) {
  check_nesterov("SGD", options);
}

DecoupledSGDW::DecoupledSGDW(const Options& options)
    : RuleOptimizer(
          update_operator(), variant_of(options), table(), rules::with_initial_lr(options)) {
  check_nesterov("DecoupledSGDW", options);
}

}  // namespace rondo
