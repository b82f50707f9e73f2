#pragma once

#include <ATen/core/Tensor.h>

#include "tracing/kernels/kernel.h"
#include "tracing/program/step_program.h"

namespace rondo {

/// The tensors of a plan, for the kernels that are bound to them.
class Operands {
 public:
  Operands() = default;
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;
  virtual ~Operands() = default;

  /// The prebuilt tensor; undefined for kNoTensor.
  virtual const at::Tensor& tensor(SlotId slot) const = 0;

  virtual Operand operand(SlotId slot) const = 0;
};

}  // namespace rondo
