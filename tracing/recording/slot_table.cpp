#include "tracing/recording/slot_table.h"

#include <utility>

#include <c10/core/TensorImpl.h>

namespace rondo {

namespace {

const c10::StorageImpl* address(const at::Tensor& tensor) {
  return tensor.storage().unsafeGetStorageImpl();
}

bool is_number(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

bool is_same_view(const Slot& slot, const at::Tensor& tensor) {
  return slot.offset == tensor.storage_offset() && slot.dtype == tensor.scalar_type() &&
         slot.is_wrapped_number == is_number(tensor) && tensor.sizes() == slot.sizes &&
         tensor.strides() == slot.strides;
}

}  // namespace

SlotId SlotTable::find(const at::Tensor& tensor) const {
  const auto known = storages_.find(address(tensor));
  if (known != storages_.end()) {
    for (const SlotId slot : known->second.slots) {
      if (is_same_view(slots_[static_cast<size_t>(slot)], tensor)) {
        return slot;
      }
    }
  }
  return kNoTensor;
}

KnownStorage* SlotTable::find_storage(const at::Tensor& tensor) {
  const auto known = storages_.find(address(tensor));
  return known == storages_.end() ? nullptr : &known->second;
}

KnownStorage& SlotTable::storage_of(SlotId slot) {
  const int32_t id = slots_[static_cast<size_t>(slot)].storage;
  return storages_.at(by_id_[static_cast<size_t>(id)]);
}

SlotId SlotTable::add(SlotKind kind, const at::Tensor& tensor, std::string name) {
  const auto [entry, is_new] = storages_.try_emplace(address(tensor), tensor.storage());
  KnownStorage& known = entry->second;
  if (is_new) {
    known.id = static_cast<int32_t>(by_id_.size());
    known.kind = kind;
    known.varies = kind == SlotKind::Input || kind == SlotKind::Captured;
    by_id_.push_back(entry->first);
  }
  const auto id = static_cast<SlotId>(slots_.size());
  known.slots.push_back(id);
  Slot slot;
  slot.kind = kind;
  slot.name = std::move(name);
  slot.dtype = tensor.scalar_type();
  slot.sizes = tensor.sizes().vec();
  slot.strides = tensor.strides().vec();
  slot.offset = tensor.storage_offset();
  slot.storage = known.id;
  slot.is_wrapped_number = is_number(tensor);
  slot.device = tensor.device();
  slots_.push_back(std::move(slot));
  return id;
}

at::Tensor untracked_alias(const at::Tensor& tensor) {
  return at::Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(
      c10::VariableVersion(0), /*allow_tensor_metadata_change=*/true));
}

}  // namespace rondo
