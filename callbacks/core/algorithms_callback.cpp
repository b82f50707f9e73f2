#include "callbacks/core/algorithms_callback.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <iterator>

#include "backends/scoped.h"
#include "callbacks/core/run_plan.h"
#include "callbacks/global_callbacks.h"
#include "core/error.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

constexpr const char* kSection = "algorithms";

/// Those of a step, by what passes through the model.
constexpr Event kTrainEvents[] = {Event::BeforeTrainBatch,
                                  Event::BeforeForward,
                                  Event::AfterForward,
                                  Event::BeforeLoss,
                                  Event::AfterLoss,
                                  Event::BeforeBackward,
                                  Event::AfterBackward,
                                  Event::AfterTrainBatch};
constexpr Event kValidateEvents[] = {Event::EvalBeforeForward, Event::EvalAfterForward};
constexpr Event kPredictEvents[] = {Event::PredictBeforeForward, Event::PredictAfterForward};

}  // namespace

void AlgorithmsCallback::pre_setup(Trainer& trainer) {
  std::map<std::string, std::string> owners;
  for (const CallbackMap::Entry& entry : trainer.callbacks().entries()) {
    if (auto* const change = dynamic_cast<ChangesForward*>(entry.callback.get())) {
      forward_changes_.all.push_back(change);
    }
    if (auto* const change = dynamic_cast<ChangesFinalInput*>(entry.callback.get())) {
      final_input_.push_back(change);
    }
    if (auto* const algorithm = dynamic_cast<Algorithm*>(entry.callback.get())) {
      algorithms_.emplace_back(algorithm, entry.name);
      const std::string what = algorithm->exclusive();
      const auto [at, is_new] = owners.emplace(what, entry.name);
      if (!what.empty() && !is_new) {
        throw UsageError(fmt::format(
            "algorithms: {} and {} exclude each other, since only one of a run {}; keep one",
            at->second,
            entry.name,
            what));
      }
    } else if (auto* const listener = dynamic_cast<EventListener*>(entry.callback.get())) {
      const bool is_logger = dynamic_cast<Logger*>(entry.callback.get()) != nullptr;
      (is_logger ? loggers_ : callbacks_).emplace_back(listener, entry.name);
    }
  }
}

void AlgorithmsCallback::show_final_input(Trainer& trainer) {
  for (ChangesFinalInput* const change : final_input_) {
    change->on_final_input(trainer);
  }
}

AlgorithmsCallback::Pass AlgorithmsCallback::pass(const Trainer& trainer) const {
  return trainer.state().is_training ? Pass::Train : pass_;
}

std::vector<Event> AlgorithmsCallback::events_of_step(Pass pass) {
  switch (pass) {
    case Pass::Train:
      return {std::begin(kTrainEvents), std::end(kTrainEvents)};
    case Pass::Validate:
      return {std::begin(kValidateEvents), std::end(kValidateEvents)};
    case Pass::Predict:
      return {std::begin(kPredictEvents), std::end(kPredictEvents)};
    case Pass::Other:
      return {};
  }
  return {};
}

std::vector<Algorithm*> AlgorithmsCallback::ordered(const Trainer& trainer, Event event) const {
  std::vector<Algorithm*> order;
  for (const auto& named : algorithms_) {
    order.push_back(named.first);
  }
  if (is_after(event)) {
    std::reverse(order.begin(), order.end());
  }
  for (const AlgorithmPass& pass : trainer.options().algorithm_passes) {
    pass(order, event);
  }
  return order;
}

std::string AlgorithmsCallback::match(const Trainer& trainer) {
  if (algorithms_.empty()) {
    return "";
  }
  matched_.clear();
  std::map<const Algorithm*, uint32_t> where;  // one bit an event of the step
  uint32_t bit = 1;
  for (const Event event : events_of_step(pass(trainer))) {
    for (const Algorithm* algorithm : ordered(trainer, event)) {
      if (algorithm->match(event, trainer.state())) {
        matched_[event].insert(algorithm);
        where[algorithm] |= bit;
      }
    }
    bit *= 2;
  }
  std::vector<std::string> names;
  for (const auto& [algorithm, name] : algorithms_) {
    if (const auto found = where.find(algorithm); found != where.end()) {
      names.push_back(fmt::format("{}.{:x}", name, found->second));
    }
  }
  return names.empty() ? "" : fmt::format("/{}", fmt::join(names, "+"));
}

