#include "callbacks/core/schedulers_callback.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "callbacks/core/checkpoint_callback.h"
#include "callbacks/core/run_plan.h"
#include "callbacks/hooks.h"
#include "core/error.h"
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
          trainer.slot<CheckpointCallback>().resumed_from(trainer).has_value());
}

/// `lr`, or `lr of group "head"`.
std::string driven_by(const Scheduler& scheduler) {
  const std::vector<std::string>& tags = scheduler.target().param_group_tags;
  return scheduler.target().param_group_key +
         (tags.empty()
              ? ""
              : fmt::format(
                    " of group{} \"{}\"", tags.size() > 1 ? "s" : "", fmt::join(tags, "\", \"")));
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
        driven_by(scheduler),
        before[i],
        now[i],
        trainer.state().timestamp.update,
        total ? fmt::format(" (now {})", total->to_string()) : ""));
    return;
  }
}

/// A schedule over fewer updates than the run has trains the rest with its last value, which is
/// often zero.
void warn_of_end(const Trainer& trainer, const Scheduler& scheduler) {
  const std::optional<Time>& total = trainer.state().plan->length().total;
  const double length = scheduler.length();
  if (!total || total->unit() != scheduler.unit() || length >= total->value()) {
    return;
  }
  const Time end = Time::in(scheduler.unit(), static_cast<int64_t>(length));
  trainer.log().warning(fmt::format(
      "{} ends at {} of {}: {} stays at {:.6g}{} for the rest of the run. Make it as long as "
      "the run, or let SequentialLR say what comes next",
      class_name(typeid(scheduler)),
      end.to_string(),
      total->to_string(),
      driven_by(scheduler),
      scheduler.at(length),
      scheduler.target().relative ? " of its own value" : ""));
}

/// What the state of a scheduler is about.
std::string subject_of(const Scheduler& scheduler) {
  return class_name(typeid(scheduler)) + " of " + scheduler.followed()->name;
}

size_t index_of(const State& state, const Optimizer& optimizer) {
  const auto is_it = [&](const auto& one) { return one.get() == &optimizer; };
  const auto found = std::find_if(state.optimizers.begin(), state.optimizers.end(), is_it);
  return static_cast<size_t>(found - state.optimizers.begin());
}

/// The schedulers of an optimizer, in their order.
std::vector<Scheduler*> schedulers_of(const State& state, const Optimizer& optimizer) {
  std::vector<Scheduler*> found;
  for (const auto& scheduler : state.schedulers) {
    if (&state.optimizer_of(*scheduler) == &optimizer) {
      found.push_back(scheduler.get());
    }
  }
  return found;
}

/// What a checkpoint has of an optimizer's schedulers; null when it has nothing.
const StateList* saved_list(const StateDict& state, const Optimizer& optimizer) {
  const bool is_default = optimizer.name() == kDefaultOptimizer;
  const StateValue* const saved =
      state.find(is_default ? std::string("schedulers") : "schedulers/" + optimizer.name());
  const bool is_of_others = is_default && saved != nullptr && saved->is_dict();
  return saved != nullptr && !is_of_others ? &saved->as_list() : nullptr;
}

/// The state of a scheduler; null when the list has one at its place that is about something else.
const StateDict* own_state(const Scheduler& scheduler, size_t place, const StateList* saved) {
  if (saved == nullptr || place >= saved->size()) {
    return nullptr;
  }
  const StateDict& found = (*saved)[place].as_dict();
  const StateValue* const subject = found.find("subject");
  const bool is_own = subject != nullptr && subject->as_string() == subject_of(scheduler);
  return is_own ? &found.at("state").as_dict() : nullptr;
}

/// When the numbers were written last, where that was before the update that was saved.
std::optional<Timestamp> saved_time(const StateList* saved) {
  if (saved == nullptr || saved->empty() || !saved->front().as_dict().contains("written")) {
    return std::nullopt;
  }
  Timestamp written;
  written.load(saved->front().as_dict().at("written").as_dict());
  return written;
}

}  // namespace

