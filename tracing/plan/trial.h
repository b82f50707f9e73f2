#pragma once

#include <memory>

#include "tracing/kernels/kernel.h"
#include "tracing/plan/given_tensors.h"
#include "tracing/plan/operator_kernels.h"
#include "tracing/plan/plan_memory.h"
#include "tracing/program/step_program.h"

namespace rondo {

/// Compares a kernel with the operator that it stands for, on the data of a step. Both draw the
/// same random numbers, and as many. A kernel that gives a tensor of the plan another shape or
/// other memory fails, whatever it computed; the tensor is as planned afterwards.
class Trial {
 public:
  /// \param ulps  how far the kernel's results may be from the operator's, in units in the last
  ///              place of the largest of them; 0: equal bytes
  Trial(const Instruction& instruction, const PlanMemory& memory, int ulps);

  /// What stays outside of the plan's own memory.
  enum class Effect { Kept, Undone };

  /// Runs both from the same state. What stays is what the kernel left where they agree, and what
  /// the operator left otherwise, or when the kernel throws; `Effect::Undone`: what was there
  /// before wherever that is outside, even if the operator throws.
  bool passes(Kernel& kernel, Effect effect = Effect::Kept);

  /// Whether the operator's results are copied to where they were planned.
  bool is_copying() const { return copying_ != nullptr; }

  /// The operator as it was recorded, to run in the kernel's place.
  std::unique_ptr<Kernel> take_operator();

  /// Bytes that it takes at most while it compares, but for what operators need inside.
  int64_t bytes() const { return bytes_; }

 private:
  bool runs_well(Kernel& kernel) const;
  bool passes_pure(Kernel& kernel);
  bool passes_writing(Kernel& kernel, Effect effect);

  std::unique_ptr<CopyingCall> copying_;  // where there are results
  std::unique_ptr<Kernel> in_place_;      // where there are none
  GivenTensors given_;
  std::vector<at::Tensor> written_;  // results and written arguments
  std::vector<bool> is_outside_;     // one each of them
  bool is_pure_;
  bool draws_random_;
  int ulps_;
  int64_t bytes_ = 0;
};

}  // namespace rondo
