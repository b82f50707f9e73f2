// The keys of CsvTable in a config.

#include <fmt/format.h>

#include <optional>
#include <string>

#include "core/registry.h"
#include "data/optional_reader.h"
#include "data/register.h"
#include "data/tables/csv_table.h"

namespace rondo {

namespace {

using Options = CsvTable::Options;

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
           "the rows that are used, to be given where rows are split; those of train are learnt "
           "from, whatever the part")
      .key("val", &TableSplit::val, below_one(), "share of the rows that validate")
      .key("test", &TableSplit::test, below_one(), "share of the rows that test")
      .key("by",
           &TableSplit::by,
           "\"random\", \"stratified\" (by class), \"group:<column>\", \"time:<column>\" (the last "
           "rows) or \"fold:<k>/<n>\"")
      .key("seed", &TableSplit::seed, "another seed chooses other rows");
  return keys;
}

/// Which rows of which files, and how they are written.
void add_file_keys(KeyTable<Options>& keys) {
  keys.key("file", &Options::file, "name, path or glob of the table")
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
      .key("query",
           &Options::query,
           "a select statement, where file is an SQLite database" + not_built_note("SQLITE"))
      .key("max_unpacked_bytes",
           &Options::max_unpacked_bytes,
           at_least(1),
           "size that a compressed file can have when it is unpacked");
}

/// What becomes of the columns.
void add_column_keys(KeyTable<Options>& keys) {
  keys.key("ignore_columns", &Options::ignore_columns, "columns to leave out, or globs")
      .key("text_columns",
           &Options::text_columns,
           "columns of words, or globs, also where they hold numbers")
      .key("date_columns",
           &Options::date_columns,
           "columns of dates, or globs, also where they hold numbers")
      .key("date_order",
           &Options::date_order,
           one_of({"auto", "ymd", "dmy", "mdy"}),
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
      .table("split", &Options::split, split_keys_table(), "which rows train, validate and test")
      .key("cache", &Options::cache, "folder that keeps the table as it was read; \"\": none");
}

}  // namespace

void register_csv_table(Registry<DataSource>& registry) {
  KeyTable<Options>& keys = registry.add<CsvTable>(
      "CsvTable", "A table in text files: numbers, dates, truth values and words.");
  add_file_keys(keys);
  add_column_keys(keys);
}

}  // namespace rondo
