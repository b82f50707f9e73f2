#include "callbacks/core/optimizer_callback.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "callbacks/core/precision_callback.h"
#include "checkpoint/state_layout.h"
#include "core/error.h"
#include "models/model_state.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// True when a scheduler writes the number, whatever a checkpoint says.
bool is_scheduled(const State& state, const ParamGroup& group, const std::string& number) {
  return std::any_of(state.schedulers.begin(), state.schedulers.end(), [&](const auto& scheduler) {
    return scheduler->drives(group) && scheduler->target().param_group_key == number;
  });
}

bool trains(const Optimizer& optimizer, const at::Tensor& parameter) {
  const NamedTensors& trained = optimizer.trained();
  return std::any_of(trained.begin(), trained.end(), [&](const NamedTensor& own) {
    return own.second.is_same(parameter);
  });
}

double weight_decay_of(const ParamGroup& group) {
  for (const NamedTensor& number : group.numbers()) {
    if (number.first == "weight_decay") {
      return number.second.item<double>();
    }
  }
  return 0.0;
}

void log_weight_decay(Trainer& trainer) {
  int64_t all = 0;
  int64_t decayed = 0;
  for (const ParamGroup& group : trainer.state().optimizer->groups()) {
    for (const Parameter& parameter : group.params) {
      all += parameter.value.numel();
      decayed += weight_decay_of(group) != 0 ? parameter.value.numel() : 0;
    }
  }
  if (decayed > 0) {
    trainer.log().info(fmt::format("weight decay on {} of {} parameters", decayed, all));
  }
}

}  // namespace

void OptimizerCallback::setup(Trainer& trainer) {
  if (!trainer.options().optimizer) {
    return;
  }
  trainer.state().optimizer = trainer.options().optimizer.make();
  const PrecisionCallback& precision = *trainer.step_slots().precision;
  trainer.state().optimizer->attach(named_parameters(trainer.state().model->module()),
                                    precision.masters());
  precision.check_optimizer(*trainer.state().optimizer);
  const std::string eager_only = trainer.state().optimizer->eager_only();
  if (!eager_only.empty() && trainer.options().backend.mode != "eager") {
    throw UsageError(eager_only);
  }
  for (const ParamGroup& group : trainer.state().optimizer->groups()) {
    Numbers& numbers = configured_.emplace_back();
    for (const auto& [name, number] : group.numbers()) {
      numbers.emplace_back(name, number.item<double>());
    }
  }
}

void OptimizerCallback::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  if (!trainer.state().optimizer) {
    throw UsageError(
        "fit needs an optimizer: set TrainerOptions::optimizer ([trainer.init.optimizer.AdamW])");
  }
  if (trainer.state().global_step() == 0) {
    trainer.state().optimizer->follow_parameters();  // a program may have set weights
  }
  log_weight_decay(trainer);
}

void OptimizerCallback::on_train_start(
    Trainer& trainer, Model&, const DataLoader&, Loop&, int64_t) {
  warn_of_untrained(trainer);
}

void OptimizerCallback::on_train_end(Trainer& trainer, Model&, Loop&, int64_t) {
  warn_of_untrained(trainer);  // a forward may have made some
}

void OptimizerCallback::warn_of_untrained(Trainer& trainer) {
  std::vector<std::string> found;
  for (const auto& [name, parameter] : named_parameters(trainer.state().model->module())) {
    if (parameter.requires_grad() && !trains(*trainer.state().optimizer, parameter)) {
      found.push_back(name);
    }
  }
  if (!found.empty() && found != untrained_) {
    trainer.log().warning(fmt::format(
        "the optimizer does not train {}: it took the model's parameters that require a "
        "gradient when the Trainer was built. Register parameters, and let them require "
        "a gradient, in the model's constructor",
        fmt::join(found, ", ")));
  }
  untrained_ = std::move(found);
}

void OptimizerCallback::on_save_checkpoint(Trainer& trainer, StateDict& state) {
  if (trainer.state().optimizer) {
    state.set("optimizer", trainer.state().optimizer->state_dict());
  }
}

void OptimizerCallback::check_checkpoint(Trainer& trainer, const StateDict& state) {
  const StateValue* saved = state.find("optimizer");
  if (!trainer.state().optimizer || saved == nullptr ||
      !trainer.state().optimizer->has_fixed_layout()) {
    return;
  }
  const std::vector<std::string> found =
      layout_differences(trainer.state().optimizer->state_dict(), saved->as_dict());
  if (!found.empty()) {
    throw CheckpointError(fmt::format("the checkpoint's optimizer does not fit this one:\n  {}",
                                      fmt::join(found, "\n  ")));
  }
}

void OptimizerCallback::on_load_checkpoint(Trainer& trainer, const StateDict& state) {
  if (!trainer.state().optimizer) {
    return;
  }
  if (const StateValue* saved = state.find("optimizer")) {
    trainer.state().optimizer->load(saved->as_dict());
    warn_of_other_numbers(trainer);
  } else {
    trainer.state().optimizer->follow_parameters();
    trainer.log().info("the checkpoint holds no optimizer state: the optimizer starts afresh");
  }
}

void OptimizerCallback::warn_of_other_numbers(Trainer& trainer) const {
  std::vector<std::string> others;
  std::vector<ParamGroup>& groups = trainer.state().optimizer->groups();
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const auto& [name, configured] : configured_[i]) {
      const auto loaded = groups[i][name].item<double>();
      if (loaded != configured && !is_scheduled(trainer.state(), groups[i], name)) {
        others.push_back(
            fmt::format("{} of group {} is {} and not {}", name, i, loaded, configured));
      }
    }
  }
  if (!others.empty()) {
    trainer.log().warning(
        fmt::format("the optimizer goes on with the checkpoint's numbers, not with those of this "
                    "run's options: {}; docs/checkpoints.md says how to go on with others",
                    fmt::join(others, ", ")));
  }
}

}  // namespace rondo
