#include "callbacks/algorithms/layer_freezing.h"

#include <torch/nn/module.h>

#include <algorithm>
#include <vector>

#include "callbacks/algorithms/internal/samples.h"
#include "callbacks/algorithms/register.h"
#include "callbacks/core/run_plan.h"
#include "core/registry.h"
#include "core/require.h"
#include "models/model.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// Modules without parts, with parameters, in the order in which the model has them.
std::vector<torch::nn::Module*> layers_of(torch::nn::Module& module) {
  std::vector<torch::nn::Module*> layers;
  for (const auto& part : module.modules(/*include_self=*/false)) {
    if (part->children().empty() && !part->parameters(/*recurse=*/false).empty()) {
      layers.push_back(part.get());
    }
  }
  return layers;
}

/// The number of the last layer that trains.
int64_t last_trained(const std::vector<torch::nn::Module*>& layers) {
  for (size_t i = layers.size(); i > 0; --i) {
    const std::vector<at::Tensor> own = layers[i - 1]->parameters();
    if (std::any_of(own.begin(), own.end(), [](const at::Tensor& parameter) {
          return parameter.requires_grad();
        })) {
      return static_cast<int64_t>(i) - 1;
    }
  }
  return 0;
}

}  // namespace

LayerFreezing::LayerFreezing(const Options& options) : options_(options) {
  detail::require(options.freeze_start >= 0 && options.freeze_start < 1,
                  "LayerFreezing: freeze_start",
                  "in [0, 1)",
                  options.freeze_start);
  detail::require(options.freeze_level >= 0 && options.freeze_level <= 1,
                  "LayerFreezing: freeze_level",
                  "in [0, 1]",
                  options.freeze_level);
}

int64_t LayerFreezing::depth(int64_t layers, double done) const {
  if (done < options_.freeze_start) {
    return 0;
  }
  const double share =
      options_.freeze_level * (done - options_.freeze_start) / (1.0 - options_.freeze_start);
  return static_cast<int64_t>(share * static_cast<double>(std::max<int64_t>(layers - 1, 0)));
}

StateDict LayerFreezing::save_state() const {
  StateDict state;
  state.set("frozen", frozen_);
  return state;
}

void LayerFreezing::load_state(const StateDict& state) {
  frozen_ = state.at("frozen").as_int();
}

bool LayerFreezing::match(Event event, const State&) const {
  return event == Event::EpochEnd || (event == Event::FitStart && frozen_ > 0);
}

void LayerFreezing::apply(Event event, Trainer& trainer) {
  State& state = trainer.state();
  const std::vector<torch::nn::Module*> layers = layers_of(state.model->module());
  if (event == Event::EpochEnd && state.plan != nullptr) {
    const double done = state.plan->elapsed_share(state.timestamp);
    // The last one that `freeze` leaves goes on training.
    const int64_t most = depth(static_cast<int64_t>(layers.size()), done);
    frozen_ = std::max(frozen_, std::min(most, last_trained(layers)));
  }
  for (size_t i = 0; i < layers.size() && static_cast<int64_t>(i) < frozen_; ++i) {
    for (at::Tensor& parameter : layers[i]->parameters()) {
      parameter.requires_grad_(false);
    }
  }
  trainer.log_metrics(
      {{"layer_freezing/layers_frozen", frozen_},
       {"layer_freezing/percentage_frozen",
        layers.empty() ? 0.0 : static_cast<double>(frozen_) / static_cast<double>(layers.size())}});
}

void register_layer_freezing(Registry<Algorithm>& registry) {
  using Options = LayerFreezing::Options;
  registry
      .add<LayerFreezing>(
          "LayerFreezing",
          "Stops training the first layers of the model, more of them after each epoch.")
      .key("freeze_start",
           &Options::freeze_start,
           below_one(),
           "share of the run after which layers are frozen")
      .key("freeze_level",
           &Options::freeze_level,
           between(0, 1),
           "share of the layers that are frozen at the end");
}

}  // namespace rondo