bool AlgorithmsCallback::is_matched(Event event,
                                    const Algorithm* algorithm,
                                    const Trainer& trainer) const {
  if (site_of(event) == HookSite::Host) {
    return algorithm->match(event, trainer.state());
  }
  const auto found = matched_.find(event);
  return found != matched_.end() && found->second.count(algorithm) > 0;
}

void AlgorithmsCallback::run(Trainer& trainer, Event event) {
  const auto run_algorithms = [&] {
    for (Algorithm* algorithm : ordered(trainer, event)) {
      if (is_matched(event, algorithm, trainer)) {
        const auto named = std::find_if(algorithms_.begin(), algorithms_.end(), [&](const auto& a) {
          return a.first == algorithm;
        });
        trace(trainer, named->second, event);
        run_one(trainer, event, *algorithm, named->second);
      }
    }
  };
  const auto run_all = [&](const Named<EventListener>& listeners) {
    for (const auto& [listener, name] : listeners) {
      run_one(trainer, event, *listener, name);
    }
  };
  const auto run_callbacks = [&] {
    run_all(callbacks_);
    for (Callback* global : global_callbacks()) {
      if (auto* const listener = dynamic_cast<EventListener*>(global)) {
        run_one(trainer, event, *listener, class_name(typeid(*global)));
      }
    }
  };
  if (event == Event::Init) {
    run_all(loggers_);
    run_callbacks();
    run_algorithms();
  } else {
    run_algorithms();
    run_callbacks();
    run_all(loggers_);
  }
}

void AlgorithmsCallback::run_one(Trainer& trainer,
                                 Event event,
                                 EventListener& listener,
                                 const std::string& name) {
  if (site_of(event) == HookSite::Step) {
    trainer.state().backend->set_location(name, name_of(event));
  }
  try {
    listener.run_event(event, trainer);
  } catch (const CaptureError&) {
    throw;
  } catch (const NonFiniteLossError&) {
    throw;
  } catch (...) {
    std::throw_with_nested(UsageError(fmt::format("{} failed at {}", name, name_of(event))));
  }
}

void AlgorithmsCallback::trace(Trainer& trainer, const std::string& name, Event event) {
  const auto known = std::find_if(traces_.begin(), traces_.end(), [&](const Trace& trace) {
    return trace.algorithm == name && trace.event == event;
  });
  if (known != traces_.end()) {
    ++known->times;
    return;
  }
  traces_.push_back({name, event, 1});
  trainer.log().debug(fmt::format("algorithm {} acts at {}", name, name_of(event)));
}

void AlgorithmsCallback::run_pending(Trainer& trainer) {
  for (const Event event : std::exchange(pending_, {})) {
    run(trainer, event);
  }
}

void AlgorithmsCallback::on_model_init(Trainer& trainer, Model&) {
  run(trainer, Event::Init);
}

void AlgorithmsCallback::on_before_load_checkpoint(Trainer& trainer,
                                                   const std::filesystem::path* path) {
  if (path == nullptr && !enters_fit_) {
    return;  // only a run as a whole loads, even when there is nothing
  }
  run(trainer, Event::BeforeLoad);
  if (path == nullptr) {
    run(trainer, Event::AfterLoad);
  }
}

void AlgorithmsCallback::on_load_checkpoint(Trainer& trainer, const StateDict&) {
  run(trainer, Event::AfterLoad);
}

void AlgorithmsCallback::on_save_checkpoint(Trainer&, StateDict& state) {
  StateDict names;
  for (const auto& [algorithm, name] : algorithms_) {
    if (algorithm->required_on_load()) {
      names.set(name, class_name(typeid(*algorithm)));
    }
  }
  if (!names.empty()) {
    state.set(kSection, names);
  }
}

