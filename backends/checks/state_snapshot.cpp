#include "backends/checks/state_snapshot.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include "backends/generator_state.h"
#include "core/state_dict.h"
#include "core/torch_compat.h"

namespace rondo {

namespace {

at::Tensor bytes_of(const c10::Storage& storage) {
  return at::from_blob(
      compat::mutable_data(storage), {static_cast<int64_t>(storage.nbytes())}, at::kByte);
}

}  // namespace

StateSnapshot::StateSnapshot(const CapturedState& state, const Batch& batch)
    : generator_(generator_state()) {
  for (const auto& [name, tensor] : state) {
    add(name, tensor);
  }
  for (const auto& [name, tensor] : batch.items()) {
    add("batch entry " + name, tensor);
  }
}

bool StateSnapshot::has_its_size(const Copy& copy) {
  return copy.storage.nbytes() == copy.bytes.nbytes();
}

void StateSnapshot::add(const std::string& name, const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage() || tensor.storage().nbytes() == 0) {
    return;
  }
  tensors_.emplace_back(name, tensor.detach());
  if (find(tensor) == copies_.end()) {
    copies_.push_back({tensor.storage(), bytes_of(tensor.storage()).clone()});
  }
}

bool StateSnapshot::retake(const CapturedState& state) {
  for (const auto& [name, tensor] : state) {
    const bool has_bytes =
        tensor.defined() && tensor.has_storage() && tensor.storage().nbytes() > 0;
    if (has_bytes && find(tensor) == copies_.end()) {
      return false;
    }
  }
  if (!std::all_of(copies_.begin(), copies_.end(), has_its_size)) {
    return false;
  }
  for (Copy& copy : copies_) {
    const at::Tensor live = bytes_of(copy.storage);
    std::memcpy(copy.bytes.data_ptr(), live.data_ptr(), live.nbytes());
  }
  generator_ = generator_state();
  return true;
}

void StateSnapshot::swap() {
  for (Copy& copy : copies_) {
    if (!has_its_size(copy)) {
      continue;
    }
    const at::Tensor live = bytes_of(copy.storage);
    const auto size = static_cast<size_t>(live.numel());
    auto* const bytes = live.data_ptr<uint8_t>();
    auto* const other = copy.bytes.data_ptr<uint8_t>();
    if (std::memcmp(bytes, other, size) != 0) {  // a batch may lie in memory that is read-only
      std::swap_ranges(bytes, bytes + size, other);
    }
  }
  const at::Tensor now = generator_state();
  set_generator_state(std::exchange(generator_, now));
}

std::string StateSnapshot::first_difference() const {
  for (const auto& [name, tensor] : tensors_) {
    const at::Tensor& bytes = find(tensor)->bytes;
    const at::Tensor copy =
        at::from_blob(bytes.data_ptr<uint8_t>() + tensor.storage_offset() * tensor.element_size(),
                      tensor.sizes(),
                      tensor.strides(),
                      tensor.options());
    if (!equal_bytes(copy, tensor)) {
      return name;
    }
  }
  return equal_bytes(generator_, generator_state()) ? "" : "the random number generator";
}

std::vector<StateSnapshot::Copy>::const_iterator StateSnapshot::find(
    const at::Tensor& tensor) const {
  return std::find_if(copies_.begin(), copies_.end(), [&](const Copy& copy) {
    return copy.storage.is_alias_of(tensor.storage());
  });
}

}  // namespace rondo
