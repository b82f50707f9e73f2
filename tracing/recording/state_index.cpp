#include "tracing/recording/state_index.h"

#include "tracing/recording/slot_table.h"

namespace rondo {

namespace {

bool is_same_view(const at::Tensor& a, const at::Tensor& b) {
  return a.storage_offset() == b.storage_offset() && a.scalar_type() == b.scalar_type() &&
         a.sizes() == b.sizes() && a.strides() == b.strides();
}

}  // namespace

StateIndex::StateIndex(std::function<CapturedState()> provide) : provide_(std::move(provide)) {
  refresh();
}

std::optional<std::pair<std::string, at::Tensor>> StateIndex::find(const at::Tensor& tensor) {
  const std::pair<std::string, at::Tensor>* entry = same_view(tensor);
  if (entry == nullptr) {
    refresh();
    entry = same_view(tensor);
  }
  if (entry != nullptr) {
    return *entry;
  }
  const auto entries = by_storage_.find(tensor.storage().unsafeGetStorageImpl());
  if (entries == by_storage_.end()) {
    return std::nullopt;
  }
  return std::pair("view of " + state_[entries->second[0]].first, untracked_alias(tensor));
}

void StateIndex::refresh() {
  state_ = provide_();
  by_storage_.clear();
  for (size_t i = 0; i < state_.size(); ++i) {
    const at::Tensor& tensor = state_[i].second;
    if (tensor.defined() && tensor.has_storage()) {
      by_storage_[tensor.storage().unsafeGetStorageImpl()].push_back(i);
    }
  }
}

const std::pair<std::string, at::Tensor>* StateIndex::same_view(const at::Tensor& tensor) const {
  const auto entries = by_storage_.find(tensor.storage().unsafeGetStorageImpl());
  if (entries != by_storage_.end()) {
    for (const size_t index : entries->second) {
      if (is_same_view(state_[index].second, tensor)) {
        return &state_[index];
      }
    }
  }
  return nullptr;
}

}  // namespace rondo
