#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "backends/step.h"
#include "callbacks/core/forward_pass.h"
#include "core/tensor_map.h"
#include "models/model.h"
#include "optim/optimizer.h"

namespace rondo {

class Trainer;

namespace detail {

[[noreturn]] void throw_other_model(const Trainer& trainer, const std::type_info& expected);

}  // namespace detail

/// What the body of a training step works with: verbs that do a part of a step and fire its hooks,
/// in the order in which the body calls them. Optimizers have names; "" is the only one. The verbs
/// of an update do nothing before the last batch of a group: a body that is written for one batch
/// accumulates. Lives as long as one run of the body.
/// Source: the public methods of Cerebras' ModelZoo trainer.  \capture safe
class StepContext {
 public:
  StepContext(Trainer& trainer, const Batch& batch) : trainer_(trainer), batch_(batch) {}

  /// The model's forward, or `run`, between the hooks of a forward pass. Parts of a loss,
  /// "loss/<name>", are summed into "loss" where that is not among the outputs.
  Outputs forward(const Batch& batch, const ForwardCall& run = {});

  /// Adds the gradients of "loss" to those of the parameters, between the hooks of a backward pass.
  /// \param optimizers  whose parameters alone get gradients; none: all parameters
  void backward(Outputs& outputs, const std::vector<std::string>& optimizers = {});

  /// The gradients of "loss" for an optimizer's parameters, in the order of
  /// `Optimizer::trained`; they are added to nothing, and no hook is fired.
  /// \return undefined where the loss does not depend on a parameter
  std::vector<at::Tensor> gradients(const Outputs& outputs, std::string_view optimizer = "");

  /// Masks, clips and updates, between its hooks.
  /// \param evaluate  for an optimizer that tries several points; see Optimizer::step
  void optimizer_step(std::string_view optimizer = "", const Optimizer::Evaluate& evaluate = {});

  /// Makes the gradients of its parameters undefined, between its hooks.
  void optimizer_zero_grad(std::string_view optimizer = "");

  /// Moves the numbers of its schedulers to the next update, each between its hooks.
  void schedulers_step(std::string_view optimizer = "");

  /// The three of them.
  void update(std::string_view optimizer = "", const Optimizer::Evaluate& evaluate = {});

  /// `update` of each optimizer, in their order.
  void update_all();

  /// Which of the body's kinds runs; see TrainStep::kind.
  std::string kind() const;

  /// Place of the batch in its group of accumulated batches.
  const GroupPosition& position() const;

  Model& model() const;

  /// \throws UsageError  when the run's model is no `T`
  template <class T>
  T& model_as() const {
    T* const found = dynamic_cast<T*>(&model());
    if (found == nullptr) {
      detail::throw_other_model(trainer_, typeid(T));
    }
    return *found;
  }

  Optimizer& optimizer(std::string_view name = "") const;

  Trainer& trainer() const { return trainer_; }

  const Batch& batch() const { return batch_; }

 private:
  void keep_gradients();

  Trainer& trainer_;
  const Batch& batch_;
};

}  // namespace rondo
