#include "data/tables/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/utf8.h"
#include "data/tables/date_order.h"
#include "data/tables/table_text.h"

namespace rondo {

namespace {

constexpr double kMissingCell = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kSampleRows = 200;  // that say which columns hold text

/// The words of a column of text, by number.
class Words {
 public:
  /// \return the word's number, and whether it is new
  std::pair<int32_t, bool> add(std::string_view word) {
    const auto known = numbers_.find(word);
    if (known != numbers_.end()) {
      return {known->second, false};
    }
    const auto number = static_cast<int32_t>(words_.size());
    numbers_.emplace(words_.emplace_back(word), number);
    return {number, true};
  }

  const std::deque<std::string>& words() const { return words_; }

 private:
  std::deque<std::string> words_;  // their addresses stay
  std::unordered_map<std::string_view, int32_t> numbers_;
};

/// A column while its cells are read.
struct Growing {
  ColumnUse use = ColumnUse::None;
  bool knows_kind = false;  // a cell that is not missing was seen
  Words words;
  CellFaults texts_among_numbers;
  CellFaults numbers_among_texts;
  CellFaults all_with_units;  // all words begin as numbers do
  bool has_plain_word = false;
};

bool begins_as_number(std::string_view word) {
  const size_t sign = word.front() == '-' || word.front() == '+' ? 1 : 0;
  return word.size() > sign && word[sign] >= '0' && word[sign] <= '9';
}

}  // namespace

/// The pass over the files.
class TableReading {
 public:
  TableReading(const TableFormat& format,
               const ColumnPlan& plan,
               const std::vector<std::string>& known_names)
      : format_(format), plan_(plan), known_names_(known_names), missing_(format.missing_values) {
    table_.most_unpacked_ = static_cast<uint64_t>(format.max_unpacked_bytes);
    table_.query_ = format.query;
  }

  void read(const std::filesystem::path& path) {
    const TableText text(path, table_.most_unpacked_, table_.query_);
    const std::string file = path.string();
    const TableDialect dialect = dialect_of(file, text);
    table_.files_.push_back({path, table_.offsets_.size()});
    RecordReader reader(file, text.bytes(), dialect.records);
    reader.skip_lines(dialect.skip_lines);
    std::vector<TableField> fields;
    if (dialect.has_header) {
      reader.next(fields);
    }
    check_names(reader, fields, dialect);
    if (table_.columns.empty()) {
      begin(dialect);
      find_kinds(file, text.bytes(), dialect);
    }
    while (reader.next(fields)) {
      add_row(reader, fields);
    }
    require_widths();
    if (table_.offsets_.size() == table_.files_.back().first_row) {
      throw DataError(fmt::format("{}:{}: there are no rows after the line that names the columns",
                                  file,
                                  dialect.first_line));
    }
  }

  Table finish() && {
    for (size_t c = 0; c < growing_.size(); ++c) {
      finish(c);
    }
    return std::move(table_);
  }

 private:
  TableDialect dialect_of(const std::string& file, const TableText& text) {
    TableFormat format = format_;
    std::vector<std::string> known = known_names_;
    if (!table_.columns.empty()) {  // as the first file
      const TableDialect& first = table_.dialect;
      format.delimiter = std::string(1, first.records.delimiter);
      format.decimal = std::string(1, first.numbers.decimal);
      format.thousands =
          first.numbers.thousands == '\0' ? "none" : std::string(1, first.numbers.thousands);
      format.header = first.has_header ? "yes" : "no";
      format.has_learnt_header = false;
      format.skip_lines = first.skip_lines;
    }
    const bool has_names = !text.names().empty();
    if (has_names) {
      format.delimiter = ",";
      format.decimal = ".";
      format.thousands = "none";
      format.header = "no";
      format.has_learnt_header = false;
      format.skip_lines = 0;
    }
    TableDialect dialect = detect_dialect(file, text.bytes(), format, known);
    dialect.names = has_names ? text.names() : dialect.names;
    dialect.is_text = !has_names;
    if (dialect.names.empty()) {
      throw DataError(fmt::format("{}: the file is empty; its first line names the columns", file));
    }
    for (std::string& name : dialect.names) {
      name = as_utf8(name);
    }
    return dialect;
  }

