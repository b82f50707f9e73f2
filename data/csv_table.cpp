#include "data/csv_table.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/fingerprint.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/data_dir.h"
#include "data/internal/rows.h"
#include "data/optional_reader.h"
#include "data/register.h"
#include "data/tables/column_numbers.h"
#include "data/tables/learnt_format.h"
#include "data/tables/row_ids.h"
#include "data/tables/table_cache.h"
#include "data/tables/table_fit.h"
#include "data/tables/table_roles.h"

namespace rondo {

namespace {

using Options = CsvTable::Options;

bool has_target_file(const Options& options) {
  return !options.target_file.empty();
}

/// A word for what is done with missing cells, or the number that stands for them.
bool is_missing_policy(const std::string& text) {
  return text == "error" || text == "mean" || text == "median" || text == "drop" ||
         parse_number(text, {});
}

TableFormat format_of(const Options& options) {
  TableFormat format;
  format.delimiter = options.delimiter;
  format.decimal = options.decimal;
  format.thousands = options.thousands;
  format.header = options.header;
  format.encoding = options.encoding;
  format.skip_lines = options.skip_lines;
  format.comment = options.comment;
  format.missing_values = options.missing_values;
  format.max_unpacked_bytes = options.max_unpacked_bytes;
  format.query = options.query;
  return format;
}

/// As the options say; what they leave open as training had it, where that is known.
TableFormat format_of(const Options& options, const std::optional<TableFormat>& learnt) {
  const TableFormat asked = format_of(options);
  return learnt ? with_learnt(asked, *learnt) : asked;
}

/// By which the line of names is found.
std::vector<std::string> names_in_header(const Options& options, const TableFit* fit) {
  std::vector<std::string> names = named_columns(options);
  if (fit != nullptr && fit->format && fit->format->header == "yes") {
    for (const FittedFeature& feature : fit->features) {
      names.push_back(feature.name);
    }
  }
  return names;
}

/// The files of a table. A relative name is looked for in the current directory when nothing says
/// where data is.
std::vector<std::filesystem::path> files_of(const Options& options, const std::string& name) {
  const bool has_place = options.data_dir || !default_data_dir().empty();
  return find_data_files(has_place ? options.data_dir : std::filesystem::path("."),
                         {"CsvTable", {name}, options.folder, ""});
}

/// The table of the label where it is in a file of its own: one column, or that of its name.
Table read_targets(const Options& options, const TableFormat& format) {
  const std::vector<std::string> names = label_names(options);
  const auto plan = [&](const TableDialect& dialect) {
    std::vector<ColumnUse> uses(dialect.names.size(), ColumnUse::None);
    bool has_any = false;
    for (size_t c = 0; c < dialect.names.size(); ++c) {
      const bool is_named = std::any_of(names.begin(), names.end(), [&](const auto& name) {
        return find_column(dialect, name) == c;
      });
      uses[c] = is_named ? ColumnUse::Auto : ColumnUse::None;
      has_any = has_any || is_named;
    }
    if (!has_any && dialect.names.size() == 1) {
      uses[0] = ColumnUse::Auto;
    } else if (!has_any) {
      throw DataError(fmt::format("{}: there is no column {}; the columns are {}",
                                  options.target_file,
                                  fmt::join(names, ", "),
                                  dialect.names));
    }
    return uses;
  };
  return read_table(files_of(options, options.target_file), format, plan, names);
}

std::vector<size_t> columns_in_use(const Table& table) {
  std::vector<size_t> columns;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (!table.columns[c].numbers.empty() || !table.columns[c].codes.empty()) {
      columns.push_back(c);
    }
  }
  return columns;
}

/// The files of a table as they were read.
struct ReadFiles {
  std::string file;  ///< the first one
  TableFormat format;
  TableFormat target_format;
  TableRoles roles;
  Table table;
  std::optional<Table> targets;  ///< where the label is in a file of its own

