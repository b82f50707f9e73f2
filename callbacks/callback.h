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

namespace torch::nn {
class Module;
}

namespace rondo {

class Loop;
class Model;
class Optimizer;
class Scheduler;
class Trainer;

using Paths = std::vector<std::filesystem::path>;

/// Named values that a custom hook receives.
using HookArgs = std::map<std::string, std::any>;

/// Base of everything that reacts to the events of a run. Derive from it and override the hooks
/// that you need; each does nothing by default. Hooks run on the trainer's thread, callback by
/// callback in the Trainer's order. An exception in a hook ends the run as a HookError that names
/// callback and hook. docs/hooks.md shows where in the loop each hook fires.
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

  /// Records the concrete type, as `use` does, so that per-batch hooks it does not override are
  /// skipped.
  template <class T>
  void know_class() {
    batch_hooks_ = batch_hooks_of<Callback, T>();
  }

  /// The per-batch hooks to call: all, unless the class is known.
  const BatchHooks& batch_hooks() const { return batch_hooks_; }

  /// \name While the Trainer is constructed: each hook runs for all callbacks before the next
  /// @{
  virtual void pre_setup(Trainer&) {}

  virtual void setup(Trainer&) {}

  /// Called when the model exists, between the `setup` calls. No optimizer has its parameters yet,
  /// so layers and parameters may still be replaced. Nothing is loaded yet.
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

  /// \name Around a pass over the training data; `epoch` counts from 0. Once per pass, even if
  /// validations interrupt it or a run resumes within it. A run that ends within a pass does not
  /// end the pass. A save in the last update of a pass includes what `on_epoch_end` did
  /// @{
  virtual void on_epoch_start(Trainer&, Model&, const DataLoader&, int64_t /*epoch*/) {}

  /// After `on_train_batch_end` of its last batch; counters have advanced.
  virtual void on_epoch_end(Trainer&, Model&, const DataLoader&, int64_t /*epoch*/) {}

  /// @}

  /// \name Around the reading of a training batch. A hook may change the batch and its shape: the
  /// step sees the result. Progress counts the batch as loaded
  /// @{
  virtual void on_dataloader_start(Trainer&) {}

  virtual void on_dataloader_end(Trainer&, Batch&) {}

  /// @}

  /// \name Around every training batch; counters have advanced at the end. `batch_idx` starts at 0
  /// in each stage between two validations, and after a resume; `state().timestamp.batch` counts
  /// the run's batches.
  /// @{
  virtual void on_train_batch_start(Trainer&, Model&, const Batch&, int64_t /*batch_idx*/) {}

  /// The outputs are valid until the next step, because a traced step writes them into the same
  /// memory each time. Clone those that you keep longer.
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

  /// The outputs are valid until the next step, as in `on_train_batch_end`.
  virtual void on_validate_batch_end(
      Trainer&, Model&, const Outputs&, const Batch&, int64_t /*batch_idx*/) {}

  /// @}

  /// \name Around `Trainer::predict`, whose passes also call `on_enter_validate` and, on an error,
  /// `on_validate_exception`. The outputs are valid until the next step
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

  /// The network has computed its outputs but not yet the loss, if the model separates the two (see
  /// `with_loss`); otherwise both. `outputs` may be changed.
  virtual void on_after_network(Trainer&, Model&, Outputs&, const Batch& /*input*/) {}

  /// `targets` is the copy of the input from which the loss takes its target. Both arguments may be
  /// changed. Called only if there is a loss.
  virtual void on_before_loss(Trainer&, Model&, Outputs&, Batch& /*targets*/) {}

  /// The same with the loss in `outputs`, which may be changed, before the batches of a group are
  /// weighted.
  virtual void on_after_loss(Trainer&, Model&, Outputs&, Batch& /*targets*/) {}

  /// `outputs` may be changed; its loss is the one that backward starts from.
  virtual void on_after_forward(Trainer&, Model&, Outputs&, const Batch&) {}

  virtual void on_before_backward(Trainer&, Model&, Outputs&) {}

