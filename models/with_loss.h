#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "core/tensor_map.h"

namespace rondo {

/// A 0-dim floating loss of a network's outputs.  \capture safe: tensor work only
using LossOfOutputs = std::function<at::Tensor(const Outputs& outputs, const Batch& targets)>;

/// A network's outputs with their "loss" in front of them. A model that computes its loss here,
/// last in its forward, lets hooks change outputs and targets before, and the loss after: smoothed
/// labels and mixed samples need it. \param batch  where `loss` finds its target, unless a hook
/// puts another one in its place \capture safe
Outputs with_loss(Outputs outputs, const Batch& batch, const LossOfOutputs& loss);

/// Who sees the losses of a thread being computed.
class LossObserver {
 public:
  virtual ~LossObserver() = default;

  virtual void after_network(Outputs& outputs, const Batch& input) = 0;
  virtual void before_loss(Outputs& outputs, Batch& targets) = 0;
  virtual void after_loss(Outputs& outputs, Batch& targets) = 0;
};

/// Has an observer, which outlives it, see the losses of this thread. Scopes nest.
class LossScope {
 public:
  explicit LossScope(LossObserver& observer);
  LossScope(const LossScope&) = delete;
  LossScope& operator=(const LossScope&) = delete;
  ~LossScope();

 private:
  LossObserver* outer_;
};

}  // namespace rondo
