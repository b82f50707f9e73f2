#include "models/losses/criterion.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <functional>
#include <vector>

#include "core/error.h"
#include "models/forward_error.h"

namespace rondo {

namespace {

std::string text_of(const at::Tensor& tensor) {
  return fmt::format("{}[{}]", toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "));
}

void require_classes(const at::Tensor& logits, const at::Tensor& label, std::string_view name) {
  if (!at::isIntegralType(label.scalar_type(), /*includeBool=*/true)) {
    throw ShapeError(
        fmt::format("this loss needs the numbers of classes, which are integers; \"{}\" is {}. For "
                    "values, use a loss of values such as MSE",
                    name,
                    text_of(label)));
  }
  if (logits.dim() == 0 || logits.numel() != label.numel() * logits.size(-1)) {
    throw ShapeError(
        fmt::format("this loss needs one label for each row of logits; the logits are [{}], "
                    "\"{}\" is [{}]",
                    fmt::join(logits.sizes(), ", "),
                    name,
                    fmt::join(label.sizes(), ", ")));
  }
}

void require_values(const at::Tensor& output,
                    const at::Tensor& target,
                    std::string_view name,
                    bool may_be_integers) {
  const bool is_right_type = target.is_floating_point() || may_be_integers;
  if (output.sizes() != target.sizes() || !is_right_type) {
    throw ShapeError(
        fmt::format("this loss needs a floating-point target of the output's shape, [{}]; \"{}\" "
                    "is {}",
                    fmt::join(output.sizes(), ", "),
                    name,
                    text_of(target)));
  }
}

/// What LibTorch says of a class out of range names neither the target nor the bound.
at::Tensor naming_classes(const Criterion& loss,
                          const at::Tensor& output,
                          std::string_view name,
                          const std::function<at::Tensor()>& mean) {
  if (loss.targets() != Criterion::Targets::Classes) {
    return mean();
  }
  try {
    return mean();
  } catch (const c10::Error&) {
    std::throw_with_nested(ForwardError(
        fmt::format("cross entropy failed: the values of \"{}\" must be in [0, {}), the number of "
                    "logits, or the ignored index, -100 by default",
                    name,
                    output.size(-1))));
  }
}

/// One weight for each sample, as a factor of losses of this shape.
at::Tensor spread(const at::Tensor& weights, const at::Tensor& losses, std::string_view name) {
  if (weights.dim() != 1 || weights.size(0) != losses.size(0)) {
    throw ShapeError(
        fmt::format("weights of samples must be [{}], one for each sample of \"{}\"; "
                    "they are [{}]",
                    losses.size(0),
                    name,
                    fmt::join(weights.sizes(), ", ")));
  }
  std::vector<int64_t> shape(static_cast<size_t>(losses.dim()), 1);
  shape.front() = weights.size(0);
  return weights.view(shape).expand_as(losses);
}

}  // namespace

at::Tensor Criterion::mean(const at::Tensor& output,
                           const at::Tensor& target,
                           std::string_view name) const {
  require_fits(output, target, name);
  return naming_classes(*this, output, name, [&] { return plain_mean(output, target); });
}

at::Tensor Criterion::mean(const at::Tensor& output,
                           const at::Tensor& target,
                           const at::Tensor& weights,
                           std::string_view name) const {
  require_fits(output, target, name);
  return naming_classes(*this, output, name, [&] {
    const at::Tensor all = losses(output, target);
    const at::Tensor by = spread(weights, all, name);
    const at::Tensor counted = counts(target);
    return (all * by).sum() / (counted.defined() ? counted * by : by).sum();
  });
}

void Criterion::require_fits(const at::Tensor& output,
                             const at::Tensor& target,
                             std::string_view name) const {
  if (targets() == Targets::Classes) {
    require_classes(output, target, name);
  } else {
    require_values(output, target, name, targets() == Targets::Shares);
  }
}

at::Tensor Criterion::plain_mean(const at::Tensor& output, const at::Tensor& target) const {
  const at::Tensor all = losses(output, target);
  const at::Tensor counted = counts(target);
  return counted.defined() ? all.sum() / counted.sum() : all.mean();
}

}  // namespace rondo
