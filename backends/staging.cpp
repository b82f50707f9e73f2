#include "backends/staging.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace rondo {

Batch stage_on(const Batch& host, c10::Device device) {
  Batch staged;
  for (const auto& [name, tensor] : host.items()) {
    staged.set(name, tensor.to(device, /*non_blocking=*/true));
  }
  return staged;
}

void synchronize_device(c10::Device device) {
  if (!device.is_cpu()) {
    const c10::impl::VirtualGuardImpl guard(device.type());
    guard.synchronizeStream(guard.getStream(device));
  }
}

Outputs detached(const Outputs& outputs) {
  Outputs result;
  for (const auto& [name, tensor] : outputs.items()) {
    result.set(name, tensor.detach());
  }
  return result;
}

StepClosure detached(StepClosure closure) {
  for (at::Tensor& tensor : closure.tensors) {
    tensor = tensor.detach();
  }
  return closure;
}

}  // namespace rondo
