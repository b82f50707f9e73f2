#include "data/arrays/npy_header.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "core/error.h"

namespace rondo::detail {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kPreamble = 8;         // magic and version
constexpr size_t kMaxHeader = 1 << 20;  // bytes; NumPy itself stops at 10,000
constexpr int kMaxDepth = 4;            // a list of tuples with shapes
constexpr int64_t kMaxCount = int64_t{1} << 48;

/// A value of Python's literals, as far as headers have them: a text, a number, a truth value, a
/// tuple or list, a dictionary as a list of pairs.
struct Literal {
  enum class Kind { Text, Number, Truth, List, Dictionary };

  Kind kind = Kind::Text;
  std::string text;
  int64_t number = 0;
  std::vector<Literal> items;  // of a dictionary: key, value, key, value …
  size_t offset = 0;           // in the file
};

class Parser {
 public:
  Parser(const std::filesystem::path& path, std::string_view bytes, size_t begin, size_t end)
      : path_(path), bytes_(bytes.substr(0, end)), at_(begin) {}

  Literal parse() {
    Literal value = literal(0);
    skip_blanks();
    if (at_ != bytes_.size()) {
      fail(at_, "expected the end of the header");
    }
    return value;
  }

  [[noreturn]] void fail(size_t offset, const std::string& message) const {
    throw DataError(fmt::format("{}: offset {}: {}", path_.string(), offset, message));
  }

 private:
  void skip_blanks() {
    while (at_ < bytes_.size() && std::isspace(static_cast<unsigned char>(bytes_[at_])) != 0) {
      ++at_;
    }
  }

  bool take(char c) {
    skip_blanks();
    const bool is_there = at_ < bytes_.size() && bytes_[at_] == c;
    at_ += is_there ? 1 : 0;
    return is_there;
  }

  bool take_word(std::string_view word) {
    skip_blanks();
    const bool is_there = bytes_.substr(at_, word.size()) == word;
    at_ += is_there ? word.size() : 0;
    return is_there;
  }

  Literal literal(int depth) {
    skip_blanks();
    const size_t begin = at_;
    if (depth > kMaxDepth) {
      fail(begin, "the header is nested too deeply");
    }
    Literal value;
    if (take('\'')) {
      value.text = text_until('\'');
    } else if (take('"')) {
      value.text = text_until('"');
    } else if (take('(')) {
      value = list_until(')', depth);
    } else if (take('[')) {
      value = list_until(']', depth);
    } else if (take('{')) {
      value = dictionary(depth);
    } else if (take_word("True") || take_word("False")) {
      value.kind = Literal::Kind::Truth;
      value.number = bytes_[begin] == 'T' ? 1 : 0;
    } else {
      value.kind = Literal::Kind::Number;
      value.number = integer();
    }
    value.offset = begin;
    return value;
  }

  std::string text_until(char quote) {
    const size_t begin = at_;
    const size_t end = bytes_.find(quote, begin);
    if (end == std::string_view::npos) {
      fail(begin, "a string in the header has no end");
    }
    at_ = end + 1;
    const std::string_view text = bytes_.substr(begin, end - begin);
    if (text.find('\\') != std::string_view::npos) {
      fail(begin, "a string in the header has an escape, which field names cannot have");
    }
    return std::string(text);
  }

  Literal list_until(char end, int depth) {
    Literal list;
    list.kind = Literal::Kind::List;
    while (!take(end)) {
      list.items.push_back(literal(depth + 1));
      if (!take(',') && !is_next(end)) {
        fail(at_, fmt::format("expected \",\" or \"{}\"", end));
      }
    }
    return list;
  }

  Literal dictionary(int depth) {
    Literal pairs;
    pairs.kind = Literal::Kind::Dictionary;
    while (!take('}')) {
      pairs.items.push_back(literal(depth + 1));
      if (!take(':')) {
        fail(at_, "expected \":\"");
      }
      pairs.items.push_back(literal(depth + 1));
      if (!take(',') && !is_next('}')) {
        fail(at_, "expected \",\" or \"}\"");
      }
    }
    return pairs;
  }

