#include "models/losses/share_losses.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/xlogy.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/ignored_label.h"
#include "core/require.h"
#include "models/internal/list_tensor.h"
#include "models/losses/register.h"

namespace rondo {

void BinaryCrossEntropyLoss::check(const Options& options) {
  const std::vector<double>& weights = options.pos_weight;
  detail::require(std::all_of(weights.begin(), weights.end(), [](double w) { return w >= 0; }),
                  "BCE: pos_weight",
                  "numbers >= 0",
                  fmt::format("{}", weights));
}

BinaryCrossEntropyLoss::BinaryCrossEntropyLoss(const Options& options) : options_(options) {
  check(options);
}

at::Tensor BinaryCrossEntropyLoss::losses(const at::Tensor& output,
                                          const at::Tensor& target) const {
  at::Tensor pos_weight;
  if (!options_.pos_weight.empty()) {
    pos_weight = detail::list_tensor(options_.pos_weight, output.options());
  }
  const at::Tensor all = at::binary_cross_entropy_with_logits(
      output, target.to(output.scalar_type()), {}, pos_weight, at::Reduction::None);
  return target.is_floating_point() ? all : all.masked_fill(target.eq(kIgnoredLabel), 0);
}

at::Tensor BinaryCrossEntropyLoss::counts(const at::Tensor& target) const {
  return target.is_floating_point() ? at::Tensor() : target.ne(kIgnoredLabel);
}

at::Tensor KlLoss::losses(const at::Tensor& output, const at::Tensor& target) const {
  const at::Tensor shares = target.to(output.scalar_type());
  const at::Tensor log_output = at::log_softmax(output, -1);
  return (at::xlogy(shares, shares) - shares * log_output).sum(-1);
}

void register_share_losses(Registry<Criterion>& registry) {
  registry.add<BinaryCrossEntropyLoss>("BCE", "Cross entropy of the sigmoid of each logit.")
      .key("pos_weight",
           &BinaryCrossEntropyLoss::Options::pos_weight,
           each(0, at_least(0)),
           "what a target of 1 counts against one of 0, for each output or for all");
  registry.add<KlLoss>("KL", "Divergence of the softmax of the logits from the target's shares.");
}

}  // namespace rondo
