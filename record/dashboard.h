#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "record/run_record.h"

namespace rondo {

enum class DashboardTab { Metrics, System, Log };

/// What a key press means.
enum class DashboardKey {
  None,
  NextTab,
  MetricsTab,
  SystemTab,
  LogTab,
  Up,
  Down,
  ZoomIn,
  ZoomOut,
  StopAndSave,
  StopNow,
  Yes,
  Quit
};

/// What the program has to do after a key.
enum class DashboardRequest { None, Quit, StopAndSave, StopNow };

/// What is looked at.
struct DashboardView {
  DashboardTab tab = DashboardTab::Metrics;
  size_t first = 0;  ///< chart at the top, or lines of the log that are hidden below
  int zoom = 0;      ///< how often the shown end of the curves was halved
  DashboardRequest asked = DashboardRequest::None;  ///< waits for a yes
};

/// The key at the beginning of `input`, which is what a terminal sent, and takes it off.
DashboardKey take_key(std::string_view& input);

/// Changes the view as the key says. A stop is asked back first.
DashboardRequest press(DashboardView& view, DashboardKey key);

/// The whole screen: exactly `rows` lines, none wider than `columns`.
/// \param log  the last lines of the run's text log, oldest first
std::vector<std::string> dashboard_lines(const RunRecord& run,
                                         const std::vector<std::string>& log,
                                         const DashboardView& view,
                                         int columns,
                                         int rows,
                                         bool has_color);

}  // namespace rondo
