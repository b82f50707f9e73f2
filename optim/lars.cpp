#include "optim/lars.h"

#include "optim/internal/tensor_rules.h"

namespace rondo {

const OptimizerTable<LARS::Options>& LARS::table() {
  static const auto made = [] {
    OptimizerTable<Options> table("LARS", "SGD with steps in proportion to each parameter.");
    table.number("lr", &Options::lr, at_least(0), "step size")
        .number("momentum", &Options::momentum, at_least(0), "share of the last step that is kept")
        .number("weight_decay",
                &Options::weight_decay,
                at_least(0),
                "L2 penalty, added to the gradient")
        .number("trust_coefficient",
                &Options::trust_coefficient,
                at_least(0),
                "step over parameter, both as norms, times lr")
        .number("eps", &Options::eps, at_least(0), "added to the gradient's norm");
    return table;
  }();
  return made;
}

LARS::LARS(const Options& options)
    : Optimizer(table().checked_numbers(options), {"momentum_buffer"}, groups_in(options)) {}

void LARS::update(ParamGroup& group) {
  const at::Tensor& decay = group["weight_decay"];
  for (Parameter& p : group.params) {
    if (p.grad().defined()) {
      const at::Tensor size = p.value.norm();
      const at::Tensor slope = p.grad().norm() + size * decay + group["eps"];
      const at::Tensor trust = detail::ratio_or_one(size * group["trust_coefficient"], slope);
      const at::Tensor step = (p.grad() + p.value * decay) * (trust * group["lr"]);
      p.value.sub_(p.state("momentum_buffer").mul_(group["momentum"]).add_(step));
    }
  }
}

}  // namespace rondo
