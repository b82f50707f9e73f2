#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <string>

namespace rondo {

/// A number from outside of a step that was frozen into its program. Its owner may change it later.
class OutsideNumber {
 public:
  /// \param live    what the step used
  /// \param frozen  the program's copy, of the same sizes and strides
  OutsideNumber(const at::Tensor& live, at::Tensor frozen);

  /// Whether nobody has it any more: it stays as it was frozen.
  bool is_gone() const { return live_.expired(); }

  /// Whether its bytes are other ones than those that were frozen.
  bool has_changed() const;

  /// As it was frozen.
  std::string to_string() const;

 private:
  c10::weak_intrusive_ptr<c10::StorageImpl> live_;
  int64_t offset_;  // in bytes
  at::Tensor frozen_;
};

}  // namespace rondo
