#pragma once

#include <string>

#include "backends/step_report.h"

namespace rondo {

/// Replays of a step until so many are timed by instruction: some before, which are slower, and in
/// turns with them as many whole ones.
int64_t replays_for_timeline(int64_t timed);

/// Where the time of a step goes: by operator, by module, by line of code, and its most expensive
/// instructions. "" when nothing was timed.
std::string timeline_table(const StepTimeline& timeline);

/// One replay as a trace of events, in the JSON that chrome://tracing and Perfetto read. Each
/// instruction takes its mean time.
/// Source: "Trace Event Format", the complete events of Chromium's documentation.
std::string chrome_trace(const std::string& step, const StepTimeline& timeline);

}  // namespace rondo
