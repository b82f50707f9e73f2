// `rondo runs`, `rondo plot`, `rondo diff`

#include "cli/record_commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/recorded_runs.h"
#include "cli/text_table.h"
#include "core/error.h"
#include "core/glob.h"
#include "core/json_text.h"
#include "core/terminal.h"
#include "record/confusion.h"
#include "record/run_charts.h"
#include "record/run_diff.h"
#include "record/run_record.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

std::string number(double value) {
  return fmt::format("{:.5g}", value);
}

std::vector<std::string> differing_keys_of(const std::vector<RunRecord>& runs) {
  std::vector<const RunRecord*> all;
  for (const RunRecord& run : runs) {
    all.push_back(&run);
  }
  return differing_keys(all);
}

std::string value_or(const std::map<std::string, std::string>& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? "-" : found->second;
}

/// "lr" for "trainer.init.optimizer.AdamW.lr"; the whole path where several end alike.
std::string short_key(const std::string& key, const std::vector<std::string>& keys) {
  const std::string last = key.substr(key.rfind('.') + 1);
  const auto ends_alike = std::count_if(keys.begin(), keys.end(), [&](const std::string& other) {
    return other.substr(other.rfind('.') + 1) == last;
  });
  return ends_alike > 1 ? key : last;
}

std::vector<std::string> matching_metrics(const std::vector<RunRecord>& runs,
                                          const std::vector<std::string>& globs) {
  std::set<std::string> names;
  for (const RunRecord& run : runs) {
    for (const auto& metric : run.metrics) {
      if (matches_any(globs, metric.first)) {
        names.insert(metric.first);
      }
    }
  }
  return {names.begin(), names.end()};
}

/// The best value where the metric has a direction, else the newest.
std::string result_of(const RunRecord& run, const std::string& metric) {
  if (const RecordPoint* best = run.best(metric)) {
    return fmt::format("{} @{}", number(best->value), best->step);
  }
  const auto points = run.metrics.find(metric);
  return points == run.metrics.end() ? "-" : number(points->second.back().value);
}

std::string updates_of(const RunRecord& run) {
  return run.updates ? fmt::format("{}/{}", run.step, *run.updates) : std::to_string(run.step);
}

void sort_runs(std::vector<RunRecord>& runs, const std::string& key) {
  const auto is_before = [&](const RunRecord& a, const RunRecord& b) {
    if (key == "time") {
      return a.begin > b.begin;
    }
    if (key == "status") {
      return std::string(to_string(a.status)) < to_string(b.status);
    }
    if (key == "name") {
      return a.directory < b.directory;
    }
    const auto value = [&](const RunRecord& run) {
      const auto direction = run.higher_is_better.find(key);
      const bool is_higher = direction != run.higher_is_better.end() && direction->second;
      const auto points = run.metrics.find(key);
      const RecordPoint* best = run.best(key);
      const double newest =
          points == run.metrics.end() ? std::nan("") : points->second.back().value;
      const double chosen = best != nullptr ? best->value : newest;
      return std::isnan(chosen) ? HUGE_VAL : is_higher ? -chosen : chosen;
    };
    return value(a) < value(b);
  };
  std::stable_sort(runs.begin(), runs.end(), is_before);
}

/// Names of all metrics, but for the counts of confusion matrices.
std::vector<std::string> listed_metrics(const std::vector<RunRecord>& runs) {
  std::vector<std::string> names = matching_metrics(runs, {"*"});
  names.erase(std::remove_if(names.begin(), names.end(), is_confusion), names.end());
  return names;
}

/// \throws UsageError  where no run has what `--sort` or a `--metric` names
void require_known(const CommandLine& line, const std::vector<RunRecord>& runs) {
  if (runs.empty()) {
    return;
  }
  std::vector<std::string> known = listed_metrics(runs);
  for (const std::string& glob : line.metrics) {
    if (matching_metrics(runs, {glob}).empty()) {
      throw UsageError(fmt::format("--metric: no run has \"{}\"{}", glob, suggestion(glob, known)));
    }
  }
  known.insert(known.end(), {"name", "status", "time"});
  const bool is_key = std::find(known.begin(), known.end(), line.sort) != known.end();
  if (!is_key && matching_metrics(runs, {line.sort}).empty()) {
    throw UsageError(
        fmt::format("--sort: no run has \"{}\"{}", line.sort, suggestion(line.sort, known)));
  }
}

