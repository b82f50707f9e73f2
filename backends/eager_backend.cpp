#include "backends/eager_backend.h"

#include <utility>

#include <ATen/core/Tensor.h>

#include "backends/run_as_written.h"
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
  outputs_ = run_as_written({batch, body, is_due, queue, state_, requests_});
  return outputs_;
}

void EagerBackend::defer(StepClosure closure) {
  running_body(requests_, "defer").defer(std::move(closure));
}

void EagerBackend::host_call(std::string name,
                             std::vector<at::Tensor> tensors,
                             HostFunction function) {
  running_body(requests_, "host_call")
      .host_call(std::move(name), std::move(tensors), std::move(function));
}

void EagerBackend::set_location(std::string_view, std::string_view) {}

void EagerBackend::invalidate(const std::string&) {}

}  // namespace rondo
