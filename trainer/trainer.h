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

/// Trains and evaluates a model. Owns everything in a run; callbacks do the work in a fixed order.
/// Only one thread at a time may use a Trainer, except for `request_stop` and `request_save`.
/// Trainers in one process are independent.
/// Source: Cerebras' ModelZoo trainer.
class Trainer {
 public:
  /// Builds the run by calling the set-up hooks of every callback.
  /// \throws UsageError  for missing or wrong options, before anything is written
  explicit Trainer(TrainerOptions options, TextLog log = TextLog());
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer();

  /// \name Running
  /// @{

  /// Trains until the run reaches its total, validating in between; does nothing when the run is
  /// already complete. Builds the data sets before the first update, including those of `val` if
  /// the run will validate.
  /// \throws UsageError  when two loaders of `val` share a label, which names their metrics
  FitResult fit(const DataLoader& train, const Loaders& val = {}, const LoadFrom& from = {});

  /// The same from the current model, with the duration and other settings of `options`.
  /// \throws UsageError  for a duration that is a fraction of the run or not positive
  FitResult fit(const FitOptions& options, const DataLoader& train, const Loaders& val = {});

  /// The same, batch by batch: see FitRun.
  std::unique_ptr<FitRun> start_fit(const DataLoader& train,
                                    const Loaders& val = {},
                                    const LoadFrom& from = {});

  /// Evaluates one loader. After a fit the newest checkpoint is the current model, so nothing is
  /// loaded unless `from` names a file. Warns of untrained weights: see
  /// `TrainerOptions::untrained`.
  /// \return its metrics, with their scope; none if a stop interrupted it
  Metrics validate(const DataLoader& loader, const LoadFrom& from = {});

  /// The same with your own loop. If the loop has its own family of hooks, a callback must set eval
  /// mode and log the metrics to return: see ValidationLoop.
  Metrics validate(const DataLoader& loader, ValidationLoop& loop, const LoadFrom& from = {});

  /// The model's outputs for a whole data set, in eval mode: one row per sample in data order,
  /// ignoring the loader's `shuffle` and `drop_last`. Outputs without rows have one entry per
  /// batch. Fires the `on_predict_…` hooks. Also writes the outputs to
  /// `<artifact_dir>/predictions.pt`. Returns and writes nothing if a stop interrupted the pass.
  /// \throws ShapeError  when the outputs of two batches have incompatible shapes
  Outputs predict(const DataLoader& loader, const LoadFrom& from = {});

  /// Evaluates every loader with the newest checkpoint, or with the current model when there is
  /// none. Omits a row that a stop left unfinished. This and the error hold for the overloads below
  /// too.
  /// \throws UsageError  when two loaders share a label
  ValidationTable validate_all(const Loaders& loaders);

  /// Evaluates every loader with every checkpoint whose path matches one of the globs, in order of
  /// step.
  /// \throws IoError  when a glob matches nothing, before anything is evaluated
  ValidationTable validate_all(const Loaders& loaders,
                               const std::vector<std::string>& globs,
                               const ValidateAllOptions& options = {});

  /// The same for every indexed checkpoint. Without any it is `validate_all(loaders)`, unless
  /// `options.watch` waits for one.
  ValidationTable validate_all_indexed(const Loaders& loaders,
                                       const ValidateAllOptions& options = {});

  /// Saves now, regardless of the cadence.
  /// \throws UsageError  inside a step
  /// \throws CheckpointError, IoError  when the file cannot be written, or when the previous
  ///                                   background save failed and `on_error` is "fail"
  /// \throws HookError  when a callback failed
  std::filesystem::path save_checkpoint();

  /// The same into `file`, replacing an existing one. No index lists the file, no callback is
  /// notified and nothing deletes it.
  /// \param file  a path, relative to the checkpoint directory, or an address such as
  ///              "s3://bucket/best.pt"
  /// \return its path or address
  std::filesystem::path save_checkpoint(const std::filesystem::path& file);

  /// Loads a checkpoint now.
  /// \throws UsageError  inside a step or during a fit
  /// \throws CheckpointError, IoError  when the file or the index cannot be read
  /// \throws HookError  when the state does not fit a callback, with the cause nested
  void load_checkpoint(const LoadFrom& from);

  /// Everything that a checkpoint would hold, in memory; tensors are copies on the host.
  /// \throws UsageError  inside a step
  StateDict state_dict();

  /// Loads what `state_dict` returned. \param exclude  globs of entries that stay as they are, such
  /// as "optimizer" or "model/head*"
  /// \throws UsageError  inside a step or during a fit
  /// \throws HookError  when the state does not fit a callback, with the cause nested
  void load_state_dict(StateDict state, const std::vector<std::string>& exclude = {});