void SchedulersCallback::setup(Trainer& trainer) {
  State& state = trainer.state();
  if (!state.optimizer) {
    return;
  }
  written_.resize(state.optimizers.size());
  if (trainer.options().loop.scale_schedule_ratio != 1.0 && trainer.options().schedulers.empty()) {
    throw UsageError(
        "loop.scale_schedule_ratio stretches a run with its schedules, and this run has none: set "
        "the length of the run itself");
  }
  for (const Factory<Scheduler>& factory : trainer.options().schedulers) {
    state.schedulers.push_back(factory.make());
  }
  for (size_t i = 0; i < state.schedulers.size(); ++i) {
    try {
      state.optimizer_of(*state.schedulers[i]);
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("schedulers[{}] ({}).optimizer: {}",
                                   i,
                                   class_name(typeid(*state.schedulers[i])),
                                   error.what()));
    }
  }
  for (const auto& optimizer : state.optimizers) {
    check_schedulers(state.schedulers, *optimizer);
  }
  for (size_t i = 0; i < state.schedulers.size(); ++i) {
    Scheduler& scheduler = *state.schedulers[i];
    scheduler.attach(state.optimizer_of(scheduler));
    if (const FollowedMetric* metric = scheduler.followed()) {
      followers_.push_back({i, {class_name(typeid(scheduler)), metric->name, metric->direction}});
    }
  }
}

void SchedulersCallback::post_setup(Trainer& trainer) {
  for (Follower& follower : followers_) {
    follower.direction.guess(trainer);
  }
}

void SchedulersCallback::on_fit_start(Trainer& trainer,
                                      const DataLoader&,
                                      const Loaders& val,
                                      Loop&) {
  State& state = trainer.state();
  for (Follower& follower : followers_) {
    follower.direction.resolve(trainer, val);
  }
  for (size_t i = 0; i < state.optimizers.size(); ++i) {
    Optimizer& optimizer = *state.optimizers[i];
    const bool stood = written_[i] && written_[i]->update < state.timestamp.update;
    written_[i] = stood ? *written_[i] : state.timestamp;
    for (Scheduler* const scheduler : schedulers_of(state, optimizer)) {
      scheduler->resolve(state.plan->length(), trainer.options().loop.scale_schedule_ratio);
      warn_of_end(trainer, *scheduler);
      const std::vector<double> before = values_of(driven(*scheduler, optimizer));
      scheduler->write(*written_[i], optimizer);
      if (goes_on(trainer)) {
        warn_of_jump(trainer, *scheduler, before, values_of(driven(*scheduler, optimizer)));
      }
    }
  }
}

void SchedulersCallback::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  if (followers_.empty()) {
    return;
  }
  for (const char* when : {"update", "epoch"}) {
    if (is_followed_now(trainer, when)) {
      trainer.defer(
          {}, [this, &trainer, when](const std::vector<at::Tensor>&) { observe(trainer, when); });
    }
  }
}

void SchedulersCallback::run_validation(Trainer& trainer, std::optional<int64_t>, bool) {
  if (trainer.state().plan != nullptr) {
    observe(trainer, "validation");
  }
}

void SchedulersCallback::observe(Trainer& trainer, const std::string& when) {
  State& state = trainer.state();
  for (const Follower& follower : followers_) {
    Scheduler& scheduler = *state.schedulers[follower.scheduler];
    if (scheduler.followed()->when != when) {
      continue;
    }
    const double value = follower.direction.newest_value(trainer);
    const double before = scheduler.value(0.0);
    scheduler.observe(follower.direction.is_better(0.0, 1.0) ? value : -value);
    scheduler.write(state.timestamp, state.optimizer_of(scheduler));
    if (scheduler.value(0.0) != before) {
      trainer.log().info(fmt::format("{}: {} from {:.6g} to {:.6g} after update {}, {} = {:.6g}",
                                     class_name(typeid(scheduler)),
                                     scheduler.target().param_group_key,
                                     before,
                                     scheduler.value(0.0),
                                     state.timestamp.update,
                                     follower.direction.metric(),
                                     value));
    }
  }
}