  LabelledTable data() const {
    return {table, targets ? *targets : table, targets ? columns_in_use(*targets) : roles.labels};
  }
};

ReadFiles read_files(const std::vector<std::filesystem::path>& paths,
                     const Options& options,
                     const TableFit* given) {
  ReadFiles read;
  read.file = paths.front().string();
  if (given != nullptr) {
    require_learnt_date_order(options.date_order, *given);
  }
  read.format = format_of(options, given != nullptr ? given->format : std::nullopt);
  read.target_format = format_of(options, given != nullptr ? given->target_format : std::nullopt);
  const auto plan = [&](const TableDialect& dialect) {
    read.roles = roles_of(read.file, dialect, options, given);
    return uses_of(read.roles, dialect, options, given);
  };
  read.table = read_table(paths, read.format, plan, names_in_header(options, given));
  if (has_target_file(options)) {
    read.targets = read_targets(options, read.target_format);
    if (read.targets->rows() != read.table.rows()) {
      throw DataError(fmt::format("{} has {} rows, {} has {}",
                                  read.file,
                                  read.table.rows(),
                                  options.target_file,
                                  read.targets->rows()));
    }
  }
  return read;
}

/// Adds to what was learnt how the files are written, where it is not known.
void add_formats(const ReadFiles& read, TableFit& fit) {
  if (!fit.format) {
    fit.format = learnt_format(read.table, read.format);
  }
  if (read.targets && !fit.target_format) {
    fit.target_format = learnt_format(*read.targets, read.target_format);
  }
}

/// Rows without a missing cell in any of the columns that are used.
std::vector<size_t> complete_rows(const LabelledTable& data,
                                  const std::vector<size_t>& features,
                                  const std::vector<size_t>& rows) {
  std::vector<size_t> complete;
  for (const size_t row : rows) {
    const bool is_missing =
        std::any_of(features.begin(),
                    features.end(),
                    [&](size_t c) { return data.table.columns[c].is_missing(row); }) ||
        std::any_of(data.labels.begin(), data.labels.end(), [&](size_t c) {
          return data.label_table.columns[c].is_missing(row);
        });
    if (!is_missing) {
      complete.push_back(row);
    }
  }
  return complete;
}

/// That of a column which training saw; else as the options say.
std::string date_order_of(const std::string& column, const Options& options, const TableFit* fit) {
  for (const FittedFeature& feature :
       fit != nullptr ? fit->features : std::vector<FittedFeature>()) {
    if (feature.name == column && !feature.date_order.empty()) {
      return feature.date_order;
    }
  }
  return options.date_order;
}

/// What a split goes by, for each of `rows`.
std::vector<double> split_keys(const LabelledTable& data,
                               const TableRoles& roles,
                               const std::vector<size_t>& rows,
                               const Options& options,
                               const TableFit* given) {
  if (options.split.by == "stratified") {
    if (data.labels.size() != 1) {
      throw UsageError("CsvTable: split.by = \"stratified\" needs a label_column");
    }
    return row_keys(data.label_table, data.labels[0], false, options.date_order, rows);
  }
  if (roles.split) {
    const bool is_time = options.split.by.rfind("time:", 0) == 0;
    const std::string order = date_order_of(column_of(options.split), options, given);
    return row_keys(data.table, *roles.split, is_time, order, rows);
  }
  return {};
}

std::vector<size_t> rows_of(const std::vector<size_t>& rows,
                            const std::vector<TablePart>& parts,
                            TablePart part) {
  std::vector<size_t> found;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (parts[i] == part) {
      found.push_back(rows[i]);
    }
  }
  return found;
}

std::vector<size_t> used_rows(const std::vector<size_t>& rows,
                              const std::vector<TablePart>& parts,
                              const std::string& part) {
  if (part == "all") {
    return rows;
  }
  const TablePart wanted = part == "train" ? TablePart::Train
                           : part == "val" ? TablePart::Val
                                           : TablePart::Test;
  return rows_of(rows, parts, wanted);
}

at::Tensor encode_weights(const Table& table, size_t column, const std::vector<size_t>& rows) {
  at::Tensor weights = at::empty({static_cast<int64_t>(rows.size())}, at::kFloat);
  auto* out = weights.data_ptr<float>();
  CellFaults faults;
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool is_text = table.columns[column].is_text;
    const double weight = is_text ? -1.0 : table.columns[column].numbers[rows[i]];
    if (!(weight >= 0.0) || !std::isfinite(static_cast<float>(weight))) {
      faults.add(rows[i]);
    }
    out[i] = static_cast<float>(weight);
  }
  if (!faults.empty()) {
    faults.fail(table, column, "a weight, a number >= 0", "");
  }
  return weights;
}

/// Everything that reading the files depends on besides them.
std::string text_of(const Options& options) {
  Registry<DataSource> registry("data set");
  register_csv_table(registry);
  return ConfigValue(registry.find("CsvTable")->keys->write(&options)).to_text();
}

/// Stands for rows that are learnt from, where they are not those of the split.
std::string text_of(const std::vector<size_t>& rows) {
  Fingerprint digest;
  for (const size_t row : rows) {
    digest.add(static_cast<uint64_t>(row));
  }
  return rows.empty() ? "" : fmt::format("\nlearnt from {:016x}", digest.value());
}

