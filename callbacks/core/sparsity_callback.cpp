#include "callbacks/core/sparsity_callback.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "callbacks/core/run_plan.h"
#include "core/error.h"
#include "core/glob.h"
#include "core/random.h"
#include "models/model_state.h"
#include "optim/duration_counter.h"
#include "optim/trained_parameter.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

bool changes_masks(const SparsityMasks& masks) {
  return std::any_of(masks.groups().begin(), masks.groups().end(), [](const MaskGroup& group) {
    return group.changes_masks();
  });
}

/// The optimizer that updates a weight; null when none does.
const Optimizer* owner_of(const State& state, const at::Tensor& weight) {
  for (const auto& optimizer : state.optimizers) {
    if (trained_parameter(*optimizer, weight) != nullptr) {
      return optimizer.get();
    }
  }
  return nullptr;
}

/// What `freeze` names keeps its values.
NamedTensors without_frozen(NamedTensors parameters, const std::vector<std::string>& globs) {
  const auto is_frozen = [&](const NamedTensor& parameter) {
    return matches_any(globs, parameter.first);
  };
  parameters.erase(std::remove_if(parameters.begin(), parameters.end(), is_frozen),
                   parameters.end());
  return parameters;
}

}  // namespace

SparsityCallback::SparsityCallback() = default;

SparsityCallback::~SparsityCallback() = default;

void SparsityCallback::setup(Trainer& trainer) {
  auto masks = std::make_unique<SparsityMasks>(trainer.options().sparsity);
  if (masks->groups().empty()) {
    return;
  }
  masks_ = std::move(masks);
  const State& state = trainer.state();
  masks_->apply(without_frozen(named_parameters(state.model->module()), trainer.options().freeze),
                [&](const at::Tensor& weight) { return owner_of(state, weight); });
  for (const auto& optimizer : state.optimizers) {
    for (const NamedTensor& trained : optimizer->trained()) {
      const Parameter& parameter = *trained_parameter(*optimizer, trained.second);
      masks_->add_states(trained.second, parameter.states(), parameter.value);
    }
  }
}

void SparsityCallback::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  windows_.clear();
  if (!masks_) {
    return;
  }
  for (const MaskGroup& group : masks_->groups()) {
    Window& window = windows_.emplace_back();
    if (!group.changes_masks()) {
      continue;
    }
    const MaskUpdateOptions& update = group.options().update;
    DurationCounter counter(trainer.state().plan->length(),
                            trainer.options().loop.scale_schedule_ratio);
    window.start = counter.count("sparsity.update.start", update.start, 0);
    window.stop = counter.count("sparsity.update.stop", update.stop, 1);
    window.unit = counter.unit();
    if (window.start >= window.stop) {
      throw UsageError(fmt::format(
          "sparsity.update: masks change from start to stop, and start ({}) is not before stop "
          "({})",
          update.start.to_string(),
          update.stop.to_string()));
    }
  }
}

double SparsityCallback::Window::share_done(const Timestamp& now) const {
  return stop > start ? std::clamp((now.amount(unit) - start) / (stop - start), 0.0, 1.0) : 0.0;
}

bool SparsityCallback::is_due(const Trainer& trainer, size_t group) const {
  const State& state = trainer.state();
  const MaskGroup& masks = masks_->groups()[group];
  if (!masks.changes_masks() || !state.position.is_last) {
    return false;
  }
  const Window& window = windows_[group];
  const double before = state.previous.amount(window.unit);
  const double after = state.next.amount(window.unit);
  if (after <= window.start || before >= window.stop) {
    return false;
  }
  return after >= window.stop ||
         state.falls_due(masks.options().update.every, state.previous, state.next);
}

void SparsityCallback::on_train_batch_start(Trainer& trainer, Model&, const Batch&, int64_t) {
  step_name_ = "train";
  for (size_t i = 0; i < windows_.size(); ++i) {
    MaskGroup& group = masks_->groups()[i];
    if (is_due(trainer, i)) {
      const State& state = trainer.state();
      group.aim(windows_[i].share_done(state.next),
                KeyedRandom(state.seed, static_cast<uint64_t>(state.next.update), i));
      step_name_ += fmt::format("/masks{}", i);
    } else {
      group.rest();
    }
  }
}

double SparsityCallback::target(const MaskGroup& group, const Timestamp& now) const {
  const auto place = static_cast<size_t>(&group - masks_->groups().data());
  return group.options().sparsity.at(place < windows_.size() ? windows_[place].share_done(now)
                                                             : 0.0);
}

void SparsityCallback::before_update(const Optimizer& optimizer) {
  if (masks_) {
    masks_->mask_gradients(&optimizer);
  }
}

at::Tensor SparsityCallback::masked(const at::Tensor& gradient, const at::Tensor& weight) const {
  const Mask* const mask = masks_ && gradient.defined() ? masks_->mask_of(weight) : nullptr;
  if (mask == nullptr) {
    return gradient;
  }
  const at::NoGradGuard no_grad;
  const at::Tensor own = gradient.clone();  // what autograd gives may be shared, or expanded
  mask->zero(own);
  return own;
}

void SparsityCallback::after_update(const Optimizer& optimizer) {
  if (masks_) {
    masks_->after_update(&optimizer);
  }
}

NamedTensors SparsityCallback::captured_state() {
  return masks_ ? masks_->captured_state() : NamedTensors();
}

void SparsityCallback::on_save_checkpoint(Trainer&, StateDict& state) {
  if (masks_) {
    state.set("sparsity", masks_->state_dict());
  }
}

void SparsityCallback::check_checkpoint(Trainer& trainer, const StateDict& state) {
  if (!masks_) {
    return;
  }
  if (const StateValue* saved = state.find("sparsity")) {
    masks_->check(saved->as_dict());
  } else if ((state.contains("optimizer") || state.contains("optimizers")) &&
             !trainer.options().checkpoint.disable_strict_checkpoint_loading) {
    throw CheckpointError(
        "the checkpoint of a dense run holds no sparsity masks. To prune its weights, begin a run "
        "with checkpoint.load.path and checkpoint.load.weights_only; "
        "checkpoint.disable_strict_checkpoint_loading chooses masks anyway");
  }
}

void SparsityCallback::on_load_checkpoint(Trainer& trainer, const StateDict& state) {
  const StateValue* saved = state.find("sparsity");
  if (!masks_) {
    if (saved != nullptr && trainer.state().optimizer) {
      trainer.log().warning(
          "the checkpoint holds sparsity masks, but this run's sparsity is 0: it may train the "
          "zero weights again");
    }
    return;
  }
  if (saved == nullptr) {
    trainer.log().warning(
        "the checkpoint holds no sparsity masks: this run chooses them from the weights that it "
        "has loaded");
    masks_->choose();
    return;
  }
  const double own = masks_->sparsity();
  masks_->load(saved->as_dict());
  if (masks_->sparsity() != own && !changes_masks(*masks_)) {
    trainer.log().warning(fmt::format(
        "sparsity: using the checkpoint's masks; {:.3g} of the weights are zero, not {:.3g}",
        masks_->sparsity(),
        own));
  }
}

}  // namespace rondo
