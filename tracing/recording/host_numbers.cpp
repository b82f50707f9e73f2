#include "tracing/recording/host_numbers.h"

#include <algorithm>

#include "tracing/recording/unrecorded.h"

namespace rondo {

bool HostNumbers::are_read_by(const RecordedCall& call) const {
  return call.effects.reads_host && call.effects.gives_numbers_only &&
         call.effects.follows_from_arguments && !any_varies(call.values);
}

bool HostNumbers::varies(const at::Tensor& tensor) const {
  if (!tensor.defined()) {
    return false;
  }
  if (!tensor.has_storage()) {
    return true;
  }
  if (const KnownStorage* const known = table_.find_storage(tensor)) {
    return known->varies;
  }
  const Unrecorded scope;
  return tensor.numel() > 1 || state_.find(tensor);  // else it will be frozen
}

bool HostNumbers::any_varies(c10::ArrayRef<c10::IValue> values) const {
  return std::any_of(values.begin(), values.end(), [this](const c10::IValue& value) {
    if (value.isTensor()) {
      return varies(value.toTensor());
    }
    return (value.isTensorList() || value.isOptionalTensorList()) && any_varies(value.toListRef());
  });
}

}  // namespace rondo