  void check_names(const RecordReader& reader,
                   const std::vector<TableField>& header,
                   const TableDialect& dialect) const {
    if (!table_.columns.empty()) {
      if (dialect.names != table_.dialect.names) {
        reader.fail(1,
                    fmt::format("the columns are {}, those of {} are {}",
                                dialect.names,
                                table_.files_.front().path.string(),
                                table_.dialect.names));
      }
      return;
    }
    std::unordered_set<std::string_view> seen;
    for (size_t i = 0; i < dialect.names.size(); ++i) {
      if (!seen.insert(dialect.names[i]).second) {
        reader.fail(i < header.size() ? header[i].position : 1,
                    fmt::format("there are two columns \"{}\"", dialect.names[i]));
      }
    }
  }

  void begin(const TableDialect& dialect) {
    table_.dialect = dialect;
    table_.notes = dialect.notes;
    const std::vector<ColumnUse> uses = plan_(dialect);
    for (size_t i = 0; i < dialect.names.size(); ++i) {
      TableColumn& column = table_.columns.emplace_back();
      column.name = dialect.names[i];
      Growing& growing = growing_.emplace_back();
      growing.use = uses[i];
      if (uses[i] == ColumnUse::Text) {
        column.is_text = true;
        growing.knows_kind = true;
      }
    }
  }

  /// A column is text when no cell of the first rows is a number.
  void find_kinds(const std::string& file, std::string_view text, const TableDialect& dialect) {
    RecordReader reader(file, text, dialect.records);
    reader.skip_lines(dialect.skip_lines);
    std::vector<TableField> fields;
    std::vector<bool> has_number(growing_.size(), false);
    std::vector<bool> has_text(growing_.size(), false);
    if (dialect.has_header) {
      reader.next(fields);
    }
    for (size_t row = 0; row < kSampleRows && reader.next(fields); ++row) {
      for (size_t c = 0; c < std::min(fields.size(), growing_.size()); ++c) {
        if (!missing_.contains(fields[c].text)) {
          (parse_number(fields[c].text, dialect.numbers) ? has_number : has_text)[c] = true;
        }
      }
    }
    for (size_t c = 0; c < growing_.size(); ++c) {
      if (growing_[c].use == ColumnUse::Auto && (has_number[c] || has_text[c])) {
        growing_[c].knows_kind = true;
        table_.columns[c].is_text = !has_number[c];
      }
    }
  }

  void add_row(const RecordReader& reader, const std::vector<TableField>& fields) {
    const size_t width = growing_.size();
    const bool has_empty_end =
        fields.size() == width + 1 && fields.back().text.empty() && !fields.back().is_quoted;
    if (fields.size() != width && !has_empty_end) {
      note_width(reader, fields);
      return;
    }
    const size_t row = table_.offsets_.size();
    if (row >= static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
      reader.fail(1, "a table has at most 2^31 - 1 rows");
    }
    table_.offsets_.push_back(reader.offset());
    for (size_t c = 0; c < width; ++c) {
      if (growing_[c].use != ColumnUse::None) {
        add_cell(growing_[c], table_.columns[c], fields[c].text, row);
      }
    }
  }

  void add_cell(Growing& growing, TableColumn& column, std::string_view cell, size_t row) const {
    if (column.is_text) {
      add_word(growing, column, cell, row);
      return;
    }
    if (missing_.contains(cell)) {
      column.numbers.push_back(kMissingCell);
      return;
    }
    if (const auto number = parse_number(cell, table_.dialect.numbers)) {
      growing.knows_kind = true;
      column.numbers.push_back(*number);
      return;
    }
    if (!growing.knows_kind) {  // all cells before it were missing
      growing.knows_kind = true;
      column.is_text = true;
      column.codes.assign(row, -1);
      column.numbers = {};
      add_word(growing, column, cell, row);
      return;
    }
    growing.texts_among_numbers.add(row);
    column.numbers.push_back(kMissingCell);
  }

  void add_word(Growing& growing, TableColumn& column, std::string_view cell, size_t row) const {
    if (missing_.contains(cell)) {
      column.codes.push_back(-1);
      return;
    }
    const auto [number, is_new] = growing.words.add(cell);
    column.codes.push_back(number);
    if (is_new && growing.use == ColumnUse::Auto) {
      if (parse_number(cell, table_.dialect.numbers)) {
        growing.numbers_among_texts.add(row);
      }
      if (begins_as_number(cell) && !is_any_date(cell)) {
        growing.all_with_units.add(row);
      } else {
        growing.has_plain_word = true;
      }
    }
  }

