#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace torch::nn {
class Module;
}

namespace rondo {
class KeyedRandom;
}

namespace rondo::detail {

/// \throws ShapeError  when `tokens` are not [B, T] with 1 <= T <= `context`
void require_tokens(std::string_view model, const at::Tensor& tokens, int64_t context);

/// int64 [1, number of tokens].
at::Tensor row_of(const std::vector<int64_t>& tokens);

/// The logits, of which all but the largest `count` are minus infinity; all of them for 0.
/// \param logits  [vocabulary]
at::Tensor only_largest(const at::Tensor& logits, int64_t count);

/// Draws a token from softmax(logits / temperature); the likeliest one when temperature is 0.
/// \param logits  [vocabulary]
int64_t choose_token(const at::Tensor& logits, double temperature, KeyedRandom& random);

/// Eval mode for as long as it lives; then the module is in the mode it was in.
class EvalMode {
 public:
  explicit EvalMode(torch::nn::Module& module);
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;
  ~EvalMode();

 private:
  torch::nn::Module& module_;
  bool was_training_;
};

}  // namespace rondo::detail
