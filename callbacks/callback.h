#pragma once

#include <any>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "callbacks/batch_hooks.h"
#include "callbacks/cleanup.h"
#include "core/factory.h"
#include "core/state_dict.h"
#include "core/tensor_map.h"
#include "data/data_loader.h"

namespace rondo {

class Loop;
class Model;
class Optimizer;
class Scheduler;
class Trainer;

using Paths = std::vector<std::filesystem::path>;

/// Named values handed to a hook of a user's own.
using HookArgs = std::map<std::string, std::any>;

/// A part of a run that is told of everything that happens. Derive from it and override the hooks
/// that you need; each does nothing by default. Hooks run on the trainer's thread, callback by
/// callback in the Trainer's order. What a hook throws ends the run as a HookError that names
/// callback and hook. docs/hooks.md shows every hook at its place in the loop.
///
/// Hooks marked "in the step" run inside the recorded step: under the eager backend in every step,
/// under the traced one only while a step is recorded. Their tensor work becomes part of the step;
/// host work goes through `Trainer::log_metrics`, `defer` or `host_call`.
/// Source: the callback of Cerebras' ModelZoo trainer.
class Callback {
 public:
  using Component = Callback;
  using Options = NoOptions;

  /// A config may give it a `label`, its name in the Trainer: see Factory::labelled.
  static constexpr bool kTakesLabel = true;

  Callback() = default;
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  virtual ~Callback() = default;

  /// Tells it its class, as `use` does: hooks of a batch that `T` does not override are not called.
  template <class T>
  void know_class() {
    batch_hooks_ = batch_hooks_of<Callback, T>();
  }

  /// All of them, unless it knows its class.
  const BatchHooks& batch_hooks() const { return batch_hooks_; }

  /// \name While the Trainer is constructed: each for all callbacks before the next
  /// @{
  virtual void pre_setup(Trainer&) {}

  virtual void setup(Trainer&) {}

  /// The model is made, between the others' `setup`: no optimizer has its parameters yet, so layers
  /// and parameters may still be replaced. Nothing is loaded yet.
  virtual void on_model_init(Trainer&, Model&) {}

  virtual void post_setup(Trainer&) {}

  /// When the Trainer is destroyed; must not throw.
  virtual void finalize() {}

  /// @}

  /// \name Around a fit. `on_enter_fit` comes before the checkpoint is loaded, `on_fit_start` after
  /// @{
  virtual void on_enter_fit(
      Trainer&, Cleanup&, const DataLoader& /*train*/, const Loaders& /*val*/, Loop&) {}

  virtual void on_fit_start(Trainer&, const DataLoader& /*train*/, const Loaders& /*val*/, Loop&) {}

  virtual void on_fit_end(Trainer&, Loop&) {}

  virtual void on_fit_exception(Trainer&, std::exception_ptr) {}

  /// @}

  /// \name Around a stage of training between two validations; `loop_idx` counts them from 0
  /// @{
  virtual void on_enter_train(Trainer&, Cleanup&, const DataLoader&, Loop&, int64_t /*loop_idx*/) {}

  virtual void on_train_start(Trainer&, Model&, const DataLoader&, Loop&, int64_t /*loop_idx*/) {}

  virtual void on_train_end(Trainer&, Model&, Loop&, int64_t /*loop_idx*/) {}

  virtual void on_train_exception(Trainer&, std::exception_ptr) {}

  /// @}

  /// \name Around a pass over the training data; `epoch` counts from 0. Once for each pass, also
  /// where validations interrupt it or a run resumes within it. A run that ends within a pass does
  /// not end the pass. A save in the last update of a pass has what `on_epoch_end` did
  /// @{
  virtual void on_epoch_start(Trainer&, Model&, const DataLoader&, int64_t /*epoch*/) {}

  /// After `on_train_batch_end` of its last batch; counters have moved.
  virtual void on_epoch_end(Trainer&, Model&, const DataLoader&, int64_t /*epoch*/) {}

  /// @}

