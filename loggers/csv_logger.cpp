#include "loggers/csv_logger.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "core/csv.h"
#include "core/registry.h"
#include "loggers/register.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

constexpr const char* kNames = "step,name,value";

using UpdateAndName = std::pair<int64_t, std::string>;

/// The field that `csv_field` wrote at the beginning of `text`.
std::string first_field(std::string_view text) {
  if (text.substr(0, 1) != "\"") {
    return std::string(text.substr(0, text.find(',')));
  }
  std::string field;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"' && text.substr(i, 2) != "\"\"") {
      break;
    }
    field += text[i];
    i += text[i] == '"' ? 1 : 0;
  }
  return field;
}

/// Nothing for a line that is no row of values.
std::optional<UpdateAndName> update_and_name(std::string_view line) {
  int64_t update = 0;
  const auto read = std::from_chars(line.data(), line.data() + line.size(), update);
  line.remove_prefix(static_cast<size_t>(read.ptr - line.data()));
  if (read.ec != std::errc() || line.substr(0, 1) != ",") {
    return std::nullopt;
  }
  return UpdateAndName(update, first_field(line.substr(1)));
}

/// Reads rows line by line: a quoted field may hold newlines.
class RowReader {
 public:
  /// Of the row that the next line belongs to.
  const std::optional<UpdateAndName>& next(std::string_view line) {
    if (!is_in_quotes_) {
      row_ = update_and_name(line);
    }
    if (std::count(line.begin(), line.end(), '"') % 2 != 0) {
      is_in_quotes_ = !is_in_quotes_;
    }
    return row_;
  }

 private:
  std::optional<UpdateAndName> row_;
  bool is_in_quotes_ = false;
};

}  // namespace

void CsvLogger::pre_setup(Trainer& trainer) {
  file_.set_path(trainer.options().model_dir / options_.path, trainer.log());
}

void CsvLogger::log(const Metrics& values, int64_t update) {
  if (!std::exchange(has_names_, true) && file_.is_empty()) {
    file_.append(kNames);
  }
  for (const Metrics::Item& item : values.items()) {
    if (!std::holds_alternative<at::Tensor>(item.second)) {
      file_.append(fmt::format(
          "{},{},{}", update, csv_field(item.first), csv_field(to_string(item.second))));
    }
  }
  file_.check();  // after all of them: none is left out
}

void CsvLogger::go_back(const LogPosition& position) {
  if (position.update == 0) {
    file_.start_over(std::string(kNames) + '\n');
  } else {
    RowReader rows;
    file_.keep_lines([&](std::string_view line) {
      const auto& row = rows.next(line);
      return !row || !position.repeats(row->first, row->second);
    });
  }
  has_names_ = has_names_ && !file_.is_empty();
}

void register_csv_logger(Registry<Logger>& registry) {
  add_filter_keys(
      registry
          .add<CsvLogger>("CsvLogger", "Appends a line for each value to a comma-separated file.")
          .key("path", &CsvLogger::Options::path, "file, relative to model_dir"));
}

}  // namespace rondo