  void note_width(const RecordReader& reader, const std::vector<TableField>& fields) {
    constexpr size_t kListed = 10;
    if (wrong_widths_.size() < kListed) {
      wrong_widths_.push_back(
          fmt::format("{}:{}:{}: expected {} fields, as {} has, got {}",
                      table_.files_.back().path.string(),
                      reader.last_line(),
                      fields.back().position,
                      growing_.size(),
                      table_.dialect.has_header ? "the line of names" : "the first line",
                      fields.size()));
    }
    ++wrong_width_count_;
  }

  void require_widths() const {
    if (wrong_width_count_ == 1) {
      throw DataError(wrong_widths_.front());
    }
    if (wrong_width_count_ > 1) {
      throw DataError(
          fmt::format("{}; {} lines in all", fmt::join(wrong_widths_, "; "), wrong_width_count_));
    }
  }

  std::string as_utf8(const std::string& text) const {
    const bool is_latin1 =
        format_.encoding == "latin-1" || (format_.encoding == "auto" && !is_utf8(text));
    return is_latin1 ? latin1_to_utf8(text) : text;
  }

  void finish(size_t c) {
    Growing& growing = growing_[c];
    TableColumn& column = table_.columns[c];
    const std::string list = fmt::format("[\"{}\"]", column.name);
    const std::string advice = fmt::format(
        "set text_columns = {0} to read the column as text, ignore_columns = {0} to "
        "leave it out, or add the word to missing_values",
        list);
    if (!growing.texts_among_numbers.empty()) {
      growing.texts_among_numbers.fail(table_, c, "a finite number", advice);
    }
    if (!growing.numbers_among_texts.empty()) {
      growing.numbers_among_texts.fail(table_, c, "text, as the rows before have it", advice);
    }
    if (!growing.all_with_units.empty() && !growing.has_plain_word) {
      growing.all_with_units.fail(
          table_, c, "a finite number or a word; all cells begin as numbers do", advice);
    }
    bool is_latin1 = false;
    for (const std::string& word : growing.words.words()) {
      column.words.push_back(as_utf8(word));
      is_latin1 = is_latin1 || column.words.back() != word;
    }
    if (is_latin1 && format_.encoding == "auto") {
      table_.notes.push_back(
          fmt::format("column \"{}\" is not UTF-8 and is read as Latin-1", column.name));
    }
    growing.words = {};
  }

  const TableFormat& format_;
  const ColumnPlan& plan_;
  const std::vector<std::string>& known_names_;
  MissingWords missing_;
  Table table_;
  std::vector<Growing> growing_;
  std::vector<std::string> wrong_widths_;
  int64_t wrong_width_count_ = 0;
};

Table read_table(const std::vector<std::filesystem::path>& paths,
                 const TableFormat& format,
                 const ColumnPlan& plan,
                 const std::vector<std::string>& known_names) {
  TableReading reading(format, plan, known_names);
  for (const std::filesystem::path& path : paths) {
    reading.read(path);
  }
  return std::move(reading).finish();
}

Table::Found Table::find(size_t row, size_t column) const {
  const auto after =
      std::upper_bound(files_.begin(), files_.end(), row, [](size_t wanted, const File& file) {
        return wanted < file.first_row;
      });
  const File& file = *std::prev(after);
  const std::string name = file.path.string();
  const TableText text(file.path, most_unpacked_, query_);
  RecordReader reader(name, text.bytes(), dialect.records);
  reader.seek(offsets_[row]);
  std::vector<TableField> fields;
  if (!reader.next(fields) || column >= fields.size()) {
    throw DataError(name + " has changed while it was read");
  }
  return {fmt::format("{}:{}:{}", name, reader.line(), fields[column].position),
          shown_cell(fields[column].text)};
}

void CellFaults::fail(const Table& table,
                      size_t column,
                      const std::string& expected,
                      const std::string& advice) const {
  const Table::Found first = table.find(rows_.front(), column);
  std::string message = fmt::format("{}: column \"{}\": expected {}, got \"{}\"",
                                    first.place,
                                    table.columns[column].name,
                                    expected,
                                    first.cell);
  if (count_ > 1) {
    std::vector<std::string> others;
    for (size_t i = 1; i < rows_.size(); ++i) {
      const Table::Found found = table.find(rows_[i], column);
      others.push_back(fmt::format("{} \"{}\"", found.place, found.cell));
    }
    message += fmt::format("; {} such cells, also at {}{}",
                           count_,
                           fmt::join(others, ", "),
                           count_ > static_cast<int64_t>(rows_.size()) ? ", …" : "");
  }
  throw DataError(message + (advice.empty() ? "" : "; " + advice));
}

}  // namespace rondo
