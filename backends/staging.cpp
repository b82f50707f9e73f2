#include "backends/staging.h"

#include <algorithm>

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace rondo {

Batch stage_on(Batch host, c10::Device device) {
  const auto is_there = [device](const Batch::Item& item) {
    return item.second.device() == device;
  };
  if (std::all_of(host.items().begin(), host.items().end(), is_there)) {
    return host;
  }
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
