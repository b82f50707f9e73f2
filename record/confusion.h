#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "record/chart.h"
#include "record/run_record.h"

namespace rondo {

/// Whether a metric is one count of the metric ConfusionMatrix, `val/confusion/<label>/<guess>`.
/// Lists of metrics leave these out: ten classes have a hundred.
bool is_confusion(std::string_view metric);

/// "val/confusion" of "val/confusion/3/7".
std::string confusion_name(std::string_view metric);

/// The newest confusion matrices of a run.
std::vector<Matrix> confusions_of(const RunRecord& run);

/// A matrix as a table of Markdown, with its title above.
std::string markdown_of(const Matrix& matrix);

}  // namespace rondo
