#include "callbacks/schedulers_callback.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "callbacks/checkpoint_callback.h"
#include "callbacks/hooks.h"
#include "core/error.h"
#include "loops/run_plan.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// The tensors that a scheduler writes.
std::vector<at::Tensor> driven(const Scheduler& scheduler, Optimizer& optimizer) {
  std::vector<at::Tensor> numbers;
  for (ParamGroup& group : optimizer.groups()) {
    if (scheduler.drives(group)) {
      numbers.push_back(group[scheduler.target().param_group_key]);
    }
  }
  return numbers;
}

std::vector<double> values_of(const std::vector<at::Tensor>& numbers) {
  std::vector<double> values;
  values.reserve(numbers.size());
  for (const at::Tensor& number : numbers) {
    values.push_back(number.item<double>());
  }
  return values;
}

/// True when a fit continues with the numbers of its own run's last update.
bool goes_on(Trainer& trainer) {
  const State& state = trainer.state();
  return state.timestamp.update > 0 &&
         (state.has_trained ||
          trainer.slot<CheckpointCallback>("checkpoint").resumed_from(trainer).has_value());
}

/// A schedule over a fraction of the run has another course when the run's length changes.
void warn_of_jump(const Trainer& trainer,
                  const Scheduler& scheduler,
                  const std::vector<double>& before,
                  const std::vector<double>& now) {
  constexpr double kRounding = 1e-6;
  for (size_t i = 0; i < now.size(); ++i) {
    if (std::abs(now[i] - before[i]) <= kRounding * std::abs(before[i])) {
      continue;
    }
    const std::optional<Time>& total = trainer.state().plan->length().total;
    trainer.log().warning(fmt::format(
        "{} jumps from {:.6g} to {:.6g} at update {}: the schedule, or the length of the run that "
        "it follows{}, has changed. A total_iters in updates keeps its course in a longer run",
        scheduler.target().param_group_key,
        before[i],
        now[i],
        trainer.state().timestamp.update,
        total ? fmt::format(" (now {})", total->to_string()) : ""));
    return;
  }
}

}  // namespace

void SchedulersCallback::setup(Trainer& trainer) {
  State& state = trainer.state();
  if (!state.optimizer) {
    return;
  }
  for (const Factory<Scheduler>& factory : trainer.options().schedulers) {
    state.schedulers.push_back(factory.make());
  }
  check_schedulers(state.schedulers, *state.optimizer);
}

void SchedulersCallback::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  State& state = trainer.state();
  for (const auto& scheduler : state.schedulers) {
    scheduler->resolve(state.plan->length());
    const std::vector<double> before = values_of(driven(*scheduler, *state.optimizer));
    scheduler->write(state.timestamp, *state.optimizer);
    if (goes_on(trainer)) {
      warn_of_jump(trainer, *scheduler, before, values_of(driven(*scheduler, *state.optimizer)));
    }
  }
}

void SchedulersCallback::step(Trainer& trainer) {
  State& state = trainer.state();
  for (const auto& owned : state.schedulers) {
    Scheduler& scheduler = *owned;
    trainer.call(hooks::on_before_scheduler_step, *state.model, *state.optimizer, scheduler);
    trainer.host_call(
        "scheduler", driven(scheduler, *state.optimizer), [&](const std::vector<at::Tensor>&) {
          scheduler.write(state.next, *state.optimizer);
        });
    trainer.call(hooks::on_after_scheduler_step, *state.model, *state.optimizer, scheduler);
  }
}

void SchedulersCallback::on_save_checkpoint(Trainer& trainer, StateDict& state) {
  StateList saved;
  for (size_t i = 0; i < trainer.state().schedulers.size(); ++i) {
    // For whoever reads the file; a resumed run needs no more than the timestamp.
    saved.push_back(StateDict{{"updates", trainer.state().timestamp.update}});
  }
  if (!saved.empty()) {
    state.set("schedulers", std::move(saved));
  }
}

void SchedulersCallback::check_checkpoint(Trainer&, const StateDict& state) {
  if (const StateValue* saved = state.find("schedulers")) {
    saved->as_list();
  }
}

void SchedulersCallback::on_load_checkpoint(Trainer& trainer, const StateDict& state) {
  const StateValue* saved = state.find("schedulers");
  const size_t now = trainer.state().schedulers.size();
  const size_t then = saved != nullptr ? saved->as_list().size() : 0;
  const bool trains = trainer.state().optimizer != nullptr;
  if (saved != nullptr && then != now && trains) {
    trainer.log().warning(fmt::format(
        "the checkpoint was saved with {} schedulers, this run has {}; each follows from "
        "how far the run is",
        then,
        now));
  }
}

}  // namespace rondo
