#include "callbacks/builtin/nan_policy.h"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <limits>

#include "callbacks/core/virtual_ranks.h"
#include "core/error.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

constexpr double kFirstUpdates = 20.0;  // losses of these only make the mean
constexpr double kLeastShare = 0.01;    // of a loss in the mean

}  // namespace

NanPolicy::NanPolicy(const Options& options) : options_(options) {
  const std::string& then = options.then;
  detail::require(then == "stop" || then == "skip" || then == "roll_back",
                  "NanPolicy.then",
                  R"("stop", "skip" or "roll_back")",
                  then);
  detail::require(options.most >= 1, "NanPolicy.most", ">= 1", options.most);
  detail::require(options.lr_factor > 0.0, "NanPolicy.lr_factor", "> 0", options.lr_factor);
  detail::require(
      options.spike.value_or(2.0) > 1.0, "NanPolicy.spike", "> 1", options.spike.value_or(2.0));
}

void NanPolicy::post_setup(Trainer& trainer) {
  if (options_.then == "roll_back") {
    if (trainer.state().communicator->world_size() > 1) {
      throw UsageError(
          "NanPolicy: then = \"roll_back\" is for one process; take \"skip\", or let `rondo launch "
          "--max-restarts` begin with the newest checkpoint");
    }
    lr_factor_ = at::ones({}, at::kDouble);
  }
  if (!options_.spike) {
    return;
  }
  if (ranks_of(trainer) != nullptr) {
    throw UsageError(
        "NanPolicy.spike compares the loss of whole updates, of which each virtual rank has a "
        "part: leave it out, or train without [trainer.init.distributed]");
  }
  const auto zero =
      at::TensorOptions().dtype(at::kDouble).device(trainer.state().backend->device());
  mean_ = {at::zeros({}, zero), at::zeros({}, zero), at::zeros({}, zero)};
}

NamedTensors NanPolicy::captured_state() {
  NamedTensors state;
  if (lr_factor_.defined()) {
    state.emplace_back("lr_factor", lr_factor_);
  }
  if (options_.spike && mean_.mean.defined()) {
    state.emplace_back("group_loss", mean_.group_loss);
    state.emplace_back("loss_mean", mean_.mean);
    state.emplace_back("loss_count", mean_.count);
  }
  return state;
}

/// Moves the mean on, unless the loss is bad. \return whether it is a spike \capture safe
at::Tensor NanPolicy::take_loss(const at::Tensor& loss) {
  const at::Tensor is_finite = at::isfinite(loss);  // others are told of anyway
  const at::Tensor is_large =
      at::logical_and(loss.gt(mean_.mean.mul(*options_.spike)), mean_.mean.gt(0));
  const at::Tensor is_spike =
      at::logical_and(at::logical_and(is_large, is_finite), mean_.count.ge(kFirstUpdates));
  const at::Tensor is_good = at::logical_and(is_finite, at::logical_not(is_spike));
  const at::Tensor share = mean_.count.add(1.0).reciprocal().clamp_min(kLeastShare);
  const at::Tensor moved = mean_.mean.add(loss.sub(mean_.mean).mul(share));
  mean_.mean.copy_(at::where(is_good, moved, mean_.mean));
  mean_.count.add_(is_good.to(at::kDouble));
  return is_spike;
}

// Within the step, so that a spike can still be skipped: a gradient that is not finite says so.
void NanPolicy::on_after_backward(Trainer& trainer, Model&, Outputs& outputs) {
  if (!options_.spike) {
    return;
  }
  const GroupPosition& position = trainer.state().position;
  at::Tensor loss = outputs["loss"].detach().to(at::kDouble);
  if (!position.is_first) {
    loss = mean_.group_loss.add(loss);
  }
  if (!position.is_last) {
    mean_.group_loss.copy_(loss);
    return;
  }
  const at::Tensor mean = mean_.mean.clone();
  const at::Tensor is_spike = take_loss(loss);
  if (skips_updates()) {
    for (const auto& optimizer : trainer.state().optimizers) {
      for (const at::Tensor& grad : optimizer->grads()) {
        grad.masked_fill_(is_spike, std::numeric_limits<double>::quiet_NaN());
      }
    }
  }
  trainer.defer({is_spike, loss, mean}, [this, &trainer](const std::vector<at::Tensor>& now) {
    if (now[0].item<bool>()) {
      act_on_spike(trainer, now[1].item<double>(), now[2].item<double>());
    }
  });
}

