#pragma once

#include <string>

#include "backends/step_report.h"
#include "tracing/plan/instruments.h"  // IWYU pragma: export

namespace rondo {

/// Where the time of a step goes: by operator, by module, by line of code, and its most expensive
/// instructions. "" when nothing was timed.
std::string timeline_table(const StepTimeline& timeline);

/// One replay as a trace of events, in the JSON that chrome://tracing and Perfetto read. Each
/// instruction takes its mean time.
/// Source: "Trace Event Format", the complete events of Chromium's documentation.
std::string chrome_trace(const std::string& step, const StepTimeline& timeline);

}  // namespace rondo
