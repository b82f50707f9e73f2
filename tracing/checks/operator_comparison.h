#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/tensor_map.h"
#include "tracing/program/step_program.h"

namespace rondo {

class PlannedExecutor;

/// How far a replay's value is from that of the recorded operator which wrote it last.
struct OperatorError {
  std::string op;           ///< "aten::mm"
  std::string place;        ///< "backward of net.0 (AddmmBackward0), the step"
  std::string source;       ///< line of code, of those that differ; "" where it is not known
  std::string instruction;  ///< as the recorded program shows it
  int64_t elements = 0;
  int64_t differing = 0;  ///< of these, whose bytes differ; any NaN equals any other
  double largest = 0.0;   ///< absolute difference of two elements; NaN: one of two is a NaN
  double relative = 0.0;  ///< norm of the difference, over the norm of the recorded value
};

/// A step whose replay was compared with its recording, operator by operator, from one state.
struct OperatorErrors {
  std::vector<OperatorError> operators;  ///< in the order of recording
  int64_t not_compared = 0;  ///< values that a replay does not make: passes removed or fused them

  /// The first operator that differs; null when all bytes are equal.
  const OperatorError* first() const;
};

/// What a backend reports of one step.
struct ComparedStep {
  std::string step;  ///< fits a file name, such as "train_update.0"
  OperatorErrors errors;
};

/// The sentence that tells the result, and tables: of each operator's error, and of each
/// instruction that differs.
std::string to_text(const ComparedStep& step);

/// The same as a JSON array of objects, one an instruction.
std::string to_json(const ComparedStep& step);

/// Compares one replay of a step with the step as it was recorded.
class OperatorComparison {
 public:
  /// \param recorded  outlives this
  explicit OperatorComparison(const StepProgram& recorded) : recorded_(recorded) {}

  /// Replays the step one instruction at a time and keeps what each computes.
  /// \param executor  of the recorded program, after passes
  /// \return as `Executor::run`; null when a guard failed
  const std::vector<at::Tensor>* replay(PlannedExecutor& executor, const Batch& batch);

  /// Runs the step as it was recorded, from the same state, batch and random numbers.
  /// \param answers  what host calls left in their tensors during the replay, in order
  OperatorErrors run_recorded(const Batch& batch, const std::vector<char>& answers) const;

 private:
  void keep(const PlannedExecutor& executor, size_t place);

  const StepProgram& recorded_;
  std::map<SlotId, at::Tensor> replayed_;
};

}  // namespace rondo
