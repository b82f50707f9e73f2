#include "optim/rprop.h"

#include <fmt/format.h>

#include "core/error.h"
#include "optim/internal/rule.h"
#include "optim/internal/update_operator.h"
#include "optim/internal/verbs.h"

namespace rondo {

namespace {

using namespace rules;  // NOLINT: rondo's own

struct RpropRule : detail::CountedRule {
  static constexpr std::array kStates = {"prev", "step_size"};

  template <class N>
  struct Given {
    N lr, etaminus, etaplus, step_size_min, step_size_max;
  };

  template <class N>
  struct Numbers {
    N lr, etaminus, etaplus, step_size_min, step_size_max, updates;
  };

  template <class N>
  static Numbers<N> numbers(const Given<N>& g, Counters<N>& count) {
    const N updates = count.step;
    count.step = updates + 1.0;
    return {g.lr, g.etaminus, g.etaplus, g.step_size_min, g.step_size_max, updates};
  }

  /// Whether two small gradients have one sign counts.
  template <class By>
  static bool flushes(const By& /*by*/) {
    return false;
  }

  template <class By, class V>
  RONDO_INLINE static void update(const By& by, V& param, const V& grad, V& prev, V& step_size) {
    const V same = grad * prev;
    const V changed = -same;
    const V kept = where_positive(changed, filled(grad, 0.0), grad);
    const V factor =
        where_positive(same,
                       filled(grad, by.etaplus),
                       where_positive(changed, filled(grad, by.etaminus), filled(grad, 1.0)));
    const V before = select(by.updates, step_size, filled(step_size, by.lr));
    step_size = clamp(before * factor, by.step_size_min, by.step_size_max);
    param = param - sign(kept) * step_size;
    prev = kept;
  }
};

}  // namespace

const detail::UpdateOperator& Rprop::update_operator() {
  static const detail::UpdateOperator op = {"rprop_",
                                            {detail::RuleCompiler<RpropRule>::compiled()}};
  return op;
}

const OptimizerTable<Rprop::Options>& Rprop::table() {
  static const auto made = [] {
    OptimizerTable<Options> table("Rprop", "Steps by sign, in sizes that adapt to its changes.");
    table.number("lr", &Options::lr, at_least(0), "the first step's size")
        .numbers("etas",
                 {"etaminus", "etaplus"},
                 &Options::etas,
                 greater_than(0),
                 "factors of a step's size: when the sign changed, when it did not")
        .numbers("step_sizes",
                 {"step_size_min", "step_size_max"},
                 &Options::step_sizes,
                 at_least(0),
                 "the least and the largest step");
    return table;
  }();
  return made;
}

Rprop::Rprop(const Options& options) : RuleOptimizer(update_operator(), 0, table(), options) {
  if (options.etas[0] >= 1 || options.etas[1] <= 1 ||
      options.step_sizes[0] > options.step_sizes[1]) {
    throw UsageError(
        fmt::format("Rprop: expected etas below and above 1 and step_sizes in order, got "
                    "etas = [{}, {}], step_sizes = [{}, {}]",
                    options.etas[0],
                    options.etas[1],
                    options.step_sizes[0],
                    options.step_sizes[1]));
  }
}

}  // namespace rondo
