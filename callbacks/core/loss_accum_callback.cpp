#include "callbacks/core/loss_accum_callback.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <cmath>

#include "callbacks/core/precision_callback.h"
#include "core/error.h"
#include "core/nan_sign.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

// As `item` reads it, but in the usual case without LibTorch's dispatcher, whose code a step has
// driven out of the caches (bench/README.md says what that took).
double number_in(const at::Tensor& loss) {
  const bool is_plain =
      loss.device().is_cpu() && loss.scalar_type() == at::kFloat && loss.numel() == 1;
  return is_plain ? double{*loss.data_ptr<float>()} : loss.item<double>();
}

void require_finite(const at::Tensor& loss, Trainer& trainer) {
  const double value = number_in(loss);
  if (std::isfinite(value)) {
    return;
  }
  const std::string what = fmt::format(
      "the loss of update {} is {}", trainer.state().global_step(), without_sign_of_nan(value));
  const std::string why = trainer.state().backend->explain_non_finite();
  if (why.empty()) {
    throw NonFiniteLossError(
        what +
        "; lower lr, clip gradients (precision.max_gradient_norm), or look at the data of that "
        "update; `rondo debug RUN_DIR --nan`, or backend.on_nan = \"explain\", names the operator");
  }
  throw NonFiniteLossError(what + "\n" + why);
}

}  // namespace

void LossAccumCallback::setup(Trainer& trainer) {
  const c10::Device device = trainer.state().backend->device();
  const bool is_double = trainer.step_slots().precision->dtype_of_weights() == at::kDouble;
  group_loss_ =
      at::zeros({}, at::TensorOptions().dtype(is_double ? at::kDouble : at::kFloat).device(device));
}

void LossAccumCallback::on_train_step_end(Trainer& trainer,
                                          Model&,
                                          const Outputs& outputs,
                                          const Batch&) {
  const GroupPosition& phase = trainer.state().phase;
  at::Tensor loss = outputs["loss"].detach();
  if (!phase.is_first) {
    loss = group_loss_.add(loss);
  }
  if (!phase.is_last) {
    group_loss_.copy_(loss);
    return;
  }
  trainer.defer({loss}, [&trainer](const std::vector<at::Tensor>& values) {
    require_finite(values[0], trainer);
  });
  trainer.log_metrics({{"loss", loss}});
}

void LossAccumCallback::on_validate_step_end(Trainer& trainer,
                                             Model&,
                                             const Outputs& outputs,
                                             const Batch&) {
  if (const at::Tensor* loss = outputs.find("loss")) {  // else a model without labels
    trainer.log_metrics({{"val_loss", *loss}});
  }
}

NamedTensors LossAccumCallback::captured_state() {
  return {{"group_loss", group_loss_}};
}

}  // namespace rondo
