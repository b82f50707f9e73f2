#include <ATen/ops/cross_entropy_loss.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>

#include "core/error.h"
#include "models/forward_error.h"
#include "models/internal/classify.h"

namespace rondo::detail {

namespace {

void require_class_numbers(const at::Tensor& logits,
                           const at::Tensor& label,
                           const std::string& name) {
  if (!at::isIntegralType(label.scalar_type(), /*includeBool=*/true)) {
    throw ShapeError(
        fmt::format("cross entropy needs the numbers of classes, which are integers; \"{}\" is "
                    "{}[{}]. For values, use a model with the loss mse",
                    name,
                    toString(label.scalar_type()),
                    fmt::join(label.sizes(), ", ")));
  }
  if (logits.dim() == 0 || logits.numel() != label.numel() * logits.size(-1)) {
    throw ShapeError(
        fmt::format("cross entropy needs one label for each row of logits; the logits are [{}], "
                    "\"{}\" is [{}]",
                    fmt::join(logits.sizes(), ", "),
                    name,
                    fmt::join(label.sizes(), ", ")));
  }
}

}  // namespace

at::Tensor cross_entropy(const at::Tensor& logits,
                         const at::Tensor& label,
                         const std::string& name) {
  require_class_numbers(logits, label, name);
  try {
    return at::cross_entropy_loss(logits.reshape({-1, logits.size(-1)}),
                                  label.to(at::kLong).reshape({-1}));
  } catch (const c10::Error&) {
    std::throw_with_nested(ForwardError(
        fmt::format("cross entropy failed: the values of \"{}\" must be in [0, {}), the "
                    "number of logits, or -100 to be left out",
                    name,
                    logits.size(-1))));
  }
}

Outputs classify(const at::Tensor& logits, const Batch& batch, const std::string& label) {
  if (const at::Tensor* found = batch.find(label)) {
    return {{"loss", cross_entropy(logits, *found, label)}, {"logits", logits}};
  }
  return {{"logits", logits}};
}

}  // namespace rondo::detail
