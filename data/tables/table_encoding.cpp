#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>
#include <vector>

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

/// A feature of numbers, with its parts and its indicator.
class NumberFeature {
 public:
  /// \param at  the first of its columns in the target
  NumberFeature(const Table& table,
                size_t column,
                const FittedFeature& feature,
                const Rows& rows,
                const std::string& date_order,
                size_t at)
      : table_(table), column_(column), feature_(feature), rows_(rows), at_(at) {
    for (const std::string& part : feature.parts) {
      parts_.emplace_back(table, column, feature.kind, part, date_order, rows);
    }
  }

  /// Writes the rows from `begin` to `end`.
  void encode(size_t begin, size_t end, const Target& out) {
    size_t at = at_;
    for (size_t p = 0; p < parts_.size(); ++p, ++at) {
      for (size_t i = begin; i < end; ++i) {
        double value = parts_[p][rows_[i]];
        if (std::isnan(value)) {
          missing_.add(rows_[i]);
          value = feature_.fills[p];
        }
        const double scaled = feature_.scales[p].of(value);
        if (!is_float32(scaled)) {
          too_large_.add(rows_[i]);
        }
        out.values[i * out.width + at] = static_cast<float>(scaled);
      }
    }
    for (size_t i = begin; feature_.has_indicator && i < end; ++i) {
      const bool is_missing = table_.columns[column_].is_missing(rows_[i]);
      out.values[i * out.width + at] = is_missing ? 1.0F : 0.0F;
    }
  }

  /// \throws DataError  for cells that no number can stand for
  void require_sound(bool fills_missing) const {
    if (!fills_missing && !missing_.empty()) {
      missing_.fail(table_,
                    column_,
                    kNumberExpected,
                    "missing = \"mean\", \"median\", \"drop\" or a number handles missing cells");
    }
    if (!too_large_.empty()) {
      too_large_.fail(table_, column_, kNumberExpected, "");
    }
  }

 private:
  const Table& table_;
  size_t column_;
  const FittedFeature& feature_;
  const Rows& rows_;
  size_t at_;
  std::vector<ColumnNumbers> parts_;
  CellFaults missing_;
  CellFaults too_large_;
};

/// All features of a few rows after the other, so that these stay in the caches.
void encode_numbers(std::vector<NumberFeature>& features, size_t rows, const Target& out) {
  constexpr size_t kRows = 1024;
  for (size_t begin = 0; begin < rows; begin += kRows) {
    for (NumberFeature& feature : features) {
      feature.encode(begin, std::min(begin + kRows, rows), out);
    }
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

/// Checkpoints without the order are older than "auto".
std::string date_order_in(const FittedFeature& feature, const CsvTable::Options& options) {
  if (!feature.date_order.empty()) {
    return feature.date_order;
  }
  return options.date_order == "auto" ? "ymd" : options.date_order;
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
  std::vector<NumberFeature> of_numbers;
  size_t number = 0;
  size_t category = 0;
  for (size_t i = 0; i < fit.features.size(); ++i) {
    const FittedFeature& feature = fit.features[i];
    if (feature.kind == Kind::Category) {
      int64_t* const codes = encoded.categories.data_ptr<int64_t>() + category++;
      encode_words(data.table, features[i], feature, fit, rows, codes, categories);
    } else {
      of_numbers.emplace_back(
          data.table, features[i], feature, rows, date_order_in(feature, options), number);
      number += numbers_in(feature);
    }
  }
  encode_numbers(of_numbers, rows.size(), {encoded.features.data_ptr<float>(), numbers});
  for (const NumberFeature& feature : of_numbers) {
    feature.require_sound(fit.fills_missing);
  }
  if (!data.labels.empty()) {
    encoded.labels = encode_label(data, fit.label, rows, options);
  }
  return encoded;
}

}  // namespace rondo
