#include "callbacks/builtin/optimizer_monitor.h"

#include <ATen/ops/norm.h>
#include <ATen/ops/stack.h>

#include <map>
#include <string>
#include <vector>

#include "core/registry.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// Norms by kind, such as "grad", and by parameter.
class Norms {
 public:
  /// \capture safe
  void add(const std::string& kind, const std::string& parameter, const at::Tensor& tensor) {
    if (tensor.defined() && tensor.is_floating_point()) {
      by_kind_[kind].emplace_back(parameter, tensor.detach().to(at::kFloat).norm());
    }
  }

  /// \capture safe
  Metrics metrics(const std::string& optimizer, bool only_global) const {
    Metrics metrics;
    for (const auto& [kind, norms] : by_kind_) {
      const std::string scope = "l2_norm/" + kind + "/";
      std::vector<at::Tensor> all;
      for (const auto& [parameter, norm] : norms) {
        all.push_back(norm);
        if (!only_global) {
          metrics.set(scope + parameter, norm);
        }
      }
      const bool is_only = optimizer == kDefaultOptimizer;
      metrics.set(scope + (is_only ? "global" : optimizer + "/global"), at::stack(all).norm());
    }
    return metrics;
  }

 private:
  std::map<std::string, std::vector<std::pair<std::string, at::Tensor>>> by_kind_;
};

}  // namespace

void OptimizerMonitor::on_before_optimizer_step(Trainer& trainer, Model&, Optimizer& optimizer) {
  Norms norms;
  for (const ParamGroup& group : optimizer.groups()) {
    for (const Parameter& parameter : group.params) {
      norms.add("grad", parameter.name, parameter.grad());
    }
  }
  if (const Metrics metrics = norms.metrics(optimizer.name(), options_.only_global);
      !metrics.empty()) {
    trainer.log_metrics(metrics);
  }
}

void OptimizerMonitor::on_after_optimizer_step(Trainer& trainer, Model&, Optimizer& optimizer) {
  Norms norms;
  for (const ParamGroup& group : optimizer.groups()) {
    for (const Parameter& parameter : group.params) {
      norms.add("param", parameter.name, parameter.value);
      for (const NamedTensor& state : parameter.states()) {
        if (state.second.dim() > 0 && !optimizer.is_shared()) {  // no counter, and the whole of it
          norms.add(state.first, parameter.name, state.second);
        }
      }
    }
  }
  trainer.log_metrics(norms.metrics(optimizer.name(), options_.only_global));
}

void register_optimizer_monitor(Registry<Callback>& registry) {
  registry
      .add<OptimizerMonitor>("OptimizerMonitor",
                             "Logs norms of gradients, parameters and the optimizer's state.")
      .key("only_global",
           &OptimizerMonitor::Options::only_global,
           "true: no norms of single parameters");
}

}  // namespace rondo
