#include "models/blocks/judge.h"

#include <utility>

#include "metrics/accuracy.h"
#include "metrics/regression_error.h"
#include "metrics/token_loss.h"
#include "models/losses/class_losses.h"
#include "models/with_loss.h"

namespace rondo::detail {

Judge::Judge(const Factory<Criterion>& loss, std::string target)
    : loss_(loss ? loss.make() : std::make_unique<CrossEntropyLoss>()),
      target_(std::move(target)) {}

Outputs Judge::operator()(const at::Tensor& output,
                          const Batch& batch,
                          const at::Tensor& weights) const {
  const bool is_value = loss_->targets() == Criterion::Targets::Values;
  const char* const name = is_value ? "prediction" : "logits";
  const at::Tensor* const target = batch.find(target_);
  if (target == nullptr) {
    return {{name, output}};
  }
  return with_loss({{name, output}}, batch, [&](const Outputs& outputs, const Batch& targets) {
    const at::Tensor& judged = outputs[name];
    return weights.defined() ? loss_->mean(judged, targets[target_], weights, target_)
                             : loss_->mean(judged, targets[target_], target_);
  });
}

std::vector<Factory<Metric>> Judge::metrics() const {
  if (loss_->targets() == Criterion::Targets::Classes) {
    Accuracy::Options accuracy;
    accuracy.label = target_;
    return {use<Accuracy>(accuracy)};
  }
  if (loss_->targets() == Criterion::Targets::Values && loss_->outputs_per_value() == 1) {
    RegressionError::Options error;
    error.output = "prediction";
    error.target = target_;
    return {use<MeanSquaredError>(error)};
  }
  return {};
}

std::vector<Factory<Metric>> Judge::token_metrics() const {
  if (!loss_->is_negative_log_likelihood()) {
    return metrics();
  }
  Perplexity::Options perplexity;
  perplexity.targets = target_;
  return {use<Perplexity>(perplexity)};
}

}  // namespace rondo::detail
