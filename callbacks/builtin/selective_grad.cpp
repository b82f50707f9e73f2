#include "callbacks/builtin/selective_grad.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/glob.h"
#include "core/registry.h"
#include "core/require.h"
#include "models/model_state.h"
#include "optim/trained_parameter.h"
#include "sparsity/algorithm.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

bool picks(const std::vector<std::string>& globs, const NamedTensor& parameter) {
  if (globs.empty()) {
    return parameter.second.dim() >= 2;
  }
  return matches_any(globs, parameter.first);
}

}  // namespace

SelectiveGrad::SelectiveGrad(const Options& options) : options_(options) {
  detail::require(options.share > 0.0 && options.share <= 1.0,
                  "SelectiveGrad.share",
                  "in (0, 1]",
                  options.share);
  detail::require(options.init_method == "random" || options.init_method == "topk",
                  "SelectiveGrad.init_method",
                  "\"random\" or \"topk\"",
                  options.init_method);
}

void SelectiveGrad::setup(Trainer& trainer) {
  const at::NoGradGuard no_grad;
  for (const NamedTensor& parameter : named_parameters(trainer.state().model->module())) {
    const at::Tensor& weight = parameter.second;
    const bool is_tied = std::any_of(masks_.begin(), masks_.end(), [&](const Mask& mask) {
      return mask.weight().is_same(weight);
    });
    if (picks(options_.params, parameter) && !is_tied) {
      masks_.emplace_back(parameter.first, weight);
      masks_.back().set(chosen(weight));
      for (const auto& optimizer : trainer.state().optimizers) {
        if (const Parameter* const trained = trained_parameter(*optimizer, weight)) {
          masks_.back().set_updated(trained->value);
        }
      }
    }
  }
  if (masks_.empty()) {
    throw UsageError(fmt::format("SelectiveGrad.params: [{}] match no parameter",
                                 fmt::join(options_.params, ", ")));
  }
}

at::Tensor SelectiveGrad::chosen(const at::Tensor& weight) const {
  const auto count =
      static_cast<int64_t>(std::llround(options_.share * static_cast<double>(weight.numel())));
  const at::Tensor scores =
      options_.init_method == "topk"
          ? weight.abs().flatten()
          : at::rand({weight.numel()}, at::TensorOptions(at::kFloat).device(weight.device()));
  const at::Tensor kept = at::full({}, count, at::TensorOptions(at::kLong).device(weight.device()));
  return top_mask(scores, kept).view(weight.sizes());
}

void SelectiveGrad::on_before_optimizer_step(Trainer&, Model&, Optimizer&) {
  const at::NoGradGuard no_grad;
  for (const Mask& mask : masks_) {
    mask.zero_gradient();
  }
}

NamedTensors SelectiveGrad::captured_state() {
  NamedTensors tensors;
  for (const Mask& mask : masks_) {
    tensors.emplace_back(mask.name(), mask.bits());
  }
  return tensors;
}

std::string SelectiveGrad::state_subject() const {
  return options_.params.empty() ? "every matrix"
                                 : fmt::format("{}", fmt::join(options_.params, ", "));
}

void register_selective_grad(Registry<Callback>& registry) {
  using Options = SelectiveGrad::Options;
  registry.add<SelectiveGrad>("SelectiveGrad", "Trains a part of the elements of parameters.")
      .key("params",
           &Options::params,
           "globs of names of parameters; none: every one of two or more dimensions")
      .key("share",
           &Options::share,
           between(0, 1),
           "share of a parameter's elements that are trained, above 0")
      .key("init_method",
           &Options::init_method,
           one_of({"random", "topk"}),
           "which elements those are; topk: the largest magnitudes");
}

}  // namespace rondo
