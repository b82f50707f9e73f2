#include "data/tables/table_roles.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "core/error.h"
#include "core/glob.h"
#include "data/tables/table_fit.h"

namespace rondo {

namespace {

using Options = CsvTable::Options;

/// Finds the columns that options ask for.
class RoleSearch {
 public:
  RoleSearch(const std::string& file, const TableDialect& dialect, const Options& options)
      : file_(file), dialect_(dialect), options_(options) {}

  TableRoles run() {
    if (options_.target_file.empty()) {
      for (const std::string& name : label_names(options_)) {
        roles_.labels.push_back(required(name));
      }
    }
    roles_.weight = optional(options_.weight_column);
    roles_.id = optional(options_.id_column);
    roles_.split = optional(column_of(options_.split));
    for (const auto* list :
         {&options_.ignore_columns, &options_.text_columns, &options_.date_columns}) {
      require_matches(*list);
    }
    find_features();
    return std::move(roles_);
  }

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
    const bool is_group = options_.split.by.rfind("group:", 0) == 0 && roles_.split == c;
    return std::find(roles_.labels.begin(), roles_.labels.end(), c) != roles_.labels.end() ||
           roles_.weight == c || roles_.id == c || is_group;
  }

  void add_feature(size_t c) {
    if (std::find(roles_.features.begin(), roles_.features.end(), c) == roles_.features.end()) {
      roles_.features.push_back(c);
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
      const bool is_ignored = matches_any(options_.ignore_columns, dialect_.names[c]);
      const bool is_chosen = options_.feature_columns.empty() && !is_ignored;
      if (is_chosen && !has_role(c)) {
        add_feature(c);
      }
    }
    for (size_t c = 0; c < dialect_.names.size(); ++c) {
      if (std::find(roles_.features.begin(), roles_.features.end(), c) == roles_.features.end() &&
          !has_role(c)) {
        roles_.unused.push_back(dialect_.names[c]);
      }
    }
  }

  const std::string& file_;
  const TableDialect& dialect_;
  const Options& options_;
  TableRoles roles_;
};

/// Gives the roles of a table the features that training had, in their order.
/// \throws DataError  naming columns that the table lacks, and those that training did not know
void take_features(const std::string& file,
                   const TableDialect& dialect,
                   const TableFit& fit,
                   TableRoles& roles) {
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
    throw DataError(
        fmt::format("{}: the columns are not those of the training data: it lacks {}, and has {} "
                    "in addition (ignore_columns leaves columns out); the file was read with {}",
                    file,
                    lacking,
                    unknown,
                    describe(dialect)));
  }
  roles.features = std::move(features);
}

}  // namespace

std::vector<std::string> label_names(const Options& options) {
  if (!options.target_columns.empty()) {
    return options.target_columns;
  }
  return options.label_column.empty() ? std::vector<std::string>()
                                      : std::vector<std::string>{options.label_column};
}

std::vector<std::string> named_columns(const Options& options) {
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

TableRoles roles_of(const std::string& file,
                    const TableDialect& dialect,
                    const Options& options,
                    const TableFit* fit) {
  TableRoles roles = RoleSearch(file, dialect, options).run();
  if (fit != nullptr) {
    take_features(file, dialect, *fit, roles);
  }
  return roles;
}

std::vector<ColumnUse> uses_of(const TableRoles& roles,
                               const TableDialect& dialect,
                               const Options& options,
                               const TableFit* fit) {
  std::vector<std::string> words;  // that training read
  for (const FittedFeature& feature :
       fit != nullptr ? fit->features : std::vector<FittedFeature>()) {
    if (feature.kind == FittedFeature::Kind::Category) {
      words.push_back(feature.name);
    }
  }
  std::vector<ColumnUse> uses(dialect.names.size(), ColumnUse::None);
  const auto use = [&](size_t c) {
    const std::string& name = dialect.names[c];
    const bool is_text = matches_any(options.text_columns, name) ||
                         matches_any(options.date_columns, name) ||
                         std::find(words.begin(), words.end(), name) != words.end();
    uses[c] = is_text ? ColumnUse::Text : ColumnUse::Auto;
  };
  std::for_each(roles.features.begin(), roles.features.end(), use);
  std::for_each(roles.labels.begin(), roles.labels.end(), use);
  for (const auto& one : {roles.weight, roles.split}) {
    if (one) {
      use(*one);
    }
  }
  if (roles.id) {
    uses[*roles.id] = ColumnUse::Text;
  }
  return uses;
}

}  // namespace rondo
