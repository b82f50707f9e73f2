#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/vocabulary.h"

namespace rondo {

/// The characters of a text, taken as bytes and numbered in byte order: any text comes back from
/// its numbers unchanged. In a UTF-8 text a letter beyond ASCII is several characters.
class ByteVocabulary final : public Vocabulary {
 public:
  explicit ByteVocabulary(std::string_view text);

  /// Different characters, at most 256.
  int64_t size() const override { return static_cast<int64_t>(characters_.size()); }

  /// Every character in the order of their numbers.
  const std::string& characters() const { return characters_; }

  /// \throws DataError  for a character that the vocabulary lacks; names it and its offset
  std::vector<int64_t> encode(std::string_view text) const override;

  /// \throws DataError  for a number that is not in [0, size())
  std::string decode(const std::vector<int64_t>& tokens) const override;

  std::optional<int64_t> find(std::string_view token) const override;

 private:
  std::string characters_;
  std::array<int16_t, 256> number_of_;  // -1: not in the vocabulary
};

}  // namespace rondo