void AlgorithmsCallback::check_checkpoint(Trainer& trainer, const StateDict& state) {
  const StateValue* const saved = state.find(kSection);
  if (saved == nullptr || !saved->is_dict()) {
    return;
  }
  const std::vector<std::string>& excluded = trainer.options().checkpoint.load.exclude_algorithms;
  for (const std::string& name : saved->as_dict().names()) {
    const bool is_here = std::any_of(algorithms_.begin(), algorithms_.end(), [&](const auto& own) {
      return own.second == name && own.first->required_on_load();
    });
    if (!is_here && std::find(excluded.begin(), excluded.end(), name) == excluded.end()) {
      throw CheckpointError(fmt::format(
          "the model of the checkpoint was changed by the algorithm {0}, which this run "
          "lacks; add {{ {0} = {{ … }} }} to algorithms, or \"{0}\" to "
          "checkpoint.load.exclude_algorithms",
          name));
    }
  }
}

void AlgorithmsCallback::on_enter_fit(
    Trainer&, Cleanup& cleanup, const DataLoader&, const Loaders&, Loop&) {
  enters_fit_ = true;
  cleanup.push([this](const std::exception_ptr&) { enters_fit_ = false; });
}

void AlgorithmsCallback::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  enters_fit_ = false;
  pending_.clear();
  run(trainer, Event::FitStart);
}

void AlgorithmsCallback::on_fit_end(Trainer& trainer, Loop&) {
  run_pending(trainer);
  run(trainer, Event::FitEnd);
}

void AlgorithmsCallback::on_epoch_start(Trainer& trainer, Model&, const DataLoader&, int64_t) {
  run_pending(trainer);
  if (trainer.state().timestamp.batch == 0) {
    run(trainer, Event::IterationStart);
  }
  run(trainer, Event::EpochStart);
}

void AlgorithmsCallback::on_epoch_end(Trainer& trainer, Model&, const DataLoader&, int64_t) {
  run(trainer, Event::EpochEnd);
  pending_.push_back(Event::EpochCheckpoint);
}

void AlgorithmsCallback::on_dataloader_start(Trainer& trainer) {
  run_pending(trainer);
  run(trainer, Event::BeforeDataloader);
}

void AlgorithmsCallback::on_dataloader_end(Trainer& trainer, Batch&) {
  run(trainer, Event::AfterDataloader);
}

void AlgorithmsCallback::on_train_batch_start(Trainer& trainer, Model&, const Batch&, int64_t) {
  if (trainer.state().position.is_first) {
    run(trainer, Event::BatchStart);
  }
}

// A save comes after a validation that is due at the same update, but where an epoch ends.
void AlgorithmsCallback::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  const State& state = trainer.state();
  if (!state.position.is_last) {
    return;
  }
  run(trainer, Event::BatchEnd);
  const bool ends_epoch = state.timestamp.batch_in_epoch == 0;
  if (state.due_validation && !ends_epoch) {
    pending_.push_back(Event::BatchCheckpoint);
  } else {
    run(trainer, Event::BatchCheckpoint);
  }
}

void AlgorithmsCallback::on_enter_validate_all(
    Trainer& trainer, Cleanup& cleanup, const Loaders&, Loop&, const Paths&) {
  is_in_all_ = true;
  cleanup.push([this](const std::exception_ptr&) { is_in_all_ = false; });
  if (trainer.state().plan != nullptr) {
    run(trainer, Event::EvalBeforeAll);
  }
}

void AlgorithmsCallback::run_validation(Trainer& trainer, std::optional<int64_t>, bool) {
  if (is_standalone_) {
    is_standalone_ = false;
    run(trainer, Event::EvalStandaloneEnd);
  } else if (trainer.state().plan != nullptr) {
    run(trainer, Event::EvalAfterAll);
    run_pending(trainer);
  }
}

void AlgorithmsCallback::on_enter_validate(Trainer&, Cleanup& cleanup, const DataLoader&, Loop&) {
  cleanup.push([this, before = std::exchange(pass_, Pass::Other)](const std::exception_ptr& error) {
    pass_ = before;
    is_standalone_ = is_standalone_ && error == nullptr;  // what fails has no end
  });
}

