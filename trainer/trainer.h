#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include "callbacks/callback_map.h"
#include "callbacks/core/checkpoint_options.h"
#include "callbacks/hooks.h"
#include "callbacks/listeners.h"
#include "callbacks/results.h"
#include "core/log.h"
#include "trainer/hook_calls.h"
#include "trainer/metric_log.h"
#include "trainer/state.h"
#include "trainer/step_slots.h"
#include "trainer/trainer_options.h"

namespace rondo {

class FitRun;

/// Trains and evaluates a model. Owns everything of a run; callbacks in a fixed order do the work.
/// One thread uses a Trainer at a time, but for `request_stop`. Two Trainers of one process do not
/// touch each other.
/// Source: Cerebras' ModelZoo trainer.
class Trainer {
 public:
  /// Builds the run: the set-up hooks of every callback.
  /// \throws UsageError  for missing or wrong options, before anything is written
  explicit Trainer(TrainerOptions options, TextLog log = TextLog());
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer();

  /// \name Running
  /// @{

  /// Trains until the run has reached its total, validating in between; a run that is there already
  /// does nothing. The data sets are built before the first update, those of `val` too where the
  /// run will validate.
  /// \throws UsageError  when two loaders of `val` have one label, which names their metrics
  FitResult fit(const DataLoader& train, const Loaders& val = {}, const LoadFrom& from = {});

  /// The same from the model as it is, for so long, or otherwise as the options say.
  /// \throws UsageError  for a duration that is a share of the run, or not positive
  FitResult fit(const FitOptions& options, const DataLoader& train, const Loaders& val = {});

  /// The same, batch by batch: see FitRun.
  std::unique_ptr<FitRun> start_fit(const DataLoader& train,
                                    const Loaders& val = {},
                                    const LoadFrom& from = {});

  /// Evaluates one loader. After a fit the newest checkpoint is the model as it is, so nothing is
  /// loaded then unless a file is named. Warns of weights that nobody trained: see
  /// `TrainerOptions::untrained`.
  /// \return its metrics, with their scope; none when a stop left batches out
  Metrics validate(const DataLoader& loader, const LoadFrom& from = {});

  /// The same with a loop of your own. Where it has a family of hooks of its own, a callback has to
  /// set eval mode and to log what is to be returned: see ValidationLoop.
  Metrics validate(const DataLoader& loader, ValidationLoop& loop, const LoadFrom& from = {});

  /// The model's outputs for a whole data set, in eval mode: one row a sample in the order of the
  /// data, whatever the loader's `shuffle` and `drop_last`; outputs without rows one a batch. Fires
  /// the hooks `on_predict_…`. Keeps the outputs in
  /// `<artifact_dir>/predictions.pt` as well. When a stop left batches out, there are none of both.
  /// \throws ShapeError  when the outputs of two batches do not fit together
  Outputs predict(const DataLoader& loader, const LoadFrom& from = {});

  /// Evaluates every loader with the newest checkpoint, or the model as it is when there is none.
  /// A row that a stop left unfinished is left out, here and below.
  /// \throws UsageError  when two of them have one label, here and below
  ValidationTable validate_all(const Loaders& loaders);

  /// Evaluates every loader with every checkpoint whose path matches one of the globs, by step.
  /// \throws IoError  when a glob matches nothing, before anything is evaluated
  ValidationTable validate_all(const Loaders& loaders,
                               const std::vector<std::string>& globs,
                               const ValidateAllOptions& options = {});

  /// The same over every indexed checkpoint; when there is none, the same as
  /// `validate_all(loaders)`, unless `options.watch` waits for one.
  ValidationTable validate_all_indexed(const Loaders& loaders,
                                       const ValidateAllOptions& options = {});

  /// Saves now, whatever the cadence.
  /// \throws UsageError  inside a step
  /// \throws CheckpointError, IoError  when it cannot be written; also when the save before it was
  ///                     written in the background and failed, where `on_error` is "fail"
  /// \throws HookError  when a callback failed
  std::filesystem::path save_checkpoint();

  /// The same into a file of that name, which no index lists, no callback hears of and nothing
  /// deletes; an existing one is replaced. \param file  a path from the directory of the
  /// checkpoints, or an address such as "s3://bucket/best.pt" \return where it is
  std::filesystem::path save_checkpoint(const std::filesystem::path& file);

  /// Loads now.
  /// \throws UsageError  inside a step, or while a fit goes on
  /// \throws CheckpointError, IoError  when the file or the index cannot be read
  /// \throws HookError  with its cause nested, when a callback finds that it does not fit
  void load_checkpoint(const LoadFrom& from);

  /// All that a checkpoint would hold, in memory: tensors are copies, on the host.
  /// \throws UsageError  inside a step
  StateDict state_dict();

  /// Loads what `state_dict` gave. \param exclude  globs of entries that stay as they are, such as
  /// "optimizer" or "model/head*"
  /// \throws UsageError  inside a step, or while a fit goes on
  /// \throws HookError  with its cause nested, when a callback finds that it does not fit
  void load_state_dict(StateDict state, const std::vector<std::string>& exclude = {});

  /// Ends the run after the current update, as if it were its last. From any thread or signal
  /// handler. \param reason  a string that lives as long as the program
  void request_stop(const char* reason) noexcept { stop_reason_.store(reason); }

