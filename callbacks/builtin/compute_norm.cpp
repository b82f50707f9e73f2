#include "callbacks/builtin/compute_norm.h"

#include <ATen/ops/norm.h>
#include <ATen/ops/stack.h>

#include <map>
#include <optional>
#include <regex>
#include <vector>

#include "core/error.h"
#include "core/registry.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

std::regex compiled(const std::string& pattern) {
  try {
    std::regex regex(pattern);
    if (regex.mark_count() == 1) {
      return regex;
    }
  } catch (const std::regex_error&) {  // told below
  }
  throw UsageError(
      "ComputeNorm: layer_pattern must be a regular expression with one group, got \"" + pattern +
      "\"");
}

/// The number of the layer that a parameter belongs to; nothing when it belongs to none.
std::optional<std::string> layer_of(const std::string& name, const std::regex& pattern) {
  std::optional<std::string> layer;
  for (std::sregex_iterator match(name.begin(), name.end(), pattern), end; match != end; ++match) {
    layer = (*match)[1].str();
  }
  return layer;
}

/// Joint L2 norm. \capture safe
at::Tensor joint_norm(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> norms;
  for (const at::Tensor& tensor : tensors) {
    norms.push_back(tensor.detach().norm());
  }
  return at::stack(norms).norm();
}

}  // namespace

ComputeNorm::ComputeNorm(const Options& options) : options_(options) {
  compiled(options.layer_pattern);
}

void ComputeNorm::on_before_backward(Trainer& trainer, Model&, Outputs&) {
  if (!trainer.state().position.is_last) {
    return;
  }
  std::vector<at::Tensor> values;
  for (const auto& optimizer : trainer.state().optimizers) {
    for (const ParamGroup& group : optimizer->groups()) {
      for (const Parameter& parameter : group.params) {
        values.push_back(parameter.value);
      }
    }
  }
  trainer.log_metrics({{"model_wise_params_norm", joint_norm(values)}});
}

void ComputeNorm::on_before_optimizer_step(Trainer& trainer, Model&, Optimizer& optimizer) {
  const std::regex pattern = compiled(options_.layer_pattern);
  std::vector<at::Tensor> all;
  std::map<std::string, std::vector<at::Tensor>> by_layer;
  for (const ParamGroup& group : optimizer.groups()) {
    for (const Parameter& parameter : group.params) {
      if (!parameter.grad().defined()) {
        continue;
      }
      all.push_back(parameter.grad());
      if (const auto layer = layer_of(parameter.name, pattern)) {
        by_layer[*layer].push_back(parameter.grad());
      }
    }
  }
  if (all.empty()) {
    return;
  }
  Metrics norms{{"model_wise_grad_norm", joint_norm(all)}};
  for (const auto& layer : by_layer) {
    norms.set("per_layer_grad_norm/layer_" + layer.first, joint_norm(layer.second));
  }
  trainer.log_metrics(norms);
}

void register_compute_norm(Registry<Callback>& registry) {
  registry.add<ComputeNorm>("ComputeNorm", "Logs norms of parameters and gradients, also by layer.")
      .key("layer_pattern",
           &ComputeNorm::Options::layer_pattern,
           "regular expression whose group is a layer's number");
}

}  // namespace rondo
