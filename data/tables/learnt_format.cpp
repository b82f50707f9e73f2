#include "data/tables/learnt_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/error.h"
#include "data/internal/learnt.h"
#include "data/tables/table_fit.h"

namespace rondo {

namespace {

constexpr const char* kOpen = "auto";

[[noreturn]] void fail_contradiction(const std::string& key,
                                     const std::string& asked,
                                     const std::string& learnt) {
  Fault fault;
  fault.path = "CsvTable." + key;
  fault.message = fmt::format(
      "is {0}, but the training data was read with {1} = {2}; leave {1} out to read the file as "
      "that was, or train again",
      asked,
      key,
      learnt);
  throw ConfigError(std::move(fault));
}

/// The value of a key: that of the options, else what was learnt.
std::string agreed(const char* key, const std::string& asked, const std::string& learnt) {
  if (asked == kOpen || learnt == kOpen || asked == learnt) {
    return asked == kOpen ? learnt : asked;
  }
  fail_contradiction(key, "\"" + asked + "\"", "\"" + learnt + "\"");
}

/// Numbers beyond the sample that the dialect was found out from count as well.
bool has_fractions(const Table& table) {
  return std::any_of(table.columns.begin(), table.columns.end(), [](const TableColumn& column) {
    return std::any_of(column.numbers.begin(), column.numbers.end(), [](double number) {
      return std::isfinite(number) && number != std::floor(number);
    });
  });
}

}  // namespace

TableFormat learnt_format(const Table& table, const TableFormat& asked) {
  const TableDialect& dialect = table.dialect;
  TableFormat learnt;
  learnt.encoding = asked.encoding;
  learnt.missing_values = asked.missing_values;
  if (!dialect.is_text) {
    return learnt;
  }
  learnt.header = dialect.has_header ? "yes" : "no";
  if (asked.delimiter != kOpen || dialect.names.size() > 1) {
    learnt.delimiter = std::string(1, dialect.records.delimiter);
  }
  if (dialect.shows_decimal || has_fractions(table)) {
    learnt.decimal = std::string(1, dialect.numbers.decimal);
  }
  if (dialect.shows_thousands) {
    const char thousands = dialect.numbers.thousands;
    learnt.thousands = thousands == '\0' ? "none" : std::string(1, thousands);
  }
  return learnt;
}

TableFormat with_learnt(const TableFormat& asked, const TableFormat& learnt) {
  TableFormat format = asked;
  format.delimiter = agreed("delimiter", asked.delimiter, learnt.delimiter);
  format.decimal = agreed("decimal", asked.decimal, learnt.decimal);
  format.thousands = agreed("thousands", asked.thousands, learnt.thousands);
  format.header = agreed("header", asked.header, learnt.header);
  format.has_learnt_header = asked.header == kOpen;
  format.encoding = asked.encoding == kOpen ? learnt.encoding : asked.encoding;
  const std::vector<std::string> usual = TableFormat().missing_values;
  if (asked.missing_values != usual && asked.missing_values != learnt.missing_values) {
    fail_contradiction("missing_values",
                       fmt::format("{}", asked.missing_values),
                       fmt::format("{}", learnt.missing_values));
  }
  format.missing_values = learnt.missing_values;
  check_format("CsvTable", format);
  return format;
}

void require_learnt_date_order(const std::string& date_order, const TableFit& fit) {
  for (const FittedFeature& feature : fit.features) {
    if (date_order != CsvTable::Options().date_order && !feature.date_order.empty() &&
        date_order != feature.date_order) {
      fail_contradiction("date_order",
                         "\"" + date_order + "\"",
                         fmt::format("\"{}\" for column \"{}\"", feature.date_order, feature.name));
    }
  }
}

StateDict to_state(const TableFormat& learnt) {
  return {{"delimiter", learnt.delimiter},
          {"decimal", learnt.decimal},
          {"thousands", learnt.thousands},
          {"header", learnt.header},
          {"encoding", learnt.encoding},
          {"missing_values", detail::list_of(learnt.missing_values)}};
}

TableFormat format_from(const StateDict& state) {
  TableFormat learnt;
  learnt.delimiter = state.at("delimiter").as_string();
  learnt.decimal = state.at("decimal").as_string();
  learnt.thousands = state.at("thousands").as_string();
  learnt.header = state.at("header").as_string();
  learnt.encoding = state.at("encoding").as_string();
  learnt.missing_values = detail::texts_of(state.at("missing_values"));
  try {
    check_format("what was learnt of the table", learnt);
  } catch (const UsageError& error) {
    throw CheckpointError(error.what());
  }
  return learnt;
}

}  // namespace rondo