  /// Ends the run after the current update, as if it were its last. Any thread or signal handler
  /// may call it. \param reason  a string that lives as long as the program
  void request_stop(const char* reason) noexcept { stop_reason_.store(reason); }

  /// The reason that `request_stop` got; null without a request.
  const char* stop_reason() const noexcept { return stop_reason_.load(); }

  /// Clears the request so that the Trainer can run again; a fit does so at its end.
  void clear_stop() noexcept { stop_reason_.store(nullptr); }

  /// True when `request_stop` or an early-exit function ends the run after this update.
  bool stops_now();

  /// Saves after the current update and continues. Any thread or signal handler may call it.
  void request_save() noexcept { save_requested_.store(true); }

  /// True once after each request.
  bool take_save_request() noexcept { return save_requested_.exchange(false); }

  /// @}

  /// \name For callbacks
  /// @{

  /// Passes values to the loggers. Inside a step: with each replay, on log steps. Outside: now, if
  /// it is a log step or no loop runs. At the end of a validation: always, except after an
  /// interrupted one. The open scopes prefix the names.
  void log_metrics(const Metrics& values, const LogOptions& options = {}) {
    metric_log_.log(values, options);
  }

  /// Passes a histogram, a picture, a text or a table to the loggers now, under the open scopes.
  /// Inside a step use `defer`.
  void log_media(const Media& media) { metric_log_.log_media(media); }

  /// From now on, a logger of this name or class receives only values addressed to it: see
  /// LogOptions.
  void remove_logger_destination(std::string logger) {
    metric_log_.remove_destination(std::move(logger));
  }

  /// Alerts the user at once: in the text log, in the record and by notifications.
  /// \throws UsageError  inside a step: use `defer`
  void alert(AlertLevel level, const std::string& text);

  /// True when `log_metrics` passes values to the loggers.
  bool is_log_step() const { return metric_log_.is_log_step(); }

  /// Runs `function` after the current step with materialised tensors, in queue order; inside a
  /// step, after each replay of it. `function` must take its tensors as arguments: one that a
  /// lambda captures is stale in a replay. \param every  how often to repeat it, in any unit of
  /// time; seconds fall due in the next update
  void defer(std::vector<at::Tensor> tensors, HostFunction function, Time every = 1);

  /// Inside a step: runs `function` now and at this point of each replay; it may write the tensors
  /// in place.
  void host_call(std::string name, std::vector<at::Tensor> tensors, HostFunction function);

  /// Opens a scope of metric names.
  [[nodiscard]] NameScope name_scope(std::string name) {
    return {metric_log_.scopes(), std::move(name)};
  }

  /// Metric names and loggers, for anything not covered above.
  MetricLog& metric_log() { return metric_log_; }

  const MetricLog& metric_log() const { return metric_log_; }

  /// Calls a hook of every callback, in order; a per-batch hook only of those that override it.
  /// \throws HookError  "error when calling X.hook", with the cause nested
  template <class... Params, class... Args>
  void call(const Hook<Params...>& hook, Args&&... args) {
    auto one = [&](Callback& callback) { (callback.*hook.method)(*this, args...); };
    hook_calls_.call(hook.name, hook.site, hook.in_batch, std::ref(one));
  }

  /// Calls a custom hook. \throws HookError  as above
  /// \throws UsageError  when one of this Trainer's callbacks lacks it, unless it is optional
  void call(std::string_view hook, HookArgs& args) { hook_calls_.call_custom(hook, args); }

  /// Makes a custom hook optional until a matching `disallow_hook`.
  void allow_hook(std::string hook) { hook_calls_.allow(std::move(hook)); }

  void disallow_hook(const std::string& hook) { hook_calls_.disallow(hook); }

  /// Every callback that receives hooks: this Trainer's, in order, then the global ones.
  std::vector<Callback*> heard_callbacks() const { return hook_calls_.heard(); }

  /// The first of this Trainer's callbacks, in dispatch order, that is a T; null when there is
  /// none. Ignores global callbacks.
  template <class T>
  T* callback() const;

  /// Every callback that receives hooks and is a T, global ones too, in dispatch order.
  template <class T>
  std::vector<T*> callbacks() const;

  /// The callback of the core slot T::kSlot, which has type T.
  template <class T>
  T& slot() const;

  const CallbackMap& callbacks() const { return callbacks_; }

  /// The slot callbacks that every batch uses.
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

template <class T>
std::vector<T*> Trainer::callbacks() const {
  std::vector<T*> found;
  for (Callback* const callback : heard_callbacks()) {
    if (T* const one = dynamic_cast<T*>(callback)) {
      found.push_back(one);
    }
  }
  return found;
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
