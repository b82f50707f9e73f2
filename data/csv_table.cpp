#include "data/csv_table.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/glob.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/data_dir.h"
#include "data/internal/csv_reader.h"
#include "data/internal/read_file.h"
#include "data/internal/rows.h"
#include "data/register.h"

namespace rondo {

namespace {

constexpr const char* kNumber = "a finite number of float32";

/// The columns that are used, by number.
struct Columns {
  std::vector<std::string> names;  // of the whole table
  std::vector<size_t> features;
  size_t label = 0;
};

/// What the rows hold, one after the other.
struct Values {
  std::vector<float> features;
  std::vector<int64_t> classes;
  std::vector<float> targets;
};

size_t column_number(const detail::CsvReader& reader,
                     const std::vector<std::string>& names,
                     const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    reader.fail(1, fmt::format("there is no column \"{}\"{}", name, suggestion(name, names)));
  }
  return static_cast<size_t>(found - names.begin());
}

Columns read_header(detail::CsvReader& reader, const CsvTable::Options& options) {
  std::vector<detail::CsvField> fields;
  if (!reader.next(fields)) {
    reader.fail(1, "the file is empty; its first line names the columns");
  }
  Columns columns;
  for (const detail::CsvField& field : fields) {
    std::string name(field.text);
    if (std::find(columns.names.begin(), columns.names.end(), name) != columns.names.end()) {
      reader.fail(field.position, fmt::format("there are two columns \"{}\"", name));
    }
    columns.names.push_back(std::move(name));
  }
  columns.label = column_number(reader, columns.names, options.label_column);
  for (const std::string& name : options.feature_columns) {
    columns.features.push_back(column_number(reader, columns.names, name));
  }
  for (size_t i = 0; i < columns.names.size() && options.feature_columns.empty(); ++i) {
    if (i != columns.label) {
      columns.features.push_back(i);
    }
  }
  return columns;
}

/// \tparam Number  double or int64_t
template <class Number>
Number read_number(const detail::CsvReader& reader,
                   const detail::CsvField& field,
                   const std::string& column,
                   const char* expected) {
  Number value{};
  const char* end = field.text.data() + field.text.size();
  const char* begin = field.text.data() + (field.text.substr(0, 1) == "+" ? 1 : 0);
  const auto [stop, error] = std::from_chars(begin, end, value);
  bool holds = error == std::errc() && stop == end;
  if constexpr (std::is_floating_point_v<Number>) {
    holds = holds && std::isfinite(static_cast<float>(value));  // too small for one becomes 0
  } else {
    holds = holds && value >= 0;
  }
  if (!holds) {
    reader.fail(
        field.position,
        fmt::format("column \"{}\": expected {}, got \"{}\"", column, expected, field.text));
  }
  return value;
}

/// The number of a class, below `classes` where that is known.
int64_t read_class(const detail::CsvReader& reader,
                   const detail::CsvField& field,
                   const std::string& column,
                   const std::optional<int64_t>& classes) {
  const auto label =
      read_number<int64_t>(reader, field, column, "the number of a class, an integer >= 0");
  if (classes && label >= *classes) {
    reader.fail(field.position,
                fmt::format("column \"{}\": expected the number of a class below {}, got {}",
                            column,
                            *classes,
                            label));
  }
  return label;
}

void read_row(const detail::CsvReader& reader,
              const std::vector<detail::CsvField>& fields,
              const Columns& columns,
              const CsvTable::Options& options,
              Values& values) {
  if (fields.size() != columns.names.size()) {
    reader.fail(fields.back().position,
                fmt::format("expected {} fields, as the first line has, got {}",
                            columns.names.size(),
                            fields.size()));
  }
  for (const size_t i : columns.features) {
    values.features.push_back(
        static_cast<float>(read_number<double>(reader, fields[i], columns.names[i], kNumber)));
  }
  const std::string& label = columns.names[columns.label];
  const detail::CsvField& field = fields[columns.label];
  if (options.label_type == "class") {
    values.classes.push_back(read_class(reader, field, label, options.classes));
  } else {
    values.targets.push_back(
        static_cast<float>(read_number<double>(reader, field, label, kNumber)));
  }
}

/// The rows [first, end) of `values` as a tensor.
template <class Value>
at::Tensor rows_of(const std::vector<Value>& values,
                   std::pair<int64_t, int64_t> range,
                   std::vector<int64_t> shape,
                   at::ScalarType dtype) {
  at::Tensor rows = at::empty(shape, dtype);
  const size_t row = static_cast<size_t>(rows.numel() / shape[0]);
  if (row > 0) {
    std::memcpy(
        rows.data_ptr(), values.data() + static_cast<size_t>(range.first) * row, rows.nbytes());
  }
  return rows;
}

std::filesystem::path checked_path(const CsvTable::Options& options) {
  detail::require(!options.file.empty(), "CsvTable: file", "given", "\"\"");
  detail::require(options.label_type == "class" || options.label_type == "value",
                  "CsvTable: label_type",
                  "\"class\" or \"value\"",
                  options.label_type);
  detail::require(options.delimiter.size() == 1 && options.delimiter != "\"",
                  "CsvTable: delimiter",
                  "one character other than a quote",
                  options.delimiter);
  return find_data_file(options.data_dir, {"CsvTable", {options.file}, options.folder, ""});
}

}  // namespace

