#include "callbacks/core/optimizer_callback.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "callbacks/core/precision_callback.h"
#include "callbacks/core/sharded_updates.h"
#include "checkpoint/state_layout.h"
#include "core/error.h"
#include "core/glob.h"
#include "models/model_state.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// True when a scheduler writes the number, whatever a checkpoint says.
bool is_scheduled(const State& state,
                  const Optimizer& optimizer,
                  const ParamGroup& group,
                  const std::string& number) {
  return std::any_of(state.schedulers.begin(), state.schedulers.end(), [&](const auto& scheduler) {
    return &state.optimizer_of(*scheduler) == &optimizer && scheduler->drives(group) &&
           scheduler->target().param_group_key == number;
  });
}

using Optimizers = std::vector<std::unique_ptr<Optimizer>>;

bool trains(const Optimizers& optimizers, const at::Tensor& parameter) {
  return std::any_of(optimizers.begin(), optimizers.end(), [&](const auto& optimizer) {
    const NamedTensors& own = optimizer->trained();
    return std::any_of(own.begin(), own.end(), [&](const NamedTensor& taken) {
      return taken.second.is_same(parameter);
    });
  });
}

/// The options' optimizers, the single one under its name.
std::vector<NamedOptimizer> named_optimizers(const TrainerOptions& options) {
  if (!options.optimizer) {
    return options.optimizers;
  }
  if (!options.optimizers.empty()) {
    throw UsageError("the run has optimizer and optimizers: give one of them");
  }
  return {{kDefaultOptimizer, {"*"}, options.optimizer}};
}

/// The model's parameters that an optimizer of several trains.
NamedTensors picked(const NamedOptimizer& optimizer, const NamedTensors& parameters) {
  NamedTensors found;
  std::vector<std::string> trained;
  for (const NamedTensor& parameter : parameters) {
    if (!parameter.second.requires_grad()) {
      continue;
    }
    trained.push_back(parameter.first);
    if (matches_any(optimizer.params, parameter.first)) {
      found.push_back(parameter);
    }
  }
  if (found.empty()) {
    throw UsageError(
        fmt::format("optimizers.{}.params: [\"{}\"] picks no parameter that is trained; "
                    "there are: {}",
                    optimizer.name,
                    fmt::join(optimizer.params, "\", \""),
                    trained.empty() ? "none" : fmt::format("{}", fmt::join(trained, ", "))));
  }
  return found;
}

/// A tensor that stands under two names is one.
void require_untaken(const Optimizers& optimizers,
                     const std::string& name,
                     const NamedTensors& parameters) {
  for (const auto& other : optimizers) {
    for (const NamedTensor& taken : other->trained()) {
      for (const NamedTensor& parameter : parameters) {
        if (taken.second.is_same(parameter.second)) {
          throw UsageError(fmt::format(
              "optimizers {} and {} both train parameter \"{}\": its updates would add up",
              other->name(),
              name,
              parameter.first));
        }
      }
    }
  }
}

void require_names(const std::vector<NamedOptimizer>& optimizers) {
  std::vector<std::string> known;
  for (const NamedOptimizer& one : optimizers) {
    if (!is_label(one.name)) {
      throw UsageError(fmt::format(
          "optimizers: expected a name of letters, digits, \"_\" and \"-\", got \"{}\"", one.name));
    }
    if (!one.optimizer) {
      throw UsageError(fmt::format("optimizers.{}: name an optimizer, such as AdamW", one.name));
    }
    if (std::find(known.begin(), known.end(), one.name) != known.end()) {
      throw UsageError(fmt::format("optimizers: two have the name \"{}\"", one.name));
    }
    known.push_back(one.name);
  }
}

/// Where a checkpoint holds an optimizer's state; null when it does not.
const StateValue* saved_state(const StateDict& state, const Optimizer& optimizer) {
  const bool is_default = optimizer.name() == kDefaultOptimizer;
  return state.find(is_default ? std::string("optimizer") : "optimizers/" + optimizer.name());
}

bool shares_updates(const Trainer& trainer) {
  const std::optional<DistributedOptions>& options = trainer.options().distributed;
  return options && options->shard_optimizer && trainer.state().communicator->world_size() > 1;
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
  for (const auto& optimizer : trainer.state().optimizers) {
    for (const ParamGroup& group : optimizer->groups()) {
      for (const Parameter& parameter : group.params) {
        all += parameter.value.numel();
        decayed += weight_decay_of(group) != 0 ? parameter.value.numel() : 0;
      }
    }
  }
  if (decayed > 0) {
    trainer.log().info(fmt::format("weight decay on {} of {} parameters", decayed, all));
  }
}

}  // namespace

void OptimizerCallback::setup(Trainer& trainer) {
  State& state = trainer.state();
  const std::vector<NamedOptimizer> wanted = named_optimizers(trainer.options());
  require_names(wanted);
  const NamedTensors all = named_parameters(state.model->module());
  for (const NamedOptimizer& one : wanted) {
    const NamedTensors parameters =
        wanted.size() == 1 && trainer.options().optimizer ? all : picked(one, all);
    require_untaken(state.optimizers, one.name, parameters);
    add(trainer, one, parameters);
  }
}

