#include "models/with_loss.h"

#include <utility>

namespace rondo {

namespace {

// Of the step that this thread is in; a model knows no Trainer that it could ask.
thread_local LossObserver* current_observer = nullptr;

}  // namespace

Outputs with_loss(Outputs outputs, const Batch& batch, const LossOfOutputs& loss) {
  Batch targets = batch;
  if (current_observer != nullptr) {
    current_observer->after_network(outputs, batch);
    current_observer->before_loss(outputs, targets);
  }
  Outputs all{{"loss", loss(outputs, targets)}};
  for (const TensorMap::Item& item : std::as_const(outputs).items()) {
    all.set(item.first, item.second);
  }
  if (current_observer != nullptr) {
    current_observer->after_loss(all, targets);
  }
  return all;
}

LossScope::LossScope(LossObserver& observer) : outer_(current_observer) {
  current_observer = &observer;
}

LossScope::~LossScope() {
  current_observer = outer_;
}

}  // namespace rondo
