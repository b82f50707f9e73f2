#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rondo {

/// Writes text as numbers of tokens, and reads them back.
class Vocabulary {
 public:
  virtual ~Vocabulary() = default;

  /// Tokens are 0 … size() - 1.
  virtual int64_t size() const = 0;

  /// \throws DataError  for text that it has no tokens for; names the offset
  virtual std::vector<int64_t> encode(std::string_view text) const = 0;

  /// \throws DataError  for a number that is not in [0, size())
  virtual std::string decode(const std::vector<int64_t>& tokens) const = 0;

  /// The number of a token, such as "<|endoftext|>"; nothing when there is no such token.
  virtual std::optional<int64_t> find(std::string_view token) const = 0;

  /// The token that stands between texts; nothing when it has none.
  virtual std::optional<int64_t> end_of_text() const { return std::nullopt; }
};

/// Base of data sets of text: what their tokens mean.
class TextSource {
 public:
  virtual ~TextSource() = default;

  /// Lives as long as the data set; another one after `take_fitted`.
  virtual const Vocabulary& vocabulary() const = 0;

  /// The token that stands between texts; nothing when there is none.
  virtual std::optional<int64_t> end_of_text() const { return vocabulary().end_of_text(); }
};

}  // namespace rondo
