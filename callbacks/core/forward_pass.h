#pragma once

#include <functional>

#include "core/tensor_map.h"

namespace rondo {

class Trainer;

/// Computes outputs from what the hooks left of a batch.
using ForwardCall = std::function<Outputs(const Batch& input)>;

/// A forward pass between its hooks, under the run's precision. Where the outputs have parts of a
/// loss, "loss/<name>", and no "loss", it is their sum.
/// \param run  empty: the model's own forward
Outputs forward_pass(Trainer& trainer, const Batch& batch, const ForwardCall& run = {});

/// The loss that goes backward.
/// \throws UsageError  when the outputs have none
/// \throws ShapeError  when it is not one number
const at::Tensor& loss_of(const Outputs& outputs, const Batch& batch);

}  // namespace rondo