void OptimizerCallback::add(Trainer& trainer,
                            const NamedOptimizer& wanted,
                            const NamedTensors& parameters) {
  std::unique_ptr<Optimizer> made = wanted.optimizer.make();
  made->set_name(wanted.name);
  const PrecisionCallback& precision = *trainer.step_slots().precision;
  const std::shared_ptr<ShardedUpdates> sharded =
      shares_updates(trainer) ? std::make_shared<ShardedUpdates>(trainer) : nullptr;
  made->attach(parameters, precision.masters(), sharded);
  sharded_.push_back(sharded);
  precision.check_optimizer(*made);
  const std::string eager_only = made->eager_only();
  if (sharded != nullptr && !eager_only.empty()) {
    throw UsageError(fmt::format(
        "distributed.shard_optimizer: {} keeps its state in LibTorch, which cannot be shared out",
        wanted.optimizer.name()));
  }
  if (!eager_only.empty() && trainer.options().backend.mode != "eager") {
    throw UsageError(eager_only);
  }
  std::vector<Numbers>& configured = configured_.emplace_back();
  for (const ParamGroup& group : made->groups()) {
    Numbers& numbers = configured.emplace_back();
    for (const auto& [name, number] : group.numbers()) {
      numbers.emplace_back(name, number.item<double>());
    }
  }
  State& state = trainer.state();
  state.optimizers.push_back(std::move(made));
  state.optimizer = state.optimizers.front().get();
}

void OptimizerCallback::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  if (!trainer.state().optimizer) {
    throw UsageError(
        "fit needs an optimizer: set TrainerOptions::optimizer ([trainer.init.optimizer.AdamW])");
  }
  if (trainer.state().global_step() == 0) {
    for (const auto& optimizer : trainer.state().optimizers) {
      optimizer->follow_parameters();  // a program may have set weights
    }
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
    if (parameter.requires_grad() && !trains(trainer.state().optimizers, parameter)) {
      found.push_back(name);
    }
  }
  if (!found.empty() && found != untrained_) {
    const bool is_one = trainer.state().optimizers.size() == 1;
    trainer.log().warning(fmt::format(
        "{} not train {}: {} took the model's parameters that require a gradient{} when the "
        "Trainer was built. Register parameters, and let them require a gradient, in the model's "
        "constructor{}",
        is_one ? "the optimizer does" : "the optimizers do",
        fmt::join(found, ", "),
        is_one ? "it" : "they",
        is_one ? "" : " and that their globs pick",
        is_one ? "" : ", and name them in the params of an optimizer"));
  }
  untrained_ = std::move(found);
}

void OptimizerCallback::on_save_checkpoint(Trainer& trainer, StateDict& state) {
  StateDict others;
  for (size_t i = 0; i < trainer.state().optimizers.size(); ++i) {
    const Optimizer& optimizer = *trainer.state().optimizers[i];
    StateDict own = optimizer.state_dict();
    StateDict whole = sharded_[i] ? sharded_[i]->gathered(own) : std::move(own);
    if (optimizer.name() == kDefaultOptimizer) {
      state.set("optimizer", std::move(whole));
    } else {
      others.set(optimizer.name(), std::move(whole));
    }
  }
  if (!others.empty()) {
    state.set("optimizers", std::move(others));
  }
}

void OptimizerCallback::check_checkpoint(Trainer& trainer, const StateDict& state) {
  for (const auto& optimizer : trainer.state().optimizers) {
    const StateValue* const saved = saved_state(state, *optimizer);
    if (saved == nullptr || !optimizer->has_fixed_layout()) {
      continue;
    }
    const std::vector<std::string> found =
        layout_differences(optimizer->state_dict(), saved->as_dict());
    if (!found.empty()) {
      throw CheckpointError(fmt::format(
          "the checkpoint's optimizer does not fit {}:\n  {}",
          optimizer->name() == kDefaultOptimizer ? "this one" : "\"" + optimizer->name() + "\"",
          fmt::join(found, "\n  ")));
    }
  }
}

void OptimizerCallback::on_load_checkpoint(Trainer& trainer, const StateDict& state) {
  for (size_t i = 0; i < trainer.state().optimizers.size(); ++i) {
    Optimizer& optimizer = *trainer.state().optimizers[i];
    if (const StateValue* saved = saved_state(state, optimizer)) {
      optimizer.load(saved->as_dict());
      warn_of_other_numbers(trainer, i);
    } else {
      optimizer.follow_parameters();
      trainer.log().info(fmt::format(
          "the checkpoint holds no optimizer state{}: the optimizer starts from scratch",
          optimizer.name() == kDefaultOptimizer ? "" : " of \"" + optimizer.name() + "\""));
    }
  }
}

void OptimizerCallback::warn_of_other_numbers(Trainer& trainer, size_t index) const {
  std::vector<std::string> others;
  Optimizer& optimizer = *trainer.state().optimizers[index];
  std::vector<ParamGroup>& groups = optimizer.groups();
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const auto& [name, configured] : configured_[index][i]) {
      const auto loaded = groups[i][name].item<double>();
      if (loaded != configured && !is_scheduled(trainer.state(), optimizer, groups[i], name)) {
        others.push_back(fmt::format("{} of group {} is {}, not {}", name, i, loaded, configured));
      }
    }
  }
  if (!others.empty()) {
    trainer.log().warning(
        fmt::format("the optimizer continues with the checkpoint's numbers, not with those of this "
                    "run's options: {}; docs/checkpoints.md says how to change them",
                    fmt::join(others, ", ")));
  }
}

}  // namespace rondo
