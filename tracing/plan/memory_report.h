#pragma once

#include "backends/step_report.h"
#include "tracing/plan/plan.h"

namespace rondo {

/// What a plan that was not run yet needs, by what it is for. Its `capture` is left at 0: the plan
/// does not know it.
StepMemory memory_of(const Plan& plan);

}  // namespace rondo