std::string json_of(const RunRecord& run, const std::string& name) {
  std::string metrics;
  for (const auto& [metric, points] : run.metrics) {
    const RecordPoint* best = run.best(metric);
    metrics += fmt::format(
        "{}{}:{{\"last\":{},\"step\":{}{}}}",
        metrics.empty() ? "" : ",",
        json_string(metric),
        json_number(points.back().value),
        points.back().step,
        best == nullptr
            ? ""
            : fmt::format(",\"best\":{},\"best_step\":{}", json_number(best->value), best->step));
  }
  std::string config;
  for (const auto& [key, value] : run.config) {
    config +=
        fmt::format("{}{}:{}", config.empty() ? "" : ",", json_string(key), json_string(value));
  }
  return fmt::format(
      "{{\"name\":{},\"directory\":{},\"status\":\"{}\",\"reason\":{},\"step\":{},\"updates\":{},"
      "\"sessions\":{},\"begin\":{:.3f},\"end\":{:.3f},\"version\":{},\"metrics\":{{{}}},"
      "\"config\":{{{}}}}}\n",
      json_string(name),
      json_string(run.directory.string()),
      to_string(run.status),
      json_string(run.reason),
      run.step,
      run.updates ? std::to_string(*run.updates) : "null",
      run.sessions,
      run.begin,
      run.end,
      json_string(run.version),
      metrics,
      config);
}

/// Metrics that a table shows when none is asked for: few, of validations where there are any.
std::vector<std::string> usual_metrics(const std::vector<RunRecord>& runs) {
  constexpr size_t kMost = 3;
  std::vector<std::string> names = matching_metrics(runs, {"loss"});
  std::vector<std::string> with_direction;
  for (const std::string& name : matching_metrics(runs, {"*/*"})) {
    const bool says = std::any_of(runs.begin(), runs.end(), [&](const RunRecord& run) {
      return run.higher_is_better.count(name) > 0;
    });
    if (says && with_direction.size() < kMost) {
      with_direction.push_back(name);
    }
  }
  names.insert(names.end(), with_direction.begin(), with_direction.end());
  return names;
}

int list_runs(const CommandLine& line) {
  const fs::path root = line.target.empty() ? "." : line.target;
  std::error_code error;
  if (!fs::is_directory(root, error)) {
    throw UsageError(fmt::format("{}: there is no such folder", root.string()));
  }
  std::vector<RunRecord> runs = read_summaries(find_runs(root));
  require_known(line, runs);
  runs.erase(std::remove_if(runs.begin(),
                            runs.end(),
                            [&](const RunRecord& run) {
                              return !line.status.empty() && line.status != to_string(run.status);
                            }),
             runs.end());
  sort_runs(runs, line.sort);
  if (line.json) {
    for (const RunRecord& run : runs) {
      std::cout << json_of(run, name_below(run.directory, root));
    }
    return 0;
  }
  if (runs.empty()) {
    std::cerr << fmt::format(
        "{}: no runs; a fit writes {} into its model_dir\n", root.string(), kRecordFile);
    return 0;
  }
  const std::vector<std::string> metrics =
      line.metrics.empty() ? usual_metrics(runs) : matching_metrics(runs, line.metrics);
  const std::vector<std::string> keys = differing_keys_of(runs);
  std::vector<std::string> heading = {"run", "status", "updates", "time"};
  heading.insert(heading.end(), metrics.begin(), metrics.end());
  for (const std::string& key : keys) {
    heading.push_back(short_key(key, keys));
  }
  std::vector<std::vector<std::string>> rows = {heading};
  for (const RunRecord& run : runs) {
    std::vector<std::string> row = {name_below(run.directory, root),
                                    to_string(run.status),
                                    updates_of(run),
                                    duration_text(run.end - run.begin)};
    for (const std::string& metric : metrics) {
      row.push_back(result_of(run, metric));
    }
    for (const std::string& key : keys) {
      row.push_back(value_or(run.config, key));
    }
    rows.push_back(std::move(row));
  }
  std::cout << text_table_for_stdout(std::move(rows));
  return 0;
}

bool has_color() {
  return ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
}

std::vector<RunRecord> named_runs(const std::vector<std::string>& paths) {
  std::vector<RunRecord> runs;
  for (const std::string& path : paths) {
    runs.push_back(read_record(path));
    warn_of(runs.back());
  }
  return runs;
}

constexpr const char* kSame = "the same";
constexpr const char* kInOne = "only one has it";

std::string difference_note(const std::optional<int64_t>& step) {
  return step ? fmt::format("differs from update {} on", *step) : kSame;
}

