#include "callbacks/core/grad_accum_callback.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include "trainer/trainer.h"

namespace rondo {

void GradAccumCallback::setup(Trainer& trainer) {
  if (const auto* loop = trainer.callback<TrainingLoop>()) {
    steps_ = loop->options().grad_accum_steps;
  }
  if (steps_ > 1) {
    trainer.log().info(fmt::format("gradients are summed over {} batches", steps_));
  }
}

void GradAccumCallback::on_after_forward(Trainer& trainer, Model&, Outputs& outputs, const Batch&) {
  const int64_t size = trainer.state().phase.size;
  const at::Tensor* loss = outputs.find("loss");
  if (trainer.state().is_training && size > 1 && loss != nullptr) {
    outputs.set("loss", loss->div(static_cast<double>(size)));
  }
}

}  // namespace rondo
