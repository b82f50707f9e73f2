#include "data/tables/table_label.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "data/tables/column_numbers.h"

namespace rondo {

namespace {

using Kind = FittedFeature::Kind;
using Options = CsvTable::Options;
using Rows = std::vector<size_t>;

constexpr const char* kClassNumber = "the number of a class, an integer >= 0";

/// A number as a class is called: "3", "2.5".
std::string name_of(double number) {
  return fmt::format("{}", number == 0.0 ? 0.0 : number);
}

/// Numbers of a label over the rows for training.
struct LabelNumbers {
  std::vector<double> distinct;  // ascending
  size_t rows = 0;
  bool are_whole = true;
};

LabelNumbers label_numbers(const TableColumn& column, const Rows& rows) {
  std::set<double> distinct;
  LabelNumbers numbers;
  for (const size_t row : rows) {
    const double value = column.numbers[row];
    if (!std::isnan(value)) {
      ++numbers.rows;
      numbers.are_whole = numbers.are_whole && value == std::floor(value);
      distinct.insert(value);
    }
  }
  numbers.distinct.assign(distinct.begin(), distinct.end());
  return numbers;
}

/// "class", "category" or "value" for a label of numbers.
/// \throws DataError  when it can be more than one of them
std::string detect_label_type(const LabelledTable& data, const Rows& rows) {
  const LabelNumbers numbers = label_numbers(data.label(0), rows);
  if (!numbers.are_whole || numbers.distinct.empty()) {
    return "value";
  }
  const size_t count = numbers.distinct.size();
  const double least = numbers.distinct.front();
  const double most = numbers.distinct.back();
  const bool has_no_gap = most - least + 1.0 == static_cast<double>(count);
  constexpr size_t kMostClasses = 1000;
  if (has_no_gap && (least == 0.0 || least == 1.0) && count <= kMostClasses &&
      2 * count <= std::max<size_t>(numbers.rows, 4)) {
    return least == 0.0 ? "class" : "category";
  }
  if (count == 2) {
    return "category";
  }
  constexpr size_t kFew = 50;
  if (count > kFew && 20 * count > numbers.rows) {
    return "value";
  }
  const Table::Found first = data.label_table.find(rows.front(), data.labels[0]);
  throw DataError(fmt::format(
      "{}: column \"{}\" holds {} whole numbers from {} to {}, which can be classes or values; set "
      "label_type = \"value\", \"category\" (classes that are numbered in order) or \"class\" (the "
      "numbers as they are)",
      first.place,
      data.label(0).name,
      count,
      least,
      most));
}

/// Truth values in their order, words in theirs, numbers in theirs.
std::vector<std::string> class_words(const TableColumn& column, const Rows& rows) {
  std::vector<std::string> words;
  if (!column.is_text) {
    for (const double number : label_numbers(column, rows).distinct) {
      words.push_back(name_of(number));
    }
    return words;
  }
  words = words_of_rows(column, rows);
  const bool are_booleans =
      std::all_of(words.begin(), words.end(), [](const auto& word) { return parse_boolean(word); });
  if (are_booleans) {
    std::stable_sort(words.begin(), words.end(), [](const auto& a, const auto& b) {
      return *parse_boolean(a) < *parse_boolean(b);
    });
  }
  return words;
}

/// The number of each row's class; -1 for one that training did not have.
/// \throws DataError  for missing cells, and for numbers that are no class
std::vector<int64_t> class_numbers(const LabelledTable& data,
                                   const FittedLabel& label,
                                   const Rows& rows,
                                   const std::optional<int64_t>& below) {
  const TableColumn& column = data.label(0);
  std::unordered_map<std::string, int64_t> numbers;
  for (size_t i = 0; i < label.words.size(); ++i) {
    numbers[label.words[i]] = static_cast<int64_t>(i);
  }
  const auto number_of = [&](const std::string& word) {
    const auto found = numbers.find(word);
    return found == numbers.end() ? -1 : found->second;
  };
  std::vector<int64_t> of_words;
  for (const std::string& word : column.words) {
    of_words.push_back(number_of(word));
  }
  CellFaults no_class;
  CellFaults too_large;
  std::vector<int64_t> classes;
  const auto has_class = [&](size_t row) {
    constexpr double kMost = 9e15;
    const bool is_number = !column.is_text && label.words.empty();
    const double value = is_number ? column.numbers[row] : 0.0;
    return !column.is_missing(row) && value >= 0.0 && value <= kMost && value == std::floor(value);
  };
  for (const size_t row : rows) {
    int64_t number = -1;
    if (!has_class(row)) {
      no_class.add(row);
    } else if (column.is_text) {
      number = of_words[static_cast<size_t>(column.codes[row])];
    } else if (!label.words.empty()) {
      number = number_of(name_of(column.numbers[row]));
    } else {
      number = static_cast<int64_t>(column.numbers[row]);
      if (below && number >= *below) {
        too_large.add(row);
      }
    }
    classes.push_back(number);
  }
  if (!no_class.empty()) {
    no_class.fail(data.label_table,
                  data.labels[0],
                  label.words.empty() ? kClassNumber : "a class",
                  label.words.empty() ? "for any number set label_type = \"value\"" : "");
  }
  if (!too_large.empty()) {
    too_large.fail(data.label_table,
                   data.labels[0],
                   fmt::format("the number of a class below {}", *below),
                   "");
  }
  return classes;
}

/// \throws DataError  naming the places of classes that training did not have
void require_known_classes(const LabelledTable& data,
                           const FittedLabel& label,
                           const Rows& rows,
                           const std::vector<int64_t>& classes) {
  CellFaults unknown;
  const auto count = static_cast<int64_t>(label.rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (classes[i] < 0 || classes[i] >= count) {
      unknown.add(rows[i]);
    }
  }
  if (!unknown.empty()) {
    unknown.fail(data.label_table,
                 data.labels[0],
                 fmt::format("one of the {} classes of the training data", count),
                 "");
  }
}

at::Tensor encode_values(const LabelledTable& data, const FittedLabel& label, const Rows& rows) {
  const auto count = static_cast<int64_t>(rows.size());
  const auto width = static_cast<int64_t>(data.labels.size());
  at::Tensor values =
      width == 1 ? at::empty({count}, at::kFloat) : at::empty({count, width}, at::kFloat);
  auto* out = values.data_ptr<float>();
  for (size_t t = 0; t < data.labels.size(); ++t) {
    const ColumnNumbers numbers(data.label_table, data.labels[t], Kind::Number, "", "", rows);
    CellFaults faults;
    for (size_t i = 0; i < rows.size(); ++i) {
      const double scaled = label.scales[t].of(numbers[rows[i]]);
      if (!is_float32(scaled)) {
        faults.add(rows[i]);
      }
      out[i * data.labels.size() + t] = static_cast<float>(scaled);
    }
    if (!faults.empty()) {
      faults.fail(data.label_table, data.labels[t], kNumberExpected, "");
    }
  }
  return values;
}

at::Tensor encode_classes(const LabelledTable& data,
                          const FittedLabel& label,
                          const Rows& rows,
                          const std::optional<int64_t>& below) {
  const std::vector<int64_t> classes = class_numbers(data, label, rows, below);
  require_known_classes(data, label, rows, classes);
  at::Tensor tensor = at::empty({static_cast<int64_t>(rows.size())}, at::kLong);
  std::copy(classes.begin(), classes.end(), tensor.data_ptr<int64_t>());
  return tensor;
}

}  // namespace

FittedLabel fit_label(const LabelledTable& data, const Rows& rows, const Options& options) {
  FittedLabel label;
  for (size_t i = 0; i < data.labels.size(); ++i) {
    label.names.push_back(data.label(i).name);
  }
  if (data.labels.empty()) {
    return label;
  }
  std::string type = options.target_columns.empty() ? options.label_type : "value";
  if (data.label(0).is_text && type != "value") {
    type = "category";
  } else if (type == "auto") {
    type = detect_label_type(data, rows);
  }
  label.is_class = type != "value";
  if (!label.is_class) {
    for (size_t i = 0; i < data.labels.size(); ++i) {
      const ColumnNumbers numbers(data.label_table, data.labels[i], Kind::Number, "", "", rows);
      std::vector<double> values;
      for (const size_t row : rows) {
        if (!std::isnan(numbers[row])) {
          values.push_back(numbers[row]);
        }
      }
      label.scales.push_back(fit_scale(options.target_scale, std::move(values)));
    }
    return label;
  }
  label.words = type == "category" ? class_words(data.label(0), rows) : label.words;
  const std::vector<int64_t> classes = class_numbers(data, label, rows, options.classes);
  const int64_t most = classes.empty() ? -1 : *std::max_element(classes.begin(), classes.end());
  constexpr int64_t kMostClasses = 10'000'000;
  if (most >= kMostClasses) {
    CellFaults faults;
    const auto at = std::find(classes.begin(), classes.end(), most) - classes.begin();
    faults.add(rows[static_cast<size_t>(at)]);
    faults.fail(data.label_table,
                data.labels[0],
                fmt::format("the number of a class below {}", kMostClasses),
                "to number the classes in order set label_type = \"category\"");
  }
  const int64_t count = label.words.empty() ? std::max(most + 1, options.classes.value_or(0))
                                            : static_cast<int64_t>(label.words.size());
  label.rows.assign(static_cast<size_t>(count), 0);
  for (const int64_t number : classes) {
    ++label.rows[static_cast<size_t>(number)];
  }
  return label;
}

at::Tensor encode_label(const LabelledTable& data,
                        const FittedLabel& label,
                        const Rows& rows,
                        const Options& options) {
  return label.is_class ? encode_classes(data, label, rows, options.classes)
                        : encode_values(data, label, rows);
}

}  // namespace rondo
