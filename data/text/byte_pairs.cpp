#include "data/text/byte_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <queue>
#include <tuple>

#include "core/error.h"
#include "core/json_reader.h"
#include "data/internal/read_file.h"
#include "data/text/word_split.h"

namespace rondo {

namespace {

constexpr int64_t kMostTokens = int64_t{1} << 24;

/// The letter that stands for each byte in vocab.json and merges.txt: itself where it is printed,
/// else one from U+0100 on.
class ByteLetters {
 public:
  ByteLetters() {
    uint32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool is_printed =
          (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const uint32_t letter = is_printed ? byte : next++;
      letters_[byte] = utf8(letter);
      bytes_[letters_[byte]] = static_cast<char>(byte);
    }
  }

  const std::string& letter(uint8_t byte) const { return letters_[byte]; }

  std::string letters_of(std::string_view bytes) const {
    std::string letters;
    for (const char byte : bytes) {
      letters += letters_[static_cast<uint8_t>(byte)];
    }
    return letters;
  }

  /// The bytes that a token's letters stand for; the token itself when it has others, as special
  /// tokens may.
  std::string bytes_of(const std::string& token) const {
    std::string bytes;
    for (size_t at = 0; at < token.size();) {
      const size_t size = static_cast<uint8_t>(token[at]) < 0x80 ? 1 : 2;
      const auto found = bytes_.find(token.substr(at, size));
      if (found == bytes_.end()) {
        return token;
      }
      bytes.push_back(found->second);
      at += size;
    }
    return bytes;
  }

 private:
  static std::string utf8(uint32_t letter) {  // below U+0800
    if (letter < 0x80) {
      return {static_cast<char>(letter)};
    }
    return {static_cast<char>(0xC0 | letter >> 6), static_cast<char>(0x80 | (letter & 0x3F))};
  }

  std::array<std::string, 256> letters_;
  std::unordered_map<std::string, char> bytes_;
};

const ByteLetters& letters() {
  static const ByteLetters all;
  return all;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    line = line.substr(0, line.find_last_not_of('\r') + 1);
    lines.push_back(line);
  }
  return lines;
}

/// The tokens of a word that are left, as a list: merging takes one out.
struct Part {
  int64_t token = 0;
  size_t before = 0;
  size_t after = 0;
  bool is_left = true;
};

}  // namespace

BytePairs::BytePairs(const std::filesystem::path& folder) {
  read_tokens(folder / "vocab.json");
  read_merges(folder / "merges.txt");
  for (const std::string& bytes : bytes_of_) {
    std::for_each(bytes.begin(), bytes.end(), [this](char byte) {
      digest_.add(static_cast<uint64_t>(static_cast<uint8_t>(byte)));
    });
    digest_.add(bytes.size());
  }
}

void BytePairs::read_tokens(const std::filesystem::path& file) {
  const std::string text = detail::read_data_file(file);
  try {
    JsonReader reader(text);
    reader.object([&](const std::string& token) {
      const int64_t number = reader.unsigned_integer();
      if (number >= kMostTokens) {
        throw DataError(fmt::format("token {} has a number of {} or more", number, kMostTokens));
      }
      if (!numbers_.emplace(token, number).second) {
        throw DataError(fmt::format("the token \"{}\" stands there twice", token));
      }
    });
    reader.end();
  } catch (const DataError&) {
    std::throw_with_nested(DataError(file.string() + ": damaged"));
  }
  bytes_of_.resize(numbers_.size());
  std::vector<bool> is_taken(numbers_.size());
  for (const auto& [token, number] : numbers_) {
    const auto at = static_cast<size_t>(number);
    if (at >= is_taken.size() || is_taken[at]) {
      throw DataError(fmt::format("{}: the numbers of its {} tokens are not 0 to {}",
                                  file.string(),
                                  numbers_.size(),
                                  static_cast<int64_t>(numbers_.size()) - 1));
    }
    is_taken[at] = true;
    bytes_of_[at] = letters().bytes_of(token);
  }
  for (size_t byte = 0; byte < token_of_byte_.size(); ++byte) {
    const auto found = numbers_.find(letters().letter(static_cast<uint8_t>(byte)));
    if (found == numbers_.end()) {
      throw DataError(fmt::format("{}: no token for byte 0x{:02x} alone", file.string(), byte));
    }
    token_of_byte_[byte] = found->second;
  }
}

