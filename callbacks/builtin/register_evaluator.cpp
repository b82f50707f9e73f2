#include "callbacks/builtin/register.h"
#include "callbacks/core/evaluator.h"
#include "core/registry.h"

namespace rondo {

void register_evaluator(Registry<Callback>& registry, const Registry<Metric>& metrics) {
  using Options = Evaluator::Options;
  registry.add<Evaluator>("Evaluator", "Metrics, length and interval of one loader's validations.")
      .key("loader", &Options::loader, "label of the loader")
      .required()
      .key_of(
          "metrics",
          &Options::metrics,
          ComponentListOption<Metric>(metrics),
          "what is measured in addition to the loss, instead of the model's metrics and the run's")
      .key("eval_steps",
           &Options::eval_steps,
           "batches of a validation, or a share of its pass; absent: the loop's")
      .key("every_n_vals",
           &Options::every_n_vals,
           at_least(1),
           "the loader is evaluated in every n-th validation of a fit, and in the last one");
}

}  // namespace rondo
