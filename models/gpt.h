#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/wrapped_model.h"

namespace rondo {

class KeyedRandom;

/// How `Gpt::generate` chooses tokens.
struct GenerateOptions {
  int64_t count = 100;       ///< tokens to add, >= 0
  double temperature = 1.0;  ///< >= 0; 0 always takes the most likely token
  /// Only tokens below this are chosen, in [1, vocabulary]; absent: any. For a text with fewer
  /// different tokens than the model has.
  std::optional<int64_t> below = {};
};

/// Decoder-only transformer that predicts the next token: layer norm before each part, exact GELU,
/// learned positions. Sees "tokens" and "targets", int64 [B, T] with T <= context; returns "loss",
/// the mean cross entropy, when the batch has targets, and "logits", [B, T, vocabulary]; throws
/// ShapeError for tokens of another shape.
/// \capture safe
/// Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.3.
class Gpt final : public WrappedModel {
 public:
  struct Options {
    int64_t layers = 4;       ///< >= 1
    int64_t heads = 4;        ///< >= 1, a divisor of width
    int64_t width = 128;      ///< of the residual stream, >= 1
    int64_t context = 64;     ///< tokens, >= 1
    int64_t vocabulary = 65;  ///< tokens are 0 … vocabulary-1, >= 1
    double dropout = 0.0;     ///< of embeddings, attention and both parts' outputs, in [0, 1)
    bool tied = false;        ///< the head is the token embedding, as one parameter
  };

  /// \throws UsageError  for options out of range
  static void check(const Options& options);

  /// \throws UsageError  for options out of range
  explicit Gpt(const Options& options);

  int64_t vocabulary() const { return vocabulary_; }

  /// Continues `prompt` in eval mode without gradients, and restores the mode.
  /// \param prompt  at least one token, each in the vocabulary; the last `context` are seen
  /// \return the prompt and `count` tokens more
  /// \throws UsageError  when prompt or options are out of range
  /// \capture host only
  std::vector<int64_t> generate(std::vector<int64_t> prompt,
                                const GenerateOptions& options,
                                KeyedRandom& random);

 private:
  int64_t vocabulary_;
};

}  // namespace rondo
