#include "loops/train_step.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <string>
#include <vector>

#include "callbacks/core/precision_callback.h"
#include "callbacks/core/schedulers_callback.h"
#include "callbacks/core/sparsity_callback.h"
#include "core/error.h"
#include "core/summary.h"
#include "loops/backward_error.h"
#include "loops/validation_hooks.h"
#include "models/forward_error.h"
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

Outputs run_forward(Trainer& trainer, Model& model, const Batch& input) {
  try {
    return model.forward(input);
  } catch (...) {
    throw_forward_error(trainer.options().model.name(), model.module(), input);
  }
}

Outputs forward(Trainer& trainer, const Batch& batch) {
  Model& model = *trainer.state().model;
  LoggedSummaries summaries(trainer);
  const SummaryScope summary_scope(summaries);
  const PrecisionCallback& precision = *trainer.step_slots().precision;
  const PrecisionScope scope = precision.scope();
  Batch input = precision.cast(batch);
  trainer.call(hooks::on_before_forward, model, batch, input);
  Outputs outputs = run_forward(trainer, model, input);
  trainer.call(hooks::on_after_forward, model, outputs, batch);
  return outputs;
}

std::string names_of(const TensorMap& tensors) {
  std::vector<std::string> names;
  for (const auto& item : tensors.items()) {
    names.push_back(item.first);
  }
  return fmt::format("{}", fmt::join(names, ", "));
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

void backward(Trainer& trainer, Outputs& outputs, const Batch& batch) {
  Model& model = *trainer.state().model;
  trainer.call(hooks::on_before_backward, model, outputs);
  run_backward(trainer.options().model.name(),
               model.module(),
               trainer.step_slots().precision->scaled(loss_of(outputs, batch)));
  const GroupPosition& phase = trainer.state().phase;
  if (Optimizer* optimizer = trainer.state().optimizer.get();
      optimizer != nullptr && !phase.is_last) {
    optimizer->keep_grads();
  }
  trainer.call(hooks::on_after_backward, model, outputs);
}

/// The loss of a batch that was computed, and then that at other weights, with its gradients.
Optimizer::Evaluate evaluate_again(Trainer& trainer, const Batch& batch, const Outputs& outputs) {
  return [&trainer, &batch, &outputs, is_first = true]() mutable {
    if (is_first) {
      is_first = false;
      return loss_of(outputs, batch).detach();
    }
    Optimizer& optimizer = *trainer.state().optimizer;
    optimizer.zero_grad();
    Outputs again = forward(trainer, batch);
    backward(trainer, again, batch);
    trainer.step_slots().precision->clip_gradients(optimizer);
    return loss_of(again, batch).detach();
  };
}

void update(Trainer& trainer, Optimizer& optimizer, const Optimizer::Evaluate& evaluate) {
  Model& model = *trainer.state().model;
  trainer.call(hooks::on_before_optimizer_step, model, optimizer);
  SparsityCallback& sparsity = *trainer.step_slots().sparsity;
  sparsity.before_update(optimizer);
  trainer.step_slots().precision->clip_gradients(optimizer);
  trainer.step_slots().precision->step(optimizer, evaluate);
  sparsity.after_update(optimizer);
  trainer.call(hooks::on_after_optimizer_step, model, optimizer);
  trainer.call(hooks::on_before_optimizer_zero_grad, model, optimizer);
  optimizer.zero_grad();
  trainer.call(hooks::on_after_optimizer_zero_grad, model, optimizer);
  trainer.step_slots().schedulers->step(trainer);
}

}  // namespace

Outputs train_step(Trainer& trainer, const Batch& batch) {
  Model& model = *trainer.state().model;
  Optimizer* const optimizer = trainer.state().optimizer.get();
  const GroupPosition phase = trainer.state().phase;
  if (phase.is_first) {
    optimizer->zero_grad();
  }
  trainer.call(hooks::on_train_step_start, model, batch);
  Outputs outputs = forward(trainer, batch);
  backward(trainer, outputs, batch);
  if (phase.is_last) {
    const bool is_whole = phase.is_first && optimizer->needs_evaluate();
    update(trainer, *optimizer, is_whole ? evaluate_again(trainer, batch, outputs) : nullptr);
  }
  trainer.call(hooks::on_train_step_end, model, outputs, batch);
  return outputs;
}

Outputs validate_step(Trainer& trainer, const Batch& batch, const std::string& hook) {
  const at::NoGradGuard no_grad;
  Model& model = *trainer.state().model;
  const ValidationHooks fire(trainer, hook);
  fire.step_start(model, batch);
  Outputs outputs = forward(trainer, batch);
  fire.step_end(model, outputs, batch);
  return outputs;
}

}  // namespace rondo
