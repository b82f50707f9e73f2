#include "data/csv_table.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/glob.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/data_dir.h"
#include "data/internal/rows.h"
#include "data/register.h"
#include "data/tables/table_fit.h"

namespace rondo {

namespace {

using Options = CsvTable::Options;

bool has_target_file(const Options& options) {
  return !options.target_file.empty();
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
  return format;
}

/// The columns that are predicted, as the options call them.
std::vector<std::string> label_names(const Options& options) {
  if (!options.target_columns.empty()) {
    return options.target_columns;
  }
  return options.label_column.empty() ? std::vector<std::string>()
                                      : std::vector<std::string>{options.label_column};
}

/// Every column that the options name without a glob.
std::vector<std::string> known_names(const Options& options) {
  std::vector<std::string> names = label_names(options);
  for (const auto* list : {&options.feature_columns,
                           &options.ignore_columns,
                           &options.text_columns,
                           &options.date_columns}) {
    names.insert(names.end(), list->begin(), list->end());
  }
  for (const std::string& name :
       {options.weight_column, options.id_column, column_of(options.split)}) {
    names.push_back(name);
  }
  names.erase(std::remove(names.begin(), names.end(), ""), names.end());
  return names;
}

bool matches_any(const std::string& name, const std::vector<std::string>& globs) {
  return std::any_of(
      globs.begin(), globs.end(), [&](const std::string& glob) { return glob_match(glob, name); });
}

/// The number in the table of a column that the options call `name`: by its name; where no line
/// names the columns also by its number, from 1, or from the end: "-1" is the last one.
std::optional<size_t> find_column(const TableDialect& dialect, const std::string& name) {
  const auto found = std::find(dialect.names.begin(), dialect.names.end(), name);
  if (found != dialect.names.end()) {
    return static_cast<size_t>(found - dialect.names.begin());
  }
  int64_t number = 0;
  const char* const end = name.data() + name.size();
  const auto count = static_cast<int64_t>(dialect.names.size());
  const bool is_number = std::from_chars(name.data(), end, number).ptr == end;
  if (dialect.has_header || !is_number || number == 0 || std::abs(number) > count) {
    return std::nullopt;
  }
  return static_cast<size_t>(number > 0 ? number - 1 : count + number);
}

/// The columns of a table by their roles; what is asked for is there.
class Roles {
 public:
  Roles(std::string file, const TableDialect& dialect, const Options& options)
      : file_(std::move(file)), dialect_(dialect), options_(options) {
    if (!has_target_file(options)) {
      for (const std::string& name : label_names(options)) {
        labels.push_back(required(name));
      }
    }
    weight = optional(options.weight_column);
    id = optional(options.id_column);
    split = optional(column_of(options.split));
    for (const auto* list :
         {&options.ignore_columns, &options.text_columns, &options.date_columns}) {
      require_matches(*list);
    }
    find_features();
  }

  /// How each column is read. \param words  columns that training read as words
  std::vector<ColumnUse> uses(const std::vector<std::string>& words) const {
    std::vector<ColumnUse> uses(dialect_.names.size(), ColumnUse::None);
    const auto use = [&](size_t c) {
      const std::string& name = dialect_.names[c];
      const bool is_text = matches_any(name, options_.text_columns) ||
                           matches_any(name, options_.date_columns) ||
                           std::find(words.begin(), words.end(), name) != words.end();
      uses[c] = is_text ? ColumnUse::Text : ColumnUse::Auto;
    };
    std::for_each(features.begin(), features.end(), use);
    std::for_each(labels.begin(), labels.end(), use);
    for (const auto& one : {weight, split}) {
      if (one) {
        use(*one);
      }
    }
    if (id) {
      uses[*id] = ColumnUse::Text;
    }
    return uses;
  }

  std::vector<size_t> features;
  std::vector<std::string> unused;
  std::vector<size_t> labels;
  std::optional<size_t> weight;
  std::optional<size_t> id;
  std::optional<size_t> split;