  /// Null when nobody asked.
  const char* stop_reason() const noexcept { return stop_reason_.load(); }

  /// Forgets a request, so that the Trainer can run again; a fit does so at its end.
  void clear_stop() noexcept { stop_reason_.store(nullptr); }

  /// True when the run has to end after this update: `request_stop`, or an early-exit function.
  bool stops_now();

  /// Saves after the current update and goes on. From any thread or signal handler.
  void request_save() noexcept { save_requested_.store(true); }

  /// True once after each request.
  bool take_save_request() noexcept { return save_requested_.exchange(false); }

  /// @}

  /// \name For callbacks
  /// @{

  /// Gives values to the loggers. Inside a step: with each replay, on log steps. Outside: now, when
  /// it is a log step or no loop runs; at the end of a validation always, unless a stop left
  /// batches out. Names get the scopes that are open.
  void log_metrics(const Metrics& values, const LogOptions& options = {}) {
    metric_log_.log(values, options);
  }

  /// Gives a histogram, a picture, a text or a table to the loggers, now, under the scopes that are
  /// open. From inside a step: by `defer`.
  void log_media(const Media& media) { metric_log_.log_media(media); }

  /// From here on, a logger of this name or class gets only what names it: see LogOptions.
  void remove_logger_destination(std::string logger) {
    metric_log_.remove_destination(std::move(logger));
  }

  /// Tells the user at once: in the text log, in the record, and by notifications.
  /// \throws UsageError  inside a step: use `defer`
  void alert(AlertLevel level, const std::string& text);

  /// True where metrics are given to loggers: see `log_metrics`.
  bool is_log_step() const { return metric_log_.is_log_step(); }

  /// Runs `function` after the current step with materialised tensors, in queue order; inside a
  /// step, after each replay of it. `function` must take its tensors as arguments: one that a
  /// lambda captures is stale when the step is replayed. \param every  cadence of the repetition,
  /// in any unit of time; seconds fall due in the update after
  void defer(std::vector<at::Tensor> tensors, HostFunction function, Time every = 1);

  /// Inside a step: runs `function` now and at this point of each replay; it may write the tensors
  /// in place.
  void host_call(std::string name, std::vector<at::Tensor> tensors, HostFunction function);

  /// Opens a scope of metric names.
  [[nodiscard]] NameScope name_scope(std::string name) {
    return {metric_log_.scopes(), std::move(name)};
  }

  /// Names of metrics and the loggers, for what is not above.
  MetricLog& metric_log() { return metric_log_; }

  const MetricLog& metric_log() const { return metric_log_; }

  /// Calls a hook of every callback, in order; one of a batch only of those that have it.
  /// \throws HookError  "error when calling X.hook", with the cause nested
  template <class... Params, class... Args>
  void call(const Hook<Params...>& hook, Args&&... args) {
    auto one = [&](Callback& callback) { (callback.*hook.method)(*this, args...); };
    hook_calls_.call(hook.name, hook.site, hook.in_batch, std::ref(one));
  }

  /// Calls a hook of a user's own. \throws HookError  as above
  /// \throws UsageError  when a callback of this Trainer's own does not have it, unless it was made
  ///                     optional
  void call(std::string_view hook, HookArgs& args) { hook_calls_.call_custom(hook, args); }

  /// From here on, callbacks may lack this hook of a user's own; until as many `disallow_hook`s.
  void allow_hook(std::string hook) { hook_calls_.allow(std::move(hook)); }

  void disallow_hook(const std::string& hook) { hook_calls_.disallow(hook); }

  /// Every callback that is called: this Trainer's own, in order, and global ones behind them.
  std::vector<Callback*> heard_callbacks() const { return hook_calls_.heard(); }

  /// The first of this Trainer's own callbacks, in dispatch order, that is a T; null when there is
  /// none. Global ones are not looked at.
  template <class T>
  T* callback() const;

  /// The callback of the core slot T::kSlot, which has type T.
  template <class T>
  T& slot() const;

  const CallbackMap& callbacks() const { return callbacks_; }

  /// The callbacks of the slots that are asked in every batch.
  const StepSlots& step_slots() const { return step_slots_; }

  /// @}

  State& state() { return state_; }

  const State& state() const { return state_; }

  const TrainerOptions& options() const { return options_; }

  const TextLog& log() const { return log_; }

 private:
  void build_callbacks();
  void find_step_slots();

  TrainerOptions options_;
  TextLog log_;
  State state_;
  CallbackMap callbacks_;
  StepSlots step_slots_;
  HookCalls hook_calls_;
  MetricLog metric_log_;
  std::atomic<const char*> stop_reason_{nullptr};
  std::atomic<bool> save_requested_{false};
};

template <class T>
T* Trainer::callback() const {
  for (const CallbackMap::Entry& entry : callbacks_.entries()) {
    if (T* found = dynamic_cast<T*>(entry.callback.get())) {
      return found;
    }
  }
  return nullptr;
}

namespace detail {

[[noreturn]] void wrong_slot(const char* name, const std::type_info& expected);

}  // namespace detail

template <class T>
T& Trainer::slot() const {
  T* const found = dynamic_cast<T*>(callbacks_.find(T::kSlot));
  if (found == nullptr) {
    detail::wrong_slot(T::kSlot, typeid(T));
  }
  return *found;
}

}  // namespace rondo
