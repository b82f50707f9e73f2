#include "backends/body_requests.h"

#include "core/error.h"

namespace rondo {

BodyRequests& running_body(BodyRequests* requests, const char* call) {
  if (requests == nullptr) {
    throw UsageError(std::string("Backend.") + call +
                     ": only inside a step, that is in hooks from on_train_step_start to "
                     "on_train_step_end, or the model's forward");
  }
  return *requests;
}

}  // namespace rondo
