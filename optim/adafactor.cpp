#include "optim/adafactor.h"

#include <ATen/ops/clamp_min.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/where.h>

#include <limits>

#include "optim/internal/tensor_rules.h"

namespace rondo {

namespace {

/// The least root of a mean of squares: what the options say, or the dtype's.
at::Tensor least_root(const at::Tensor& eps, at::ScalarType dtype) {
  const double own = dtype == at::kDouble ? std::numeric_limits<double>::epsilon()
                                          : double{std::numeric_limits<float>::epsilon()};
  return at::where(eps.gt(0), eps, at::full_like(eps, own));
}

/// Moves a mean on by a share of what is new.
at::Tensor moved(at::Tensor& mean, const at::Tensor& value, const at::Tensor& share) {
  return mean.add_((value - mean) * share);
}

}  // namespace

const OptimizerTable<Adafactor::Options>& Adafactor::table() {
  static const auto made = [] {
    OptimizerTable<Options> table("Adafactor", "Keeps squares of a matrix by row and column only.");
    table.number("lr", &Options::lr, at_least(0), "the most that a step is of its parameter")
        .number("beta2_decay",
                &Options::beta2_decay,
                between(-1, 0),
                "power of the update at which the mean of squares learns")
        .numbers("eps",
                 {"eps1", "eps2"},
                 &Options::eps,
                 at_least(0),
                 "least root of squares (0: the dtype's), and of a parameter's mean square")
        .number("d", &Options::d, greater_than(0), "the largest root mean square of an update")
        .number("weight_decay",
                &Options::weight_decay,
                at_least(0),
                "share of lr by which each weight shrinks at an update");
    return table;
  }();
  return made;
}

Adafactor::Adafactor(const Options& options)
    : Optimizer(table().checked_numbers(options), {}, groups_in(options), {"step"}) {}

std::vector<StateShape> Adafactor::states_of(const NamedTensor& parameter) const {
  std::vector<int64_t> sizes = parameter.second.sizes().vec();
  if (sizes.size() < 2) {
    return {{"variance", sizes}};
  }
  std::vector<int64_t> columns = sizes;
  sizes.back() = 1;
  columns[columns.size() - 2] = 1;
  return {{"row_var", sizes}, {"col_var", columns}};
}

void Adafactor::update(ParamGroup& group) {
  const at::Tensor& lr = group["lr"];
  for (Parameter& p : group.params) {
    if (!p.grad().defined()) {
      continue;
    }
    const at::Tensor step = p.state("step").add_(1);
    const at::Tensor share = at::pow(step, group["beta2_decay"]);
    const at::Tensor size = at::maximum(group["eps2"], detail::root_mean_square(p.value)) *
                            at::minimum(lr, step.rsqrt());
    p.value.mul_(1 - lr * group["weight_decay"]);
    const at::Tensor least = least_root(group["eps1"], p.value.scalar_type());
    const at::Tensor squares = p.grad().square();
    at::Tensor mean;
    if (p.value.dim() > 1) {
      const at::Tensor rows = moved(p.state("row_var"), squares.mean(-1, true), share);
      const at::Tensor columns = moved(p.state("col_var"), squares.mean(-2, true), share);
      mean = rows * columns / at::maximum(rows.mean(-2, true), least);
    } else {
      mean = moved(p.state("variance"), squares, share);
    }
    const at::Tensor change = p.grad() * at::maximum(mean, least.square()).rsqrt();
    const at::Tensor excess = at::clamp_min(detail::root_mean_square(change) / group["d"], 1.0);
    p.value.sub_(change * (size / excess));
  }
}

}  // namespace rondo
