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

/// The bytes of a storage from `begin` to `end`.
struct Extent {
  int64_t begin = 0;
  int64_t end = 0;
};

Extent extent_of(const at::Tensor& tensor) {
  const int64_t begin = tensor.storage_offset();
  int64_t end = begin + (tensor.numel() > 0 ? 1 : 0);
  for (int64_t i = 0; tensor.numel() > 0 && i < tensor.dim(); ++i) {
    end += (tensor.size(i) - 1) * tensor.stride(i);
  }
  return {begin * width(tensor), end * width(tensor)};
}

bool is_all_of(const Extent& extent, const at::Tensor& tensor) {
  return extent.begin == 0 && extent.end == static_cast<int64_t>(tensor.storage().nbytes());
}

bool overlap(const Extent& a, const Extent& b) {
  return std::max(a.begin, b.begin) < std::min(a.end, b.end);
}

Extent both(const Extent& a, const Extent& b) {
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

/// Lives as long as `owner`, whose maker may watch who still uses it.
c10::Storage part_of(const at::Tensor& owner, const Extent& part) {
  const auto drop = [](void* holder) { delete static_cast<at::Tensor*>(holder); };
  char* const data = static_cast<char*>(compat::mutable_data(owner.storage())) + part.begin;
  return c10::Storage(c10::Storage::use_byte_size_t(),
                      static_cast<size_t>(part.end - part.begin),
                      c10::DataPtr(data, new at::Tensor(owner), drop, owner.device()),
                      /*allocator=*/nullptr,
                      /*resizable=*/false);
}

/// Shares the count of changes in place, by which autograd knows what it saved for backward.
at::Tensor moved_to(const at::Tensor& tensor, const c10::Storage& storage, int64_t offset) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  at::Tensor moved(impl.shallow_copy_and_detach(impl.version_counter(),
                                                /*allow_tensor_metadata_change=*/true));
  moved.unsafeGetTensorImpl()->set_storage_keep_dtype(storage);
  moved.unsafeGetTensorImpl()->set_storage_offset(offset);
  return moved;
}

/// The items that share a storage with item `index`.
std::vector<Batch::Item> sharers_of(const Batch& batch, size_t index) {
  std::vector<Batch::Item> sharers;
  for (const Batch::Item& item : batch.items()) {
    if (item.second.has_storage() && item.second.is_alias_of(batch.items()[index].second)) {
      sharers.push_back(item);
    }
  }
  return sharers;
}

/// Takes the items out of `sharers` that share bytes with the first one, or with one that does.
std::vector<Batch::Item> take_overlapping(std::vector<Batch::Item>& sharers) {
  std::vector<Batch::Item> taken = {sharers.front()};
  Extent extent = extent_of(sharers.front().second);
  sharers.erase(sharers.begin());
  for (size_t i = 0; i < sharers.size();) {
    const Extent other = extent_of(sharers[i].second);
    if (overlap(extent, other)) {
      extent = both(extent, other);
      taken.push_back(sharers[i]);
      sharers.erase(sharers.begin() + static_cast<std::ptrdiff_t>(i));
      i = 0;  // those before may overlap now
    } else {
      ++i;
    }
  }
  return taken;
}

/// From the first to the last byte of them, beginning where each can count from.
Extent extent_of(const std::vector<Batch::Item>& items) {
  Extent all = extent_of(items.front().second);
  int64_t widest = 1;
  for (const auto& [name, tensor] : items) {
    all = both(all, extent_of(tensor));
    widest = std::max(widest, width(tensor));
  }
  all.begin -= all.begin % widest;
  return all;
}

void move_to_own_storage(Batch& batch, const std::vector<Batch::Item>& items) {
  const Extent part = extent_of(items);
  const c10::Storage storage = part_of(items.front().second, part);
  for (const auto& [name, tensor] : items) {
    const int64_t offset = tensor.storage_offset() - part.begin / width(tensor);
    batch.set(name, moved_to(tensor, storage, offset));
  }
}

/// Moves the tensors that share the storage of item `index`; those that share bytes stay together.
void cut_loose(Batch& batch, size_t index) {
  std::vector<Batch::Item> sharers = sharers_of(batch, index);
  const auto has_history = [](const Batch::Item& item) { return item.second.requires_grad(); };
  if (is_all_of(extent_of(sharers), sharers.front().second) ||
      std::any_of(sharers.begin(), sharers.end(), has_history)) {
    return;
  }
  while (!sharers.empty()) {
    move_to_own_storage(batch, take_overlapping(sharers));
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
    const at::Tensor& tensor = batch.items()[i].second;
    if (tensor.has_storage() && !is_all_of(extent_of(tensor), tensor)) {
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
    result.set(name, tensor.defined() ? tensor.detach() : tensor);
  }
  return result;
}

StepClosure detached(StepClosure closure) {
  for (at::Tensor& tensor : closure.tensors) {
    tensor = tensor.defined() ? tensor.detach() : tensor;
  }
  return closure;
}

}  // namespace rondo
