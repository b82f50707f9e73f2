#include "data/text/byte_vocabulary.h"

#include <fmt/format.h>

#include "core/error.h"

namespace rondo {

ByteVocabulary::ByteVocabulary(std::string_view text) {
  number_of_.fill(-1);
  for (const char c : text) {
    number_of_[static_cast<unsigned char>(c)] = 0;
  }
  for (size_t byte = 0; byte < number_of_.size(); ++byte) {
    if (number_of_[byte] == 0) {
      number_of_[byte] = static_cast<int16_t>(characters_.size());
      characters_.push_back(static_cast<char>(byte));
    }
  }
}

std::vector<int64_t> ByteVocabulary::encode(std::string_view text) const {
  std::vector<int64_t> tokens;
  tokens.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (number_of_[byte] < 0) {
      throw DataError(
          fmt::format("the character {}at offset {}, byte 0x{:02x}, is not one of the {} "
                      "characters of the vocabulary",
                      c > ' ' && c <= '~' ? fmt::format("\"{}\" ", c) : "",
                      tokens.size(),
                      byte,
                      size()));
    }
    tokens.push_back(number_of_[byte]);
  }
  return tokens;
}

std::string ByteVocabulary::decode(const std::vector<int64_t>& tokens) const {
  std::string text;
  for (const int64_t token : tokens) {
    if (token < 0 || token >= size()) {
      throw DataError(fmt::format("token {} is not in the vocabulary of {}", token, size()));
    }
    text.push_back(characters_[static_cast<size_t>(token)]);
  }
  return text;
}

std::optional<int64_t> ByteVocabulary::find(std::string_view token) const {
  const size_t at = token.size() == 1 ? characters_.find(token[0]) : std::string::npos;
  return at != std::string::npos ? std::optional(static_cast<int64_t>(at)) : std::nullopt;
}

}  // namespace rondo
