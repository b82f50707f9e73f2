#include "callbacks/core/loss_accum_callback.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "callbacks/core/precision_callback.h"
#include "callbacks/core/virtual_ranks.h"
#include "callbacks/decides_on_nan.h"
#include "core/error.h"
#include "core/flat_memory.h"
#include "core/nan_sign.h"
#include "models/loss_parts.h"
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
  if (auto* const decides = trainer.callback<DecidesOnNan>();
      decides != nullptr && decides->continues_after(trainer, value)) {
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

/// The sum of a group's values up to this one, which `sum` keeps for the next batch. At the end of
/// a virtual rank it is `sum`.
at::Tensor summed(const at::Tensor& value,
                  at::Tensor& sum,
                  const GroupPosition& position,
                  bool ends_rank) {
  at::Tensor so_far = value.detach();
  if (!position.is_first) {
    so_far = sum.add(so_far);
  }
  if (!position.is_last || ends_rank) {
    sum.copy_(so_far);
  }
  return ends_rank ? sum : so_far;
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
  const GroupPosition& position = trainer.state().position;
  VirtualRanks* const ranks = ranks_of(trainer);
  const bool ends_rank = ranks != nullptr && ranks->ends_rank();
  const at::Tensor loss = summed(outputs["loss"], group_loss_, position, ends_rank);
  Metrics values{{"loss", loss}};
  std::vector<at::Tensor> sums{loss};
  for (const std::string& name : loss_parts(outputs)) {
    const bool is_alone = position.is_first && position.is_last && !ends_rank;
    sums.push_back(summed(outputs[name], sum_of_part(name, is_alone), position, ends_rank));
    values.set(name, sums.back());
  }
  if (ranks != nullptr) {
    ranks->sum_losses(trainer, std::move(sums));
  }
  if (!position.is_last) {
    return;
  }
  trainer.defer({loss}, [&trainer](const std::vector<at::Tensor>& of_update) {
    require_finite(of_update[0], trainer);
  });
  trainer.log_metrics(values);
}

at::Tensor& LossAccumCallback::sum_of_part(const std::string& name, bool is_alone) {
  const auto is_it = [&](const NamedTensor& part) { return part.first == name; };
  const auto known = std::find_if(group_parts_.begin(), group_parts_.end(), is_it);
  if (known != group_parts_.end() || is_alone) {
    return known != group_parts_.end() ? known->second : group_loss_;  // of one batch: unused
  }
  FlatMemory memory;  // made without the dispatcher: no recorded step sees it made
  memory.add_like(group_loss_);
  return group_parts_.emplace_back(name, memory.allocate().front()).second;
}

// Virtual ranks evaluate batches in turns, so that the newest one depends on the processes.
void LossAccumCallback::on_validate_step_end(Trainer& trainer,
                                             Model&,
                                             const Outputs& outputs,
                                             const Batch&) {
  const at::Tensor* const loss = outputs.find("loss");  // null: a model without labels
  if (loss != nullptr && ranks_of(trainer) == nullptr) {
    trainer.log_metrics({{"val_loss", *loss}});
  }
}

NamedTensors LossAccumCallback::captured_state() {
  NamedTensors sums = {{"group_loss", group_loss_}};
  sums.insert(sums.end(), group_parts_.begin(), group_parts_.end());
  return sums;
}

}  // namespace rondo
