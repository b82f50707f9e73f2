#include "loggers/progress_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/terminal.h"
#include "record/run_charts.h"

namespace rondo {

namespace {

constexpr int kBar = 28;  // columns
constexpr int kName = 8;

/// A bar whose end is drawn to half a column.
std::string bar(double share) {
  const int halves = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * kBar * 2));
  std::string text;
  for (int column = 0; column < kBar; ++column) {
    const int filled = halves - 2 * column;
    text += filled >= 2 ? "\u2501" : filled == 1 ? "\u2578" : "\u2500";
  }
  return text;
}

std::string count_text(int64_t done, std::optional<int64_t> all) {
  return all ? fmt::format("{}/{}", done, *all) : std::to_string(done);
}

std::string run_line(const ProgressFacts& facts) {
  std::string text = fmt::format("{:<{}}{}  {} updates  epoch {}",
                                 "run",
                                 kName,
                                 bar(facts.share),
                                 count_text(facts.update, facts.updates),
                                 facts.epoch);
  if (facts.seconds_left) {
    text += "  " + duration_text(*facts.seconds_left) + " left";
  }
  return text;
}

std::string pass_line(const ProgressFacts& facts) {
  const double share = facts.all && *facts.all > 0
                           ? static_cast<double>(facts.done) / static_cast<double>(*facts.all)
                           : 0.0;
  return fmt::format("{:<{}}{}  {}",
                     facts.pass.substr(0, kName - 1),
                     kName,
                     bar(share),
                     count_text(facts.done, facts.all));
}

std::string values_line(const ProgressFacts& facts) {
  std::string text;
  for (const ProgressFacts::Value& value : facts.values) {
    text += fmt::format("{}{} {:.5g}", text.empty() ? "" : "  ", value.name, value.newest);
    if (value.best) {
      text += fmt::format(" (best {:.5g} @{})", *value.best, value.best_update);
    }
  }
  return fmt::format("{:{}}{}", "", kName, text);
}

std::string speed_line(const ProgressFacts& facts) {
  std::vector<std::string> parts;
  if (facts.updates_per_s > 0.0) {
    parts.push_back(fmt::format("{:.4g} updates/s", facts.updates_per_s));
    parts.push_back(fmt::format("{:.0f} samples/s", facts.samples_per_s));
  }
  if (facts.memory) {
    parts.push_back(fmt::format("{} MiB", *facts.memory >> 20));
  }
  if (facts.saved) {
    parts.push_back(fmt::format("saved @{}", *facts.saved));
  }
  return fmt::format("{:{}}{}", "", kName, fmt::join(parts, "  "));
}

}  // namespace

std::vector<std::string> progress_lines(const ProgressFacts& facts, int columns) {
  std::vector<std::string> lines = {run_line(facts), pass_line(facts)};
  if (!facts.values.empty()) {
    lines.push_back(values_line(facts));
  }
  lines.push_back(speed_line(facts));
  for (std::string& line : lines) {
    line = first_characters(line, static_cast<size_t>(columns));
  }
  return lines;
}

}  // namespace rondo
