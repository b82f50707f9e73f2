#include "tracing/checks/state_snapshot.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>

#include "backends/generator_state.h"
#include "core/state_dict.h"
#include "core/torch_compat.h"
#include "tracing/checks/equal_numbers.h"

namespace rondo {

namespace {

at::Tensor bytes_of(const c10::Storage& storage) {
  return at::from_blob(compat::mutable_data(storage),
                       {static_cast<int64_t>(storage.nbytes())},
                       at::TensorOptions(at::kByte).device(storage.device()));
}

// In pieces, so that it needs no third copy.
void exchange(const at::Tensor& bytes, const at::Tensor& other) {
  constexpr int64_t kPiece = int64_t{1} << 20;
  for (int64_t begin = 0; begin < bytes.numel(); begin += kPiece) {
    const int64_t size = std::min(kPiece, bytes.numel() - begin);
    const at::Tensor piece = bytes.narrow(0, begin, size);
    const at::Tensor before = piece.clone();
    piece.copy_(other.narrow(0, begin, size));
    other.narrow(0, begin, size).copy_(before);
  }
}

}  // namespace

StateSnapshot::StateSnapshot(const CapturedState& state, const Batch& batch) {
  add_generator(c10::kCPU);
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
    add_generator(tensor.device());
  }
}

void StateSnapshot::add_generator(c10::Device device) {
  const bool is_known = std::any_of(generators_.begin(),
                                    generators_.end(),
                                    [&](const Generator& known) { return known.device == device; });
  if (!is_known) {
    generators_.push_back({device, generator_state(device)});
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
    copy.bytes.copy_(bytes_of(copy.storage));
  }
  for (Generator& generator : generators_) {
    generator.state = generator_state(generator.device);
  }
  return true;
}

void StateSnapshot::swap() {
  for (Copy& copy : copies_) {
    if (!has_its_size(copy)) {
      continue;
    }
    const at::Tensor live = bytes_of(copy.storage);
    if (!at::equal(live, copy.bytes)) {  // the memory of a batch can be read-only
      exchange(live, copy.bytes);
    }
  }
  for (Generator& generator : generators_) {
    const at::Tensor now = generator_state(generator.device);
    set_generator_state(std::exchange(generator.state, now), generator.device);
  }
}

std::string StateSnapshot::first_difference() const {
  for (const auto& [name, tensor] : tensors_) {
    const at::Tensor& bytes = find(tensor)->bytes;
    const at::Tensor copy =
        at::from_blob(bytes.data_ptr<uint8_t>() + tensor.storage_offset() * tensor.element_size(),
                      tensor.sizes(),
                      tensor.strides(),
                      tensor.options());
    if (!equal_numbers(copy, tensor)) {
      return name;
    }
  }
  const auto has_gone_on = [](const Generator& generator) {
    return !equal_bytes(generator.state, generator_state(generator.device));
  };
  return std::any_of(generators_.begin(), generators_.end(), has_gone_on)
             ? "the random number generator"
             : "";
}

std::vector<StateSnapshot::Copy>::const_iterator StateSnapshot::find(
    const at::Tensor& tensor) const {
  return std::find_if(copies_.begin(), copies_.end(), [&](const Copy& copy) {
    return copy.storage.is_alias_of(tensor.storage());
  });
}

}  // namespace rondo
