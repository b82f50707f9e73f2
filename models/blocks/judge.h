#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "core/tensor_map.h"
#include "models/losses/criterion.h"
#include "models/model.h"

namespace rondo::detail {

/// What a model makes of its last layer: outputs, loss and metrics.
class Judge {
 public:
  /// \param loss    none: cross entropy
  /// \param target  its name in the batch
  Judge(const Factory<Criterion>& loss, std::string target);

  const Criterion& loss() const { return *loss_; }

  /// "loss", when the batch has the target, and the output: as "logits", or as "prediction" where
  /// the loss is one of values.
  /// \param weights  of the samples in the loss, [B]; undefined: all count alike
  Outputs operator()(const at::Tensor& output,
                     const Batch& batch,
                     const at::Tensor& weights = {}) const;

  /// What a validation measures: accuracy of classes, mean squared error of values.
  std::vector<Factory<Metric>> metrics() const;

  /// The same for tokens: perplexity, where the loss is one that it can be made of.
  std::vector<Factory<Metric>> token_metrics() const;

 private:
  std::unique_ptr<Criterion> loss_;
  std::string target_;
};

}  // namespace rondo::detail
