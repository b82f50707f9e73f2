#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/auto_option.h"
#include "core/dataset_facts.h"
#include "models/losses/criterion.h"
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
  int64_t top_k = 0;  ///< choose among so many of the likeliest tokens, >= 0; 0: among all
};

/// Decoder-only transformer that predicts the next token: a norm before each part. The default is
/// GPT-2's, with layer norms, exact GELU and learned positions; `positions = "alibi"` adds linear
/// biases to scores; `positions = "rotary"`, `norm = "rms"`, `activation = "swiglu"`, `kv_heads`
/// and `bias = false` make it Llama's. Sees "tokens" and "targets", int64 [B, T] with T <= context;
/// returns "loss", the mean cross entropy, when the batch has targets, and "logits", [B, T,
/// vocabulary]; throws ShapeError for tokens of another shape. \capture safe Source: Radford et al.
/// 2019, "Language Models are Unsupervised Multitask Learners", section 2.3; Touvron et al. 2023,
/// arXiv:2302.13971; rotary positions: Su et al. 2021, arXiv:2104.09864; linear biases: Press et
/// al. 2021, arXiv:2108.12409; RMS norm: Zhang and Sennrich 2019, arXiv:1910.07467; SwiGLU: Shazeer
/// 2020, arXiv:2002.05202; shared heads: Ainslie et al. 2023, arXiv:2305.13245.
class Gpt final : public WrappedModel {
 public:
  struct Options {
    int64_t layers = 4;             ///< >= 1
    int64_t heads = 4;              ///< >= 1, a divisor of width
    int64_t width = 128;            ///< of the residual stream, >= 1
    int64_t context = 64;           ///< tokens, >= 1
    Auto<int64_t> vocabulary = 65;  ///< tokens are 0 … vocabulary-1, >= 1
    double dropout = 0.0;           ///< of embeddings, attention and both parts' outputs, in [0, 1)
    bool tied = false;              ///< the head is the token embedding, as one parameter
    std::string positions = "learned";  ///< "learned", "rotary" or "alibi"
    std::string norm = "layer";         ///< "layer" or "rms"
    std::string activation = "gelu";    ///< "gelu" (exact) or "swiglu"
    int64_t kv_heads = 0;          ///< heads of keys and values, a divisor of heads; 0: as many
    int64_t hidden = 0;            ///< width of a perceptron; 0: 4 · width, of SwiGLU 2/3 of that
    bool bias = true;              ///< of the linear layers
    double rotary_base = 10000.0;  ///< of rotary positions, > 1
    /// Whether the backward pass computes each block again (models/recompute.h).
    bool recompute = false;
    Factory<Criterion> loss = {};  ///< none: cross entropy
  };

  /// \throws UsageError  for options out of range
  static void check(const Options& options);

  /// \throws UsageError  for options out of range
  explicit Gpt(const Options& options);

  /// Fills in what is "auto".
  /// \throws UsageError  naming the option that the data does not know
  static void resolve(Options& options, const DatasetFacts& facts);

  int64_t vocabulary() const { return vocabulary_; }

  /// Continues `prompt` in eval mode without gradients, and restores the mode. Keys and values of
  /// the tokens before are kept, until the context is full: from there on each token sees the last
  /// `context` ones afresh.
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
