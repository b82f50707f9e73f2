#include "tracing/recording/outside_number.h"

#include <cstring>
#include <utility>

#include "tracing/program/step_program.h"

namespace rondo {

OutsideNumber::OutsideNumber(const at::Tensor& live, at::Tensor frozen)
    : live_(live.storage().getWeakStorageImpl()),
      offset_(live.storage_offset() * static_cast<int64_t>(live.element_size())),
      frozen_(std::move(frozen)) {}

bool OutsideNumber::has_changed() const {
  const auto live = live_.lock();
  return live && std::memcmp(static_cast<const char*>(live->data()) + offset_,
                             frozen_.unsafeGetTensorImpl()->data(),
                             frozen_.element_size()) != 0;
}

std::string OutsideNumber::to_string() const {
  return to_text(c10::IValue(frozen_.item()));
}

}  // namespace rondo
