#include "data/tables/table_fit.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/glob.h"

namespace rondo {

namespace {

using Kind = FittedFeature::Kind;
using Options = CsvTable::Options;
using Rows = std::vector<size_t>;

constexpr const char* kNumber = "a finite number of float32";
constexpr const char* kClassNumber = "the number of a class, an integer >= 0";
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

bool is_float32(double x) {
  return std::isfinite(static_cast<float>(x));
}

/// A number as a class is called: "3", "2.5".
std::string name_of(double number) {
  return fmt::format("{}", number == 0.0 ? 0.0 : number);
}

double date_part(const TableDate& date, const std::string& part) {
  if (part == "days") {
    return date.seconds / 86400.0;
  }
  if (part == "seconds") {
    return date.seconds;
  }
  const std::pair<const char*, int64_t> parts[] = {{"year", date.year},
                                                   {"month", date.month},
                                                   {"day", date.day},
                                                   {"weekday", date.weekday},
                                                   {"hour", date.hour}};
  const auto* found = std::find_if(
      std::begin(parts), std::end(parts), [&](const auto& entry) { return part == entry.first; });
  return static_cast<double>(found->second);
}

/// The number that each word stands for; NaN for those that are none of the kind.
std::vector<double> numbers_of_words(const TableColumn& column,
                                     Kind kind,
                                     const std::string& part,
                                     const std::string& date_order) {
  std::vector<double> numbers;
  for (const std::string& word : column.words) {
    if (kind == Kind::Boolean) {
      const auto value = parse_boolean(word);
      numbers.push_back(value ? (*value ? 1.0 : 0.0) : kMissing);
    } else {
      const auto date = parse_date(word, date_order);
      numbers.push_back(date ? date_part(*date, part) : kMissing);
    }
  }
  return numbers;
}

/// The numbers of a column of numbers, truth values or dates, row by row.
class NumbersOf {
 public:
  /// \throws DataError  for cells that are none of the kind
  NumbersOf(const Table& table,
            size_t column,
            Kind kind,
            const std::string& part,
            const std::string& date_order,
            const Rows& rows)
      : column_(table.columns[column]) {
    if (kind == Kind::Number || !column_.is_text) {
      of_words_.assign(column_.words.size(), kMissing);
    } else {
      of_words_ = numbers_of_words(column_, kind, part, date_order);
    }
    const bool is_foreign = column_.is_text == (kind == Kind::Number);
    CellFaults faults;
    for (const size_t row : rows) {
      const bool is_wrong = is_foreign || std::isnan((*this)[row]);
      if (is_wrong && !column_.is_missing(row)) {
        faults.add(row);
      }
    }
    if (!faults.empty()) {
      faults.fail(table, column, expected_of(kind), "");
    }
  }

  /// NaN where the cell is missing.
  double operator[](size_t row) const {
    if (!column_.is_text) {
      return column_.numbers[row];
    }
    const int32_t code = column_.codes[row];
    return code < 0 ? kMissing : of_words_[static_cast<size_t>(code)];
  }

 private:
  static const char* expected_of(Kind kind) {
    if (kind == Kind::Number) {
      return kNumber;
    }
    return kind == Kind::Boolean ? "true or false" : "a date as date_order has it";
  }

