#include "record/run_charts.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <utility>

#include "record/confusion.h"

namespace rondo {

namespace {

constexpr size_t kMostPoints = 4000;  // of a line that is drawn

/// Both ends of a piece of the line, in the order in which they came.
void add_extremes(const std::vector<RecordPoint>& points, size_t begin, size_t end, ChartLine& to) {
  size_t least = begin;
  size_t most = begin;
  for (size_t i = begin; i < end; ++i) {
    least = points[i].value < points[least].value ? i : least;
    most = points[i].value > points[most].value ? i : most;
  }
  for (const size_t i : {std::min(least, most), std::max(least, most)}) {
    to.x.push_back(static_cast<double>(points[i].step));
    to.y.push_back(points[i].value);
    if (least == most) {
      return;
    }
  }
}

ChartLine line_of(const std::string& name, const std::vector<RecordPoint>& points) {
  ChartLine line{name, {}, {}};
  const size_t piece = points.size() > kMostPoints ? points.size() / (kMostPoints / 2) : 1;
  for (size_t begin = 0; begin < points.size(); begin += piece) {
    add_extremes(points, begin, std::min(begin + piece, points.size()), line);
  }
  return line;
}

/// "loss" of "val/loss", where a validation is labelled "val".
std::string without_label(const std::string& metric, const RunRecord& run) {
  size_t longest = 0;
  for (const RecordValidation& validation : run.validations) {
    const std::string& label = validation.label;
    if (metric.size() > label.size() && metric[label.size()] == '/' &&
        metric.compare(0, label.size(), label) == 0) {
      longest = std::max(longest, label.size() + 1);
    }
  }
  return metric.substr(longest);
}

std::string time_of_day(double seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(static_cast<std::time_t>(seconds)));
}

}  // namespace

std::string duration_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::max(seconds, 0.0)));
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::vector<Chart> charts_of(const std::vector<RunRecord>& runs,
                             const std::vector<std::string>& metrics) {
  std::vector<Chart> charts;
  for (const std::string& metric : metrics) {
    Chart chart{metric, {}};
    for (const RunRecord& run : runs) {
      if (const auto points = run.metrics.find(metric); points != run.metrics.end()) {
        chart.lines.push_back(line_of(run.name, points->second));
      }
    }
    charts.push_back(std::move(chart));
  }
  return charts;
}

std::vector<Chart> charts_of(const RunRecord& run) {
  std::map<std::string, Chart> by_name;
  for (const auto& [metric, points] : run.metrics) {
    if (!is_confusion(metric)) {
      const std::string name = without_label(metric, run);
      Chart& chart = by_name[name];
      chart.title = name;
      chart.lines.push_back(line_of(metric, points));
    }
  }
  std::vector<Chart> charts;
  for (auto& [name, chart] : by_name) {
    charts.push_back(std::move(chart));
  }
  return charts;
}

std::string summary_of(const RunRecord& run) {
  std::string text = fmt::format("# {}\n\n| | |\n|---|---|\n", run.name);
  const auto add = [&](const char* name, const std::string& value) {
    text += fmt::format("| {} | {} |\n", name, value);
  };
  add("status", to_string(run.status) + (run.reason.empty() ? "" : ": " + run.reason));
  add("updates",
      run.updates ? fmt::format("{} of {}", run.step, *run.updates) : std::to_string(run.step));
  add("began", time_of_day(run.begin));
  add("took", duration_text(run.end - run.begin));
  if (run.sessions > 1) {
    add("starts", std::to_string(run.sessions));
  }
  add("rondo", run.version);
  text += "\n| metric | last | best |\n|---|---|---|\n";
  for (const auto& [metric, points] : run.metrics) {
    if (is_confusion(metric)) {
      continue;
    }
    const RecordPoint* const best = run.best(metric);
    text += fmt::format(
        "| {} | {:.6g} | {} |\n",
        metric,
        points.back().value,
        best == nullptr ? "" : fmt::format("{:.6g} at update {}", best->value, best->step));
  }
  for (const Matrix& matrix : confusions_of(run)) {
    text += markdown_of(matrix);
  }
  if (!run.saves.empty()) {
    text += fmt::format("\nCheckpoints written: {}, the newest is `{}`, of update {}.\n",
                        run.saves.size(),
                        run.saves.back().path,
                        run.saves.back().step);
  }
  return text + "\nCurves: [results.svg](results.svg)\n";
}

}  // namespace rondo
