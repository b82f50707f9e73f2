#include "backends/staging.h"

#include <algorithm>
#include <vector>

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "core/torch_compat.h"

namespace rondo {

namespace {

int64_t width(const at::Tensor& tensor) {
  return static_cast<int64_t>(tensor.element_size());
}

/// The memory of a storage from a byte on. Keeps the storage alive.
c10::Storage storage_from(const c10::Storage& whole, int64_t begin) {
  const auto drop = [](void* holder) { delete static_cast<c10::Storage*>(holder); };
  char* const data = static_cast<char*>(compat::mutable_data(whole)) + begin;
  return c10::Storage(c10::Storage::use_byte_size_t(),
                      whole.nbytes() - static_cast<size_t>(begin),
                      c10::DataPtr(data, new c10::Storage(whole), drop, whole.device()),
                      /*allocator=*/nullptr,
                      /*resizable=*/false);
}

at::Tensor moved_to(const at::Tensor& tensor, const c10::Storage& storage, int64_t offset) {
  at::Tensor moved(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(
      c10::VariableVersion(0), /*allow_tensor_metadata_change=*/true));
  moved.unsafeGetTensorImpl()->set_storage_keep_dtype(storage);
  moved.unsafeGetTensorImpl()->set_storage_offset(offset);
  return moved;
}

/// Moves the tensors of one storage, the first of which is item `index`.
void cut_loose(Batch& batch, size_t index) {
  const at::Tensor tensor = batch.items()[index].second;
  std::vector<Batch::Item> sharers;
  for (const Batch::Item& item : batch.items()) {
    if (item.second.is_alias_of(tensor)) {
      sharers.push_back(item);
    }
  }
  int64_t begin = tensor.storage_offset() * width(tensor);
  for (const auto& [name, sharer] : sharers) {
    begin = std::min(begin, sharer.storage_offset() * width(sharer));
  }
  const auto stays = [begin](const Batch::Item& item) {
    return item.second.requires_grad() || begin % width(item.second) != 0;
  };
  if (begin == 0 || std::any_of(sharers.begin(), sharers.end(), stays)) {
    return;
  }
  const c10::Storage storage = storage_from(tensor.storage(), begin);
  for (const auto& [name, sharer] : sharers) {
    batch.set(name, moved_to(sharer, storage, sharer.storage_offset() - begin / width(sharer)));
  }
}

}  // namespace

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

Batch cut_loose(Batch batch) {
  for (size_t i = 0; i < batch.items().size(); ++i) {
    if (batch.items()[i].second.storage_offset() != 0) {
      cut_loose(batch, i);
    }
  }
  return batch;
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
