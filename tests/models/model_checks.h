#pragma once

#include "models/model.h"

namespace rondo::test {

/// What every model promises of a training batch: a finite 0-dim loss, a gradient that is not all
/// zero for every parameter, a loss that falls on this batch, the same parameters from the same
/// seed, a forward that can be repeated bit for bit in eval mode, and its output without a loss
/// when `target` is missing. \param lr  of plain gradient descent
void check_model(const Factory<Model>& factory,
                 const Batch& batch,
                 const std::string& target,
                 double lr);

/// That some output differs between two forwards in train mode, and none in eval mode.
void check_dropout(Model& model, const Batch& batch);

/// "image" float32 of this shape and "label" int64 below `classes`.
Batch image_batch(at::IntArrayRef shape, int64_t classes);

/// "tokens" and "targets", int64 [batch, context] below `vocabulary`.
Batch token_batch(int64_t batch, int64_t context, int64_t vocabulary);

}  // namespace rondo::test
