#include "optim/lamb.h"

#include "optim/internal/tensor_rules.h"

namespace rondo {

const OptimizerTable<LAMB::Options>& LAMB::table() {
  static const auto made = [] {
    OptimizerTable<Options> table("LAMB", "Adam with steps in proportion to each parameter.");
    table.number("lr", &Options::lr, at_least(0), "step over parameter, both as norms")
        .numbers("betas",
                 {"beta1", "beta2"},
                 &Options::betas,
                 below_one(),
                 "decay rates of the two moments")
        .number("eps", &Options::eps, at_least(0), "added to the denominator")
        .number("weight_decay",
                &Options::weight_decay,
                at_least(0),
                "share of the parameter that is added to the step before it is scaled");
    return table;
  }();
  return made;
}

LAMB::LAMB(const Options& options)
    : Optimizer(table().checked_numbers(options),
                {"exp_avg", "exp_avg_sq"},
                groups_in(options),
                {"step"}) {}

void LAMB::update(ParamGroup& group) {
  for (Parameter& p : group.params) {
    if (p.grad().defined()) {
      const at::Tensor step = detail::adam_step(group, p) + p.value * group["weight_decay"];
      const at::Tensor trust = detail::ratio_or_one(p.value.norm(), step.norm());
      p.value.sub_(step * (trust * group["lr"]));
    }
  }
}

}  // namespace rondo