 private:
  size_t required(const std::string& name) const {
    if (const auto found = find_column(dialect_, name)) {
      return *found;
    }
    const std::string advice =
        dialect_.has_header
            ? ""
            : fmt::format(
                  "; no line names the columns, so that they are called {} to {}, and the "
                  "last one \"-1\" as well",
                  dialect_.names.front(),
                  dialect_.names.back());
    throw DataError(fmt::format("{}:{}:1: there is no column \"{}\"{}{}",
                                file_,
                                dialect_.first_line,
                                name,
                                suggestion(name, dialect_.names),
                                advice));
  }

  std::optional<size_t> optional(const std::string& name) const {
    return name.empty() ? std::nullopt : std::optional<size_t>(required(name));
  }

  void require_matches(const std::vector<std::string>& globs) const {
    for (const std::string& glob : globs) {
      const bool is_there = std::any_of(dialect_.names.begin(),
                                        dialect_.names.end(),
                                        [&](const auto& name) { return glob_match(glob, name); });
      if (!is_there && glob.find_first_of("*?") == std::string::npos) {
        required(glob);
      }
    }
  }

  bool has_role(size_t c) const {
    const bool is_group = options_.split.by.rfind("group:", 0) == 0 && split == c;
    return std::find(labels.begin(), labels.end(), c) != labels.end() || weight == c || id == c ||
           is_group;
  }

  void add_feature(size_t c) {
    if (std::find(features.begin(), features.end(), c) == features.end()) {
      features.push_back(c);
    }
  }

  /// Those that are asked for, in that order; else all without another role.
  void find_features() {
    for (const std::string& glob : options_.feature_columns) {
      if (glob.find_first_of("*?") == std::string::npos) {
        add_feature(required(glob));
        continue;
      }
      for (size_t c = 0; c < dialect_.names.size(); ++c) {
        if (glob_match(glob, dialect_.names[c]) && !has_role(c)) {
          add_feature(c);
        }
      }
    }
    for (size_t c = 0; c < dialect_.names.size(); ++c) {
      const bool is_ignored = matches_any(dialect_.names[c], options_.ignore_columns);
      const bool is_chosen = options_.feature_columns.empty() && !is_ignored;
      if (is_chosen && !has_role(c)) {
        add_feature(c);
      }
    }
    for (size_t c = 0; c < dialect_.names.size(); ++c) {
      if (std::find(features.begin(), features.end(), c) == features.end() && !has_role(c)) {
        unused.push_back(dialect_.names[c]);
      }
    }
  }

