#include "callbacks/builtin/log_input_summaries.h"

#include <ATen/ops/std.h>

#include <string>

#include "core/registry.h"
#include "trainer/trainer.h"

namespace rondo {

void LogInputSummaries::on_before_forward(Trainer& trainer, Model&, const Batch&, Batch& input) {
  if (!trainer.state().is_training) {
    return;
  }
  Metrics values;
  for (const Batch::Item& item : input.items()) {
    if (item.second.numel() == 0 || item.second.is_complex()) {
      continue;
    }
    const at::Tensor numbers = item.second.detach().to(at::kFloat);
    const std::string scope = "input/" + item.first + "/";
    values.set(scope + "mean", numbers.mean());
    values.set(scope + "std", numbers.std(/*unbiased=*/false));
    values.set(scope + "min", numbers.min());
    values.set(scope + "max", numbers.max());
  }
  if (!values.empty()) {
    trainer.log_metrics(values);
  }
}

void register_log_input_summaries(Registry<Callback>& registry) {
  registry.add<LogInputSummaries>("LogInputSummaries",
                                  "Logs mean, deviation and range of what the model is given.");
}

}  // namespace rondo
