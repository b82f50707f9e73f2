#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/text/byte_pairs.h"
#include "data/text/token_windows.h"

namespace rondo {

/// Text files, gzipped or not, as windows of a vocabulary's tokens (`BytePairs`). The documents are
/// packed: one follows the other, with a token between them, so that every window is full. A sample
/// has "tokens" and "targets", both int64 [context]; the targets are the tokens one further on.
class TokenizedText final : public Dataset, public TextSource {
 public:
  struct Options {
    std::string file = {};               ///< name, path or glob; must be given
    std::string vocabulary = {};         ///< a folder with vocab.json and merges.txt; must be given
    int64_t context = 1024;              ///< tokens of a window, >= 1
    std::optional<int64_t> stride = {};  ///< between windows, >= 1; `context` if absent
    std::string split = "train";         ///< "train": the beginning, "val": the end
    double val_fraction = 0.1;           ///< of the tokens, at their end, in [0, 1]
    std::string separator = {};          ///< of documents in a file; empty: a file is a document
    /// The token after each document; absent: the vocabulary's own, where it has one.
    std::optional<std::string> end_of_text = {};
    std::optional<std::filesystem::path> data_dir = {};  ///< else the environment's RONDO_DATA
    std::string folder = {};                             ///< of data_dir, looked into as well
  };

  /// Reads the files and writes them as tokens.
  /// \throws DataError  for a file or a vocabulary that is missing or damaged, and when the split
  ///                    is too short for one window
  explicit TokenizedText(const Options& options);

  int64_t size() const override { return windows_.size(); }

  Sample get(int64_t index) const override;
  Batch get_batch(const std::vector<int64_t>& indices) const override;

  /// The number of tokens of the vocabulary.
  DatasetFacts facts() const override;

  /// Which vocabulary it was.
  StateDict fitted() const override;

  /// \throws DataError  when training had another vocabulary
  void take_fitted(const StateDict& fitted) override;

  const BytePairs& vocabulary() const override { return vocabulary_; }

  std::optional<int64_t> end_of_text() const override;

 private:
  Options options_;
  BytePairs vocabulary_;
  std::vector<uint32_t> tokens_;  // of the split
  TokenWindows windows_;
};

}  // namespace rondo
