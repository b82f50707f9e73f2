#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracing/program/step_program.h"

namespace rondo {

/// A storage that the step has met. A weak reference keeps its address from being given to another
/// one, but not its bytes: a step that is recorded needs no more memory than one that is not.
struct KnownStorage {
  c10::weak_intrusive_ptr<c10::StorageImpl> address;
  int32_t id = 0;
  SlotKind kind = SlotKind::Produced;
  std::vector<SlotId> slots;  ///< the first one is how it was met
  c10::Storage unwritten;     ///< fresh memory, held until a recorded instruction writes it
  size_t allocation = 0;      ///< the instruction that made it, where `unwritten`
  at::Tensor frozen;          ///< uint8: a copy of all of it, where constants lie in it
  /// Its bytes may differ from step to step: the batch, the state, random numbers, and what follows
  /// from such. False: they follow from numbers of the host alone, which may be shapes.
  bool varies = false;

  explicit KnownStorage(const c10::Storage& storage) : address(storage.getWeakStorageImpl()) {}
};

/// Tells which slot a tensor is while a step is recorded. Two tensors are one slot when they see
/// the same bytes in the same way: storage, offset, sizes, strides, dtype, and whether they count
/// as a host number in type promotion (a flag that LibTorch sets after the tensor was made).
class SlotTable {
 public:
  explicit SlotTable(std::vector<Slot>& slots) : slots_(slots) {}

  /// The slot of a tensor, or kNoTensor when it is not known.
  SlotId find(const at::Tensor& tensor) const;

  /// The storage of a tensor, or null when it is not known.
  KnownStorage* find_storage(const at::Tensor& tensor);

  KnownStorage& storage_of(SlotId slot);

  /// Adds a slot for a tensor that is not known; its storage takes `kind` when it is new.
  SlotId add(SlotKind kind, const at::Tensor& tensor, std::string name = "");

  int32_t storages() const { return static_cast<int32_t>(storages_.size()); }

 private:
  std::vector<Slot>& slots_;
  std::unordered_map<const c10::StorageImpl*, KnownStorage> storages_;
  std::vector<const c10::StorageImpl*> by_id_;
};

/// A new tensor over the same bytes that does not count as a user of the first (autograd asks how
/// many there are before it takes a gradient over) and leaves no trace in a recording.
at::Tensor untracked_alias(const at::Tensor& tensor);

}  // namespace rondo
