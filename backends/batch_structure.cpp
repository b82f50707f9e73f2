#include "backends/batch_structure.h"

#include <ATen/core/Tensor.h>

namespace rondo {

namespace {

const at::Tensor& tensor_at(const Batch& batch, size_t index) {
  return batch.items()[index].second;
}

// The first entry that lies in the same storage; `index` itself when none before does.
size_t first_sharing(const Batch& batch, size_t index) {
  size_t first = 0;
  while (!tensor_at(batch, first).is_alias_of(tensor_at(batch, index))) {
    ++first;
  }
  return first;
}

int64_t byte_offset(const at::Tensor& tensor) {
  return tensor.storage_offset() * static_cast<int64_t>(tensor.element_size());
}

int64_t distance_between(const Batch& batch, size_t first, size_t index) {
  return byte_offset(tensor_at(batch, index)) - byte_offset(tensor_at(batch, first));
}

}  // namespace

BatchStructure::BatchStructure(const Batch& batch) {
  for (size_t i = 0; i < batch.items().size(); ++i) {
    const auto& [name, tensor] = batch.items()[i];
    Entry entry;
    entry.name = name;
    entry.dtype = tensor.scalar_type();
    entry.device = tensor.device();
    entry.sizes = tensor.sizes().vec();
    entry.strides = tensor.strides().vec();
    entry.shares_with = first_sharing(batch, i);
    entry.distance = distance_between(batch, entry.shares_with, i);
    entries_.push_back(std::move(entry));
  }
}

bool BatchStructure::matches(const Batch& batch) const {
  if (batch.items().size() != entries_.size()) {
    return false;
  }
  for (size_t i = 0; i < entries_.size(); ++i) {
    const auto& [name, tensor] = batch.items()[i];
    const Entry& entry = entries_[i];
    const bool is_equal = name == entry.name && tensor.scalar_type() == entry.dtype &&
                          tensor.device() == entry.device && tensor.sizes() == entry.sizes &&
                          tensor.strides() == entry.strides;
    if (!is_equal || first_sharing(batch, i) != entry.shares_with ||
        distance_between(batch, entry.shares_with, i) != entry.distance) {
      return false;
    }
  }
  return true;
}

std::string BatchStructure::to_string() const {
  std::string text;
  for (const Entry& entry : entries_) {
    text += (text.empty() ? "" : ", ") + entry.name + " " + at::toString(entry.dtype) + "[";
    for (size_t i = 0; i < entry.sizes.size(); ++i) {
      text += (i == 0 ? "" : ", ") + std::to_string(entry.sizes[i]);
    }
    text += "]";
  }
  return text;
}

}  // namespace rondo
