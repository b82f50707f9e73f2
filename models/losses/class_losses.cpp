#include "models/losses/class_losses.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/softmax.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "core/require.h"
#include "models/internal/list_tensor.h"
#include "models/losses/register.h"

namespace rondo {

namespace {

void require_weights(const char* option, const std::vector<double>& weights) {
  detail::require(std::all_of(weights.begin(), weights.end(), [](double w) { return w >= 0; }),
                  option,
                  "numbers >= 0",
                  fmt::format("{}", weights));
}

/// The weight of each label, 0 where the label is ignored.
at::Tensor weights_of(const at::Tensor& labels, const at::Tensor& by_class, int64_t ignored) {
  const at::Tensor is_ignored = labels.eq(ignored);
  const at::Tensor found = by_class.index_select(0, labels.masked_fill(is_ignored, 0).flatten());
  return found.view(labels.sizes()).masked_fill(is_ignored, 0);
}

/// The weights of the classes as numbers of the output's type and device.
at::Tensor weights_for(const std::vector<double>& weights,
                       const at::Tensor& output,
                       const char* option) {
  if (static_cast<int64_t>(weights.size()) != output.size(-1)) {
    throw ShapeError(fmt::format("{} has {} numbers, there are {} logits; give one for each class",
                                 option,
                                 weights.size(),
                                 output.size(-1)));
  }
  return detail::list_tensor(weights, output.options());
}

at::Tensor rows_of(const at::Tensor& logits) {
  return logits.reshape({-1, logits.size(-1)});
}

bool are_shares(const at::Tensor& logits, const at::Tensor& target) {
  return target.is_floating_point() && logits.dim() > 0 && logits.sizes() == target.sizes();
}

}  // namespace

void CrossEntropyLoss::check(const Options& options) {
  detail::require(options.label_smoothing >= 0 && options.label_smoothing < 1,
                  "CrossEntropy: label_smoothing",
                  "in [0, 1)",
                  options.label_smoothing);
  require_weights("CrossEntropy: class_weights", options.class_weights);
}

CrossEntropyLoss::CrossEntropyLoss(const Options& options) : options_(options) {
  check(options);
}

bool CrossEntropyLoss::is_negative_log_likelihood() const {
  return options_.label_smoothing == 0 && options_.class_weights.empty();
}

void CrossEntropyLoss::require_fits(const at::Tensor& output,
                                    const at::Tensor& target,
                                    std::string_view name) const {
  if (!are_shares(output, target)) {
    Criterion::require_fits(output, target, name);
  }
}

at::Tensor CrossEntropyLoss::losses(const at::Tensor& output, const at::Tensor& target) const {
  at::Tensor weights;
  if (!options_.class_weights.empty()) {
    weights = weights_for(options_.class_weights, output, "CrossEntropy: class_weights");
  }
  const bool are_dense = are_shares(output, target);
  return at::cross_entropy_loss(rows_of(output),
                                are_dense ? rows_of(target) : target.to(at::kLong).reshape({-1}),
                                weights,
                                at::Reduction::None,
                                are_dense ? -1 : options_.ignore_index,
                                options_.label_smoothing)
      .view(are_dense ? output.sizes().slice(0, static_cast<size_t>(output.dim() - 1))
                      : target.sizes());
}

at::Tensor CrossEntropyLoss::counts(const at::Tensor& target) const {
  if (target.is_floating_point()) {
    return {};
  }
  const at::Tensor labels = target.to(at::kLong);
  if (!options_.class_weights.empty()) {
    const auto numbers = labels.options().dtype(at::kDouble);
    return weights_of(
        labels, detail::list_tensor(options_.class_weights, numbers), options_.ignore_index);
  }
  return labels.ne(options_.ignore_index);
}

// LibTorch's own mean, which has kernels; that with class weights and smoothed labels selects what
// counts, whose number a step cannot know before.
at::Tensor CrossEntropyLoss::plain_mean(const at::Tensor& output, const at::Tensor& target) const {
  if (!options_.class_weights.empty() || options_.label_smoothing > 0 ||
      are_shares(output, target)) {
    return Criterion::plain_mean(output, target);
  }
  return at::cross_entropy_loss(rows_of(output),
                                target.to(at::kLong).reshape({-1}),
                                {},
                                at::Reduction::Mean,
                                options_.ignore_index);
}

void FocalLoss::check(const Options& options) {
  detail::require(options.gamma == 0 || options.gamma >= 1,
                  "Focal: gamma",
                  "0 or >= 1, since below 1 the gradient of a label that is certain is infinite",
                  options.gamma);
  require_weights("Focal: alpha", options.alpha);
}

FocalLoss::FocalLoss(const Options& options) : options_(options) {
  check(options);
}

at::Tensor FocalLoss::losses(const at::Tensor& output, const at::Tensor& target) const {
  const at::Tensor labels = target.to(at::kLong);
  const at::Tensor is_ignored = labels.eq(options_.ignore_index);
  const at::Tensor index = labels.masked_fill(is_ignored, 0).reshape({-1, 1});
  const at::Tensor log_share =
      at::log_softmax(rows_of(output), -1).gather(1, index).view(labels.sizes());
  at::Tensor losses = -log_share;
  if (options_.gamma > 0) {
    losses = losses * (1 - log_share.exp()).pow(options_.gamma);
  }
  if (!options_.alpha.empty()) {
    losses = losses * weights_of(labels,
                                 weights_for(options_.alpha, output, "Focal: alpha"),
                                 options_.ignore_index);
  }
  return losses.masked_fill(is_ignored, 0);
}

at::Tensor FocalLoss::counts(const at::Tensor& target) const {
  return target.to(at::kLong).ne(options_.ignore_index);
}

void DiceLoss::check(const Options& options) {
  detail::require(options.smooth > 0, "Dice: smooth", "> 0", options.smooth);
}

DiceLoss::DiceLoss(const Options& options) : options_(options) {
  check(options);
}

void DiceLoss::require_fits(const at::Tensor& output,
                            const at::Tensor& target,
                            std::string_view name) const {
  Criterion::require_fits(output, target, name);
  if (target.dim() == 0 || (!options_.background && output.size(-1) < 2)) {
    throw ShapeError(
        fmt::format("Dice: \"{}\" needs a batch dimension and, without the "
                    "background, the logits 2 classes or more",
                    name));
  }
}

at::Tensor DiceLoss::losses(const at::Tensor& output, const at::Tensor& target) const {
  const int64_t classes = output.size(-1);
  const at::Tensor labels = target.to(at::kLong).reshape({target.size(0), -1, 1});
  const at::Tensor counted = labels.ne(options_.ignore_index);
  // [B, places, classes]
  const at::Tensor shares = output.reshape({target.size(0), -1, classes}).softmax(-1).mul(counted);
  const at::Tensor is_class = labels.eq(at::arange(classes, labels.options()))
                                  .logical_and(counted)
                                  .to(shares.scalar_type());
  const at::Tensor both = (shares * is_class).sum(1);
  const at::Tensor dice =
      (2 * both + options_.smooth) / (shares.sum(1) + is_class.sum(1) + options_.smooth);
  return 1 - (options_.background ? dice : dice.slice(1, 1)).mean(1);
}

void register_class_losses(Registry<Criterion>& registry) {
  registry.add<CrossEntropyLoss>("CrossEntropy", "Cross entropy of the softmax of the logits.")
      .key("label_smoothing",
           &CrossEntropyLoss::Options::label_smoothing,
           below_one(),
           "share of a label that is spread over all classes")
      .key("class_weights",
           &CrossEntropyLoss::Options::class_weights,
           each(0, at_least(0)),
           "what each class counts; none: all count alike")
      .key("ignore_index", &CrossEntropyLoss::Options::ignore_index, "a label that is left out");
  registry.add<FocalLoss>("Focal", "Cross entropy that counts less where the model is sure.")
      .key("gamma", &FocalLoss::Options::gamma, at_least(0), "how much less: 0 or >= 1")
      .key("alpha",
           &FocalLoss::Options::alpha,
           each(0, at_least(0)),
           "factor of each class; none: all are 1")
      .key("ignore_index", &FocalLoss::Options::ignore_index, "a label that is left out");
  registry
      .add<DiceLoss>("Dice", "How far predicted and labelled regions overlap, for segmentation.")
      .key("smooth",
           &DiceLoss::Options::smooth,
           greater_than(0),
           "added to numerator and denominator")
      .key("background", &DiceLoss::Options::background, "whether class 0 counts too")
      .key("ignore_index", &DiceLoss::Options::ignore_index, "a label that is left out");
}

}  // namespace rondo
