#include "tracing/recording/frozen_tensors.h"

#include <ATen/ops/empty.h>

#include <atomic>

#include "tracing/recording/tensor_rules.h"
#include "tracing/recording/unrecorded.h"

namespace rondo {

namespace {

at::Tensor all_bytes(const c10::Storage& storage) {
  return at::empty({0}, at::TensorOptions(at::kByte).device(storage.device())).set_(storage);
}

uint8_t next_fresh_byte() {
  static std::atomic<uint8_t> recordings{0};
  constexpr uint8_t kSteps[] = {0xA5, 0x5A};
  return kSteps[recordings++ % 2];
}

}  // namespace

FrozenTensors::FrozenTensors(StepProgram& program, SlotTable& table)
    : program_(program), table_(table), fresh_byte_(next_fresh_byte()) {}

void FrozenTensors::mark_fresh(const at::Tensor& tensor) const {
  const Unrecorded scope;
  all_bytes(tensor.storage()).fill_(fresh_byte_);
}

bool FrozenTensors::is_fresh(const KnownStorage& known) const {
  const Unrecorded scope;
  return all_bytes(known.unwritten).eq(fresh_byte_).all().item<bool>();
}

SlotId FrozenTensors::freeze(const at::Tensor& tensor) {
  const Unrecorded scope;
  object_to_part_of_large(tensor);
  const SlotId slot = table_.add(SlotKind::Constant, tensor);
  at::Tensor& frozen = table_.storage_of(slot).frozen;
  if (!frozen.defined()) {
    frozen = all_bytes(tensor.storage()).clone();
  }
  at::Tensor value =
      at::empty({0}, tensor.options())
          .set_(frozen.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
    value.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
  program_.slots[static_cast<size_t>(slot)].value = value;
  if (tensor.numel() == 1) {
    numbers_.emplace_back(tensor, value);
  }
  return slot;
}

void FrozenTensors::freeze_allocation(KnownStorage& known) {
  const Unrecorded scope;
  const SlotId root = known.slots[0];
  const Slot slot = program_.slots[static_cast<size_t>(root)];
  const at::Tensor bytes = at::empty({0}, at::TensorOptions(slot.dtype).device(slot.device))
                               .set_(known.unwritten, slot.offset, slot.sizes, slot.strides);
  const SlotId constant = freeze(bytes.clone());
  Instruction& allocation = program_.instructions[known.allocation];
  allocation.op = operator_named("aten::clone");
  allocation.arguments = {Argument::tensor_of(constant), Argument::constant_of(c10::IValue())};
  allocation.is_allocation = false;
  known.unwritten = c10::Storage();
}

}  // namespace rondo
