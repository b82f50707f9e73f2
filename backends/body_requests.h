#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/closure_queue.h"
#include "backends/step.h"

namespace rondo {

/// What the body of a step asks of the traced backend while it runs, answered by who runs it.
class BodyRequests {
 public:
  BodyRequests() = default;
  BodyRequests(const BodyRequests&) = delete;
  BodyRequests& operator=(const BodyRequests&) = delete;
  virtual ~BodyRequests() = default;

  virtual void defer(StepClosure closure) = 0;
  virtual void host_call(std::string name,
                         std::vector<at::Tensor> tensors,
                         HostFunction function) = 0;
  virtual void set_location(std::string_view callback, std::string_view hook) = 0;

  /// Whether the step is being recorded, or compared with a recording.
  virtual bool is_recording() const = 0;
};

/// Who answers the body that runs.
/// \param call  what is asked, for the message
/// \throws UsageError  when `requests` is null: no body runs
BodyRequests& running_body(BodyRequests* requests, const char* call);

/// One call of Backend::run. `requests` refers to the backend's pointer to the object that answers
/// the body.
struct StepCall {
  const Batch& batch;
  const StepBody& body;
  const IsDue& is_due;
  ClosureQueue& queue;
  const std::function<CapturedState()>& provide_state;
  BodyRequests*& requests;
  std::vector<char>* answers = nullptr;  ///< gets what host calls leave; null: nobody asks

  CapturedState state() const { return provide_state ? provide_state() : CapturedState(); }

  bool asks_for(const Cadence& cadence) const { return !is_due || is_due(cadence); }
};

}  // namespace rondo
