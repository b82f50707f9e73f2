#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/body_requests.h"
#include "backends/program/step_program.h"
#include "backends/recording/host_calls.h"
#include "core/log.h"

namespace rondo {

/// One step, run twice from the same state: replayed, then as written. The second run is muted: its
/// closures are dropped and its host calls get what the replay's left, so that what the host does
/// is done once.
struct Verification {
  using Confirm = std::function<void(const StepProgram& as_written)>;

  const StepProgram& program;  ///< that is replayed: outputs, and the closures that are due
  const StepCall& call;
  HostCalls& host_calls;
  const TextLog& log;
  /// Gets what the second run was recorded as, before bytes are compared; may throw. None: it is
  /// not recorded. Where there is one, what `replay` throws leaves the state as it was.
  Confirm confirm = nullptr;

  /// Where memory does not hold a copy of the state, the replay is not compared; if somebody is to
  /// confirm, nothing is run then.
  /// \param replay  gives the program's outputs, then its closures' tensors
  /// \return what `replay` gave; null: nothing was run
  /// \throws CaptureError  when a byte differs, naming the tensor and what wrote it last; the state
  ///                       is then that of the step as written
  const std::vector<at::Tensor>* run(
      const std::function<const std::vector<at::Tensor>&()>& replay) const;
};

}  // namespace rondo
