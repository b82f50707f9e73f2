#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tracing/checks/tensor_summary.h"
#include "tracing/program/step_program.h"

namespace rondo {

/// A step that ran, with what it takes to run it once more from the same state.
struct KeptStep {
  std::shared_ptr<const StepProgram> program;  ///< as it was recorded; null: it was not
  Batch batch;                                 ///< shares the tensors
  std::vector<char> answers;                   ///< what its host calls left in their tensors
};

/// Where the first number went bad that spoiled a loss or the state.
struct NanFinding {
  enum class Kind {
    Operator,  ///< an operator made it of finite numbers
    Batch,     ///< it came in with the batch
    State      ///< it was in the state before the first kept step
  };

  Kind kind = Kind::Operator;
  int64_t steps_ago = 0;    ///< 0: in the last step
  std::string step;         ///< name of the step, such as "train/update"
  size_t index = 0;         ///< of the instruction, in the program as it was recorded
  std::string op;           ///< "aten::log"; for Batch and State: the tensor's name
  std::string instruction;  ///< its text
  StepPhase phase = StepPhase::Forward;
  std::string place;                   ///< "backward of net.0 (SqrtBackward0), the step"
  std::string source;                  ///< line of code, where it is known
  std::vector<TensorSummary> inputs;   ///< before it ran
  std::vector<TensorSummary> results;  ///< those that are not finite
  std::string turned;   ///< the later operator that made NaN of its infinity; "" if none
  std::string reached;  ///< what it spoiled first: the loss, or a part of the state
};

/// Runs kept steps one after the other, instruction by instruction, as they were recorded, from the
/// state as it was before the first of them. Looks at every tensor that an instruction reads or
/// writes. Infinities that are meant, because a constant says so (masks), are no finding unless
/// they become a NaN or the loss.
/// \param count  how many of `steps`
/// \return the operator that was first to make a NaN or an infinity that reached a loss or the
///         state; nothing when none does
std::optional<NanFinding> find_first_bad(const std::vector<KeptStep>& steps, size_t count);

/// Several lines, for people.
std::string to_text(const NanFinding& finding);

}  // namespace rondo
