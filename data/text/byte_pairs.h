#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/fingerprint.h"
#include "data/text/vocabulary.h"

namespace rondo {

/// Pairs of bytes that merge to tokens, in the files that GPT-2 came with: vocab.json, the number
/// of each token, and merges.txt, the pairs in the order of their making. Any UTF-8 text comes back
/// from its tokens unchanged.
/// Source: Sennrich et al. 2016, arXiv:1508.07909; of bytes: Radford et al. 2019, "Language Models
/// are Unsupervised Multitask Learners", section 2.2.
class BytePairs final : public Vocabulary {
 public:
  /// \throws DataError  naming the file and the place of what is damaged or missing
  explicit BytePairs(const std::filesystem::path& folder);

  int64_t size() const override { return static_cast<int64_t>(bytes_of_.size()); }

  /// Names of special tokens in the text are words like others.
  std::vector<int64_t> encode(std::string_view text) const override;

  std::string decode(const std::vector<int64_t>& tokens) const override;
  /// By its text, or by its name in vocab.json.
  std::optional<int64_t> find(std::string_view token) const override;

  /// Another number for other tokens or merges.
  int64_t digest() const { return static_cast<int64_t>(digest_.value()); }

  /// "<|endoftext|>", where the vocabulary has it.
  std::optional<int64_t> end_of_text() const override { return find("<|endoftext|>"); }

 private:
  /// What two tokens next to each other become.
  struct Merge {
    int64_t rank = 0;  ///< lower ones come first
    int64_t token = 0;
  };

  static uint64_t pair_of(int64_t left, int64_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint64_t>(right);
  }

  void read_tokens(const std::filesystem::path& file);
  void read_merges(const std::filesystem::path& file);
  std::vector<int64_t> tokens_of_word(std::string_view word) const;

  std::unordered_map<std::string, int64_t> numbers_;  // by the name in vocab.json
  std::vector<std::string> bytes_of_;                 // by number
  std::array<int64_t, 256> token_of_byte_{};
  std::unordered_map<uint64_t, Merge> merges_;
  Fingerprint digest_;
};

}  // namespace rondo
