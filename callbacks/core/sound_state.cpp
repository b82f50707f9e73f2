#include "callbacks/core/sound_state.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <utility>

#include "core/all_finite.h"
#include "core/error.h"
#include "models/model_state.h"

namespace rondo {

namespace {

[[noreturn]] void fail(const std::string& path, const at::Tensor& tensor, int64_t update) {
  const int64_t bad = tensor.numel() - tensor.isfinite().sum().item<int64_t>();
  throw NonFiniteLossError(
      fmt::format("update {} left {} with {} of {} elements NaN or infinite: no checkpoint of it "
                  "is written; lower lr, clip gradients (precision.max_gradient_norm), or look at "
                  "the data of that update; checkpoint.require_finite = false saves it anyway",
                  update,
                  path,
                  bad,
                  tensor.numel()));
}

/// Checks the tensors of `state` whose name `is_meant` takes.
template <class IsMeant>
void require_finite(const StateValue* state,
                    const std::string& path,
                    int64_t update,
                    const IsMeant& is_meant) {
  if (state == nullptr || !state->is_dict()) {
    return;  // a callback left it out of what is saved
  }
  for (const auto& [name, value] : state->as_dict().items()) {
    const std::string here = path + "/" + name;
    if (value.is_dict()) {
      require_finite(&value, here, update, is_meant);
    } else if (value.is_tensor() && is_meant(name) && !all_finite(value.as_tensor())) {
      fail(here, value.as_tensor(), update);
    }
  }
}

}  // namespace

void SoundState::note_buffers(const torch::nn::Module& module) {
  finite_buffers_.clear();
  for (const auto& [name, buffer] : named_buffers(module)) {
    if (all_finite(buffer)) {
      finite_buffers_.insert(name);
    }
  }
}

StateCheck SoundState::check_of(const torch::nn::Module& module, int64_t update) const {
  std::unordered_set<std::string> names = finite_buffers_;
  for (const auto& [name, parameter] : named_parameters(module)) {
    if (parameter.requires_grad()) {
      names.insert(name);
    }
  }
  return [names = std::move(names), update](const StateDict& state) {
    require_finite(state.find("model"), "model", update, [&names](const std::string& name) {
      return names.count(name) != 0;
    });
    require_finite(
        state.find("optimizer/state"), "optimizer/state", update, [](const auto&) { return true; });
    require_finite(
        state.find("optimizers"), "optimizers", update, [](const auto&) { return true; });
  };
}

}  // namespace rondo
