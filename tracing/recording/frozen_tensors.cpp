#include "tracing/recording/frozen_tensors.h"

#include <ATen/ops/empty.h>

#include "tracing/recording/tensor_rules.h"
#include "tracing/recording/unrecorded.h"

namespace rondo {

SlotId FrozenTensors::freeze(const at::Tensor& tensor) {
  const Unrecorded scope;
  object_to_part_of_large(tensor);
  const SlotId slot = table_.add(SlotKind::Constant, tensor);
  at::Tensor& frozen = table_.storage_of(slot).frozen;
  if (!frozen.defined()) {
    frozen = at::empty({0}, tensor.options().dtype(at::kByte)).set_(tensor.storage()).clone();
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
