#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "callbacks/callback.h"
#include "core/time.h"

namespace rondo {

/// Prints text that a Gpt writes when a fit ends, and keeps it in `<artifact_dir>/sample.txt`. With
/// `every`, also while it trains. Loggers get each text as `sample`. The training data must be
/// text (TextTokens, TokenizedText), whose tokens it writes. What does not fit together, data,
/// model and prompt, is a UsageError before the first step.
class SampleText final : public Callback {
 public:
  struct Options {
    int64_t length = 200;      ///< tokens, >= 1
    double temperature = 0.8;  ///< > 0; lower is more cautious
    /// What the text begins with, not empty, of characters of the training text. Absent: the token
    /// between texts; of a vocabulary without one a newline, or its first token.
    std::optional<std::string> prompt = {};
    int64_t top_k = 0;               ///< of the likeliest tokens one is chosen, >= 0; 0: of all
    std::optional<Time> every = {};  ///< from text to text while it trains, > 0; absent: at the end
  };

  /// \throws UsageError  for an empty prompt
  static void check(const Options& options);

  explicit SampleText(const Options& options);

  void on_fit_start(Trainer& trainer, const DataLoader& train, const Loaders&, Loop&) override;
  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t batch_idx) override;
  void on_fit_end(Trainer& trainer, Loop&) override;

 private:
  void write(Trainer& trainer);

  Options options_;
  std::optional<DataLoader> train_;
  int64_t written_ = -1;         // update of the newest text
  std::vector<int64_t> prompt_;  // in the vocabulary of `train_`
};

}  // namespace rondo