  const TableColumn& column_;
  std::vector<double> of_words_;
};

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

double fit_fill(const std::string& missing, std::vector<double> values) {
  if (missing == "mean") {
    return mean_of(values);
  }
  if (missing == "median") {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0.0 : quantile(values, 0.5);
  }
  return parse_number(missing, {}).value_or(0.0);
}

/// A column of text is one of truth values or of dates when all its words are.
Kind kind_of(const TableColumn& column, const Options& options, bool is_date) {
  if (!column.is_text) {
    return Kind::Number;
  }
  if (is_date) {
    return Kind::Date;
  }
  const bool is_free = !column.words.empty();
  const auto all = [&](auto holds) {
    return is_free && std::all_of(column.words.begin(), column.words.end(), holds);
  };
  if (column.words.size() <= 2 && all([](const auto& word) { return parse_boolean(word); })) {
    return Kind::Boolean;
  }
  return all([&](const auto& word) { return parse_date(word, options.date_order); })
             ? Kind::Date
             : Kind::Category;
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

bool matches_any(const std::string& name, const std::vector<std::string>& globs);

FittedFeature fit_feature(const Table& table, size_t c, const Rows& rows, const Options& options) {
  const TableColumn& column = table.columns[c];
  FittedFeature feature;
  feature.name = column.name;
  const bool is_text = matches_any(column.name, options.text_columns);
  const bool is_date = matches_any(column.name, options.date_columns);
  feature.kind = is_text ? Kind::Category : kind_of(column, options, is_date);
  if (feature.kind == Kind::Category) {
    feature.words = words_of_rows(column, rows);
    return feature;
  }
  feature.parts = feature.kind == Kind::Date ? options.date_parts : std::vector<std::string>{""};
  bool has_missing = false;
  for (const std::string& part : feature.parts) {
    const NumbersOf numbers(table, c, feature.kind, part, options.date_order, rows);
    std::vector<double> values;
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
  constexpr double kMost = 9e15;
  for (const size_t row : rows) {
    int64_t number = -1;
    if (column.is_missing(row)) {
      no_class.add(row);
    } else if (column.is_text) {
      number = of_words[static_cast<size_t>(column.codes[row])];
    } else if (!label.words.empty()) {
      number = number_of(name_of(column.numbers[row]));
    } else if (const double value = column.numbers[row];
               value < 0.0 || value > kMost || value != std::floor(value)) {
      no_class.add(row);
    } else {
      number = static_cast<int64_t>(value);
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
      const NumbersOf numbers(data.label_table, data.labels[i], Kind::Number, "", "", rows);
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

bool matches_any(const std::string& name, const std::vector<std::string>& globs) {
  return std::any_of(
      globs.begin(), globs.end(), [&](const std::string& glob) { return glob_match(glob, name); });
}

// ---- encoding

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
    const NumbersOf numbers(table, column, feature.kind, feature.parts[p], date_order, rows);
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
                 kNumber,
                 "missing = \"mean\", \"median\", \"drop\" or a number says what stands for it");
  }
  if (!too_large.empty()) {
    too_large.fail(table, column, kNumber, "");
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
        "missing = \"mean\", \"median\", \"drop\" or a number takes it for an unknown word");
  }
}

at::Tensor encode_values(const LabelledTable& data, const FittedLabel& label, const Rows& rows) {
  const auto count = static_cast<int64_t>(rows.size());
  const auto width = static_cast<int64_t>(data.labels.size());
  at::Tensor values =
      width == 1 ? at::empty({count}, at::kFloat) : at::empty({count, width}, at::kFloat);
  auto* out = values.data_ptr<float>();
  for (size_t t = 0; t < data.labels.size(); ++t) {
    const NumbersOf numbers(data.label_table, data.labels[t], Kind::Number, "", "", rows);
    CellFaults faults;
    for (size_t i = 0; i < rows.size(); ++i) {
      const double scaled = label.scales[t].of(numbers[rows[i]]);
      if (!is_float32(scaled)) {
        faults.add(rows[i]);
      }
      out[i * data.labels.size() + t] = static_cast<float>(scaled);
    }
    if (!faults.empty()) {
      faults.fail(data.label_table, data.labels[t], kNumber, "");
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

size_t numbers_in(const FittedFeature& feature) {
  return feature.parts.size() + (feature.has_indicator ? 1 : 0);
}

// ---- as a state

constexpr const char* kKinds[] = {"number", "boolean", "date", "category"};

StateList list_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

std::vector<std::string> texts_of(const StateValue& list) {
  std::vector<std::string> texts;
  for (const StateValue& text : list.as_list()) {
    texts.push_back(text.as_string());
  }
  return texts;
}

StateList list_of(const std::vector<NumberScale>& scales) {
  StateList list;
  for (const NumberScale& scale : scales) {
    list.emplace_back(
        StateDict{{"log", scale.is_log}, {"shift", scale.shift}, {"factor", scale.factor}});
  }
  return list;
}

std::vector<NumberScale> scales_of(const StateValue& list) {
  std::vector<NumberScale> scales;
  for (const StateValue& one : list.as_list()) {
    const StateDict& scale = one.as_dict();
    scales.push_back(
        {scale.at("log").as_bool(), scale.at("shift").as_double(), scale.at("factor").as_double()});
  }
  return scales;
}

StateDict state_of(const FittedFeature& feature) {
  return {{"name", feature.name},
          {"kind", kKinds[static_cast<size_t>(feature.kind)]},
          {"has_indicator", feature.has_indicator},
          {"parts", list_of(feature.parts)},
          {"fills", StateList(feature.fills.begin(), feature.fills.end())},
          {"scales", list_of(feature.scales)},
          {"words", list_of(feature.words)}};
}

FittedFeature feature_of(const StateDict& state) {
  FittedFeature feature;
  feature.name = state.at("name").as_string();
  const std::string& kind = state.at("kind").as_string();
  const auto* found = std::find(std::begin(kKinds), std::end(kKinds), kind);
  if (found == std::end(kKinds)) {
    throw CheckpointError(
        fmt::format("column \"{}\" is of the unknown kind \"{}\"", feature.name, kind));
  }
  feature.kind = static_cast<Kind>(found - std::begin(kKinds));
  feature.has_indicator = state.at("has_indicator").as_bool();
  feature.parts = texts_of(state.at("parts"));
  for (const StateValue& fill : state.at("fills").as_list()) {
    feature.fills.push_back(fill.as_double());
  }
  feature.scales = scales_of(state.at("scales"));
  feature.words = texts_of(state.at("words"));
  constexpr const char* kParts[] = {
      "", "days", "seconds", "year", "month", "day", "weekday", "hour"};
  const bool knows_parts =
      std::all_of(feature.parts.begin(), feature.parts.end(), [&](const std::string& part) {
        return std::find(std::begin(kParts), std::end(kParts), part) != std::end(kParts) &&
               part.empty() == (feature.kind != Kind::Date);
      });
  if (!knows_parts || feature.fills.size() != feature.parts.size() ||
      feature.scales.size() != feature.parts.size()) {
    throw CheckpointError(fmt::format("what was learnt of column \"{}\" is damaged", feature.name));
  }
  return feature;
}

}  // namespace

double NumberScale::of(double x) const {
  const double value = is_log ? std::copysign(std::log1p(std::fabs(x)), x) : x;
  return (value - shift) / factor;
}

StateDict TableFit::state() const {
  StateList columns;
  for (const FittedFeature& feature : features) {
    columns.emplace_back(state_of(feature));
  }
  StateDict predicted{{"names", list_of(label.names)},
                      {"is_class", label.is_class},
                      {"words", list_of(label.words)},
                      {"rows", StateList(label.rows.begin(), label.rows.end())},
                      {"scales", list_of(label.scales)}};
  return {{"type", "CsvTable"},
          {"fills_missing", fills_missing},
          {"features", std::move(columns)},
          {"unused", list_of(unused)},
          {"label", std::move(predicted)}};
}

TableFit TableFit::from(const StateDict& state) {
  if (state.at("type").as_string() != "CsvTable") {
    throw CheckpointError(fmt::format("what the data set learnt is that of a {}, not of a CsvTable",
                                      state.at("type").as_string()));
  }
  TableFit fit;
  fit.fills_missing = state.at("fills_missing").as_bool();
  for (const StateValue& feature : state.at("features").as_list()) {
    fit.features.push_back(feature_of(feature.as_dict()));
  }
  fit.unused = texts_of(state.at("unused"));
  const StateDict& label = state.at("label").as_dict();
  fit.label.names = texts_of(label.at("names"));
  fit.label.is_class = label.at("is_class").as_bool();
  fit.label.words = texts_of(label.at("words"));
  for (const StateValue& rows : label.at("rows").as_list()) {
    fit.label.rows.push_back(rows.as_int());
  }
  fit.label.scales = scales_of(label.at("scales"));
  const size_t scales = fit.label.is_class ? 0 : fit.label.names.size();
  if (fit.label.scales.size() != scales ||
      (!fit.label.words.empty() && fit.label.words.size() != fit.label.rows.size())) {
    throw CheckpointError("what was learnt of the label is damaged");
  }
  return fit;
}

DatasetFacts TableFit::facts() const {
  DatasetFacts facts;
  for (const FittedFeature& feature : features) {
    if (feature.kind == Kind::Category) {
      facts.categories.push_back(static_cast<int64_t>(feature.words.size()) + 1);
      facts.category_names.push_back(feature.name);
    }
    for (const std::string& part : feature.parts) {
      const bool is_alone = part.empty() || feature.parts.size() == 1;
      facts.feature_names.push_back(feature.name + (is_alone ? "" : "_" + part));
    }
    if (feature.has_indicator) {
      facts.feature_names.push_back(feature.name + "_missing");
    }
  }
  facts.features = static_cast<int64_t>(facts.feature_names.size());
  if (label.is_class) {
    facts.classes = static_cast<int64_t>(label.rows.size());
    facts.class_names = label.words;
    double all = 0.0;
    for (const int64_t rows : label.rows) {
      all += static_cast<double>(rows);
    }
    for (const int64_t rows : label.rows) {
      const double weight = all / (static_cast<double>(label.rows.size()) *
                                   static_cast<double>(std::max<int64_t>(rows, 1)));
      facts.class_weights.push_back(rows == 0 ? 0.0 : weight);
    }
  } else {
    for (size_t i = 0; i < label.names.size(); ++i) {
      const NumberScale& scale = label.scales[i];
      facts.targets.push_back({label.names[i], scale.is_log, scale.shift, scale.factor});
    }
  }
  return facts;
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
    encoded.labels = fit.label.is_class ? encode_classes(data, fit.label, rows, options.classes)
                                        : encode_values(data, fit.label, rows);
  }
  return encoded;
}

std::vector<std::string> warn_of_ids(const Table& table, const std::vector<size_t>& features) {
  constexpr size_t kFewest = 20;  // rows that say something
  std::vector<std::string> warnings;
  const auto rows = static_cast<size_t>(table.rows());
  for (const size_t c : features) {
    const TableColumn& column = table.columns[c];
    bool counts = !column.is_text && rows >= kFewest;
    for (size_t row = 1; counts && row < rows; ++row) {
      counts = column.numbers[row] == column.numbers[row - 1] + 1.0;
    }
    const bool names = column.is_text && rows >= kFewest && 2 * column.words.size() > rows;
    if (counts || (names && !parse_date(column.words.front(), "ymd"))) {
      warnings.push_back(fmt::format(
          "column \"{}\" {}: if it only names the rows, set ignore_columns = [\"{}\"] or "
          "id_column = \"{}\"",
          column.name,
          counts ? "counts the rows"
                 : fmt::format("has {} different words in {} rows", column.words.size(), rows),
          column.name,
          column.name));
    }
  }
  return warnings;
}

std::vector<double> row_keys(const Table& table,
                             size_t column,
                             bool is_time,
                             const std::string& date_order,
                             const std::vector<size_t>& rows) {
  const TableColumn& cells = table.columns[column];
  std::vector<double> keys;
  CellFaults missing;
  const bool is_date = is_time && cells.is_text;
  std::optional<NumbersOf> dates;
  if (is_date) {
    dates.emplace(table, column, Kind::Date, "seconds", date_order, rows);
  }
  for (const size_t row : rows) {
    if (cells.is_missing(row)) {
      missing.add(row);
    }
    keys.push_back(is_date         ? (*dates)[row]
                   : cells.is_text ? static_cast<double>(cells.codes[row])
                                   : cells.numbers[row]);
  }
  if (!missing.empty()) {
    missing.fail(table, column, is_time ? "a time" : "a group", "");
  }
  return keys;
}

}  // namespace rondo