std::string summary_of(const std::string& file,
                       const TableDialect& dialect,
                       const TableFit& fit,
                       size_t rows,
                       size_t all_rows) {
  const DatasetFacts facts = fit.facts();
  std::string text = fmt::format("{}: {}; {} of {} rows; {} columns: {} number{}",
                                 file,
                                 describe(dialect),
                                 rows,
                                 all_rows,
                                 dialect.names.size(),
                                 *facts.features,
                                 *facts.features == 1 ? "" : "s");
  if (!facts.categories.empty()) {
    text += fmt::format(", {} text column{} as categories",
                        facts.categories.size(),
                        facts.categories.size() == 1 ? "" : "s");
  }
  if (facts.classes) {
    text += fmt::format("; label \"{}\": {} classes", fit.label.names.front(), *facts.classes);
  } else if (!fit.label.names.empty()) {
    text += fmt::format("; to predict: {}", fmt::join(fit.label.names, ", "));
  }
  return text;
}

}  // namespace

CsvTable::CsvTable(const Options& options) : options_(options) {
  check(options);
  load(nullptr);
}

CsvTable::~CsvTable() = default;

void CsvTable::check(const Options& options) {
  const auto require = [](bool holds, const char* key, const char* rule, const std::string& value) {
    detail::require(holds, std::string("CsvTable: ") + key, rule, "\"" + value + "\"");
  };
  require(!options.file.empty(), "file", "given", options.file);
  if (!options.query.empty()) {
    require_reader("SQLITE", "CsvTable: query");
  }
  const std::string& type = options.label_type;
  require(type == "class" || type == "category" || type == "value" || type == "auto",
          "label_type",
          "\"class\", \"category\", \"value\" or \"auto\"",
          type);
  check_format("CsvTable", format_of(options));
  check_split("CsvTable", options.split);
  require(is_missing_policy(options.missing),
          "missing",
          "\"error\", \"mean\", \"median\", \"drop\" or a number",
          options.missing);
  for (const auto* scale : {&options.scale, &options.target_scale}) {
    require(*scale == "none" || *scale == "standard" || *scale == "minmax" || *scale == "robust" ||
                *scale == "log",
            scale == &options.scale ? "scale" : "target_scale",
            "\"none\", \"standard\", \"minmax\", \"robust\" or \"log\"",
            *scale);
  }
  const std::string& order = options.date_order;
  require(order == "auto" || order == "ymd" || order == "dmy" || order == "mdy",
          "date_order",
          "\"auto\", \"ymd\", \"dmy\" or \"mdy\"",
          order);
  for (const std::string& part : options.date_parts) {
    require(part == "days" || part == "year" || part == "month" || part == "day" ||
                part == "weekday" || part == "hour",
            "date_parts",
            "\"days\", \"year\", \"month\", \"day\", \"weekday\" or \"hour\"",
            part);
  }
}

void CsvTable::load(const TableFit* given) {
  const std::vector<std::filesystem::path> paths = files_of(options_, options_.file);
  if (options_.cache.empty()) {
    read(paths, given);
    return;
  }
  std::vector<std::filesystem::path> sources = paths;
  if (has_target_file(options_)) {
    const auto targets = files_of(options_, options_.target_file);
    sources.insert(sources.end(), targets.begin(), targets.end());
  }
  const TableCache cache(options_.cache, sources, text_of(options_) + text_of(learnt_rows_), given);
  if (auto table = cache.find()) {
    take(std::move(*table));
    return;
  }
  read(paths, given);
  cache.store(decoded());
}

/// What the cache keeps of it.
DecodedTable CsvTable::decoded() const {
  DecodedTable table;
  table.fit = fit_->state();
  table.names = names_;
  table.notes = notes_;
  for (const auto& [name, tensor] : tensors()) {
    table.tensors.set(name, tensor);
  }
  return table;
}

void CsvTable::take(DecodedTable table) {
  const auto tensor = [&](const char* name) {
    const at::Tensor* const found = table.tensors.find(name);
    return found != nullptr ? *found : at::Tensor();
  };
  features_ = tensor("features");
  categories_ = tensor("categories");
  labels_ = tensor("label");
  weights_ = tensor("weight");
  names_ = std::move(table.names);
  notes_ = std::move(table.notes);
  fit_ = std::make_unique<TableFit>(TableFit::from(table.fit));
  facts_ = fit_->facts();
}

