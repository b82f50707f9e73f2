#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/body_requests.h"
#include "backends/refusal.h"
#include "tracing/program/step_program.h"
#include "tracing/recording/host_calls.h"
#include "tracing/recording/outside_number.h"

namespace rondo {

/// What recording a step once gave.
struct CapturedStep {
  StepProgram program;
  HostCalls host_calls;
  std::vector<HostFunction> closures;
  std::vector<OutsideNumber> numbers;  ///< that were frozen into the program
  Outputs outputs;                     ///< of the step that ran
  std::optional<Refusal> refusal;      ///< why there is no program
};

/// Runs the body for real and records it. Closures that are due go to the call's queue.
/// \param may_guard  see `Recorder`
CapturedStep capture_step(const std::string& name, const StepCall& call, bool may_guard = true);

}  // namespace rondo
