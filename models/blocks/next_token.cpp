#include "models/blocks/next_token.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <c10/util/StringUtil.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "core/random.h"

namespace rondo::detail {

void require_tokens(std::string_view model, const at::Tensor& tokens, int64_t context) {
  if (tokens.dim() != 2 || tokens.size(1) < 1 || tokens.size(1) > context) {
    throw ShapeError(c10::str(
        model, ": tokens must be [B, T] with T in 1 … ", context, ", got ", tokens.sizes()));
  }
}

at::Tensor row_of(const std::vector<int64_t>& tokens) {
  at::Tensor row = at::empty({1, static_cast<int64_t>(tokens.size())}, at::kLong);
  std::copy(tokens.begin(), tokens.end(), row.data_ptr<int64_t>());
  return row;
}

at::Tensor only_largest(const at::Tensor& logits, int64_t count) {
  if (count == 0 || count >= logits.size(0)) {
    return logits;
  }
  const auto [values, places] = logits.topk(count);
  return at::full_like(logits, -std::numeric_limits<double>::infinity()).scatter(0, places, values);
}

int64_t choose_token(const at::Tensor& logits, double temperature, KeyedRandom& random) {
  if (temperature == 0) {
    return logits.argmax().item<int64_t>();
  }
  const at::Tensor sums =
      (logits.to(at::kCPU, at::kDouble) / temperature).softmax(0).cumsum(0).contiguous();
  const auto* first = sums.data_ptr<double>();
  const auto* last = first + sums.numel() - 1;
  // The sum of all may round to less than 1: what is drawn beyond it is the last token.
  return std::upper_bound(first, last, random.uniform()) - first;
}

EvalMode::EvalMode(torch::nn::Module& module)
    : module_(module), was_training_(module.is_training()) {
  module_.eval();
}

EvalMode::~EvalMode() {
  module_.train(was_training_);
}

}  // namespace rondo::detail
