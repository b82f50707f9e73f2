#include "data/tables/table_fit.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/glob.h"
#include "data/tables/column_numbers.h"
#include "data/tables/date_order.h"
#include "data/tables/table_label.h"

namespace rondo {

namespace {

using Kind = FittedFeature::Kind;
using Options = CsvTable::Options;
using Rows = std::vector<size_t>;

/// A value between two of the sorted ones. Source: numpy's default, linear interpolation.
double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double mean_of(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) {
    sum += value;
  }
  return values.empty() ? 0.0 : sum / static_cast<double>(values.size());
}

double fit_fill(const std::string& missing, const std::vector<double>& values) {
  if (missing == "mean") {
    return mean_of(values);
  }
  if (missing == "median") {
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0.0 : quantile(sorted, 0.5);
  }
  return parse_number(missing, {}).value_or(0.0);
}

/// A column of text is one of truth values or of dates when all its words are.
Kind kind_of(const Table& table, size_t c, const Options& options, bool is_date) {
  const TableColumn& column = table.columns[c];
  if (!column.is_text) {
    return Kind::Number;
  }
  if (is_date) {
    return Kind::Date;
  }
  const bool are_booleans =
      !column.words.empty() && column.words.size() <= 2 &&
      std::all_of(column.words.begin(), column.words.end(), [](const std::string& word) {
        return parse_boolean(word);
      });
  if (are_booleans) {
    return Kind::Boolean;
  }
  return date_order_of(table, c, options.date_order) ? Kind::Date : Kind::Category;
}

FittedFeature fit_feature(const Table& table, size_t c, const Rows& rows, const Options& options) {
  const TableColumn& column = table.columns[c];
  FittedFeature feature;
  feature.name = column.name;
  const bool is_text = matches_any(options.text_columns, column.name);
  const bool is_date = matches_any(options.date_columns, column.name);
  feature.kind = is_text ? Kind::Category : kind_of(table, c, options, is_date);
  if (feature.kind == Kind::Category) {
    feature.words = words_of_rows(column, rows);
    return feature;
  }
  feature.parts = feature.kind == Kind::Date ? options.date_parts : std::vector<std::string>{""};
  if (feature.kind == Kind::Date) {
    feature.date_order = likeliest_date_order(table, c, options.date_order);
  }
  bool has_missing = false;
  for (const std::string& part : feature.parts) {
    const ColumnNumbers numbers(table, c, feature.kind, part, feature.date_order, rows);
    std::vector<double> values;
    values.reserve(rows.size());
    for (const size_t row : rows) {
      const double value = numbers[row];
      if (std::isnan(value)) {
        has_missing = true;
      } else {
        values.push_back(value);
      }
    }
    feature.fills.push_back(fit_fill(options.missing, values));
    const bool is_scaled = feature.kind != Kind::Boolean;
    feature.scales.push_back(fit_scale(is_scaled ? options.scale : "none", std::move(values)));
  }
  feature.has_indicator = options.missing_indicator && has_missing;
  return feature;
}

}  // namespace

double NumberScale::of(double x) const {
  const double value = is_log ? std::copysign(std::log1p(std::fabs(x)), x) : x;
  return (value - shift) / factor;
}

NumberScale fit_scale(const std::string& how, std::vector<double> values) {
  NumberScale scale;
  scale.is_log = how == "log";
  if (how == "none" || values.empty()) {
    return scale;
  }
  for (double& value : values) {
    value = scale.of(value);
  }
  if (how == "minmax") {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    scale.shift = *least;
    scale.factor = *most - *least;
  } else if (how == "robust") {
    std::sort(values.begin(), values.end());
    scale.shift = quantile(values, 0.5);
    scale.factor = quantile(values, 0.75) - quantile(values, 0.25);
  } else {
    scale.shift = mean_of(values);
    double squares = 0.0;
    for (const double value : values) {
      squares += (value - scale.shift) * (value - scale.shift);
    }
    scale.factor = std::sqrt(squares / static_cast<double>(values.size()));
  }
  const bool is_constant = !(scale.factor > 1e-12 * std::fabs(scale.shift)) || scale.factor == 0.0;
  scale.factor = is_constant || !std::isfinite(scale.factor) ? 1.0 : scale.factor;
  return scale;
}

std::vector<std::string> words_of_rows(const TableColumn& column, const Rows& rows) {
  std::vector<bool> is_there(column.words.size(), false);
  for (const size_t row : rows) {
    if (column.codes[row] >= 0) {
      is_there[static_cast<size_t>(column.codes[row])] = true;
    }
  }
  std::vector<std::string> words;
  for (size_t i = 0; i < is_there.size(); ++i) {
    if (is_there[i]) {
      words.push_back(column.words[i]);
    }
  }
  std::sort(words.begin(), words.end());
  return words;
}

TableFit fit_table(const LabelledTable& data,
                   const TableRoles& roles,
                   const std::vector<size_t>& rows,
                   const CsvTable::Options& options) {
  TableFit fit;
  fit.fills_missing = options.missing != "error" && options.missing != "drop";
  for (const size_t column : roles.features) {
    fit.features.push_back(fit_feature(data.table, column, rows, options));
  }
  fit.unused = roles.unused;
  fit.label = fit_label(data, rows, options);
  return fit;
}

}  // namespace rondo
