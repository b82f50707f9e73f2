#include "tracing/recording/shared_memory.h"

#include <algorithm>
#include <set>

#include "tracing/recording/objection.h"

namespace rondo {

void SharedMemory::add_input(SlotId slot, const at::Tensor& tensor) {
  inputs_.emplace_back(slot, tensor.storage());
}

void SharedMemory::add_state(const std::string& name, SlotId slot, const at::Tensor& tensor) {
  const auto [begin, end] = bytes_of(slot, tensor.storage());
  for (const auto& [input, memory] : inputs_) {
    const auto [input_begin, input_end] = bytes_of(input, memory);
    if (std::max(begin, input_begin) < std::min(end, input_end)) {
      shared_.push_back({name, slot, input});
    }
  }
}

void SharedMemory::add_input_of_state(const std::string& name, SlotId input) {
  shared_.push_back({name, input, input});
}

void SharedMemory::object_to_writes() const {
  std::set<int32_t> written;
  for (const Instruction& instruction : program_.instructions) {
    for (const SlotId slot : instruction.writes) {
      written.insert(slot_at(slot).storage);
    }
  }
  for (const Shared& shared : shared_) {
    const Slot& input = slot_at(shared.input);
    if (written.count(slot_at(shared.slot).storage) + written.count(input.storage) > 0) {
      throw Objection{"wrote state " + shared.state + " and batch entry " + input.name +
                          ", which share memory,",
                      "let the data set copy what it takes from the state"};
    }
  }
}

std::pair<const char*, const char*> SharedMemory::bytes_of(SlotId id,
                                                           const c10::Storage& in) const {
  const Slot& slot = slot_at(id);
  const auto* const start = static_cast<const char*>(in.data());
  const int64_t begin = slot.offset * static_cast<int64_t>(c10::elementSize(slot.dtype));
  return {start + begin, start + extent_of(slot)};
}

}  // namespace rondo
