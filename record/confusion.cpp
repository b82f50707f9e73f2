#include "record/confusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace rondo {

namespace {

/// Scope with "confusion", label, and guess.
struct Parts {
  std::string_view name;
  std::string_view label;
  std::string_view guess;
};

/// Empty for another metric.
Parts parts_of(std::string_view metric) {
  constexpr std::string_view kName = "confusion";
  const size_t guess = metric.rfind('/');
  const size_t label = guess == std::string_view::npos || guess == 0 ? std::string_view::npos
                                                                     : metric.rfind('/', guess - 1);
  if (label == std::string_view::npos) {
    return {};
  }
  const std::string_view name = metric.substr(0, label);
  const bool ends_so =
      name.size() >= kName.size() && name.substr(name.size() - kName.size()) == kName;
  const bool is_whole =
      ends_so && (name.size() == kName.size() || name[name.size() - kName.size() - 1] == '/');
  if (!is_whole) {
    return {};
  }
  return {name, metric.substr(label + 1, guess - label - 1), metric.substr(guess + 1)};
}

/// "9" before "10".
bool is_before(const std::string& a, const std::string& b) {
  return std::pair(a.size(), a) < std::pair(b.size(), b);
}

struct Counts {
  int64_t step = 0;
  std::set<std::string, decltype(&is_before)> classes{&is_before};
  std::map<std::pair<std::string, std::string>, double> cells;
};

Matrix matrix_of(const std::string& name, const Counts& counts) {
  Matrix matrix;
  matrix.title = fmt::format("{}, update {}", name, counts.step);
  matrix.names.assign(counts.classes.begin(), counts.classes.end());
  for (const std::string& label : matrix.names) {
    std::vector<double>& row = matrix.rows.emplace_back();
    for (const std::string& guess : matrix.names) {
      const auto cell = counts.cells.find({label, guess});
      row.push_back(cell == counts.cells.end() ? 0.0 : cell->second);
    }
  }
  return matrix;
}

}  // namespace

bool is_confusion(std::string_view metric) {
  return !parts_of(metric).name.empty();
}

std::string confusion_name(std::string_view metric) {
  return std::string(parts_of(metric).name);
}

std::vector<Matrix> confusions_of(const RunRecord& run) {
  std::map<std::string, Counts> by_name;
  for (const auto& [metric, points] : run.metrics) {
    const Parts parts = parts_of(metric);
    if (parts.name.empty()) {
      continue;
    }
    Counts& counts = by_name[std::string(parts.name)];
    counts.step = std::max(counts.step, points.back().step);
    counts.classes.emplace(parts.label);
    counts.classes.emplace(parts.guess);
    counts.cells[{std::string(parts.label), std::string(parts.guess)}] = points.back().value;
  }
  std::vector<Matrix> matrices;
  for (const auto& [name, counts] : by_name) {
    matrices.push_back(matrix_of(name, counts));
  }
  return matrices;
}

std::string markdown_of(const Matrix& matrix) {
  constexpr size_t kMostClasses = 30;
  const std::string title = fmt::format("\n## {}\n\n", matrix.title);
  if (matrix.names.size() > kMostClasses) {
    return title +
           fmt::format("{} classes: [results.svg](results.svg) draws them.\n", matrix.names.size());
  }
  std::string head = "| label \\ guess |";
  std::string rule = "|---|";
  std::string rows;
  for (size_t label = 0; label < matrix.names.size(); ++label) {
    head += fmt::format(" {} |", matrix.names[label]);
    rule += "---|";
    rows += fmt::format("| {} |", matrix.names[label]);
    for (const double count : matrix.rows[label]) {
      rows += fmt::format(" {:.6g} |", count);
    }
    rows += "\n";
  }
  return title + head + "\n" + rule + "\n" + rows;
}

}  // namespace rondo