  std::string file_;
  const TableDialect& dialect_;
  const Options& options_;
};

/// Gives the roles of a table the features that training had, in their order.
/// \throws DataError  naming columns that the table lacks, and those that training did not know
void take_features(const std::string& file,
                   const TableDialect& dialect,
                   const TableFit& fit,
                   Roles& roles) {
  std::vector<size_t> features;
  std::vector<std::string> lacking;
  for (const FittedFeature& feature : fit.features) {
    const auto found = find_column(dialect, feature.name);
    found ? features.push_back(*found) : lacking.push_back(feature.name);
  }
  std::vector<std::string> unknown;
  for (const size_t c : roles.features) {
    const std::string& name = dialect.names[c];
    const bool is_unused =
        std::find(fit.unused.begin(), fit.unused.end(), name) != fit.unused.end();
    const bool is_label =
        std::find(fit.label.names.begin(), fit.label.names.end(), name) != fit.label.names.end();
    if (std::find(features.begin(), features.end(), c) == features.end() && !is_unused &&
        !is_label) {
      unknown.push_back(name);
    }
  }
  if (!lacking.empty() || !unknown.empty()) {
    throw DataError(fmt::format(
        "{}: the columns are not those of the training data: it lacks {}, and has {} beside them "
        "(ignore_columns leaves columns out)",
        file,
        lacking,
        unknown));
  }
  roles.features = std::move(features);
}

/// The files of a table. A relative name is looked for in the current directory when nothing says
/// where data is.
std::vector<std::filesystem::path> files_of(const Options& options, const std::string& name) {
  const bool has_place = options.data_dir || !default_data_dir().empty();
  return find_data_files(has_place ? options.data_dir : std::filesystem::path("."),
                         {"CsvTable", {name}, options.folder, ""});
}

std::vector<std::string> words_of(const TableFit* fit) {
  std::vector<std::string> names;
  for (const FittedFeature& feature :
       fit != nullptr ? fit->features : std::vector<FittedFeature>()) {
    if (feature.kind == FittedFeature::Kind::Category) {
      names.push_back(feature.name);
    }
  }
  return names;
}

/// The table of the label where it is in a file of its own: one column, or that of its name.
Table read_targets(const Options& options) {
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
  return read_table(files_of(options, options.target_file), format_of(options), plan, names);
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

/// What a split goes by, for each of `rows`.
std::vector<double> split_keys(const LabelledTable& data,
                               const Roles& roles,
                               const std::vector<size_t>& rows,
                               const Options& options) {
  if (options.split.by == "stratified") {
    if (data.labels.size() != 1) {
      throw UsageError("CsvTable: split.by = \"stratified\" needs a label_column");
    }
    return row_keys(data.label_table, data.labels[0], false, options.date_order, rows);
  }
  if (roles.split) {
    const bool is_time = options.split.by.rfind("time:", 0) == 0;
    return row_keys(data.table, *roles.split, is_time, options.date_order, rows);
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

std::string summary_of(const std::string& file,
                       const TableDialect& dialect,
                       const TableFit& fit,
                       size_t rows,
                       size_t all_rows) {
  const DatasetFacts facts = fit.facts();
  std::string text = fmt::format("{}: {}; {} of {} rows; {} columns: {} numbers",
                                 file,
                                 describe(dialect),
                                 rows,
                                 all_rows,
                                 dialect.names.size(),
                                 *facts.features);
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

/// "mean" and its kin, or a number, which the options hold as its text.
struct MissingOption {
  static std::string name() { return "\"error\", \"mean\", \"median\", \"drop\" or a number"; }

  static bool is_word(const std::string& text) {
    return text == "error" || text == "mean" || text == "median" || text == "drop";
  }

  static std::optional<std::string> read(const ConfigValue& value, FaultSink& faults) {
    const auto* word = value.get_if<std::string>();
    if (word != nullptr && (is_word(*word) || parse_number(*word, {}))) {
      return *word;
    }
    if (const auto* integer = value.get_if<int64_t>()) {
      return std::to_string(*integer);
    }
    if (const auto* number = value.get_if<double>()) {
      return fmt::format("{}", *number);
    }
    return detail::mismatch(value, name(), faults);
  }

  static ConfigValue write(const std::string& value) {
    const auto number = parse_number(value, {});
    return number ? ConfigValue(*number) : ConfigValue(value);
  }
};

/// "auto", true or false, which the options hold as "auto", "yes" and "no".
struct HeaderOption {
  static std::string name() { return "\"auto\", true or false"; }

  static std::optional<std::string> read(const ConfigValue& value, FaultSink& faults) {
    if (const bool* is_there = value.get_if<bool>()) {
      return *is_there ? "yes" : "no";
    }
    const auto* word = value.get_if<std::string>();
    if (word != nullptr && (*word == "auto" || *word == "yes" || *word == "no")) {
      return *word;
    }
    return detail::mismatch(value, name(), faults);
  }

  static ConfigValue write(const std::string& value) {
    return value == "auto" ? ConfigValue(value) : ConfigValue(value == "yes");
  }
};

KeyTable<TableSplit> split_keys_table() {
  KeyTable<TableSplit> keys;
  keys.key("part",
           &TableSplit::part,
           one_of({"train", "val", "test", "all"}),
           "the rows that are used; those of train are learnt from, whatever the part")
      .key("val", &TableSplit::val, below_one(), "share of the rows that validate")
      .key("test", &TableSplit::test, below_one(), "share of the rows that test")
      .key("by",
           &TableSplit::by,
           "\"random\", \"stratified\" (by class), \"group:<column>\", \"time:<column>\" (the last "
           "rows) or \"fold:<k>/<n>\"")
      .key("seed", &TableSplit::seed, "another seed chooses other rows");
  return keys;
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
  const std::string& type = options.label_type;
  require(type == "class" || type == "category" || type == "value" || type == "auto",
          "label_type",
          "\"class\", \"category\", \"value\" or \"auto\"",
          type);
  check_format("CsvTable", format_of(options));
  check_split("CsvTable", options.split);
  require(MissingOption::is_word(options.missing) || parse_number(options.missing, {}),
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
  require(options.date_order == "ymd" || options.date_order == "dmy" || options.date_order == "mdy",
          "date_order",
          "\"ymd\", \"dmy\" or \"mdy\"",
          options.date_order);
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
  const std::string file = paths.front().string();
  std::optional<Roles> roles;
  TableDialect dialect;
  const auto plan = [&](const TableDialect& found) {
    dialect = found;
    roles.emplace(file, dialect, options_);
    if (given != nullptr) {
      take_features(file, dialect, *given, *roles);
    }
    return roles->uses(words_of(given));
  };
  const Table table = read_table(paths, format_of(options_), plan, known_names(options_));
  const bool has_targets = has_target_file(options_);
  const Table targets = has_targets ? read_targets(options_) : Table();
  if (has_targets && targets.rows() != table.rows()) {
    throw DataError(fmt::format(
        "{} has {} rows, {} has {}", file, table.rows(), options_.target_file, targets.rows()));
  }
  const LabelledTable data{
      table, has_targets ? targets : table, has_targets ? columns_in_use(targets) : roles->labels};
  const auto range =
      detail::checked_range("CsvTable", options_.first, options_.count, table.rows());
  std::vector<size_t> rows(static_cast<size_t>(range.second - range.first));
  std::iota(rows.begin(), rows.end(), static_cast<size_t>(range.first));
  if (options_.missing == "drop") {
    rows = complete_rows(data, roles->features, rows);
  }
  const std::vector<TablePart> parts =
      split_rows(options_.split, rows.size(), split_keys(data, *roles, rows, options_));
  const std::vector<size_t> used = used_rows(rows, parts, options_.split.part);
  if (used.empty()) {
    throw DataError(
        fmt::format("{}: no row is left for part \"{}\" of the split", file, options_.split.part));
  }
  TableFit fit = given != nullptr ? *given
                                  : fit_table(data,
                                              {roles->features, roles->unused},
                                              rows_of(rows, parts, TablePart::Train),
                                              options_);
  EncodedTable encoded = encode_table(data, roles->features, fit, used, options_);
  features_ = std::move(encoded.features);
  categories_ = std::move(encoded.categories);
  labels_ = std::move(encoded.labels);
  weights_ = roles->weight ? encode_weights(table, *roles->weight, used) : at::Tensor();
  ids_.clear();
  for (size_t i = 0; roles->id && i < used.size(); ++i) {
    const TableColumn& ids = table.columns[*roles->id];
    const int32_t code = ids.codes[used[i]];
    ids_.push_back(code < 0 ? "" : ids.words[static_cast<size_t>(code)]);
  }
  facts_ = fit.facts();
  summary_ = summary_of(file, dialect, fit, used.size(), static_cast<size_t>(table.rows()));
  warnings_ = table.notes;
  if (given == nullptr) {
    const std::vector<std::string> ids = warn_of_ids(table, roles->features);
    warnings_.insert(warnings_.end(), ids.begin(), ids.end());
  }
  fit_ = std::make_unique<TableFit>(std::move(fit));
}

Sample CsvTable::get(int64_t index) const {
  return detail::only_sample(get_batch({index}));
}

Batch CsvTable::get_batch(const std::vector<int64_t>& indices) const {
  Batch batch{{"features", detail::gather_rows(features_, indices)}};
  for (const auto& [name, rows] :
       {std::pair<const char*, const at::Tensor&>("categories", categories_),
        std::pair<const char*, const at::Tensor&>("label", labels_),
        std::pair<const char*, const at::Tensor&>("weight", weights_)}) {
    if (rows.defined()) {
      batch.set(name, detail::gather_rows(rows, indices));
    }
  }
  return batch;
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

std::string CsvTable::sample_name(int64_t index) const {
  detail::check_index(index, size());
  return ids_.empty() ? std::to_string(index) : ids_[static_cast<size_t>(index)];
}

void register_csv_table(Registry<DataSource>& registry) {
  registry
      .add<CsvTable>("CsvTable", "A table in text files: numbers, dates, truth values and words.")
      .key("file", &Options::file, "name, path or glob of the table")
      .required()
      .key("label_column", &Options::label_column, "the column to predict; \"\": none")
      .key("label_type",
           &Options::label_type,
           one_of({"class", "category", "value", "auto"}),
           "an integer that numbers a class, classes to be numbered, or any number")
      .key("classes", &Options::classes, at_least(1), "classes are below it, where it is given")
      .key("feature_columns",
           &Options::feature_columns,
           "columns of the features, in this order, or globs; all others when empty")
      .key("delimiter",
           &Options::delimiter,
           "\"auto\" or one character between the fields; a blank: any run of blanks")
      .key("first", &Options::first, at_least(0), "number of the first row that is used")
      .key("count", &Options::count, at_least(1), "rows from there; all when absent")
      .key("data_dir", &Options::data_dir, "directory of the file; else RONDO_DATA")
      .key("folder", &Options::folder, "folder of data_dir that is searched too")
      .key("decimal", &Options::decimal, one_of({"auto", ".", ","}), "the decimal point")
      .key("thousands",
           &Options::thousands,
           "\"auto\", \"none\" or the character between groups of three digits")
      .key_of("header",
              &Options::header,
              HeaderOption{},
              "whether a line names the columns; else they are column1, column2 …")
      .key("encoding",
           &Options::encoding,
           one_of({"auto", "utf-8", "latin-1"}),
           "how letters beyond ASCII are written")
      .key("skip_lines", &Options::skip_lines, at_least(0), "lines before the table")
      .key("comment", &Options::comment, "lines that begin with it are left out; \"\": none")
      .key("missing_values",
           &Options::missing_values,
           "words for a missing cell; an empty one always is")
      .key("max_unpacked_bytes",
           &Options::max_unpacked_bytes,
           at_least(1),
           "size that a compressed file can have when it is unpacked")
      .key("ignore_columns", &Options::ignore_columns, "columns to leave out, or globs")
      .key("text_columns",
           &Options::text_columns,
           "columns of words, or globs, also where they hold numbers")
      .key("date_columns",
           &Options::date_columns,
           "columns of dates, or globs, also where they hold numbers")
      .key("date_order",
           &Options::date_order,
           one_of({"ymd", "dmy", "mdy"}),
           "order of year, month and day in dates")
      .key("date_parts",
           &Options::date_parts,
           "numbers made of a date: days (since 1970), year, month, day, weekday, hour")
      .key("target_columns",
           &Options::target_columns,
           "several columns of values to predict, instead of label_column")
      .key("target_file", &Options::target_file, "file with the label; \"\": the table has it")
      .key("weight_column", &Options::weight_column, "weight of a sample in the loss; \"\": none")
      .key("id_column", &Options::id_column, "names samples in predictions; \"\": none")
      .key_of("missing",
              &Options::missing,
              MissingOption{},
              "what stands for missing cells; \"drop\" leaves their rows out")
      .key("missing_indicator",
           &Options::missing_indicator,
           "a feature more for each column in which numbers are missing")
      .key("scale",
           &Options::scale,
           one_of({"none", "standard", "minmax", "robust", "log"}),
           "how numbers are scaled, by what the rows for training hold")
      .key("target_scale",
           &Options::target_scale,
           one_of({"none", "standard", "minmax", "robust", "log"}),
           "the same for values to predict; predictions are scaled back")
      .table("split", &Options::split, split_keys_table(), "which rows train, validate and test");
}

}  // namespace rondo
