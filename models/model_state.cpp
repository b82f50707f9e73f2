#include "models/model_state.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include "core/error.h"

namespace rondo {

namespace {

std::string shape_text(const at::Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.sizes().begin(), tensor.sizes().end(), ", "));
}

/// Everything that keeps `saved` from being loaded, one line each.
std::vector<std::string> problems(const StateDict& own, const StateDict& saved, bool strict) {
  std::vector<std::string> found;
  for (const StateDict::Item& item : own.items()) {
    const StateValue* value = saved.find(item.first);
    if (value == nullptr) {
      if (strict) {
        found.push_back(fmt::format("missing: {}", item.first));
      }
    } else if (value->as_tensor().sizes() != item.second.as_tensor().sizes()) {
      found.push_back(fmt::format("{}: the model has shape {}, the checkpoint {}",
                                  item.first,
                                  shape_text(item.second.as_tensor()),
                                  shape_text(value->as_tensor())));
    }
  }
  for (const StateDict::Item& item : saved.items()) {
    if (strict && own.find(item.first) == nullptr) {
      found.push_back(fmt::format("unexpected: {}", item.first));
    }
  }
  return found;
}

}  // namespace

StateDict model_state(const torch::nn::Module& module) {
  StateDict state;
  for (const auto& parameter : module.named_parameters()) {
    state.set(parameter.key(), parameter.value().detach());
  }
  for (const auto& buffer : module.named_buffers()) {
    state.set(buffer.key(), buffer.value().detach());
  }
  return state;
}

void load_model_state(torch::nn::Module& module, const StateDict& saved, bool strict) {
  StateDict own = model_state(module);
  const std::vector<std::string> found = problems(own, saved, strict);
  if (!found.empty()) {
    throw CheckpointError(
        fmt::format("the checkpoint's model does not fit this one "
                    "(checkpoint.disable_strict_checkpoint_loading "
                    "tolerates missing and unexpected entries):\n  {}",
                    fmt::join(found, "\n  ")));
  }
  const at::NoGradGuard no_grad;
  for (StateDict::Item& item : own.items()) {
    if (const StateValue* value = saved.find(item.first)) {
      item.second.as_tensor().copy_(value->as_tensor());
    }
  }
}

}  // namespace rondo