  bool is_next(char c) {
    skip_blanks();
    return at_ < bytes_.size() && bytes_[at_] == c;
  }

  int64_t integer() {
    int64_t value = 0;
    const char* const begin = bytes_.data() + at_;
    const auto [end, error] = std::from_chars(begin, bytes_.data() + bytes_.size(), value);
    if (error != std::errc()) {
      fail(at_, "expected a literal of Python");
    }
    at_ += static_cast<size_t>(end - begin);
    take('L');  // Python 2 wrote long integers so
    return value;
  }

  const std::filesystem::path& path_;
  std::string_view bytes_;
  size_t at_;
};

const Literal* find(const Literal& dictionary, std::string_view key) {
  for (size_t i = 0; i + 1 < dictionary.items.size(); i += 2) {
    if (dictionary.items[i].text == key) {
      return &dictionary.items[i + 1];
    }
  }
  return nullptr;
}

const Literal& at(const Parser& parser, const Literal& dictionary, std::string_view key) {
  const Literal* value = find(dictionary, key);
  if (dictionary.kind != Literal::Kind::Dictionary || value == nullptr) {
    parser.fail(dictionary.offset, fmt::format("the header has no \"{}\"", key));
  }
  return *value;
}

std::vector<int64_t> shape_of(const Parser& parser, const Literal& literal) {
  std::vector<int64_t> shape;
  if (literal.kind == Literal::Kind::Number) {  // of a field: one dimension
    shape.push_back(literal.number);
  } else if (literal.kind != Literal::Kind::List) {
    parser.fail(literal.offset, "a shape must be a tuple of integers");
  }
  for (const Literal& size : literal.items) {
    shape.push_back(size.kind == Literal::Kind::Number ? size.number : -1);
  }
  for (const int64_t size : shape) {
    if (size < 0) {
      parser.fail(literal.offset, "a shape must be a tuple of integers >= 0");
    }
  }
  return shape;
}

/// The product of a shape, which a damaged header may make larger than any file.
int64_t count_of(const Parser& parser, const Literal& at, const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (size != 0 && count > kMaxCount / size) {
      parser.fail(at.offset, "the header promises more elements than a file holds");
    }
    count *= size;
  }
  return count;
}

/// Such as "<f4", without the byte order.
std::optional<NpyType> type_of(std::string_view code) {
  using c10::ScalarType;
  static const std::map<std::string_view, NpyType> kTypes = {
      {"b1", {ScalarType::Bool, 1}},
      {"i1", {ScalarType::Char, 1}},
      {"i2", {ScalarType::Short, 2}},
      {"i4", {ScalarType::Int, 4}},
      {"i8", {ScalarType::Long, 8}},
      {"u1", {ScalarType::Byte, 1}},
      {"u2", {ScalarType::Int, 2, true}},
      {"u4", {ScalarType::Long, 4, true}},
      {"u8", {ScalarType::Long, 8, true}},
      {"f2", {ScalarType::Half, 2}},
      {"f4", {ScalarType::Float, 4}},
      {"f8", {ScalarType::Double, 8}},
      {"c8", {ScalarType::ComplexFloat, 8}},
      {"c16", {ScalarType::ComplexDouble, 16}},
  };
  const auto found = kTypes.find(code);
  return found == kTypes.end() ? std::nullopt : std::optional(found->second);
}

NpyType type_of(const Parser& parser, const Literal& descr) {
  const bool is_text = descr.kind == Literal::Kind::Text && descr.text.size() >= 2;
  const char order = is_text ? descr.text[0] : '?';
  std::optional<NpyType> type;
  if (order == '<' || order == '>' || order == '|' || order == '=') {
    type = type_of(std::string_view(descr.text).substr(1));
  }
  if (!type) {
    parser.fail(descr.offset,
                fmt::format("no tensor can have the type \"{}\", only booleans, integers, floats "
                            "of 2 to 8 bytes and complex numbers",
                            descr.text));
  }
  type->is_swapped = order == '>' && type->bytes > 1;
  return *type;
}

