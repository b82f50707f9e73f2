#include "loops/forward_pass.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "callbacks/core/precision_callback.h"
#include "core/error.h"
#include "core/summary.h"
#include "models/forward_error.h"
#include "models/loss_parts.h"
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

Outputs run_forward(Trainer& trainer, Model& model, const Batch& input, const Forward& run) {
  try {
    return run ? run(input) : model.forward(input);
  } catch (...) {
    throw_forward_error(trainer.options().model.name(), model.module(), input);
  }
}

std::string names_of(const TensorMap& tensors) {
  std::vector<std::string> names;
  for (const auto& item : tensors.items()) {
    names.push_back(item.first);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Outputs forward_pass(Trainer& trainer, const Batch& batch, const Forward& run) {
  Model& model = *trainer.state().model;
  LoggedSummaries summaries(trainer);
  const SummaryScope summary_scope(summaries);
  const PrecisionCallback& precision = *trainer.step_slots().precision;
  const PrecisionScope scope = precision.scope();
  Batch input = precision.cast(batch);
  trainer.call(hooks::on_before_forward, model, batch, input);
  Outputs outputs = run_forward(trainer, model, input, run);
  add_loss_of_parts(outputs);
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
