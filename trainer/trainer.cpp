#include "trainer/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "callbacks/core/algorithms_callback.h"
#include "callbacks/core/checkpoint_callback.h"
#include "callbacks/core/dataloader_callback.h"
#include "callbacks/core/early_exit_callback.h"
#include "callbacks/core/logging_callback.h"
#include "callbacks/core/precision_callback.h"
#include "callbacks/core/reproducibility_callback.h"
#include "callbacks/core/run_schedule_callback.h"
#include "callbacks/core/schedulers_callback.h"
#include "callbacks/core/sparsity_callback.h"
#include "callbacks/core/virtual_ranks.h"
#include "callbacks/decides_on_nan.h"
#include "checkpoint/partial_state.h"
#include "core/directory_name.h"
#include "core/error.h"
#include "loops/fit_run.h"
#include "loops/predict.h"
#include "loops/train_step.h"
#include "loops/validate_all.h"
#include "trainer/core_callbacks.h"
#include "trainer/ranks.h"

namespace rondo {

namespace {

void require_whole_step(const State& state) {
  if (state.backend->is_in_step()) {
    throw UsageError(
        "save_checkpoint was called inside a step; call it from a host hook or a step closure, "
        "finish a step in progress with FitRun::finish_step first, or use request_save");
  }
}

void require_complete(const TrainerOptions& options) {
  if (options.model_dir.empty()) {
    throw UsageError(
        "TrainerOptions::model_dir is missing: the directory for checkpoints and logs");
  }
  if (!options.model) {
    throw UsageError(
        "TrainerOptions::model is missing: what to train, such as use<Mlp>({{784, 256, 10}})");
  }
  for (const auto& slot : options.slots) {
    const auto& slots = core_slots();
    const bool known = std::any_of(
        slots.begin(), slots.end(), [&](const CoreSlot& core) { return slot.first == core.name; });
    if (!known) {
      throw UsageError(fmt::format("TrainerOptions::slots: there is no slot \"{}\"", slot.first));
    }
  }
}

std::string run_name_of(const TrainerOptions& options) {
  const char* const given = std::getenv("RUN_NAME");
  if (options.run_name.empty() && (given == nullptr || *given == '\0')) {
    return directory_name(options.model_dir);
  }
  return options.run_name.empty() ? given : options.run_name;
}

}  // namespace

Trainer::Trainer(TrainerOptions options, TextLog log)
    : options_(std::move(options)), log_(std::move(log)), hook_calls_(*this), metric_log_(*this) {
  require_complete(options_);
  state_.communicator = join_ranks(options_, log_);
  state_.run_name = run_name_of(options_);
  build_callbacks();
  call(hooks::pre_setup);
  call(hooks::setup);
  call(hooks::post_setup);
  step_slots_.reproducibility->leave();
}

Trainer::~Trainer() {
  for (const CallbackMap::Entry& entry : callbacks_.entries()) {
    try {
      entry.callback->finalize();
    } catch (...) {
      log_.error(fmt::format("error when calling {}.finalize: {}",
                             entry.class_name,
                             describe(std::current_exception())));
    }
  }
}

void Trainer::build_callbacks() {
  for (const CoreSlot& slot : core_slots()) {
    const auto replaced = options_.slots.find(slot.name);
    const bool is_default = replaced == options_.slots.end();
    const Factory<CoreCallback> factory =
        is_default ? slot.make_default(options_) : replaced->second;
    const auto section = options_.origins.find(slot.name);
    const bool is_in_config = is_default && section != options_.origins.end();
    callbacks_.add_slot(slot.name,
                        factory.name(),
                        is_in_config ? section->second : factory.origin(),
                        factory.make());
  }
  for (const Factory<Algorithm>& factory : options_.algorithms) {
    callbacks_.add(factory.name(), factory.label(), factory.origin(), factory.make());
  }
  for (const Factory<Callback>& factory : options_.callbacks) {
    callbacks_.add(factory.name(), factory.label(), factory.origin(), factory.make());
  }
  for (const Factory<Logger>& factory : options_.loggers) {
    callbacks_.add(factory.name(), factory.label(), factory.origin(), factory.make());
  }
  for (const char* name : slots_moved_to_end()) {
    callbacks_.move_to_end(name);
  }
  find_step_slots();
}

void Trainer::find_step_slots() {
  step_slots_ = {&slot<ReproducibilityCallback>(),
                 &slot<DataloaderCallback>(),
                 &slot<SchedulersCallback>(),
                 &slot<PrecisionCallback>(),
                 &slot<SparsityCallback>(),
                 &slot<AlgorithmsCallback>(),
                 &slot<TrainStep>(),
                 &slot<LoggingCallback>(),
                 &slot<EarlyExitCallback>(),
                 &slot<RunScheduleCallback>()};
}

FitResult Trainer::fit(const DataLoader& train, const Loaders& val, const LoadFrom& from) {
  const RngScope rng(*this);
  LoadFrom start = from;
  while (true) {
    try {
      FitRun run(*this, train, val, start);
      while (run.advance()) {
      }
      return run.result();
    } catch (const NonFiniteLossError&) {
      auto* const decides = callback<DecidesOnNan>();
      // Ranks have given each other up by now.
      const bool has_peers = state_.communicator->world_size() > 1;
      if (has_peers || decides == nullptr || !decides->rolls_back(*this)) {
        throw;
      }
      start = LoadFrom(*state_.last_checkpoint);
    }
  }
}

FitResult Trainer::fit(const FitOptions& options, const DataLoader& train, const Loaders& val) {
  const RngScope rng(*this);
  const LoadFrom from = state_.has_trained ? LoadFrom::nothing() : LoadFrom();
  FitRun run(*this, train, val, from, options);
  while (run.advance()) {
  }
  return run.result();
}

std::unique_ptr<FitRun> Trainer::start_fit(const DataLoader& train,
                                           const Loaders& val,
                                           const LoadFrom& from) {
  return std::make_unique<FitRun>(*this, train, val, from);
}

Metrics Trainer::validate(const DataLoader& loader, const LoadFrom& from) {
  const RngScope rng(*this);
  return rondo::validate(*this, loader, from);
}

Metrics Trainer::validate(const DataLoader& loader, ValidationLoop& loop, const LoadFrom& from) {
  const RngScope rng(*this);
  return rondo::validate(*this, loader, from, &loop);
}

Outputs Trainer::predict(const DataLoader& loader, const LoadFrom& from) {
  const RngScope rng(*this);
  return rondo::predict(*this, loader, from);
}

ValidationTable Trainer::validate_all(const Loaders& loaders) {
  const RngScope rng(*this);
  return rondo::validate_all(*this, loaders);
}

ValidationTable Trainer::validate_all(const Loaders& loaders,
                                      const std::vector<std::string>& globs,
                                      const ValidateAllOptions& options) {
  const RngScope rng(*this);
  return validate_matching(*this, loaders, globs, options);
}

ValidationTable Trainer::validate_all_indexed(const Loaders& loaders,
                                              const ValidateAllOptions& options) {
  const RngScope rng(*this);
  const auto find = [this] { return slot<CheckpointCallback>().indexed(); };
  if (!options.watch && find().empty()) {
    return rondo::validate_all(*this, loaders);
  }
  return validate_checkpoints(*this, loaders, find, options);
}

std::filesystem::path Trainer::save_checkpoint() {
  require_whole_step(state_);
  return slot<CheckpointCallback>().save(*this);
}

std::filesystem::path Trainer::save_checkpoint(const std::filesystem::path& file) {
  require_whole_step(state_);
  return slot<CheckpointCallback>().save_as(*this, file);
}

void Trainer::load_checkpoint(const LoadFrom& from) {
  if (state_.backend->is_in_step()) {
    throw UsageError(
        "cannot load a checkpoint (load_checkpoint, fit or validate) inside a step; do it in a "
        "host hook, and finish a step in progress with FitRun::finish_step first");
  }
  if (state_.plan != nullptr && !from.is_nothing()) {
    throw UsageError(
        "cannot load a checkpoint during a fit: the data position would not match; end the fit, or "
        "validate with the current model");
  }
  slot<CheckpointCallback>().load(*this, from);
}

StateDict Trainer::state_dict() {
  if (state_.backend->is_in_step()) {
    throw UsageError("state_dict was called inside a step; call it from a host hook");
  }
  return deep_copy(slot<CheckpointCallback>().gather(*this));
}

void Trainer::load_state_dict(StateDict state, const std::vector<std::string>& exclude) {
  if (state_.backend->is_in_step() || state_.plan != nullptr) {
    throw UsageError(
        "load_state_dict was called inside a step or during a fit, whose data position would not "
        "match; call it before or after the fit");
  }
  const RngScope rng(*this);
  if (!exclude.empty()) {
    state = take_entries(state, state_dict(), EntryFilter({}, exclude));
  }
  const auto newest = state_.last_checkpoint;
  slot<CheckpointCallback>().load(*this, "(a state in memory)", std::move(state));
  state_.last_checkpoint = newest;
}

bool Trainer::stops_now() {
  const VirtualRanks* const ranks = ranks_of(*this);
  const bool has_peers_in_fit = state_.plan != nullptr && ranks != nullptr && ranks->has_peers();
  if (has_peers_in_fit) {
    return (stop_reason() != nullptr && ranks->is_stop_agreed()) || ranks->is_exit_agreed();
  }
  return stop_reason() != nullptr || step_slots_.early_exit->should_exit();
}

void Trainer::defer(std::vector<at::Tensor> tensors, HostFunction function, Time every) {
  StepClosure closure{std::move(tensors), std::move(function), {false, every}};
  if (state_.backend->is_in_step()) {
    state_.backend->defer(std::move(closure));
  } else if (state_.executor != nullptr) {
    state_.executor->defer(std::move(closure));
  } else {
    closure.run(closure.tensors);
  }
}

void Trainer::host_call(std::string name, std::vector<at::Tensor> tensors, HostFunction function) {
  state_.backend->host_call(std::move(name), std::move(tensors), std::move(function));
}

void Trainer::alert(AlertLevel level, const std::string& text) {
  if (state_.backend->is_in_step()) {
    throw UsageError("alert was called inside a step; call it from a host hook, or by `defer`");
  }
  const AlertMessage message{level, text, state_.global_step()};
  log_.write(level == AlertLevel::Error ? LogLevel::Error : LogLevel::Warning, "alert: " + text);
  for (Callback* callback : heard_callbacks()) {
    try {
      if (auto* const hears = dynamic_cast<HearsAlerts*>(callback)) {
        hears->on_alert(*this, message);
      }
    } catch (...) {
      log_.warning(
          fmt::format("an alert was not delivered: {}", describe(std::current_exception())));
    }
  }
}

namespace detail {

void wrong_slot(const char* name, const std::type_info& expected) {
  throw UsageError(fmt::format(
      "slot \"{}\" must hold a {}; derive the callback that replaces it from that class",
      name,
      class_name(expected)));
}

}  // namespace detail

}  // namespace rondo
