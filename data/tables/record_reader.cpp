#include "data/tables/record_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace rondo {

namespace {

const char* find(const char* at, const char* end, char wanted) {
  const void* found = std::memchr(at, wanted, static_cast<size_t>(end - at));
  return found != nullptr ? static_cast<const char*>(found) : end;
}

/// `""` stands for one quote.
std::string without_doubled(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    plain += text[i];
    i += text[i] == '"' ? 1 : 0;
  }
  return plain;
}

}  // namespace

RecordReader::RecordReader(std::string file, std::string_view text, RecordRules rules)
    : file_(std::move(file)),
      rules_(std::move(rules)),
      begin_(text.data()),
      at_(text.data()),
      end_(text.data() + text.size()),
      line_begin_(text.data()) {
  ends_[static_cast<unsigned char>(rules_.delimiter)] = true;
  ends_[static_cast<unsigned char>('\n')] = true;
  ends_[static_cast<unsigned char>('\t')] = rules_.delimiter == ' ' || rules_.delimiter == '\t';
}

void RecordReader::skip_lines(int64_t count) {
  for (; count > 0 && at_ != end_; --count) {
    at_ = find(at_, end_, '\n');
    at_ += at_ != end_ ? 1 : 0;
    ++line_;
  }
}

void RecordReader::seek(size_t offset) {
  at_ = begin_ + std::min(offset, static_cast<size_t>(end_ - begin_));
  line_ = std::count(begin_, at_, '\n');
}

bool RecordReader::next(std::vector<TableField>& fields) {
  fields.clear();
  unescaped_.clear();
  if (!begin_record()) {
    return false;
  }
  const bool is_blank_delimited = rules_.delimiter == ' ';
  while (true) {
    if (fields.size() == kMostFields) {
      fail(position_of(at_), fmt::format("expected at most {} fields in a line", kMostFields));
    }
    at_ = read_field(at_, fields.emplace_back());
    if (is_blank_delimited) {
      at_ = skip_blanks(at_);
      at_ += at_ != end_ && *at_ == '\r' ? 1 : 0;
    }
    if (at_ == end_) {
      return true;
    }
    if (*at_ == '\n') {
      ++at_;
      return true;
    }
    at_ += is_blank_delimited ? 0 : 1;
  }
}

void RecordReader::fail(size_t position, const std::string& message) const {
  throw DataError(fmt::format("{}:{}:{}: {}", file_, line_, position, message));
}

/// Goes to the next line that holds something. \return false when there is none
bool RecordReader::begin_record() {
  while (at_ != end_) {
    begin_line(at_);
    const char* first = at_;
    while (first != end_ && (*first == ' ' || *first == '\t' || *first == '\r')) {
      ++first;
    }
    if (first == end_) {
      at_ = end_;
      return false;
    }
    const std::string_view rest(first, static_cast<size_t>(end_ - first));
    const bool is_comment =
        !rules_.comment.empty() && rest.substr(0, rules_.comment.size()) == rules_.comment;
    if (*first != '\n' && !is_comment) {
      record_offset_ = static_cast<size_t>(at_ - begin_);
      record_line_ = line_;
      return true;
    }
    at_ = find(first, end_, '\n');
    at_ += at_ != end_ ? 1 : 0;
  }
  return false;
}

void RecordReader::begin_line(const char* at) {
  line_begin_ = at;
  ++line_;
}

const char* RecordReader::skip_blanks(const char* at) const {
  while (at != end_ && is_blank(*at)) {
    ++at;
  }
  return at;
}

/// \return where the delimiter, the end of the line or of the text stands
const char* RecordReader::read_field(const char* at, TableField& field) {
  at = skip_blanks(at);
  return at != end_ && *at == '"' ? read_quoted(at, field) : read_plain(at, field);
}

const char* RecordReader::read_plain(const char* at, TableField& field) const {
  const char* end = at;
  while (end != end_ && !ends_field(*end)) {
    ++end;
  }
  const char* last = end;
  while (last != at && (is_blank(last[-1]) || last[-1] == '\r')) {
    --last;
  }
  field = {{at, static_cast<size_t>(last - at)}, position_of(at), false};
  return end;
}

const char* RecordReader::read_quoted(const char* at, TableField& field) {
  const size_t position = position_of(at);
  const char* const first = at + 1;
  const char* close = find(first, end_, '"');
  bool has_doubled = false;
  while (close != end_ && close + 1 != end_ && close[1] == '"') {
    has_doubled = true;
    close = find(close + 2, end_, '"');
  }
  if (close == end_) {
    fail(position, "this quote is not closed; a quote that is part of a field is doubled");
  }
  const std::string_view inside(first, static_cast<size_t>(close - first));
  for (const char* end = find(first, close, '\n'); end != close; end = find(end + 1, close, '\n')) {
    begin_line(end + 1);
  }
  field = {inside, position, true};
  if (has_doubled) {
    field.text = unescaped_.emplace_back(without_doubled(inside));
  }
  const char* after = close + 1;
  while (after != end_ && (is_blank(*after) || *after == '\r') && !ends_field(*after)) {
    ++after;
  }
  if (after != end_ && !ends_field(*after)) {
    fail(position_of(close),
         "this quote ends within a field; a quote that is part of a field is doubled");
  }
  return after;
}

}  // namespace rondo
