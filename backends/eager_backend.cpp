#include "backends/eager_backend.h"

#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include "backends/scoped.h"
#include "backends/staging.h"
#include "core/error.h"

namespace rondo {

void EagerBackend::set_state(std::function<CapturedState()>) {}

Batch EagerBackend::stage(Batch host) {
  return stage_on(std::move(host), device_);
}

void EagerBackend::synchronize() {
  synchronize_device(device_);
}

const Outputs& EagerBackend::run(const StepKey&,
                                 const Batch& batch,
                                 const StepBody& body,
                                 const IsDue& is_due,
                                 ClosureQueue& queue) {
  if (is_in_step()) {
    throw UsageError("Backend.run: a step is running; its body cannot run another one");
  }
  const Scoped<ClosureQueue*> in_step(queue_, &queue);
  const Scoped<const IsDue*> cadence(is_due_, &is_due);
  outputs_ = detached(body(batch));
  return outputs_;
}

void EagerBackend::defer(StepClosure closure) {
  require_step("defer");
  if (!*is_due_ || (*is_due_)(closure.cadence)) {
    queue_->push_back(detached(std::move(closure)));
  }
}

void EagerBackend::host_call(std::string, std::vector<at::Tensor> tensors, HostFunction function) {
  require_step("host_call");
  const at::NoGradGuard no_grad;
  function(tensors);
}

void EagerBackend::set_location(std::string_view, std::string_view) {}

void EagerBackend::invalidate(const std::string&) {}

void EagerBackend::require_step(const char* call) const {
  if (!is_in_step()) {
    throw UsageError(std::string("Backend.") + call +
                     ": only inside a step, that is in hooks from on_train_step_start to "
                     "on_train_step_end, or the model's forward");
  }
}

}  // namespace rondo
