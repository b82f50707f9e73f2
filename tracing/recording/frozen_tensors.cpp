#include "tracing/recording/frozen_tensors.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "tracing/recording/tensor_rules.h"
#include "tracing/recording/unrecorded.h"

namespace rondo {

namespace {

at::Tensor all_bytes(const c10::Storage& storage) {
  return at::empty({0}, at::TensorOptions(at::kByte).device(storage.device())).set_(storage);
}

/// Source: SplitMix64.
uint64_t next_pattern() {
  static std::atomic<uint64_t> recordings{0};
  uint64_t bits = ++recordings * 0x9E3779B97F4A7C15ULL;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBULL;
  return (bits ^ (bits >> 31)) | 0x8080808080808080ULL;  // no flags and no small numbers
}

constexpr int64_t kWord = sizeof(uint64_t);

/// Calls `change(bytes, count)` for pieces of the memory, which begin at whole words. On another
/// device with copies, which are written back.
/// \return false as soon as a call does
template <class Change>
bool in_pieces(const at::Tensor& bytes, const Change& change) {
  constexpr int64_t kPiece = int64_t{1} << 20;
  const bool is_here = bytes.device().is_cpu();
  for (int64_t at = 0; at < bytes.numel(); at += kPiece) {
    const at::Tensor piece = bytes.narrow(0, at, std::min(kPiece, bytes.numel() - at));
    const at::Tensor here = is_here ? piece : piece.to(at::kCPU);
    if (!change(here.data_ptr<uint8_t>(), here.numel())) {
      return false;
    }
    if (!is_here) {
      piece.copy_(here);
    }
  }
  return true;
}

bool is_pattern(const uint8_t* bytes, int64_t count, uint64_t pattern) {
  return std::memcmp(bytes, &pattern, static_cast<size_t>(std::min(count, kWord))) == 0;
}

}  // namespace

FrozenTensors::FrozenTensors(StepProgram& program, SlotTable& table)
    : program_(program), table_(table), fresh_(next_pattern()) {}

void FrozenTensors::mark_fresh(const at::Tensor& tensor) const {
  const Unrecorded scope;
  in_pieces(all_bytes(tensor.storage()), [&](uint8_t* bytes, int64_t count) {
    for (int64_t at = 0; at < count; at += kWord) {
      std::memcpy(bytes + at, &fresh_, static_cast<size_t>(std::min(count - at, kWord)));
    }
    return true;
  });
}

bool FrozenTensors::is_fresh(const KnownStorage& known) const {
  const Unrecorded scope;
  return in_pieces(all_bytes(known.unwritten), [&](const uint8_t* bytes, int64_t count) {
    int64_t at = 0;
    while (at < count && is_pattern(bytes + at, count - at, fresh_)) {
      at += kWord;
    }
    return at >= count;
  });
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
  in_pieces(all_bytes(known_bytes.storage()), [&](uint8_t* at, int64_t count) {
    for (; count > 0; at += kWord, count -= kWord) {
      if (is_pattern(at, count, fresh_)) {
        std::memset(at, 0, static_cast<size_t>(std::min(count, kWord)));
      }
    }
    return true;
  });
  const SlotId constant = freeze(known_bytes);
  Instruction& allocation = program_.instructions[known.allocation];
  allocation.op = operator_named("aten::clone");
  allocation.arguments = {Argument::tensor_of(constant), Argument::constant_of(c10::IValue())};
  allocation.is_allocation = false;
  known.unwritten = c10::Storage();
}

}  // namespace rondo