CsvTable::CsvTable(const Options& options) {
  const std::filesystem::path path = checked_path(options);
  const std::string text = detail::read_data_file(path);
  detail::CsvReader reader(path.string(), text, options.delimiter[0]);
  const Columns columns = read_header(reader, options);
  const bool is_class = options.label_type == "class";
  Values values;
  int64_t rows = 0;
  for (std::vector<detail::CsvField> fields; reader.next(fields); ++rows) {
    read_row(reader, fields, columns, options, values);
  }
  if (rows == 0) {
    reader.fail(1, "there are no rows after the line that names the columns");
  }
  const auto range = detail::checked_range("CsvTable", options.first, options.count, rows);
  const int64_t used = range.second - range.first;
  const auto width = static_cast<int64_t>(columns.features.size());
  features_ = rows_of(values.features, range, {used, width}, at::kFloat);
  labels_ = is_class ? rows_of(values.classes, range, {used}, at::kLong)
                     : rows_of(values.targets, range, {used}, at::kFloat);
  for (const size_t i : columns.features) {
    feature_names_.push_back(columns.names[i]);
  }
}

Sample CsvTable::get(int64_t index) const {
  return detail::only_sample(get_batch({index}));
}

Batch CsvTable::get_batch(const std::vector<int64_t>& indices) const {
  return {{"features", detail::gather_rows(features_, indices)},
          {"label", detail::gather_rows(labels_, indices)}};
}

void register_csv_table(Registry<DataSource>& registry) {
  using Options = CsvTable::Options;
  registry.add<CsvTable>("CsvTable", "A table of numbers in a text file with a line of names.")
      .key("file", &Options::file, "name or path of the table")
      .required()
      .key("label_column", &Options::label_column, "the column to predict")
      .key("label_type",
           &Options::label_type,
           one_of({"class", "value"}),
           "an integer that numbers a class, or any number")
      .key("classes", &Options::classes, at_least(1), "classes are below it, where it is given")
      .key("feature_columns",
           &Options::feature_columns,
           "columns of the features, in this order; all others when empty")
      .key("delimiter", &Options::delimiter, "one character between the fields")
      .key("first", &Options::first, at_least(0), "number of the first row that is used")
      .key("count", &Options::count, at_least(1), "rows from there; all when absent")
      .key("data_dir", &Options::data_dir, "directory of the file; else RONDO_DATA")
      .key("folder", &Options::folder, "folder of data_dir that is searched too");
}

}  // namespace rondo
