#include "callbacks/builtin/lora.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "callbacks/core/model_callback.h"
#include "checkpoint/checkpoint_file.h"
#include "checkpoint/foreign_state.h"
#include "core/error.h"
#include "core/low_rank.h"
#include "core/registry.h"
#include "core/require.h"
#include "models/model_state.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// Whether it is what an adapter adds to a layer.
bool is_of_adapter(const std::string& name) {
  const std::string last = name.substr(name.rfind('.') + 1);
  return last == kLowRankA || last == kLowRankB || last == kLowRankScale;
}

bool has_adapters(const StateDict& model) {
  const std::vector<std::string> names = model.names();
  return std::any_of(names.begin(), names.end(), is_of_adapter);
}

/// The weights of a file of rondo or of another program, such as a Python state_dict.
StateDict weights_in(const std::filesystem::path& file, const std::vector<std::string>& own) {
  StateDict state = read_checkpoint(file);
  if (!is_run_state(state)) {
    unwrap_weights(state, "");
    StateDict& model = state.find("model")->as_dict();
    WrapperNames(own).take_off(model);
    take_off_prefix(model, own, /*strict=*/true);
  }
  return state.at("model").as_dict();
}

/// Adds the entries of `own` that `state` lacks and that `is_meant`.
template <class IsMeant>
void fill_in(StateDict& state, const StateDict& own, const IsMeant& is_meant) {
  for (const StateDict::Item& item : own.items()) {
    if (!state.contains(item.first) && is_meant(item.first)) {
      state.set(item.first, item.second);
    }
  }
}

}  // namespace

Lora::Lora(const Options& options) : options_(options) {
  check(options);
}

Lora::~Lora() = default;

void Lora::check(const Options& options) {
  detail::require(options.save == "all" || options.save == "adapters",
                  "Lora: save",
                  "\"all\" or \"adapters\"",
                  options.save);
  if (options.save == "adapters" && options.base.empty()) {
    throw UsageError(
        "Lora: a checkpoint of adapters alone lacks the frozen weights; name the file that has "
        "them in \"base\"");
  }
}

void Lora::pre_setup(Trainer& trainer) {
  trainer.slot<ModelCallback>().prepare([this](Model& model) {
    load_base(model);
    adapters_ = std::make_unique<LowRankAdapters>(model.module(),
                                                  LowRankOptions{options_.modules,
                                                                 options_.rank,
                                                                 options_.alpha,
                                                                 options_.dropout,
                                                                 options_.also_train});
  });
}

void Lora::load_base(Model& model) const {
  if (options_.base.empty()) {
    return;
  }
  try {
    torch::nn::Module& module = model.module();
    const StateDict weights = weights_in(options_.base, model_state(module).names());
    load_model_state(module, weights, /*strict=*/true);
  } catch (const CheckpointError&) {
    std::throw_with_nested(
        CheckpointError(fmt::format("Lora: cannot load the base {}", options_.base.string())));
  }
}

void Lora::begin_forward() {
  adapters_->install();
}

void Lora::end_forward() noexcept {
  adapters_->remove();
}

void Lora::on_fit_end(Trainer&, Loop&) {
  adapters_->materialize();
}

void Lora::postprocess_checkpoint(Trainer& trainer, StateDict& state) {
  StateValue* const model = state.find("model");
  if (options_.save != "adapters" || model == nullptr) {
    return;
  }
  for (const NamedTensor& parameter : named_parameters(trainer.state().model->module())) {
    if (!parameter.second.requires_grad() && !is_of_adapter(parameter.first)) {
      model->as_dict().erase(parameter.first);
    }
  }
}

void Lora::preprocess_checkpoint(Trainer& trainer, StateDict& state) {
  StateValue* const found = state.find("model");
  if (found == nullptr || !found->is_dict()) {
    return;
  }
  StateDict& model = found->as_dict();
  const StateDict own = model_state(trainer.state().model->module());
  if (!has_adapters(model)) {
    trainer.log().info("the file has no adapters: they stay as they are");
    fill_in(model, own, is_of_adapter);
  } else if (!options_.base.empty()) {
    StateDict frozen;
    for (const NamedTensor& parameter : named_parameters(trainer.state().model->module())) {
      if (!parameter.second.requires_grad()) {
        frozen.set(parameter.first, parameter.second.detach());
      }
    }
    fill_in(model, frozen, [](const std::string&) { return true; });
  }
}

void register_lora(Registry<Callback>& registry) {
  using Options = Lora::Options;
  registry
      .add<Lora>("Lora", "Trains low-rank adapters of layers, and freezes the rest of the model.")
      .key("modules", &Options::modules, "globs of names of the layers that get adapters")
      .required()
      .key("rank", &Options::rank, at_least(1), "rows of A and columns of B")
      .key("alpha", &Options::alpha, greater_than(0), "what, divided by rank, multiplies B A")
      .key("dropout",
           &Options::dropout,
           below_one(),
           "share of a layer's inputs that its adapter does not see")
      .key("also_train", &Options::also_train, "globs of parameters that are trained whole")
      .key("base",
           &Options::base,
           "file with the weights to begin with, of rondo or Python; empty: the model's own")
      .key("save",
           &Options::save,
           one_of({"all", "adapters"}),
           "what checkpoints hold of the model");
}

}  // namespace rondo