  /// \name Around the reading of a training batch. The batch may be changed, also in its shape:
  /// the step sees what is left. Progress counts what the loader gave
  /// @{
  virtual void on_dataloader_start(Trainer&) {}

  virtual void on_dataloader_end(Trainer&, Batch&) {}

  /// @}

  /// \name Around a batch of training, every time; counters have moved at the end. `batch_idx`
  /// begins at 0 in each stage between two validations, so also after a resume:
  /// `state().timestamp.batch` counts the run's batches.
  /// @{
  virtual void on_train_batch_start(Trainer&, Model&, const Batch&, int64_t /*batch_idx*/) {}

  /// A traced step writes its outputs into the same memory each time: they hold until the next
  /// step. Clone those that are kept longer.
  virtual void on_train_batch_end(
      Trainer&, Model&, const Outputs&, const Batch&, int64_t /*batch_idx*/) {}

  /// @}

  /// \name Around validations. `run_validation` is called once for each checkpoint, after the
  /// loaders
  /// @{
  virtual void on_enter_validate_all(
      Trainer&, Cleanup&, const Loaders&, Loop&, const Paths& /*checkpoints*/) {}

  virtual void run_validation(Trainer&, std::optional<int64_t> /*loop_idx*/, bool /*is_last*/) {}

  virtual void on_enter_validate(Trainer&, Cleanup&, const DataLoader&, Loop&) {}

  virtual void on_validate_start(Trainer&, Model&, const DataLoader&, Loop&) {}

  virtual void on_validate_end(Trainer&, Model&, Loop&) {}

  virtual void on_validate_exception(Trainer&, std::exception_ptr) {}

  virtual void on_validate_batch_start(Trainer&, Model&, const Batch&, int64_t /*batch_idx*/) {}

  /// The outputs hold until the next step, as in `on_train_batch_end`.
  virtual void on_validate_batch_end(
      Trainer&, Model&, const Outputs&, const Batch&, int64_t /*batch_idx*/) {}

  /// @}

  /// \name Around `Trainer::predict`, whose passes also call `on_enter_validate` and, on an error,
  /// `on_validate_exception`. The outputs hold until the next step
  /// @{
  virtual void on_predict_start(Trainer&, Model&, const DataLoader&, Loop&) {}

  virtual void on_predict_end(Trainer&, Model&, Loop&) {}

  virtual void on_predict_batch_start(Trainer&, Model&, const Batch&, int64_t /*batch_idx*/) {}

  virtual void on_predict_batch_end(
      Trainer&, Model&, const Outputs&, const Batch&, int64_t /*batch_idx*/) {}

  /// @}

  /// \name In the step: recorded once, repeated with every replay
  /// @{
  virtual void on_train_step_start(Trainer&, Model&, const Batch&) {}

  virtual void on_train_step_end(Trainer&, Model&, const Outputs&, const Batch&) {}

  virtual void on_validate_step_start(Trainer&, Model&, const Batch&) {}

  virtual void on_validate_step_end(Trainer&, Model&, const Outputs&, const Batch&) {}

  virtual void on_predict_step_start(Trainer&, Model&, const Batch&) {}

  virtual void on_predict_step_end(Trainer&, Model&, const Outputs&, const Batch&) {}

  /// `input` is what the model will see; it may be changed.
  virtual void on_before_forward(Trainer&, Model&, const Batch&, Batch& /*input*/) {}

  /// The network has computed its outputs, and not yet the loss, where the model says so (see
  /// `with_loss`); of another model, both. `outputs` may be changed.
  virtual void on_after_network(Trainer&, Model&, Outputs&, const Batch& /*input*/) {}

  /// Outputs, and the copy of the input in which the loss finds its target: both may be changed.
  /// Only where there is a loss.
  virtual void on_before_loss(Trainer&, Model&, Outputs&, Batch& /*targets*/) {}

  /// The same with the loss, which may be changed, before batches of a group are weighted.
  virtual void on_after_loss(Trainer&, Model&, Outputs&, Batch& /*targets*/) {}

