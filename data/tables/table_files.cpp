#include "data/tables/table_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "data/data_dir.h"
#include "data/tables/learnt_format.h"

namespace rondo {

namespace {

/// The table of the label where it is in a file of its own: one column, or that of its name.
Table read_targets(const CsvTable::Options& options, const TableFormat& format) {
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

}  // namespace

bool has_target_file(const CsvTable::Options& options) {
  return !options.target_file.empty();
}

TableFormat format_of(const CsvTable::Options& options) {
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

TableFormat format_of(const CsvTable::Options& options, const std::optional<TableFormat>& learnt) {
  const TableFormat asked = format_of(options);
  return learnt ? with_learnt(asked, *learnt) : asked;
}

std::vector<std::string> names_in_header(const CsvTable::Options& options, const TableFit* fit) {
  std::vector<std::string> names = named_columns(options);
  if (fit != nullptr && fit->format && fit->format->header == "yes") {
    for (const FittedFeature& feature : fit->features) {
      names.push_back(feature.name);
    }
  }
  return names;
}

std::vector<std::filesystem::path> files_of(const CsvTable::Options& options,
                                            const std::string& name) {
  const bool has_place = options.data_dir || !default_data_dir().empty();
  return find_data_files(has_place ? options.data_dir : std::filesystem::path("."),
                         {"CsvTable", {name}, options.folder, ""});
}

LabelledTable ReadFiles::data() const {
  return {table, targets ? *targets : table, targets ? columns_in_use(*targets) : roles.labels};
}

ReadFiles read_files(const std::vector<std::filesystem::path>& paths,
                     const CsvTable::Options& options,
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

void add_formats(const ReadFiles& read, TableFit& fit) {
  if (!fit.format) {
    fit.format = learnt_format(read.table, read.format);
  }
  if (read.targets && !fit.target_format) {
    fit.target_format = learnt_format(*read.targets, read.target_format);
  }
}

}  // namespace rondo
