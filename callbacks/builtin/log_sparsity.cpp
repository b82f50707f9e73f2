#include "callbacks/builtin/log_sparsity.h"

#include <ATen/core/Tensor.h>

#include <string>

#include "callbacks/core/sparsity_callback.h"
#include "core/registry.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// Zeros among elements.
struct Count {
  double elements = 0.0;
  double wanted = 0.0;
  double zeros = 0.0;

  void add(const Count& other) {
    elements += other.elements;
    wanted += other.wanted;
    zeros += other.zeros;
  }
};

Count count_of(const Mask& mask, double target) {
  const auto elements = static_cast<double>(mask.bits().numel());
  const auto kept = static_cast<double>(mask.bits().count_nonzero().item<int64_t>());
  return {elements, target * elements, elements - kept};
}

void add(Metrics& values, const std::string& name, const Count& count) {
  values.set("sparsity/" + name + "/target", count.wanted / count.elements);
  values.set("sparsity/" + name + "/actual", count.zeros / count.elements);
}

}  // namespace

void LogSparsity::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  const SparsityCallback& sparsity = *trainer.step_slots().sparsity;
  if (sparsity.masks() == nullptr || !trainer.state().position.is_last || !trainer.is_log_step()) {
    return;
  }
  Metrics values;
  Count total;
  for (const MaskGroup& group : sparsity.masks()->groups()) {
    const double target = sparsity.target(group, trainer.state().timestamp);
    for (const Mask& mask : group.masks()) {
      const Count count = count_of(mask, target);
      add(values, mask.name(), count);
      total.add(count);
    }
  }
  add(values, "total", total);
  trainer.log_metrics(values);
}

void register_log_sparsity(Registry<Callback>& registry) {
  registry.add<LogSparsity>("LogSparsity", "Logs the share of zeros of each masked parameter.");
}

}  // namespace rondo