  /// `outputs` may be changed; the loss in it is the one that goes backward.
  virtual void on_after_forward(Trainer&, Model&, Outputs&, const Batch&) {}

  virtual void on_before_backward(Trainer&, Model&, Outputs&) {}

  virtual void on_after_backward(Trainer&, Model&, Outputs&) {}

  /// Gradients are unscaled and not yet clipped.
  virtual void on_before_optimizer_step(Trainer&, Model&, Optimizer&) {}

  /// Gradients still exist and numbers such as lr are those just used.
  virtual void on_after_optimizer_step(Trainer&, Model&, Optimizer&) {}

  virtual void on_before_optimizer_zero_grad(Trainer&, Model&, Optimizer&) {}

  virtual void on_after_optimizer_zero_grad(Trainer&, Model&, Optimizer&) {}

  virtual void on_before_scheduler_step(Trainer&, Model&, Optimizer&, Scheduler&) {}

  virtual void on_after_scheduler_step(Trainer&, Model&, Optimizer&, Scheduler&) {}

  /// @}

  /// \name Checkpoints. State of your own goes under a name of your own in `save_state`; tensors
  /// that a step reads or writes are `captured_state`
  /// @{
  /// Adds to what is saved.
  virtual void on_save_checkpoint(Trainer&, StateDict&) {}

  /// The last chance to edit it.
  virtual void postprocess_checkpoint(Trainer&, StateDict&) {}

  /// The file is there and in the index. With `checkpoint.async` that is some updates later:
  /// `state().timestamp` is then not the file's.
  virtual void on_after_save_checkpoint(Trainer&, const std::filesystem::path&) {}

  /// Every attempt to load; null when there is nothing to load.
  virtual void on_before_load_checkpoint(Trainer&, const std::filesystem::path*) {}

  /// What was read, before it is given out; keys may be deleted.
  virtual void preprocess_checkpoint(Trainer&, StateDict&) {}

  /// Throws when what it would load does not fit; must change nothing. Nobody has loaded yet, and
  /// nobody does unless all agree.
  virtual void check_checkpoint(Trainer&, const StateDict&) {}

  /// Takes this callback's part; states of callbacks (`load_state`) were given out before.
  virtual void on_load_checkpoint(Trainer&, const StateDict&) {}

  /// The callback's own state, saved under `callbacks/<its name in the Trainer>`; empty: nothing.
  virtual StateDict save_state() const { return {}; }

  /// Takes what `save_state` gave, also an empty state where that gives one. `load_state` of what
  /// `save_state` just gave changes nothing: a load that fails elsewhere is undone by it. Whether a
  /// state came from a checkpoint, `on_load_checkpoint` tells, which comes when nothing failed.
  virtual void load_state(const StateDict&) {}

  /// The callback's tensors that hooks in the step read or write, each by a name of its own. They
  /// are there after `post_setup` and keep their storage: a step writes them in place. They are
  /// saved under `callbacks/<its name in the Trainer>/<tensor>` and loaded in place; a slot saves
  /// its own under a key of its own, in `on_save_checkpoint`.
  virtual NamedTensors captured_state() { return {}; }

  /// What the state is about, such as the metric that is watched; "" when there is nothing to tell
  /// apart. It is saved with the state. A state that is about something else is not taken: there is
  /// a warning, and the callback starts afresh.
  virtual std::string state_subject() const { return ""; }

  /// @}

  /// A hook of a user's own, dispatched by `Trainer::call(name, args)`.
  /// \return true when this callback has such a hook
  virtual bool on_custom(Trainer&, std::string_view /*hook*/, HookArgs&) { return false; }

 private:
  BatchHooks batch_hooks_;
};

/// A callback that only the framework adds: it fills a slot of the Trainer's fixed order. A slot is
/// replaced by `TrainerOptions::slots`.
class CoreCallback : public Callback {
 public:
  using Component = CoreCallback;

  static constexpr bool kTakesLabel = false;
};

}  // namespace rondo
