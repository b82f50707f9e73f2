#include <ATen/ops/empty.h>

#include <cmath>
#include <unordered_map>
#include <utility>

#include "data/tables/column_numbers.h"
#include "data/tables/table_fit.h"
#include "data/tables/table_label.h"

namespace rondo {

namespace {

using Kind = FittedFeature::Kind;
using Rows = std::vector<size_t>;

struct Target {
  float* values;
  size_t width;
};

/// Writes the parts of a feature of numbers, and its indicator, into columns from `at` on.
void encode_numbers(const Table& table,
                    size_t column,
                    const FittedFeature& feature,
                    const TableFit& fit,
                    const Rows& rows,
                    const std::string& date_order,
                    const Target& out,
                    size_t& at) {
  CellFaults missing;
  CellFaults too_large;
  for (size_t p = 0; p < feature.parts.size(); ++p, ++at) {
    const ColumnNumbers numbers(table, column, feature.kind, feature.parts[p], date_order, rows);
    for (size_t i = 0; i < rows.size(); ++i) {
      double value = numbers[rows[i]];
      if (std::isnan(value)) {
        if (!fit.fills_missing) {
          missing.add(rows[i]);
        }
        value = feature.fills[p];
      }
      const double scaled = feature.scales[p].of(value);
      if (!is_float32(scaled)) {
        too_large.add(rows[i]);
      }
      out.values[i * out.width + at] = static_cast<float>(scaled);
    }
  }
  if (!missing.empty()) {
    missing.fail(table,
                 column,
                 kNumberExpected,
                 "missing = \"mean\", \"median\", \"drop\" or a number handles missing cells");
  }
  if (!too_large.empty()) {
    too_large.fail(table, column, kNumberExpected, "");
  }
  if (feature.has_indicator) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const bool is_missing = table.columns[column].is_missing(rows[i]);
      out.values[i * out.width + at] = is_missing ? 1.0F : 0.0F;
    }
    ++at;
  }
}

void encode_words(const Table& table,
                  size_t column,
                  const FittedFeature& feature,
                  const TableFit& fit,
                  const Rows& rows,
                  int64_t* out,
                  size_t width) {
  const TableColumn& words = table.columns[column];
  std::unordered_map<std::string, int64_t> codes;
  for (size_t i = 0; i < feature.words.size(); ++i) {
    codes[feature.words[i]] = static_cast<int64_t>(i) + 1;
  }
  std::vector<int64_t> of_words;
  for (const std::string& word : words.words) {
    const auto found = codes.find(word);
    of_words.push_back(found == codes.end() ? 0 : found->second);
  }
  CellFaults missing;
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool is_missing = words.is_missing(rows[i]);
    if (is_missing && !fit.fills_missing) {
      missing.add(rows[i]);
    }
    out[i * width] = is_missing ? 0 : of_words[static_cast<size_t>(words.codes[rows[i]])];
  }
  if (!missing.empty()) {
    missing.fail(
        table,
        column,
        "a word",
        "missing = \"mean\", \"median\", \"drop\" or a number treats it as an unknown word");
  }
}

size_t numbers_in(const FittedFeature& feature) {
  return feature.parts.size() + (feature.has_indicator ? 1 : 0);
}

}  // namespace

EncodedTable encode_table(const LabelledTable& data,
                          const std::vector<size_t>& features,
                          const TableFit& fit,
                          const std::vector<size_t>& rows,
                          const CsvTable::Options& options) {
  size_t numbers = 0;
  size_t categories = 0;
  for (const FittedFeature& feature : fit.features) {
    numbers += numbers_in(feature);
    categories += feature.kind == Kind::Category ? 1 : 0;
  }
  const auto count = static_cast<int64_t>(rows.size());
  EncodedTable encoded;
  encoded.features = at::empty({count, static_cast<int64_t>(numbers)}, at::kFloat);
  if (categories > 0) {
    encoded.categories = at::empty({count, static_cast<int64_t>(categories)}, at::kLong);
  }
  const Target out{encoded.features.data_ptr<float>(), numbers};
  size_t number = 0;
  size_t category = 0;
  for (size_t i = 0; i < fit.features.size(); ++i) {
    const FittedFeature& feature = fit.features[i];
    if (feature.kind == Kind::Category) {
      int64_t* const codes = encoded.categories.data_ptr<int64_t>() + category++;
      encode_words(data.table, features[i], feature, fit, rows, codes, categories);
    } else {
      encode_numbers(data.table, features[i], feature, fit, rows, options.date_order, out, number);
    }
  }
  if (!data.labels.empty()) {
    encoded.labels = encode_label(data, fit.label, rows, options);
  }
  return encoded;
}

}  // namespace rondo
