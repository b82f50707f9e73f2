#include "backends/backend.h"

#include "core/error.h"

namespace rondo {

const Outputs* Backend::start(const StepKey& key,
                              const Batch& batch,
                              const StepBody& body,
                              const IsDue& is_due,
                              ClosureQueue& queue,
                              const Deadline&) {
  return &run(key, batch, body, is_due, queue);
}

const Outputs* Backend::resume(const Deadline&) {
  throw UsageError("Backend.resume: no step is in progress");
}

}  // namespace rondo