void BytePairs::read_merges(const std::filesystem::path& file) {
  const std::string text = detail::read_data_file(file);
  const std::vector<std::string_view> lines = lines_of(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string line(lines[i]);
    if (line.empty() || (i == 0 && line.rfind("#version", 0) == 0)) {
      continue;
    }
    const size_t blank = line.find(' ');
    const auto left = numbers_.find(line.substr(0, blank));
    const auto right = numbers_.find(blank == std::string::npos ? "" : line.substr(blank + 1));
    const auto both = left == numbers_.end() || right == numbers_.end()
                          ? numbers_.end()
                          : numbers_.find(left->first + right->first);
    if (both == numbers_.end()) {
      throw DataError(fmt::format("{}: line {}: \"{}\" is no pair of tokens that make a third one",
                                  file.string(),
                                  i + 1,
                                  line));
    }
    digest_.add(pair_of(left->second, right->second));
    merges_.emplace(pair_of(left->second, right->second),
                    Merge{static_cast<int64_t>(i), both->second});
  }
}

std::vector<int64_t> BytePairs::tokens_of_word(std::string_view word) const {
  std::vector<Part> parts(word.size());
  for (size_t i = 0; i < word.size(); ++i) {
    parts[i] = {token_of_byte_[static_cast<uint8_t>(word[i])], i - 1, i + 1};
  }
  // The lowest rank first, then the leftmost; a pair of which a part has changed is out of date.
  using Pair = std::tuple<int64_t, size_t, int64_t, int64_t>;
  std::priority_queue<Pair, std::vector<Pair>, std::greater<>> pairs;
  const auto add = [&](size_t left) {
    const size_t right = left < parts.size() ? parts[left].after : parts.size();
    if (right < parts.size()) {
      const auto found = merges_.find(pair_of(parts[left].token, parts[right].token));
      if (found != merges_.end()) {
        pairs.emplace(found->second.rank, left, parts[left].token, parts[right].token);
      }
    }
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    add(i);
  }
  while (!pairs.empty()) {
    const auto [rank, left, first, second] = pairs.top();
    pairs.pop();
    const size_t right = parts[left].after;
    if (!parts[left].is_left || right >= parts.size() || parts[left].token != first ||
        parts[right].token != second) {
      continue;
    }
    parts[left].token = merges_.at(pair_of(first, second)).token;
    parts[left].after = parts[right].after;
    parts[right].is_left = false;
    if (parts[left].after < parts.size()) {
      parts[parts[left].after].before = left;
    }
    add(parts[left].before);
    add(left);
  }
  std::vector<int64_t> tokens;
  for (const Part& part : parts) {
    if (part.is_left) {
      tokens.push_back(part.token);
    }
  }
  return tokens;
}

std::vector<int64_t> BytePairs::encode(std::string_view text) const {
  constexpr size_t kMostWords = 1 << 16;  // that are remembered
  std::unordered_map<std::string_view, std::vector<int64_t>> known;
  std::vector<int64_t> tokens;
  detail::split_words(text, [&](std::string_view word) {
    auto found = known.find(word);
    if (found == known.end()) {
      if (known.size() == kMostWords) {
        known.clear();
      }
      found = known.emplace(word, tokens_of_word(word)).first;
    }
    tokens.insert(tokens.end(), found->second.begin(), found->second.end());
  });
  return tokens;
}

std::string BytePairs::decode(const std::vector<int64_t>& tokens) const {
  std::string text;
  for (const int64_t token : tokens) {
    if (token < 0 || token >= size()) {
      throw DataError(fmt::format("token {} is not in the vocabulary of {}", token, size()));
    }
    text += bytes_of_[static_cast<size_t>(token)];
  }
  return text;
}

std::optional<int64_t> BytePairs::find(std::string_view token) const {
  auto found = numbers_.find(letters().letters_of(token));
  if (found == numbers_.end()) {
    found = numbers_.find(std::string(token));
  }
  return found != numbers_.end() ? std::optional<int64_t>(found->second) : std::nullopt;
}

}  // namespace rondo
