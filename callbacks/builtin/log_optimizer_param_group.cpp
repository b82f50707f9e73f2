#include "callbacks/builtin/log_optimizer_param_group.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include "core/registry.h"
#include "trainer/trainer.h"

namespace rondo {

void LogOptimizerParamGroup::setup(Trainer& trainer) {
  for (const auto& optimizer : trainer.state().optimizers) {
    for (ParamGroup& group : optimizer->groups()) {
      for (const std::string& key : options_.keys) {
        (void)group[key];  // throws for a number that does not exist
      }
    }
  }
}

void LogOptimizerParamGroup::on_after_optimizer_step(Trainer& trainer,
                                                     Model&,
                                                     Optimizer& optimizer) {
  Metrics values;
  for (const std::string& key : options_.keys) {
    for (size_t i = 0; i < optimizer.groups().size(); ++i) {
      // A copy: the scheduler will have moved the number by the time it is read.
      values.set(fmt::format("{}/{}", key, i), optimizer.groups()[i][key].clone());
    }
  }
  trainer.log_metrics(values);
}

void register_log_optimizer_param_group(Registry<Callback>& registry) {
  registry
      .add<LogOptimizerParamGroup>("LogOptimizerParamGroup",
                                   "Logs numbers of the optimizer's groups, such as lr.")
      .key("keys", &LogOptimizerParamGroup::Options::keys, "numbers of the optimizer");
}

}  // namespace rondo