void AlgorithmsCallback::on_validate_start(Trainer& trainer, Model&, const DataLoader&, Loop&) {
  pass_ = Pass::Validate;
  const bool is_of_fit = is_in_all_ && trainer.state().plan != nullptr;
  if (!is_of_fit && !is_standalone_) {
    is_standalone_ = true;
    run(trainer, Event::EvalStandaloneStart);
  }
  run(trainer, Event::EvalStart);
}

void AlgorithmsCallback::on_validate_end(Trainer& trainer, Model&, Loop&) {
  run(trainer, Event::EvalEnd);
  if (is_standalone_ && !is_in_all_) {
    is_standalone_ = false;
    run(trainer, Event::EvalStandaloneEnd);
  }
}

void AlgorithmsCallback::on_validate_batch_start(Trainer& trainer, Model&, const Batch&, int64_t) {
  run(trainer, Event::EvalBatchStart);
}

void AlgorithmsCallback::on_validate_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  run(trainer, Event::EvalBatchEnd);
}

void AlgorithmsCallback::on_predict_start(Trainer& trainer, Model&, const DataLoader&, Loop&) {
  pass_ = Pass::Predict;
  run(trainer, Event::PredictStart);
}

void AlgorithmsCallback::on_predict_end(Trainer& trainer, Model&, Loop&) {
  run(trainer, Event::PredictEnd);
}

void AlgorithmsCallback::on_predict_batch_start(Trainer& trainer, Model&, const Batch&, int64_t) {
  run(trainer, Event::PredictBatchStart);
}

void AlgorithmsCallback::on_predict_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  run(trainer, Event::PredictBatchEnd);
}

void AlgorithmsCallback::on_train_step_start(Trainer& trainer, Model&, const Batch&) {
  if (trainer.state().position.is_first) {
    run(trainer, Event::BeforeTrainBatch);
  }
}

void AlgorithmsCallback::on_before_forward(Trainer& trainer, Model&, const Batch&, Batch&) {
  switch (pass(trainer)) {
    case Pass::Train:
      return run(trainer, Event::BeforeForward);
    case Pass::Validate:
      return run(trainer, Event::EvalBeforeForward);
    case Pass::Predict:
      return run(trainer, Event::PredictBeforeForward);
    case Pass::Other:
      return;
  }
}

void AlgorithmsCallback::on_after_network(Trainer& trainer, Model&, Outputs&, const Batch&) {
  switch (pass(trainer)) {
    case Pass::Train:
      return run(trainer, Event::AfterForward);
    case Pass::Validate:
      return run(trainer, Event::EvalAfterForward);
    case Pass::Predict:
      return run(trainer, Event::PredictAfterForward);
    case Pass::Other:
      return;
  }
}

void AlgorithmsCallback::on_before_loss(Trainer& trainer, Model&, Outputs&, Batch&) {
  if (trainer.state().is_training) {
    run(trainer, Event::BeforeLoss);
  }
}

void AlgorithmsCallback::on_after_loss(Trainer& trainer, Model&, Outputs&, Batch&) {
  if (trainer.state().is_training) {
    run(trainer, Event::AfterLoss);
  }
}

void AlgorithmsCallback::on_before_backward(Trainer& trainer, Model&, Outputs& outputs) {
  const Scoped<Outputs*> scope(trainer.state().outputs, &outputs);
  run(trainer, Event::BeforeBackward);
}

void AlgorithmsCallback::on_after_backward(Trainer& trainer, Model&, Outputs& outputs) {
  const Scoped<Outputs*> scope(trainer.state().outputs, &outputs);
  run(trainer, Event::AfterBackward);
}

// Once an update, whatever optimizers step in it.
void AlgorithmsCallback::on_before_optimizer_step(Trainer& trainer, Model&, Optimizer& optimizer) {
  if (&optimizer == trainer.state().optimizer) {
    run(trainer, Event::AfterTrainBatch);
  }
}

}  // namespace rondo
