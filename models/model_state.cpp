#include "models/model_state.h"

#include <ATen/core/Tensor.h>
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

ModelStateReport compare_names(const StateDict& own, const StateDict& saved) {
  ModelStateReport report;
  for (const StateDict::Item& item : own.items()) {
    if (saved.find(item.first) == nullptr) {
      report.missing.push_back(item.first);
    }
  }
  for (const StateDict::Item& item : saved.items()) {
    if (own.find(item.first) == nullptr) {
      report.unexpected.push_back(item.first);
    }
  }
  return report;
}

/// The entries that cannot be copied, one line each.
std::vector<std::string> misshaped(const StateDict& own, const StateDict& saved) {
  std::vector<std::string> found;
  for (const StateDict::Item& item : own.items()) {
    const StateValue* value = saved.find(item.first);
    if (value == nullptr) {
      continue;
    }
    if (!value->is_tensor()) {
      found.push_back(fmt::format("{}: expected a tensor, found {}", item.first, value->kind()));
    } else if (value->as_tensor().sizes() != item.second.as_tensor().sizes()) {
      found.push_back(fmt::format("{}: the model has shape {}, the checkpoint {}",
                                  item.first,
                                  shape_text(item.second.as_tensor()),
                                  shape_text(value->as_tensor())));
    } else if (value->as_tensor().is_complex() && !item.second.as_tensor().is_complex()) {
      found.push_back(fmt::format(
          "{}: the checkpoint's numbers are complex, the model's real: their imaginary parts would "
          "be lost",
          item.first));
    }
  }
  return found;
}

}  // namespace

NamedTensors named_parameters(const torch::nn::Module& module) {
  return module.named_parameters().pairs();
}

NamedTensors named_buffers(const torch::nn::Module& module) {
  return module.named_buffers().pairs();
}

StateDict model_state(const torch::nn::Module& module) {
  StateDict state;
  for (const auto& [name, parameter] : named_parameters(module)) {
    state.set(name, parameter.detach());
  }
  for (const auto& [name, buffer] : named_buffers(module)) {
    state.set(name, buffer.detach());
  }
  return state;
}

ModelStateReport check_model_state(const torch::nn::Module& module,
                                   const StateDict& saved,
                                   bool strict) {
  const StateDict own = model_state(module);
  ModelStateReport report = compare_names(own, saved);
  std::vector<std::string> problems = misshaped(own, saved);
  if (strict) {
    for (const std::string& name : report.missing) {
      problems.push_back("missing: " + name);
    }
    for (const std::string& name : report.unexpected) {
      problems.push_back("unexpected: " + name);
    }
  }
  if (!problems.empty()) {
    throw CheckpointError(
        fmt::format("the checkpoint's model does not fit this one "
                    "(checkpoint.disable_strict_checkpoint_loading tolerates missing and "
                    "unexpected entries; checkpoint.load.ignore leaves out others):\n  {}",
                    fmt::join(problems, "\n  ")));
  }
  return report;
}

ModelStateReport load_model_state(torch::nn::Module& module, const StateDict& saved, bool strict) {
  ModelStateReport report = check_model_state(module, saved, strict);
  const at::NoGradGuard no_grad;
  StateDict own = model_state(module);
  for (StateDict::Item& item : own.items()) {
    if (const StateValue* value = saved.find(item.first)) {
      item.second.as_tensor().copy_(value->as_tensor());
    }
  }
  return report;
}

}  // namespace rondo
