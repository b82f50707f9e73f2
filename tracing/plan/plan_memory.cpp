#include "tracing/plan/plan_memory.h"

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

void refuse_other_devices(const StepProgram& program) {
  for (const Slot& slot : program.slots) {
    if (!slot.device.is_cpu()) {
      throw NotSupportedError("step " + program.name + " has a tensor " + to_text(slot) +
                              "; a plan's tensors are on the CPU");
    }
  }
}

// All of it: views that a plan lays over it may reach behind the tensor that it came with.
c10::DataPtr copy_of(const c10::Storage& storage) {
  c10::DataPtr copy = c10::GetCPUAllocator()->allocate(storage.nbytes());
  if (storage.nbytes() > 0) {
    std::memcpy(copy.get(), storage.data(), storage.nbytes());
  }
  return copy;
}

std::string describe_layout(const at::Tensor& tensor) {
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
    : homes_(homes),
      arena_(arena_bytes),
      place_([this, offsets](size_t storage, int64_t) { return arena_.part(offsets[storage]); }) {
  make_tensors(program);
}

PlanMemory::PlanMemory(const StepProgram& program,
                       const std::vector<Home>& homes,
                       PlaceStorage place)
    : homes_(homes), arena_(0), place_(std::move(place)) {
  make_tensors(program);
}

void PlanMemory::make_tensors(const StepProgram& program) {
  refuse_other_devices(program);
  bytes_ = bytes_of_storages(program);
  storages_.resize(bytes_.size());
  shifts_.resize(bytes_.size(), 0);
  bases_.resize(bytes_.size(), nullptr);
  for (const Slot& slot : program.slots) {
    if (slot.value.defined()) {
      take_outside(slot);
    }
  }
  for (size_t id = 0; id < bytes_.size(); ++id) {
    if (storages_[id]) {
      continue;
    }
    storages_[id] = fixed_storage(bytes_[id]);
    if (homes_[id] == Home::Arena) {
      place_in_arena(id);
    }
  }
  for (const Slot& slot : program.slots) {
    places_.push_back({static_cast<size_t>(slot.storage), slot.offset * item_size(slot)});
    layouts_.push_back(layout_of(slot));
    tensors_.push_back(slot.value.defined() ? slot.value : make_tensor(slot, layouts_.back()));
  }
}

// Each storage holds the arena: a tensor that outlives the plan stays readable.
void PlanMemory::place_in_arena(size_t storage) {
  c10::DataPtr memory = place_(storage, bytes_[storage]);
  bases_[storage] = static_cast<char*>(memory.get());
  storages_[storage].set_data_ptr_noswap(std::move(memory));
}

// A constant of a file is a copy: it begins elsewhere in its storage than what was recorded.
void PlanMemory::take_outside(const Slot& slot) {
  const auto id = static_cast<size_t>(slot.storage);
  if (!storages_[id]) {
    storages_[id] = slot.value.storage();
    bytes_[id] = static_cast<int64_t>(storages_[id].nbytes());
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
  const bool fits = tensor.scalar_type() == planned.scalar_type() &&
                    tensor.sizes() == planned.sizes() && tensor.strides() == planned.strides() &&
                    tensor.storage_offset() == planned.storage_offset() &&
                    storage.nbytes() >= planned.storage().nbytes();
  if (!fits) {
    throw CaptureError(
        "an operator returned another shape or order of elements than when the step was "
        "captured: " +
        operator_name(from) + " gave " + describe_layout(tensor) + ", captured as " +
        describe_layout(planned));
  }
  c10::DataPtr memory =
      storage.use_count() > 1 ? copy_of(storage) : std::move(compat::mutable_data_ptr(storage));
  bases_[place.storage] = static_cast<char*>(memory.get());
  storages_[place.storage].set_data_ptr_noswap(std::move(memory));
}

bool PlanMemory::is_as_planned(SlotId slot) const {
  const size_t storage = places_[static_cast<size_t>(slot)].storage;
  const Layout& layout = layouts_[static_cast<size_t>(slot)];
  const at::Tensor& tensor = tensors_[static_cast<size_t>(slot)];
  return tensor.storage().unsafeGetStorageImpl() == layout.storage.unsafeGetStorageImpl() &&
         tensor.scalar_type() == layout.dtype && tensor.sizes() == layout.sizes &&
         tensor.strides() == layout.strides && tensor.storage_offset() == layout.offset &&
         has_its_memory(storage);
}

bool PlanMemory::has_its_memory(size_t storage) const {
  return storages_[storage].data() == bases_[storage] - shifts_[storage] &&
         static_cast<int64_t>(storages_[storage].nbytes()) == bytes_[storage];
}

void PlanMemory::put_back(SlotId slot) const {
  const size_t storage = places_[static_cast<size_t>(slot)].storage;
  const Layout& layout = layouts_[static_cast<size_t>(slot)];
  c10::TensorImpl* const tensor = tensors_[static_cast<size_t>(slot)].unsafeGetTensorImpl();
  put_back_memory(storage);
  tensor->set_storage_and_dtype(layout.storage, c10::scalarTypeToTypeMeta(layout.dtype));
  tensor->set_sizes_and_strides(layout.sizes, layout.strides, layout.offset);
}

void PlanMemory::put_back_memory(size_t storage) const {
  if (has_its_memory(storage)) {
    return;
  }
  if (homes_[storage] == Home::Arena) {
    storages_[storage].set_data_ptr_noswap(place_(storage, bytes_[storage]));
  } else if (homes_[storage] == Home::Batch) {
    storages_[storage].set_data_ptr_noswap(c10::DataPtr(bases_[storage], c10::kCPU));
  } else {
    throw CaptureError("an operator replaced the memory of a tensor that it was given");
  }
  storages_[storage].set_nbytes(static_cast<size_t>(bytes_[storage]));
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

PlanMemory::Layout PlanMemory::layout_of(const Slot& slot) const {
  if (slot.value.defined()) {
    return {slot.value.scalar_type(),
            slot.value.sizes().vec(),
            slot.value.strides().vec(),
            slot.value.storage_offset(),
            slot.value.storage()};
  }
  const auto id = static_cast<size_t>(slot.storage);
  const int64_t offset = slot.offset + shifts_[id] / item_size(slot);
  return {slot.dtype, slot.sizes, slot.strides, offset, storages_[id]};
}

at::Tensor PlanMemory::make_tensor(const Slot& slot, const Layout& layout) {
  at::Tensor tensor =
      at::detail::make_tensor<c10::TensorImpl>(c10::Storage(layout.storage),
                                               c10::DispatchKeySet(c10::DispatchKey::CPU),
                                               c10::scalarTypeToTypeMeta(layout.dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(layout.sizes, layout.strides, layout.offset);
  if (slot.is_wrapped_number) {
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
  return tensor;
}

}  // namespace rondo