  virtual void on_after_backward(Trainer&, Model&, Outputs&) {}

  /// Gradients are unscaled and not yet clipped.
  virtual void on_before_optimizer_step(Trainer&, Model&, Optimizer&) {}

  /// Gradients still exist, and numbers such as lr are those of this update.
  virtual void on_after_optimizer_step(Trainer&, Model&, Optimizer&) {}

  virtual void on_before_optimizer_zero_grad(Trainer&, Model&, Optimizer&) {}

  virtual void on_after_optimizer_zero_grad(Trainer&, Model&, Optimizer&) {}

  virtual void on_before_scheduler_step(Trainer&, Model&, Optimizer&, Scheduler&) {}

  virtual void on_after_scheduler_step(Trainer&, Model&, Optimizer&, Scheduler&) {}

  /// @}

  /// \name Checkpoints. Return your own state from `save_state`, and tensors that a step reads or
  /// writes from `captured_state`
  /// @{
  /// Adds to what is saved.
  virtual void on_save_checkpoint(Trainer&, StateDict&) {}

  /// The last chance to edit what is saved.
  virtual void postprocess_checkpoint(Trainer&, StateDict&) {}

  /// The file exists and is in the index. With `checkpoint.async` this is some updates later, and
  /// `state().timestamp` is then not the file's.
  virtual void on_after_save_checkpoint(Trainer&, const std::filesystem::path&) {}

  /// Called on every attempt to load; the path is null when there is nothing to load.
  virtual void on_before_load_checkpoint(Trainer&, const std::filesystem::path*) {}

  /// The state that was read, before callbacks receive it; keys may be deleted.
  virtual void preprocess_checkpoint(Trainer&, StateDict&) {}

  /// Throws when the state does not fit; must change nothing. No callback loads its part before all
  /// checks pass.
  virtual void check_checkpoint(Trainer&, const StateDict&) {}

  /// Loads this callback's part; `load_state` was called before.
  virtual void on_load_checkpoint(Trainer&, const StateDict&) {}

  /// The callback's own state, saved under `callbacks/<its name in the Trainer>`; empty: nothing is
  /// saved.
  virtual StateDict save_state() const { return {}; }

  /// Loads what `save_state` returned, including an empty state. Loading what `save_state` has just
  /// returned must change nothing: this is how rondo undoes a load that fails elsewhere.
  /// `on_load_checkpoint` follows only if the state came from a checkpoint and nothing failed.
  virtual void load_state(const StateDict&) {}

  /// The callback's tensors that hooks in the step read or write, by name. They exist after
  /// `post_setup` and keep their storage, because a step writes them in place. They are saved under
  /// `callbacks/<its name in the Trainer>/<tensor>` and loaded in place; a slot saves its tensors
  /// itself, in `on_save_checkpoint`.
  virtual NamedTensors captured_state() { return {}; }

  /// Modules of the callback's own that hooks in the step call, such as a teacher. They exist after
  /// `post_setup` and for as long as the callback. A step is recorded again when one of them
  /// changes its mode, its parameters or which of these require a gradient.
  virtual std::vector<const torch::nn::Module*> captured_modules() const { return {}; }

  /// What the state refers to, such as the watched metric; "" when that cannot vary. Saved with the
  /// state. A saved state with another subject is ignored with a warning, and the callback starts
  /// from scratch.
  virtual std::string state_subject() const { return ""; }

  /// @}

  /// A custom hook, dispatched by `Trainer::call(name, args)`.
  /// \return true when this callback has such a hook
  virtual bool on_custom(Trainer&, std::string_view /*hook*/, HookArgs&) { return false; }

 private:
  BatchHooks batch_hooks_;
};

/// A callback that only the framework adds: it fills a slot of the Trainer's fixed order.
/// `TrainerOptions::slots` replaces it.
class CoreCallback : public Callback {
 public:
  using Component = CoreCallback;

  static constexpr bool kTakesLabel = false;
};

}  // namespace rondo