NpyField field_of(const Parser& parser, const Literal& descr, NpyHeader& header) {
  const bool is_field = descr.kind == Literal::Kind::List && descr.items.size() >= 2 &&
                        descr.items.size() <= 3 && descr.items[0].kind == Literal::Kind::Text;
  if (!is_field) {
    parser.fail(descr.offset, "a field must be a name, a type and perhaps a shape");
  }
  NpyField field{descr.items[0].text, type_of(parser, descr.items[1]), {}, header.record};
  if (descr.items.size() == 3) {
    field.shape = shape_of(parser, descr.items[2]);
  }
  field.elements = count_of(parser, descr, field.shape);
  header.record += static_cast<size_t>(field.elements) * field.type.bytes;
  if (header.record > static_cast<size_t>(kMaxCount)) {
    parser.fail(descr.offset, "the header promises larger records than a file holds");
  }
  return field;
}

void read_fields(const Parser& parser, const Literal& descr, NpyHeader& header) {
  if (descr.kind == Literal::Kind::Text) {
    const NpyType type = type_of(parser, descr);
    header.fields = {{"", type, {}}};
    header.record = type.bytes;
    return;
  }
  for (const Literal& item : descr.items) {
    header.fields.push_back(field_of(parser, item, header));
  }
  if (header.fields.empty()) {
    parser.fail(descr.offset, "the array has no fields");
  }
}

/// Where the header's text is: [begin, end).
std::pair<size_t, size_t> text_of(const std::filesystem::path& path, std::string_view bytes) {
  const auto fail = [&](size_t offset, const std::string& message) {
    throw DataError(fmt::format("{}: offset {}: {}", path.string(), offset, message));
  };
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    fail(0, "this is not a .npy file: it does not begin with \"\\x93NUMPY\"");
  }
  if (bytes.size() < kPreamble) {
    fail(bytes.size(), "the file ends inside its header");
  }
  const int version = bytes[6];
  if (version < 1 || version > 3) {
    fail(6, fmt::format("unknown .npy format {}: rondo reads 1 to 3", version));
  }
  const size_t digits = version == 1 ? 2 : 4;
  size_t size = 0;
  for (size_t i = 0; i < digits && kPreamble + i < bytes.size(); ++i) {
    size |= size_t{static_cast<unsigned char>(bytes[kPreamble + i])} << (8 * i);
  }
  const size_t begin = kPreamble + digits;
  if (size > kMaxHeader || begin + size > bytes.size()) {
    fail(kPreamble, fmt::format("the file does not hold its header of {} bytes", size));
  }
  return {begin, begin + size};
}

}  // namespace

NpyHeader read_npy_header(const std::filesystem::path& path, std::string_view bytes) {
  const auto [begin, end] = text_of(path, bytes);
  Parser parser(path, bytes, begin, end);
  const Literal dictionary = parser.parse();
  NpyHeader header;
  header.data = end;
  read_fields(parser, at(parser, dictionary, "descr"), header);
  const Literal& shape = at(parser, dictionary, "shape");
  header.shape = shape_of(parser, shape);
  header.records = count_of(parser, shape, header.shape);
  header.is_fortran = at(parser, dictionary, "fortran_order").number == 1;
  const size_t found = bytes.size() - end;
  const double promised = static_cast<double>(header.records) * static_cast<double>(header.record);
  if (promised != static_cast<double>(found)) {
    parser.fail(
        end, fmt::format("the header promises {:.0f} bytes, the file holds {}", promised, found));
  }
  return header;
}

}  // namespace rondo::detail