void SchedulersCallback::step(Trainer& trainer, Optimizer& optimizer) {
  State& state = trainer.state();
  std::optional<Timestamp>& written = written_[index_of(state, optimizer)];
  for (const auto& owned : state.schedulers) {
    Scheduler& scheduler = *owned;
    if (&state.optimizer_of(scheduler) != &optimizer) {
      continue;
    }
    trainer.call(hooks::on_before_scheduler_step, *state.model, optimizer, scheduler);
    trainer.host_call(
        "scheduler", driven(scheduler, optimizer), [&](const std::vector<at::Tensor>&) {
          scheduler.write(state.next, optimizer);
          written = state.next;
        });
    trainer.call(hooks::on_after_scheduler_step, *state.model, optimizer, scheduler);
  }
}

StateList SchedulersCallback::state_of(const State& state, const Optimizer& optimizer) const {
  const std::optional<Timestamp>& written = written_[index_of(state, optimizer)];
  const bool stood = written && written->update < state.timestamp.update;
  StateList saved;
  for (const Scheduler* const scheduler : schedulers_of(state, optimizer)) {
    // For readers of the file: functions of how far the run is need no state, unless they stand.
    StateDict one = {{"updates", stood ? written->update : state.timestamp.update}};
    if (stood) {
      one.set("written", written->state_dict());
    }
    if (scheduler->followed() != nullptr) {
      one.set("subject", subject_of(*scheduler));
      one.set("state", scheduler->save_state());
    }
    saved.emplace_back(std::move(one));
  }
  return saved;
}

void SchedulersCallback::on_save_checkpoint(Trainer& trainer, StateDict& state) {
  StateDict others;
  for (const auto& optimizer : trainer.state().optimizers) {
    StateList saved = state_of(trainer.state(), *optimizer);
    if (saved.empty()) {
      continue;
    }
    if (optimizer->name() == kDefaultOptimizer) {
      state.set("schedulers", std::move(saved));
    } else {
      others.set(optimizer->name(), std::move(saved));
    }
  }
  if (!others.empty()) {
    state.set("schedulers", std::move(others));
  }
}

void SchedulersCallback::check_checkpoint(Trainer& trainer, const StateDict& state) {
  for (const auto& optimizer : trainer.state().optimizers) {
    const StateList* const saved = saved_list(state, *optimizer);
    saved_time(saved);
    size_t place = 0;
    for (Scheduler* const scheduler : schedulers_of(trainer.state(), *optimizer)) {
      if (const StateDict* const own = own_state(*scheduler, place++, saved)) {
        const StateDict before = scheduler->save_state();
        scheduler->load_state(*own);
        scheduler->load_state(before);
      }
    }
  }
}

void SchedulersCallback::on_load_checkpoint(Trainer& trainer, const StateDict& state) {
  for (size_t i = 0; i < trainer.state().optimizers.size(); ++i) {
    const Optimizer& optimizer = *trainer.state().optimizers[i];
    const StateList* const saved = saved_list(state, optimizer);
    const std::vector<Scheduler*> own = schedulers_of(trainer.state(), optimizer);
    written_[i] = saved_time(saved);
    if (saved != nullptr && saved->size() != own.size()) {
      trainer.log().warning(
          fmt::format("the checkpoint was saved with {} schedulers, this run has {}; each depends "
                      "only on the run's progress",
                      saved->size(),
                      own.size()));
    }
    for (size_t place = 0; place < own.size(); ++place) {
      load_followed(trainer, *own[place], own_state(*own[place], place, saved));
    }
  }
}

void SchedulersCallback::load_followed(Trainer& trainer,
                                       Scheduler& scheduler,
                                       const StateDict* saved) {
  if (scheduler.followed() == nullptr) {
    return;
  }
  if (saved == nullptr) {
    trainer.log().warning(
        subject_of(scheduler) +
        " starts from scratch: the checkpoint has no state of it at its position");
  }
  scheduler.load_state(saved != nullptr ? *saved : StateDict());
}

}  // namespace rondo
