#include "backends/plan/plan_memory.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <c10/core/CPUAllocator.h>
#include <c10/core/TensorImpl.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "core/torch_compat.h"

namespace rondo {

namespace {

int64_t item_size(const Slot& slot) {
  return static_cast<int64_t>(c10::elementSize(slot.dtype));
}

c10::Storage fixed_storage(int64_t bytes) {
  return c10::Storage(c10::Storage::use_byte_size_t(),
                      static_cast<size_t>(bytes),
                      c10::DataPtr(nullptr, c10::kCPU),
                      /*allocator=*/nullptr,
                      /*resizable=*/false);
}

// All of it: views that a plan lays over it may reach behind the tensor that it came with.
c10::DataPtr copy_of(const c10::Storage& storage) {
  c10::DataPtr copy = c10::GetCPUAllocator()->allocate(storage.nbytes());
  if (storage.nbytes() > 0) {
    std::memcpy(copy.get(), storage.data(), storage.nbytes());
  }
  return copy;
}

std::string layout_of(const at::Tensor& tensor) {
  return fmt::format("{}[{}] with strides [{}], from element {} of {} bytes on",
                     at::toString(tensor.scalar_type()),
                     fmt::join(tensor.sizes(), ", "),
                     fmt::join(tensor.strides(), ", "),
                     tensor.storage_offset(),
                     tensor.storage().nbytes());
}

}  // namespace

PlanMemory::PlanMemory(const StepProgram& program,
                       const std::vector<Home>& homes,
                       const std::vector<int64_t>& offsets,
                       int64_t arena_bytes)
    : homes_(homes), arena_(arena_bytes) {
  const std::vector<int64_t> bytes = bytes_of_storages(program);
  storages_.resize(bytes.size());
  shifts_.resize(bytes.size(), 0);
  bases_.resize(bytes.size(), nullptr);
  for (const Slot& slot : program.slots) {
    if (slot.value.defined()) {
      take_outside(slot);
    }
  }
  for (size_t id = 0; id < bytes.size(); ++id) {
    if (storages_[id]) {
      continue;
    }
    storages_[id] = fixed_storage(bytes[id]);
    if (homes[id] == Home::Arena) {
      place_in_arena(id, offsets[id]);
    }
  }
  for (const Slot& slot : program.slots) {
    places_.push_back({static_cast<size_t>(slot.storage), slot.offset * item_size(slot)});
    tensors_.push_back(slot.value.defined() ? slot.value : make_tensor(slot));
  }
}

// Each storage holds the arena: a tensor that outlives the plan stays readable.
void PlanMemory::place_in_arena(size_t storage, int64_t offset) {
  bases_[storage] = arena_.data() + offset;
  storages_[storage].set_data_ptr_noswap(arena_.part(offset));
}

// A constant of a file is a copy: it begins elsewhere in its storage than what was recorded.
void PlanMemory::take_outside(const Slot& slot) {
  const auto id = static_cast<size_t>(slot.storage);
  if (!storages_[id]) {
    storages_[id] = slot.value.storage();
    shifts_[id] = (slot.value.storage_offset() - slot.offset) * item_size(slot);
    bases_[id] = static_cast<char*>(compat::mutable_data(storages_[id])) + shifts_[id];
  }
}

const at::Tensor& PlanMemory::tensor(SlotId slot) const {
  static const at::Tensor none;
  return slot == kNoTensor ? none : tensors_[static_cast<size_t>(slot)];
}

Operand PlanMemory::operand(SlotId slot) const {
  const Place& place = places_[static_cast<size_t>(slot)];
  return {&bases_[place.storage], place.offset};
}

Home PlanMemory::home(SlotId slot) const {
  return homes_[places_[static_cast<size_t>(slot)].storage];
}

void PlanMemory::bind(SlotId slot, const void* elements) {
  const Place& place = places_[static_cast<size_t>(slot)];
  char* const base = const_cast<char*>(static_cast<const char*>(elements)) - place.offset;
  if (base != bases_[place.storage]) {
    bases_[place.storage] = base;
    storages_[place.storage].set_data_ptr_noswap(c10::DataPtr(base, c10::kCPU));
  }
}

void PlanMemory::adopt(SlotId slot, const at::Tensor& tensor, const c10::OperatorHandle& from) {
  const Place& place = places_[static_cast<size_t>(slot)];
  const at::Tensor& planned = this->tensor(slot);
  const c10::Storage& storage = tensor.storage();
  const bool is_as_planned = tensor.sizes() == planned.sizes() &&
                             tensor.strides() == planned.strides() &&
                             tensor.storage_offset() == planned.storage_offset() &&
                             storage.nbytes() >= planned.storage().nbytes();
  if (!is_as_planned) {
    throw CaptureError(
        "an operator returned another shape or order of elements than when the step was "
        "captured: " +
        operator_name(from) + " gave " + layout_of(tensor) + ", captured as " + layout_of(planned));
  }
  c10::DataPtr memory =
      storage.use_count() > 1 ? copy_of(storage) : std::move(compat::mutable_data_ptr(storage));
  bases_[place.storage] = static_cast<char*>(memory.get());
  storages_[place.storage].set_data_ptr_noswap(std::move(memory));
}

void PlanMemory::release(SlotId slot) {
  const size_t storage = places_[static_cast<size_t>(slot)].storage;
  storages_[storage].set_data_ptr_noswap(c10::DataPtr(nullptr, c10::kCPU));
  bases_[storage] = nullptr;
}

void PlanMemory::fill(int byte) {
  if (arena_bytes() > 0) {
    std::memset(arena_.data(), byte, static_cast<size_t>(arena_bytes()));
  }
}

at::Tensor PlanMemory::make_tensor(const Slot& slot) const {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storages_[static_cast<size_t>(slot.storage)]),
      c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(slot.dtype));
  const int64_t shift = shifts_[static_cast<size_t>(slot.storage)] / item_size(slot);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(
      slot.sizes, slot.strides, slot.offset + shift);
  if (slot.is_wrapped_number) {
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
  return tensor;
}

}  // namespace rondo