void NanPolicy::act_on_spike(Trainer& trainer, double loss, double mean) {
  if (!skips_updates() || ++in_row_ > options_.most) {
    throw NonFiniteLossError(fmt::format(
        "the loss of update {} is {:.6g}, more than {} times its moving mean, {:.6g} "
        "(NanPolicy.spike); lower lr, clip gradients (precision.max_gradient_norm), or look at the "
        "data of that update",
        trainer.state().global_step(),
        loss,
        *options_.spike,
        mean));
  }
  was_bad_ = true;
  trainer.alert(AlertLevel::Warning,
                fmt::format("NanPolicy skips an update: its loss is {:.6g}, more than {} times the "
                            "moving mean, {:.6g}",
                            loss,
                            *options_.spike,
                            mean));
}

// A checkpoint that was loaded has set the factor to what it knows.
void NanPolicy::on_fit_start(Trainer&, const DataLoader&, const Loaders&, Loop&) {
  in_row_ = 0;
  lrs_.clear();
  if (lr_factor_.defined() && since_save_ != 1.0) {
    lr_factor_.mul_(since_save_);
  }
}

void NanPolicy::on_after_save_checkpoint(Trainer&, const std::filesystem::path&) {
  since_save_ = 1.0;
}

// Schedulers write learning rates, so the factor holds for the update alone.
void NanPolicy::on_before_optimizer_step(Trainer&, Model&, Optimizer& optimizer) {
  lrs_.clear();
  if (!lr_factor_.defined()) {
    return;
  }
  for (ParamGroup& group : optimizer.groups()) {
    lrs_.push_back(group["lr"].clone());
    group["lr"].mul_(lr_factor_);
  }
}

void NanPolicy::on_after_optimizer_step(Trainer&, Model&, Optimizer& optimizer) {
  for (size_t i = 0; i < lrs_.size(); ++i) {
    optimizer.groups()[i]["lr"].copy_(lrs_[i]);
  }
  lrs_.clear();
}

void NanPolicy::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  if (skips_updates()) {
    trainer.defer({}, [this](const std::vector<at::Tensor>&) {  // after the step's own
      in_row_ = was_bad_ ? in_row_ : 0;
      was_bad_ = false;
    });
  }
}

bool NanPolicy::continues_after(Trainer& trainer, double loss) {
  if (!skips_updates() || ++in_row_ > options_.most) {
    return false;
  }
  was_bad_ = true;
  trainer.alert(AlertLevel::Warning,
                fmt::format("NanPolicy skips an update: its loss is {}", loss));
  return true;
}

bool NanPolicy::rolls_back(Trainer& trainer) {
  const auto& checkpoint = trainer.state().last_checkpoint;
  if (options_.then != "roll_back" || !checkpoint || ++roll_backs_ > options_.most) {
    return false;
  }
  since_save_ *= options_.lr_factor;
  trainer.alert(AlertLevel::Warning,
                fmt::format("NanPolicy rolls back to {} with {} times the learning rate",
                            checkpoint->string(),
                            options_.lr_factor));
  return true;
}

void register_nan_policy(Registry<Callback>& registry) {
  using Options = NanPolicy::Options;
  registry
      .add<NanPolicy>(
          "NanPolicy",
          "Decides what follows a loss or gradient that is not finite, or a loss spike.")
      .key("then",
           &Options::then,
           one_of({"stop", "skip", "roll_back"}),
           "skip: the update changes nothing; roll_back: to the newest checkpoint, with a lower lr")
      .key("most", &Options::most, at_least(1), "bad losses in a row, or roll-backs of a process")
      .key("lr_factor", &Options::lr_factor, greater_than(0), "of the learning rate at a roll-back")
      .key("spike",
           &Options::spike,
           greater_than(1),
           "a loss above so many times its moving mean is bad, too; absent: no bound");
}

}  // namespace rondo
