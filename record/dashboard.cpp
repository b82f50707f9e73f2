#include "record/dashboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/terminal.h"
#include "record/run_charts.h"

namespace rondo {

namespace {

constexpr int kMostZoom = 10;
constexpr int kHead = 3;         // lines above the body
constexpr int kFoot = 1;         // and below it
constexpr int kUsualChart = 14;  // lines of a chart, with its scale and names

struct KeyName {
  std::string_view bytes;
  DashboardKey key;
};

constexpr std::array<KeyName, 22> kKeys = {
    {{"\x1b[A", DashboardKey::Up},      {"\x1b[B", DashboardKey::Down},
     {"\x1b[C", DashboardKey::NextTab}, {"\x1bOA", DashboardKey::Up},
     {"\x1bOB", DashboardKey::Down},    {"\x1bOC", DashboardKey::NextTab},
     {"\t", DashboardKey::NextTab},     {"1", DashboardKey::MetricsTab},
     {"2", DashboardKey::SystemTab},    {"3", DashboardKey::LogTab},
     {"k", DashboardKey::Up},           {"j", DashboardKey::Down},
     {"+", DashboardKey::ZoomIn},       {"=", DashboardKey::ZoomIn},
     {"-", DashboardKey::ZoomOut},      {"s", DashboardKey::StopAndSave},
     {"x", DashboardKey::StopNow},      {"y", DashboardKey::Yes},
     {"Y", DashboardKey::Yes},          {"q", DashboardKey::Quit},
     {"\x03", DashboardKey::Quit},      {"\x04", DashboardKey::Quit}}};

bool is_of_system(const std::string& metric) {
  constexpr std::array<std::string_view, 4> kScopes = {
      "system/", "memory/", "throughput/", "time/"};
  return std::any_of(kScopes.begin(), kScopes.end(), [&](std::string_view scope) {
    return metric.rfind(scope, 0) == 0;
  });
}

/// Of a UTF-8 text whose escape sequences are colors of rondo's, what fits into so many columns.
std::string clipped(const std::string& text, int columns) {
  std::string kept;
  int width = 0;
  bool has_escape = false;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '\x1b') {
      const size_t end = text.find('m', i);
      const size_t size = end == std::string::npos ? text.size() - i : end - i + 1;
      kept += text.substr(i, size);
      has_escape = true;
      i += size;
      continue;
    }
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t size = byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
    if (++width > columns) {
      break;
    }
    kept += text.substr(i, size);
    i += size;
  }
  return kept + (has_escape && width > columns ? "\x1b[0m" : "");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// The run without the metrics that the tab does not show, and of those the end that is zoomed at.
RunRecord shown_part(const RunRecord& run, const DashboardView& view) {
  RunRecord part;
  part.validations = run.validations;
  const double span = static_cast<double>(run.step) / static_cast<double>(int64_t{1} << view.zoom);
  const double from = static_cast<double>(run.step) - span;
  for (const auto& [metric, points] : run.metrics) {
    if (is_of_system(metric) != (view.tab == DashboardTab::System)) {
      continue;
    }
    const auto first = std::find_if(points.begin(), points.end(), [&](const RecordPoint& point) {
      return static_cast<double>(point.step) >= from;
    });
    if (first != points.end()) {
      part.metrics[metric] = {first, points.end()};
    }
  }
  return part;
}

std::vector<std::string> chart_lines(
    const RunRecord& run, const DashboardView& view, int columns, int rows, bool has_color) {
  std::vector<Chart> charts = charts_of(shown_part(run, view));
  std::stable_partition(
      charts.begin(), charts.end(), [](const Chart& chart) { return chart.title == "loss"; });
  if (charts.empty()) {
    return {view.tab == DashboardTab::System
                ? "no system metrics: the callbacks SystemMetricsMonitor and SpeedMonitor log some"
                : "no metrics yet"};
  }
  const int most = std::max(1, rows / kUsualChart);
  const size_t first = std::min(view.first, charts.size() - 1);
  const size_t count = std::min(static_cast<size_t>(most), charts.size() - first);
  const int height = rows / static_cast<int>(count);
  std::vector<std::string> lines;
  for (size_t i = first; i < first + count; ++i) {
    const int around = 3 + static_cast<int>(charts[i].lines.size());
    const ChartSize size{columns, std::max(3, height - around)};
    for (std::string& line :
         lines_of(braille_chart(charts[i].title, charts[i].lines, size, has_color))) {
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

std::vector<std::string> log_lines(const std::vector<std::string>& log, size_t hidden, int rows) {
  const size_t most = static_cast<size_t>(std::max(rows, 0));
  const size_t end = log.size() - std::min(hidden, log.size() - std::min(most, log.size()));
  const size_t begin = end - std::min(most, end);
  std::vector<std::string> lines;
  for (size_t i = begin; i < end; ++i) {
    lines.push_back(printable(log[i]));
  }
  return lines;
}

std::string bar(double share, int columns) {
  const int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * columns);
  std::string text;
  for (int i = 0; i < columns; ++i) {
    text += i < filled ? "\u2501" : "\u2500";
  }
  return text;
}

std::vector<std::string> head_lines(const RunRecord& run, DashboardTab tab, bool has_color) {
  const double share = run.updates && *run.updates > 0
                           ? static_cast<double>(run.step) / static_cast<double>(*run.updates)
                           : 0.0;
  const std::string count =
      run.updates ? fmt::format("{}/{}", run.step, *run.updates) : std::to_string(run.step);
  std::string first = fmt::format("{}  {}  {}  {} updates  {}",
                                  printable(run.name),
                                  to_string(run.status),
                                  bar(share, 24),
                                  count,
                                  duration_text(run.end - run.begin));
  if (!run.saves.empty()) {
    first += fmt::format("  saved @{}", run.saves.back().step);
  }
  const auto name = [&](DashboardTab which, const char* text) {
    return which != tab ? fmt::format(" {} ", text)
           : has_color  ? fmt::format("\x1b[7m {} \x1b[0m", text)
                        : fmt::format("[{}]", text);
  };
  const std::string tabs = name(DashboardTab::Metrics, "1 metrics") +
                           name(DashboardTab::System, "2 system") +
                           name(DashboardTab::Log, "3 log");
  const std::string news =
      !run.reason.empty() ? run.reason
      : run.alerts.empty()
          ? ""
          : fmt::format("alert @{}: {}", run.alerts.back().step, run.alerts.back().text);
  return {first, tabs, printable(news)};
}

std::string foot_line(const RunRecord& run, const DashboardView& view) {
  if (view.asked == DashboardRequest::StopAndSave) {
    return "Stop after this update and save? y: yes, any other key: no";
  }
  if (view.asked == DashboardRequest::StopNow) {
    return "Stop at once, without saving? y: yes, any other key: no";
  }
  const std::string stops =
      run.status == RunStatus::Running ? "   s stop and save   x stop at once" : "";
  return "tab switch   \u2191\u2193 scroll   + - zoom" + stops + "   q leave";
}

}  // namespace

DashboardKey take_key(std::string_view& input) {
  for (const KeyName& known : kKeys) {
    if (input.substr(0, known.bytes.size()) == known.bytes) {
      input.remove_prefix(known.bytes.size());
      return known.key;
    }
  }
  // An escape sequence that means nothing here goes as a whole.
  const bool is_sequence = input.size() > 2 && input[0] == '\x1b' && input[1] == '[';
  size_t size = std::min<size_t>(input.size(), 1);
  if (is_sequence) {
    const auto end =
        std::find_if(input.begin() + 2, input.end(), [](char c) { return c >= '@' && c <= '~'; });
    size = static_cast<size_t>(end - input.begin()) + (end != input.end() ? 1 : 0);
  }
  input.remove_prefix(size);
  return DashboardKey::None;
}

DashboardRequest press(DashboardView& view, DashboardKey key) {
  const DashboardRequest asked = std::exchange(view.asked, DashboardRequest::None);
  if (asked != DashboardRequest::None) {
    return key == DashboardKey::Yes ? asked : DashboardRequest::None;
  }
  const auto show = [&](DashboardTab tab) {
    view.tab = tab;
    view.first = 0;
  };
  // The log scrolls to what is older, charts to the next.
  const bool is_log = view.tab == DashboardTab::Log;
  switch (key) {
    case DashboardKey::NextTab:
      show(static_cast<DashboardTab>((static_cast<int>(view.tab) + 1) % 3));
      break;
    case DashboardKey::MetricsTab:
      show(DashboardTab::Metrics);
      break;
    case DashboardKey::SystemTab:
      show(DashboardTab::System);
      break;
    case DashboardKey::LogTab:
      show(DashboardTab::Log);
      break;
    case DashboardKey::Up:
    case DashboardKey::Down:
      if ((key == DashboardKey::Up) == is_log) {
        ++view.first;
      } else if (view.first > 0) {
        --view.first;
      }
      break;
    case DashboardKey::ZoomIn:
      view.zoom = std::min(view.zoom + 1, kMostZoom);
      break;
    case DashboardKey::ZoomOut:
      view.zoom = std::max(view.zoom - 1, 0);
      break;
    case DashboardKey::StopAndSave:
      view.asked = DashboardRequest::StopAndSave;
      break;
    case DashboardKey::StopNow:
      view.asked = DashboardRequest::StopNow;
      break;
    case DashboardKey::Quit:
      return DashboardRequest::Quit;
    case DashboardKey::Yes:
    case DashboardKey::None:
      break;
  }
  return DashboardRequest::None;
}

std::vector<std::string> dashboard_lines(const RunRecord& run,
                                         const std::vector<std::string>& log,
                                         const DashboardView& view,
                                         int columns,
                                         int rows,
                                         bool has_color) {
  const int body_rows = std::max(rows - kHead - kFoot, 1);
  std::vector<std::string> lines = head_lines(run, view.tab, has_color);
  std::vector<std::string> body = view.tab == DashboardTab::Log
                                      ? log_lines(log, view.first, body_rows)
                                      : chart_lines(run, view, columns, body_rows, has_color);
  body.resize(static_cast<size_t>(body_rows));
  lines.insert(lines.end(), body.begin(), body.end());
  lines.resize(static_cast<size_t>(std::max(rows - kFoot, 1)));
  lines.push_back(foot_line(run, view));
  for (std::string& line : lines) {
    line = clipped(line, columns);
  }
  return lines;
}

}  // namespace rondo
