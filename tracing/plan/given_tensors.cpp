#include "tracing/plan/given_tensors.h"

#include <algorithm>

namespace rondo {

GivenTensors::GivenTensors(const Instruction& instruction, const PlanMemory& memory)
    : memory_(memory) {
  const auto add = [this](SlotId slot) { slots_.push_back(slot); };
  for_each_slot(instruction.arguments, add);
  for_each_slot(instruction.results, add);
  std::sort(slots_.begin(), slots_.end());
  slots_.erase(std::unique(slots_.begin(), slots_.end()), slots_.end());
}

bool GivenTensors::put_back() const {
  bool were_kept = true;
  for (const SlotId slot : slots_) {
    if (!memory_.is_as_planned(slot)) {
      memory_.put_back(slot);
      were_kept = false;
    }
  }
  return were_kept;
}

FixedStorages::FixedStorages(const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
    if (storage->resizable()) {
      storage->set_resizable(false);
      storages_.push_back(tensor.storage());
    }
  }
}

FixedStorages::~FixedStorages() {
  for (const c10::Storage& storage : storages_) {
    storage.unsafeGetStorageImpl()->set_resizable(true);
  }
}

}  // namespace rondo
