#include "callbacks/builtin/nan_policy.h"

#include <ATen/ops/ones.h>
#include <fmt/format.h>

#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

NanPolicy::NanPolicy(const Options& options) : options_(options) {
  const std::string& then = options.then;
  detail::require(then == "stop" || then == "skip" || then == "roll_back",
                  "NanPolicy.then",
                  R"("stop", "skip" or "roll_back")",
                  then);
  detail::require(options.most >= 1, "NanPolicy.most", ">= 1", options.most);
  detail::require(options.lr_factor > 0.0, "NanPolicy.lr_factor", "> 0", options.lr_factor);
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
}

NamedTensors NanPolicy::captured_state() {
  return lr_factor_.defined() ? NamedTensors{{"lr_factor", lr_factor_}} : NamedTensors();
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
      .add<NanPolicy>("NanPolicy", "Decides what follows a loss or gradient that is not finite.")
      .key("then",
           &Options::then,
           one_of({"stop", "skip", "roll_back"}),
           "skip: the update changes nothing; roll_back: to the newest checkpoint, with a lower lr")
      .key("most", &Options::most, at_least(1), "bad losses in a row, or roll-backs of a process")
      .key(
          "lr_factor", &Options::lr_factor, greater_than(0), "of the learning rate at a roll-back");
}

}  // namespace rondo
