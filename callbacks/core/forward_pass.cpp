#include "callbacks/core/forward_pass.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <vector>

#include "backends/scoped.h"
#include "callbacks/changes_forward.h"
#include "callbacks/core/algorithms_callback.h"
#include "callbacks/core/precision_callback.h"
#include "core/error.h"
#include "core/forward_context.h"
#include "core/summary.h"
#include "models/forward_error.h"
#include "models/loss_parts.h"
#include "models/with_loss.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// What a model summarizes is logged like what hooks log.
class LoggedSummaries final : public SummarySink {
 public:
  explicit LoggedSummaries(Trainer& trainer) : trainer_(trainer) {}

  void log(const std::string& name, const at::Tensor& value) override {
    trainer_.log_metrics({{name, value}});
  }

  void warn(const std::string& message) override { trainer_.log().warning(message); }

 private:
  Trainer& trainer_;
};

/// Fires the hooks around a loss.
class LossHooks final : public LossObserver {
 public:
  explicit LossHooks(Trainer& trainer) : trainer_(trainer) {}

  void after_network(Outputs& outputs, const Batch& input) override {
    was_called_ = true;
    trainer_.state().outputs = &outputs;
    trainer_.call(hooks::on_after_network, *trainer_.state().model, outputs, input);
  }

  void before_loss(Outputs& outputs, Batch& targets) override {
    trainer_.state().batch = &targets;
    trainer_.call(hooks::on_before_loss, *trainer_.state().model, outputs, targets);
  }

  void after_loss(Outputs& outputs, Batch& targets) override {
    trainer_.state().outputs = &outputs;
    trainer_.call(hooks::on_after_loss, *trainer_.state().model, outputs, targets);
    trainer_.state().batch = nullptr;
    trainer_.state().outputs = nullptr;
  }

  /// For a model that computes its loss without `with_loss`.
  void finish(Outputs& outputs, const Batch& input) {
    if (was_called_) {
      return;
    }
    after_network(outputs, input);
    if (outputs.find("loss") != nullptr) {
      Batch targets = input;
      before_loss(outputs, targets);
      after_loss(outputs, targets);
    }
  }

 private:
  Trainer& trainer_;
  bool was_called_ = false;
};

Outputs run_forward(Trainer& trainer, Model& model, const Batch& input, const ForwardCall& run) {
  try {
    return run ? run(input) : model.forward(input);
  } catch (...) {
    throw_forward_error(trainer.options().model.name(), model.module(), input);
  }
}

/// What holds while a model computes.
class ComputeScopes {
 public:
  explicit ComputeScopes(Trainer& trainer)
      : precision_(trainer.step_slots().precision->scope()),
        changes_(trainer.step_slots().algorithms->forward_changes()) {}

 private:
  PrecisionScope precision_;
  ForwardScope changes_;
};

/// The same once more, for a part that is computed again.
std::shared_ptr<void> reopen(Trainer& trainer) {
  for (const ChangesForward* const change :
       trainer.step_slots().algorithms->forward_changes().all) {
    if (!change->can_run_parts_again()) {
      throw UsageError(
          "recompute: a part of the forward cannot be computed again with Lora or GyroDropout: "
          "leave one of them out");
    }
  }
  return std::make_shared<ComputeScopes>(trainer);
}

std::string names_of(const TensorMap& tensors) {
  std::vector<std::string> names;
  for (const auto& item : tensors.items()) {
    names.push_back(item.first);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Outputs forward_pass(Trainer& trainer, const Batch& batch, const ForwardCall& run) {
  State& state = trainer.state();
  Model& model = *state.model;
  LoggedSummaries summaries(trainer);
  const SummaryScope summary_scope(summaries);
  const PrecisionCallback& precision = *trainer.step_slots().precision;
  const PrecisionScope scope = precision.scope();
  Batch input = precision.cast(batch);
  const Scoped<Batch*> batch_scope(state.batch, &input);
  const Scoped<Outputs*> outputs_scope(state.outputs, nullptr);
  trainer.call(hooks::on_before_forward, model, batch, input);
  trainer.step_slots().algorithms->show_final_input(trainer);
  LossHooks loss_hooks(trainer);
  Outputs outputs = [&] {
    const ForwardScope changes(trainer.step_slots().algorithms->forward_changes());
    const ForwardContext context([&trainer] { return reopen(trainer); });
    const LossScope loss_scope(loss_hooks);
    return run_forward(trainer, model, input, run);
  }();
  add_loss_of_parts(outputs);
  loss_hooks.finish(outputs, input);
  state.batch = &input;
  state.outputs = &outputs;
  trainer.call(hooks::on_after_forward, model, outputs, batch);
  return outputs;
}

const at::Tensor& loss_of(const Outputs& outputs, const Batch& batch) {
  const at::Tensor* loss = outputs.find("loss");
  if (loss == nullptr) {
    throw UsageError(
        fmt::format("the model returned no \"loss\", which training needs; it returned: {}. Does "
                    "the batch lack its target? It has: {}",
                    names_of(outputs),
                    names_of(batch)));
  }
  if (!loss->defined() || loss->numel() != 1) {
    throw ShapeError(fmt::format("the model's \"loss\" must be one number, got {} elements",
                                 loss->defined() ? loss->numel() : 0));
  }
  return *loss;
}

}  // namespace rondo
