#pragma once

#include <memory>

#include "callbacks/algorithm.h"
#include "models/model.h"

namespace rondo {

/// Puts a model of one number in the place of the run's, whose loss is that number's square. A run
/// then shows how fast everything but the model is, the data above all.
/// Source: Composer's NoOpModel
class NoOpModel final : public Algorithm {
 public:
  bool match(Event event, const State& state) const override;
  void apply(Event event, Trainer& trainer) override;

  bool required_on_load() const override { return true; }

 private:
  std::unique_ptr<Model> original_;  // callbacks may have seen it
};

}  // namespace rondo