void CsvTable::read(const std::vector<std::filesystem::path>& paths, const TableFit* given) {
  const ReadFiles read = read_files(paths, options_, given);
  const Table& table = read.table;
  const LabelledTable data = read.data();
  const auto range =
      detail::checked_range("CsvTable", options_.first, options_.count, table.rows());
  std::vector<size_t> rows(static_cast<size_t>(range.second - range.first));
  std::iota(rows.begin(), rows.end(), static_cast<size_t>(range.first));
  if (options_.missing == "drop") {
    rows = complete_rows(data, read.roles.features, rows);
  }
  const std::vector<double> keys = split_keys(data, read.roles, rows, options_, given);
  const DrawnSplit drawn = drawn_split(options_.split, rows, keys);
  if (given != nullptr) {
    require_learnt_split(read.file, drawn, given->splits);
  }
  const std::vector<TablePart> parts = split_rows(options_.split, rows.size(), keys);
  const std::string part = options_.split.part.value_or("all");
  const std::vector<size_t> used = used_rows(rows, parts, part);
  if (used.empty()) {
    throw DataError(
        fmt::format("{}: no row is left for part \"{}\" of the split", read.file, part));
  }
  const std::vector<size_t> trained =
      learnt_rows_.empty() ? rows_of(rows, parts, TablePart::Train) : learnt_rows_;
  TableFit fit = given != nullptr ? *given : fit_table(data, read.roles, trained, options_);
  add_formats(read, fit);
  if (fit.splits.empty()) {
    fit.splits = {drawn};
  }
  EncodedTable encoded = encode_table(data, read.roles.features, fit, used, options_);
  features_ = std::move(encoded.features);
  categories_ = std::move(encoded.categories);
  labels_ = std::move(encoded.labels);
  weights_ = read.roles.weight ? encode_weights(table, *read.roles.weight, used) : at::Tensor();
  names_ = row_names(table, used, read.roles.id);
  facts_ = fit.facts();
  notes_.summary =
      summary_of(read.file, table.dialect, fit, used.size(), static_cast<size_t>(table.rows()));
  notes_.warnings = table.notes;
  if (given == nullptr) {
    const std::vector<std::string> ids = warn_of_ids(table, read.roles.features);
    notes_.warnings.insert(notes_.warnings.end(), ids.begin(), ids.end());
  }
  fit_ = std::make_unique<TableFit>(std::move(fit));
}

Sample CsvTable::get(int64_t index) const {
  return detail::only_sample(get_batch({index}));
}

/// Those that the table has.
std::vector<NamedTensor> CsvTable::tensors() const {
  std::vector<NamedTensor> there;
  for (const NamedTensor& tensor : {NamedTensor{"features", features_},
                                    NamedTensor{"categories", categories_},
                                    NamedTensor{"label", labels_},
                                    NamedTensor{"weight", weights_}}) {
    if (tensor.second.defined()) {
      there.push_back(tensor);
    }
  }
  return there;
}

Batch CsvTable::get_batch(const std::vector<int64_t>& indices) const {
  Batch batch;
  for (const auto& [name, rows] : tensors()) {
    batch.set(name, detail::gather_rows(rows, indices));
  }
  return batch;
}

std::vector<double> CsvTable::numbers(const std::string& name) const {
  const std::vector<NamedTensor> there = tensors();
  const bool is_tensor = std::any_of(
      there.begin(), there.end(), [&](const NamedTensor& tensor) { return tensor.first == name; });
  if (is_tensor) {
    return Dataset::numbers(name);
  }
  size_t column = 0;
  const auto plan = [&](const TableDialect& dialect) {
    const auto found = find_column(dialect, name);
    if (!found) {
      throw DataError(fmt::format("{}: there is no tensor and no column \"{}\"{}",
                                  options_.file,
                                  name,
                                  suggestion(name, dialect.names)));
    }
    column = *found;
    std::vector<ColumnUse> uses(dialect.names.size(), ColumnUse::None);
    uses[column] = matches_any(name, options_.date_columns) ? ColumnUse::Text : ColumnUse::Auto;
    return uses;
  };
  const Table table = read_table(files_of(options_, options_.file),
                                 format_of(options_, fit_->format),
                                 plan,
                                 names_in_header(options_, fit_.get()));
  const auto* const first = names_.rows.data_ptr<int64_t>();
  if (table.rows() <= *std::max_element(first, first + size())) {
    throw DataError(fmt::format("{}: the file has {} rows now, fewer than when it was read first",
                                options_.file,
                                table.rows()));
  }
  const std::string order = date_order_of(name, options_, fit_.get());
  return row_keys(table, column, true, order, {first, first + size()});
}

StateDict CsvTable::fitted() const {
  return fit_->state();
}

void CsvTable::take_fitted(const StateDict& fitted) {
  const TableFit fit = TableFit::from(fitted);
  if (first_difference(fit.state(), fit_->state()).empty()) {
    return;
  }
  load(&fit);
}

void CsvTable::learn_from(const std::vector<int64_t>& samples) {
  if (splits_rows(options_.split)) {
    return;
  }
  const auto* const rows = names_.rows.data_ptr<int64_t>();
  learnt_rows_.clear();
  for (const int64_t sample : samples) {
    learnt_rows_.push_back(static_cast<size_t>(rows[sample]));
  }
  load(nullptr);
}

std::vector<DatasetFacts::Target> CsvTable::feature_scales() const {
  return fit_->feature_scales();
}

std::string CsvTable::sample_name(int64_t index) const {
  detail::check_index(index, size());
  return names_.of(index);
}

}  // namespace rondo
