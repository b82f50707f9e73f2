#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backends/body_requests.h"
#include "backends/refusal.h"
#include "core/log.h"
#include "tracing/program/step_program.h"
#include "tracing/recording/host_calls.h"

namespace rondo {

struct CapturedStep;

/// What a verification found.
struct Verified {
  const std::vector<at::Tensor>* replayed = nullptr;  ///< what the replay gave
  std::optional<Refusal> refusal = {};                ///< why the replay is not the step as written

  /// Of the step as written; where it is refused.
  Outputs outputs = {};
  std::vector<StepClosure> closures = {};  ///< due or not
};

/// One step, run twice from the same state: replayed, then as written. The second run is muted: its
/// closures are kept back and its host calls get what the replay's left, so that what the host does
/// is done once.
struct Verification {
  /// \return why the step cannot be replayed; nothing when it can
  using Confirm = std::function<std::optional<Refusal>(const CapturedStep& as_written)>;

  const StepProgram& program;  ///< that is replayed: outputs, and the closures that are due
  const StepCall& call;
  HostCalls& host_calls;
  const TextLog& log;
  /// Gets what the second run was recorded as, before bytes are compared. None: it is not recorded.
  /// Where there is one, what a host call throws in the replay leaves the state as it was.
  Confirm confirm = nullptr;

  /// Where memory does not hold a copy of the state, the replay is not compared; if somebody is to
  /// confirm, nothing is run then: neither results nor a refusal.
  /// \param replay  gives the program's outputs, then its closures' tensors; null when it was
  ///                undone, with which the verification ends. Where it throws a CaptureError, the
  ///                step is run as written from the state before
  /// \return where a byte differs, a refusal that names the tensor and what wrote it last; the
  ///         state is then that of the step as written
  /// \throws CaptureError  when it differs and host calls were answered to other bytes than the
  ///                       step as written has: its state may not be trusted
  Verified run(const std::function<const std::vector<at::Tensor>*()>& replay) const;
};

}  // namespace rondo
