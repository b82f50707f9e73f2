#include "callbacks/algorithms/selective_backprop.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/upsample_nearest2d.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "callbacks/algorithms/internal/samples.h"
#include "callbacks/algorithms/register.h"
#include "callbacks/changes_forward.h"
#include "callbacks/core/algorithms_callback.h"
#include "callbacks/core/run_plan.h"
#include "core/error.h"
#include "core/registry.h"
#include "core/require.h"
#include "models/model.h"
#include "trainer/trainer.h"

namespace rondo {

SelectiveBackprop::SelectiveBackprop(const Options& options) : options_(options) {
  detail::require(options.start >= 0 && options.start < options.end && options.end <= 1,
                  "SelectiveBackprop: start",
                  "in [0, end), and end at most 1",
                  options.start);
  detail::require(
      options.keep > 0 && options.keep <= 1, "SelectiveBackprop: keep", "in (0, 1]", options.keep);
  detail::require(options.scale_factor > 0 && options.scale_factor <= 1,
                  "SelectiveBackprop: scale_factor",
                  "in (0, 1]",
                  options.scale_factor);
  detail::require(
      options.interrupt >= 0, "SelectiveBackprop: interrupt", ">= 0", options.interrupt);
}

// Without its target the model computes no loss, so that no hook of a loss hears of this pass.
at::Tensor SelectiveBackprop::losses_of(Trainer& trainer, const Batch& batch) const {
  const at::NoGradGuard no_grad;
  Batch ranked;
  for (const TensorMap::Item& item : batch.items()) {
    const bool is_scaled = item.first == options_.input && options_.scale_factor < 1.0;
    if (item.first == options_.target) {
      continue;
    }
    const auto scaled = [&](int64_t side) {
      return std::max<int64_t>(
          static_cast<int64_t>(options_.scale_factor * static_cast<double>(side)), 1);
    };
    ranked.set(item.first,
               is_scaled
                   ? at::upsample_nearest2d(
                         item.second, {scaled(item.second.size(2)), scaled(item.second.size(3))})
                   : item.second);
  }
  const Outputs outputs = [&] {
    const ForwardScope changes(trainer.step_slots().algorithms->forward_changes());
    return trainer.state().model->forward(ranked);
  }();
  const at::Tensor& target = batch[options_.target];
  if (const at::Tensor* const logits = outputs.find("logits");
      logits != nullptr && !target.is_floating_point()) {
    return at::cross_entropy_loss(*logits, target.to(at::kLong), {}, at::Reduction::None);
  }
  const at::Tensor* const values = outputs.find("prediction");
  if (values == nullptr) {
    throw UsageError(
        "SelectiveBackprop ranks samples by \"logits\" with integer labels, or by \"prediction\" "
        "with values; the model returns neither");
  }
  return at::mse_loss(*values, target, at::Reduction::None).flatten(1).mean(1);
}

bool SelectiveBackprop::match(Event event, const State& state) const {
  if (event != Event::BeforeForward || state.plan == nullptr) {
    return false;
  }
  const double done = state.plan->elapsed_share(state.timestamp);
  const bool is_whole =
      options_.interrupt > 0 && (state.timestamp.batch_in_epoch + 1) % options_.interrupt == 0;
  return done >= options_.start && done < options_.end && !is_whole;
}

void SelectiveBackprop::apply(Event, Trainer&) {
  is_due_ = true;
}

void SelectiveBackprop::on_final_input(Trainer& trainer) {
  if (!std::exchange(is_due_, false)) {
    return;
  }
  Batch& batch = *trainer.state().batch;
  const int64_t all = batch[options_.input].size(0);
  const auto wanted = static_cast<int64_t>(options_.keep * static_cast<double>(all));
  const at::Tensor losses = losses_of(trainer, batch);
  // Ranks begin at 0.5, so that the sample of the least loss can be drawn too.
  const at::Tensor rank =
      losses.argsort().argsort().to(at::kDouble).add(0.5).div(static_cast<double>(all));
  const at::Tensor weight = rank.pow(1.0 / options_.keep - 1.0);
  // The largest of weight / exponential are a draw without replacement.
  const at::Tensor drawn = std::get<1>(
      weight.div(at::empty_like(weight).exponential_()).topk(std::max<int64_t>(wanted, 1)));
  Batch kept = batch;
  for (const TensorMap::Item& item : std::as_const(batch).items()) {
    if (item.second.dim() > 0 && item.second.size(0) == all) {
      kept.set(item.first, detail::reordered(item.second, drawn));
    }
  }
  batch = kept;
}

void register_selective_backprop(Registry<Algorithm>& registry) {
  using Options = SelectiveBackprop::Options;
  registry
      .add<SelectiveBackprop>("SelectiveBackprop",
                              "Trains on the samples of each batch that have a large loss.")
      .key("start", &Options::start, between(0, 1), "share of the run at which it begins")
      .key("end", &Options::end, between(0, 1), "share of the run at which it ends")
      .key("keep", &Options::keep, between(0, 1), "share of a batch that is trained on")
      .key("scale_factor",
           &Options::scale_factor,
           between(0, 1),
           "of the sides of the pictures that are ranked")
      .key("interrupt",
           &Options::interrupt,
           at_least(0),
           "every so many batches is trained on whole; 0: none")
      .key("input", &Options::input, "name in the batch: floating [B, channels, height, width]")
      .key("target", &Options::target, "name in the batch: integers, or shares of classes");
}

}  // namespace rondo
