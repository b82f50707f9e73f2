#pragma once

#include <string>
#include <vector>

#include "record/chart.h"
#include "record/run_record.h"

namespace rondo {

/// A chart for each metric, with a line for each run that logged it. Lines of many points keep the
/// least and the greatest value of each piece.
std::vector<Chart> charts_of(const std::vector<RunRecord>& runs,
                             const std::vector<std::string>& metrics);

/// One chart for all metrics that are named alike but for the label of a validation, such as "loss"
/// and "val/loss". Confusion matrices have none.
std::vector<Chart> charts_of(const RunRecord& run);

/// What a run came to, as Markdown: status, length, time, the newest and the best value of each
/// metric, confusion matrices, checkpoints.
std::string summary_of(const RunRecord& run);

/// "0:01:05"
std::string duration_text(double seconds);

}  // namespace rondo
