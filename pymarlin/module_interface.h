#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/factory.h"
#include "core/state_dict.h"
#include "data/data_loader.h"
#include "optim/optimizer.h"
#include "optim/scheduler.h"

namespace rondo::pymarlin {

/// What a step returns: the loss first, then what the hooks are to see.
using StepOutputs = std::vector<at::Tensor>;

/// The outputs of several steps on the CPU, each joined along its first dimension; numbers become a
/// vector.
using CollatedOutputs = std::vector<at::Tensor>;

struct OptimizersSchedulers {
  Factory<Optimizer> optimizer;
  std::vector<Factory<Scheduler>> schedulers = {};
};

/// A recipe: a module with its data, its optimizer, its steps and its hooks. Names, and when each
/// is called: `ModuleInterface` of PyMarlin 0.3.5; docs/from-pymarlin.md has the differences.
class ModuleInterface : public torch::nn::Module {
 public:
  /// \param estimated_global_steps_per_epoch  optimizer steps, one more where it divides exactly
  virtual OptimizersSchedulers get_optimizers_schedulers(int64_t estimated_global_steps_per_epoch,
                                                         int64_t epochs) = 0;

  /// \param batch_size  samples of a micro-batch
  virtual DataLoader get_train_dataloader(int64_t batch_size) = 0;

  /// Labels are the keys of `on_end_val_epoch`; a loader without one has "default".
  virtual Loaders get_val_dataloaders(int64_t batch_size) = 0;

  /// \param global_step  int64, shape []: the number of this optimizer step, from 1
  /// \capture safe: tensor work only; `global_step` is read by each replay
  virtual StepOutputs train_step(const at::Tensor& global_step,
                                 const Batch& batch,
                                 c10::Device device) = 0;

  /// \param global_step  the optimizer steps that are done
  virtual StepOutputs val_step(const at::Tensor& global_step,
                               const Batch& batch,
                               c10::Device device) = 0;

  /// What a checkpoint of the model alone holds; by default parameters and buffers by name.
  virtual StateDict get_state() const;

  /// Takes that; nothing of an empty state. \throws CheckpointError  for another model's
  virtual void update_state(const StateDict& state);

  /// \name Hooks
  /// @{
  virtual void on_begin_train_epoch(int64_t /*global_step*/, int64_t /*epoch*/) {}

  /// After each micro-batch, in the recorded step. `loss` is divided by the micro-batches of a
  /// step. \capture safe: tensor work only
  virtual void on_end_backward(const at::Tensor& /*global_step*/, const at::Tensor& /*loss*/) {}

  virtual void on_end_train_step(int64_t /*global_step*/, const CollatedOutputs&) {}

  virtual void on_end_val_epoch(int64_t /*global_step*/,
                                const CollatedOutputs&,
                                const std::string& /*key*/) {}

  /// After the epoch's validation.
  virtual void on_end_train_epoch(int64_t /*global_step*/, const CollatedOutputs&) {}

  virtual void on_end_train(int64_t /*global_step*/) {}

  /// @}
};

}  // namespace rondo::pymarlin
