#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/losses/criterion.h"
#include "models/model.h"

namespace rondo {

/// A 0-dim floating loss from a module's output and the batch.  \capture safe: tensor work only
using LossFunction = std::function<at::Tensor(const at::Tensor& output, const Batch& batch)>;

/// A loss, what it needs of the batch, and what a validation measures beside it.
struct Loss {
  LossFunction function;
  std::string target;  ///< a batch without it has no loss; empty: the loss needs no target
  std::vector<Factory<Metric>> metrics;
};

/// Mean cross entropy of logits [..., classes] with labels [...], integers of any width; those that
/// are -100 are left out. Measures accuracy.
Loss cross_entropy(std::string label);

/// Mean squared error of an output with a target of the same shape; measures it over all elements
/// as well.
/// \throws ShapeError  when the shapes differ, rather than broadcast
Loss mse(std::string target);

/// Any of rondo's losses (`models/losses/losses.h`), or your own: `loss_of(use<FocalLoss>({2.0}),
/// "label")`.
Loss loss_of(const Factory<Criterion>& loss, std::string target);

namespace detail {

/// A module and its forward, without its type.
struct TensorModule {
  std::shared_ptr<torch::nn::Module> module;
  std::function<at::Tensor(const at::Tensor&)> forward;
};

template <class Impl>
TensorModule erase(std::shared_ptr<Impl> module) {
  return {module, [module](const at::Tensor& input) { return module->forward(input); }};
}

/// A holder of LibTorch, such as `torch::nn::Linear`.
template <class Holder>
TensorModule erase(const Holder& holder) {
  return erase(holder.ptr());
}

Factory<Model> from_module(std::function<TensorModule()> make, std::string input, Loss loss);

}  // namespace detail

/// Makes a model of a plain module and a loss. Its outputs are "logits", what the module returns,
/// and "loss" when the batch has the loss's target.
/// \param make_module  returns a new module each time, as a holder (`torch::nn::Sequential`) or a
///                     `shared_ptr`; its forward takes and returns one tensor
/// \param input        the tensor of the batch that the module gets
template <class MakeModule>
Factory<Model> from_module(MakeModule make_module, std::string input, Loss loss) {
  return detail::from_module([make = std::move(make_module)] { return detail::erase(make()); },
                             std::move(input),
                             std::move(loss));
}

/// The same with a loss of your own, which is computed for every batch.
template <class MakeModule>
Factory<Model> from_module(MakeModule make_module, std::string input, LossFunction loss) {
  return from_module(std::move(make_module), std::move(input), Loss{std::move(loss), {}, {}});
}

}  // namespace rondo
