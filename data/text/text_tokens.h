#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/text/byte_vocabulary.h"
#include "data/text/token_windows.h"

namespace rondo {

/// A text file, gzipped or not, as windows of characters. A sample has "tokens" and "targets", both
/// int64 [context]; the targets are the characters one further on. The vocabulary is that of the
/// whole file, so the splits share it; validations and resumed runs take that of training.
class TextTokens final : public Dataset, public TextSource {
 public:
  struct Options {
    int64_t context = 64;                ///< characters of a window, >= 1
    std::string split = "train";         ///< "train": the beginning, "val": the end
    double val_fraction = 0.1;           ///< of the text at its end, in [0, 1]
    std::optional<int64_t> stride = {};  ///< between windows, >= 1; `context` if absent
    std::string file = "input.txt";      ///< name or path of the text
    std::optional<std::filesystem::path> data_dir = {};  ///< else the environment's RONDO_DATA
    std::string folder = "shakespeare";                  ///< of data_dir, looked into as well
  };

  /// \throws DataError  when the split is too short for one window
  explicit TextTokens(const Options& options);

  int64_t size() const override { return windows_.size(); }

  Sample get(int64_t index) const override;
  Batch get_batch(const std::vector<int64_t>& indices) const override;

  /// The number of different characters.
  DatasetFacts facts() const override;

  /// The characters of the vocabulary.
  StateDict fitted() const override;

  /// \throws DataError  naming a character of the split that is not among them
  void take_fitted(const StateDict& fitted) override;

  /// To write prompts as tokens and to read what a model wrote.
  const ByteVocabulary& vocabulary() const override { return vocabulary_; }

 private:
  struct Text {
    std::filesystem::path path;
    std::string content;
  };

  static Text read(const Options& options);
  TextTokens(const Options& options, const Text& text);

  std::filesystem::path path_;
  ByteVocabulary vocabulary_;
  std::vector<uint8_t> tokens_;  // of the split
  TokenWindows windows_;
};

}  // namespace rondo
