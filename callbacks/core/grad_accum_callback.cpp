#include "callbacks/core/grad_accum_callback.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "callbacks/core/loop.h"
#include "callbacks/core/virtual_ranks.h"
#include "core/error.h"
#include "core/ignored_label.h"
#include "models/loss_parts.h"
#include "models/losses/criterion.h"
#include "trainer/micro_batch_size.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

constexpr const char* kMicroBatch = "micro_batch";

/// Why the tokens of a batch are not what its loss is the mean of; "" when they are.
std::string problem_with_tokens(const Criterion& loss) {
  if (loss.ignore_index().value_or(kIgnoredLabel) != kIgnoredLabel) {
    return fmt::format("leaves out label {}: mark such labels with {} in the data",
                       *loss.ignore_index(),
                       kIgnoredLabel);
  }
  return loss.is_mean_of_labels()
             ? ""
             : "is no mean over labels that count alike, as with class_weights or Dice";
}

void require_tokens(const Trainer& trainer) {
  const Criterion* const loss = trainer.state().model->criterion();
  const std::string problem = loss != nullptr ? problem_with_tokens(*loss) : "";
  if (!problem.empty()) {
    throw UsageError(fmt::format(
        "loop.accumulate_on_tokens weights batches by their labels other than {}, but the model's "
        "loss {}, or set loop.accumulate_on_tokens = false",
        kIgnoredLabel,
        problem));
  }
}

}  // namespace

void GradAccumCallback::setup(Trainer& trainer) {
  if (const auto* loop = trainer.callback<TrainingLoop>()) {
    const LoopOptions& options = loop->options();
    groups_ = {options.grad_accum_steps,
               options.device_train_microbatch_size,
               options.accumulate_on_tokens,
               options.train_subset_num_batches};
    memory_limit_ = options.memory_limit;
  }
  if (groups_.micro_batch == kAutoMicroBatch) {
    groups_.micro_batch.reset();
    groups_.cuts_again = true;
  }
  if (memory_limit_ && !trainer.state().backend->device().is_cpu()) {
    throw UsageError("loop.memory_limit holds for tensors on the CPU; remove it");
  }
  if (groups_.batches > 1) {
    trainer.log().info(fmt::format("gradients are summed over {} batches", groups_.batches));
  }
  if (groups_.micro_batch) {
    trainer.log().info(
        fmt::format("batches are cut into micro-batches of {} samples", *groups_.micro_batch));
  }
  make_share(trainer, groups_.batches > 1 || groups_.micro_batch || finds_size());
}

StateDict GradAccumCallback::save_state() const {
  return finds_size() && groups_.micro_batch ? StateDict{{kMicroBatch, *groups_.micro_batch}}
                                             : StateDict();
}

void GradAccumCallback::load_state(const StateDict& state) {
  if (!finds_size()) {
    return;
  }
  const StateValue* const size = state.find(kMicroBatch);
  groups_.micro_batch = size != nullptr ? std::optional(size->as_int()) : std::nullopt;
}

void GradAccumCallback::choose_size(Trainer& trainer, const DataLoader& train, const Loaders& val) {
  if (!finds_size()) {
    return;
  }
  if (ranks_of(trainer) != nullptr) {
    throw NotSupportedError(
        "loop.device_train_microbatch_size = \"auto\" does not work with virtual ranks: set a "
        "number, or distributed.virtual_ranks = 1");
  }
  if (!groups_.micro_batch && memory_limit_) {
    groups_.micro_batch = predicted_micro_batch(trainer, train, val, *memory_limit_);
  }
  trainer.log().info(groups_.micro_batch
                         ? fmt::format("micro-batches have {} samples", *groups_.micro_batch)
                         : "micro-batches are whole batches until memory runs out");
}

int64_t GradAccumCallback::shrink(const Trainer& trainer, int64_t samples) {
  groups_.micro_batch = (samples + 1) / 2;
  trainer.log().warning(
      fmt::format("memory ran out in update {} with {} samples at once: the update is undone and "
                  "trained again with {}, as are later ones",
                  trainer.state().timestamp.update,
                  samples,
                  *groups_.micro_batch));
  return *groups_.micro_batch;
}

void GradAccumCallback::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  const bool has_ranks = ranks_of(trainer) != nullptr;
  make_share(trainer, has_ranks);
  if (groups_.on_tokens && share_.defined()) {  // a group can have several batches
    require_tokens(trainer);
  }
  for (const auto& optimizer : trainer.state().optimizers) {
    if (has_ranks && optimizer->needs_evaluate()) {
      throw UsageError(
          "the optimizer computes the loss several times in an update, which virtual ranks cannot: "
          "use distributed.virtual_ranks = 1 with one process, or another optimizer");
    }
  }
}

void GradAccumCallback::make_share(const Trainer& trainer, bool is_needed) {
  if (is_needed && !share_.defined()) {
    const c10::Device device = trainer.state().backend->device();
    share_ = at::zeros({}, at::TensorOptions().dtype(at::kDouble).device(device));
  }
}

void GradAccumCallback::on_train_batch_start(Trainer& trainer, Model&, const Batch&, int64_t) {
  if (const std::optional<double>& share = trainer.state().share_of_group) {
    share_.fill_(*share);
  }
}

at::Tensor GradAccumCallback::weighted(const Trainer& trainer, const at::Tensor& loss) const {
  return trainer.state().share_of_group
             ? loss.mul(share_.to(loss.scalar_type()))
             : loss.div(static_cast<double>(trainer.state().position.size));
}

GroupOptions GradAccumCallback::groups_of(const Trainer& trainer) const {
  GroupOptions groups = groups_;
  const VirtualRanks* const ranks = ranks_of(trainer);
  groups.ranks = ranks != nullptr ? ranks->range() : RankRange();
  return groups;
}

NamedTensors GradAccumCallback::captured_state() {
  return share_.defined() ? NamedTensors{{"share", share_}} : NamedTensors();
}

void GradAccumCallback::on_after_forward(Trainer& trainer, Model&, Outputs& outputs, const Batch&) {
  if (!trainer.state().is_training || trainer.state().position.size == 1) {
    return;
  }
  std::vector<std::string> names = loss_parts(outputs);
  if (outputs.find("loss") != nullptr) {
    names.emplace_back("loss");
  }
  for (const std::string& name : names) {
    outputs.set(name, weighted(trainer, outputs[name]));
  }
}

}  // namespace rondo
