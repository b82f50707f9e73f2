#include "tracing/recording/frozen_tensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>

#include <atomic>

#include "core/random.h"
#include "tracing/recording/tensor_rules.h"
#include "tracing/recording/unrecorded.h"

namespace rondo {

namespace {

at::Tensor all_bytes(const c10::Storage& storage) {
  return at::empty({0}, at::TensorOptions(at::kByte).device(storage.device())).set_(storage);
}

int64_t next_pattern() {
  constexpr uint64_t kNoSmallNumbers = 0x8080808080808080;  // and no flags
  static std::atomic<uint64_t> recordings{0};
  return static_cast<int64_t>(KeyedRandom(++recordings).next() | kNoSmallNumbers);
}

/// Memory as whole words, and the bytes after them.
struct Words {
  at::Tensor whole;
  at::Tensor rest;

  explicit Words(const c10::Storage& storage) {
    const auto size = static_cast<int64_t>(storage.nbytes());
    constexpr int64_t kWord = sizeof(int64_t);
    whole = at::empty({0}, at::TensorOptions(at::kLong).device(storage.device()))
                .set_(storage, 0, {size / kWord}, {1});
    rest = all_bytes(storage).narrow(0, size - size % kWord, size % kWord);
  }

  /// What `rest` is when it is like the words of this number.
  at::Tensor rest_of(int64_t word) const {
    return at::full({1}, word, at::kLong).view(at::kByte).narrow(0, 0, rest.numel());
  }

  bool rest_is(int64_t word) const { return at::equal(rest.to(at::kCPU), rest_of(word)); }
};

}  // namespace

FrozenTensors::FrozenTensors(StepProgram& program, SlotTable& table)
    : program_(program), table_(table), fresh_(next_pattern()) {}

void FrozenTensors::mark_fresh(const at::Tensor& tensor) const {
  const Unrecorded scope;
  const Words words(tensor.storage());
  words.whole.fill_(fresh_);
  words.rest.copy_(words.rest_of(fresh_));
}

bool FrozenTensors::is_fresh(const KnownStorage& known) const {
  const Unrecorded scope;
  const Words words(known.unwritten);
  return words.rest_is(fresh_) && words.whole.eq(fresh_).all().item<bool>();
}

/// What nobody wrote becomes zeros.
void FrozenTensors::clear_fresh(const c10::Storage& storage) const {
  const Words words(storage);
  words.whole.masked_fill_(words.whole.eq(fresh_), 0);
  if (words.rest_is(fresh_)) {
    words.rest.zero_();
  }
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
  const at::Tensor known_bytes = bytes.clone();
  clear_fresh(known_bytes.storage());
  const SlotId constant = freeze(known_bytes);
  Instruction& allocation = program_.instructions[known.allocation];
  allocation.op = operator_named("aten::clone");
  allocation.arguments = {Argument::tensor_of(constant), Argument::constant_of(c10::IValue())};
  allocation.is_allocation = false;
  known.unwritten = c10::Storage();
}

}  // namespace rondo
