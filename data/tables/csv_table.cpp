#include "data/tables/csv_table.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/fingerprint.h"
#include "core/glob.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/internal/rows.h"
#include "data/optional_reader.h"
#include "data/register.h"
#include "data/tables/column_numbers.h"
#include "data/tables/row_ids.h"
#include "data/tables/table_cache.h"
#include "data/tables/table_files.h"
#include "data/tables/table_fit.h"

namespace rondo {

namespace {

using Options = CsvTable::Options;

/// A word for what is done with missing cells, or the number that stands for them.
bool is_missing_policy(const std::string& text) {
  return text == "error" || text == "mean" || text == "median" || text == "drop" ||
         parse_number(text, {});
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

/// Those of the rows whose part `takes` holds of.
template <class Takes>
std::vector<size_t> rows_of(const std::vector<size_t>& rows,
                            const std::vector<TablePart>& parts,
                            Takes takes) {
  std::vector<size_t> found;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (takes(parts[i])) {
      found.push_back(rows[i]);
    }
  }
  return found;
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
  const std::vector<size_t> used =
      rows_of(rows, parts, [&](TablePart part) { return takes(options_.split, part); });
  if (used.empty()) {
    throw DataError(fmt::format("{}: no row is left for part \"{}\" of the split",
                                read.file,
                                options_.split.part.value_or("all")));
  }
  const auto trains = [](TablePart part) { return part == TablePart::Train; };
  const std::vector<size_t> trained =
      learnt_rows_.empty() ? rows_of(rows, parts, trains) : learnt_rows_;
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
    uses[column] = matches_any(options_.date_columns, name) ? ColumnUse::Text : ColumnUse::Auto;
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
