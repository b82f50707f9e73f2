#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <string>
#include <utility>
#include <vector>

#include "tracing/program/operator_effects.h"
#include "tracing/program/step_program.h"

namespace rondo {

/// One operator on its way through the recorder.
struct RecordedCall {
  RecordedCall(const c10::OperatorHandle& handle, c10::ArrayRef<c10::IValue> given)
      : op(handle),
        values(given),
        name(operator_name(handle)),
        effects(effects_of(handle)),
        varies(!effects.follows_from_arguments) {}

  c10::OperatorHandle op;
  c10::ArrayRef<c10::IValue> values;  ///< the arguments, until it runs
  enum class Progress { Waits, Runs, HasRun } progress = Progress::Waits;
  std::string name;
  OperatorEffects effects;
  std::vector<Argument> arguments;
  std::vector<Result> results;
  std::vector<SlotId> writes;
  std::vector<SlotId> unwritten_reads;              ///< of fresh memory
  std::vector<std::pair<SlotId, at::Tensor>> lent;  ///< to an operator that may do anything
  bool varies;                                      ///< what it gives, from step to step
};

}  // namespace rondo
