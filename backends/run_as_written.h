#pragma once

#include "backends/body_requests.h"

namespace rondo {

/// Runs the body as it is written: what it asks of the backend is done at once, and closures that
/// are due go to the call's queue.
/// \return the body's outputs, without autograd history
/// \throws whatever the body or a host call throws, as it is
Outputs run_as_written(const StepCall& call);

}  // namespace rondo
