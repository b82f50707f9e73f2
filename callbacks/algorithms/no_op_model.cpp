#include "callbacks/algorithms/no_op_model.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <utility>

#include "callbacks/algorithms/register.h"
#include "core/registry.h"
#include "models/module_model.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

class OneNumber final : public ModuleModel {
 public:
  OneNumber() : weight_(register_parameter("weight", at::full({}, /*Composer's=*/1.5))) {}

  Outputs forward(const Batch&) override { return {{"loss", weight_.square()}}; }

 private:
  at::Tensor weight_;
};

}  // namespace

bool NoOpModel::match(Event event, const State&) const {
  return event == Event::Init;
}

void NoOpModel::apply(Event, Trainer& trainer) {
  original_ = std::exchange(trainer.state().model, std::make_unique<OneNumber>());
  trainer.log().info("NoOpModel: the run trains one number, and not the model");
}

void register_no_op_model(Registry<Algorithm>& registry) {
  registry.add<NoOpModel>("NoOpModel",
                          "Puts a model of one number in the place of the run's, to see how fast "
                          "the rest is.");
}

}  // namespace rondo