std::string known_metrics(const std::vector<RunRecord>& runs) {
  std::string names;
  for (const std::string& name : listed_metrics(runs)) {
    names += (names.empty() ? "" : ", ") + name;
  }
  return names.empty() ? "none" : names;
}

int plot(const CommandLine& line) {
  const std::vector<RunRecord> runs = named_runs(line.files);
  const std::vector<std::string> metrics =
      line.metrics.empty() ? usual_metrics(runs) : matching_metrics(runs, line.metrics);
  if (metrics.empty()) {
    throw UsageError(fmt::format("no metric fits {}; recorded: {}",
                                 line.metrics.empty() ? "\"loss\"" : line.metrics.front(),
                                 known_metrics(runs)));
  }
  const std::vector<Chart> charts = charts_of(runs, metrics);
  if (!line.output.empty()) {
    std::ofstream file(line.output, std::ios::binary);
    file << svg_charts(charts);
    file.close();
    if (!file) {
      throw UsageError(fmt::format("{}: cannot be written", line.output));
    }
    std::cerr << line.output << ": written\n";
    return 0;
  }
  const int columns = std::min(terminal_columns(STDOUT_FILENO).value_or(80), 160);
  for (const Chart& chart : charts) {
    std::cout << braille_chart(chart.title, chart.lines, {columns, 12}, has_color());
  }
  return 0;
}

/// A row a matrix: whether its counts are the same, or the first update at which they are not.
std::vector<std::vector<std::string>> confusion_rows(const RunRecord& a, const RunRecord& b) {
  std::map<std::string, std::optional<int64_t>> first;  // by matrix
  std::set<std::string> in_one;
  for (const std::string& metric : matching_metrics({a, b}, {"*"})) {
    if (!is_confusion(metric)) {
      continue;
    }
    const std::string name = confusion_name(metric);
    std::optional<int64_t>& step = first[name];
    const auto in_a = a.metrics.find(metric);
    const auto in_b = b.metrics.find(metric);
    if (in_a == a.metrics.end() || in_b == b.metrics.end()) {
      in_one.insert(name);
    } else if (const auto here = first_difference(in_a->second, in_b->second)) {
      step = std::min(step.value_or(*here), *here);
    }
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, step] : first) {
    rows.push_back({name, "", "", in_one.count(name) > 0 ? kInOne : difference_note(step)});
  }
  return rows;
}

int diff(const CommandLine& line) {
  const std::vector<RunRecord> runs = named_runs(line.files);
  const RunRecord& a = runs[0];
  const RunRecord& b = runs[1];
  constexpr int kFacts = 5;  // rows
  std::vector<std::vector<std::string>> rows = {
      {"", a.name, b.name},
      {"status", to_string(a.status), to_string(b.status)},
      {"updates", updates_of(a), updates_of(b)},
      {"time", duration_text(a.end - a.begin), duration_text(b.end - b.begin)},
      {"version", a.version, b.version}};
  for (const std::string& key : differing_keys_of(runs)) {
    rows.push_back({key, value_or(a.config, key), value_or(b.config, key)});
  }
  for (const std::string& metric : matching_metrics(runs, {"*"})) {
    const auto in_a = a.metrics.find(metric);
    const auto in_b = b.metrics.find(metric);
    if (!is_confusion(metric)) {
      const bool has_both = in_a != a.metrics.end() && in_b != b.metrics.end();
      const std::string note =
          has_both ? difference_note(first_difference(in_a->second, in_b->second)) : kInOne;
      rows.push_back({metric, result_of(a, metric), result_of(b, metric), note});
    }
  }
  for (std::vector<std::string>& row : confusion_rows(a, b)) {
    rows.push_back(std::move(row));
  }
  const bool differs = std::any_of(
      rows.begin() + kFacts, rows.end(), [](const auto& row) { return row.back() != kSame; });
  std::cout << text_table_for_stdout(std::move(rows));
  return differs ? 1 : 0;
}

}  // namespace

std::optional<int> run_record_command(const CommandLine& line) {
  try {
    switch (line.command) {
      case Command::Runs:
        return list_runs(line);
      case Command::Plot:
        return plot(line);
      case Command::Diff:
        return diff(line);
      case Command::Query:
        return query(line);
      case Command::Alerts:
        return alerts(line);
      case Command::Watch:
        return watch(line);
      case Command::Board:
        return board(line);
      default:
        return std::nullopt;
    }
  } catch (const UsageError& error) {
    std::cerr << "rondo: " << error.what() << "\n";
    return 2;
  } catch (const Error& error) {
    std::cerr << "rondo: " << error.what() << "\n";
    return 1;
  }
}

}  // namespace rondo
