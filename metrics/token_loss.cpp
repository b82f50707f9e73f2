#include "metrics/token_loss.h"

#include <cmath>

#include "core/error.h"
#include "core/ignored_label.h"
#include "core/require.h"
#include "metrics/register.h"

namespace rondo {

namespace {

enum TokenSums { TotalLoss, Tokens };

/// The keys of TokenLoss, which stand in what derives from it too.
template <class Options>
KeyTable<Options>& add_token_keys(KeyTable<Options>& keys) {
  return keys
      .key("output",
           detail::key_in<Options>(&Options::output),
           "an output: mean loss over the targets of a batch")
      .key("targets", detail::key_in<Options>(&Options::targets), "name in the batch: integers")
      .key("ignore_index",
           detail::key_in<Options>(&Options::ignore_index),
           "a target that does not count; absent: the one that the model's loss leaves out");
}

}  // namespace

TokenLoss::TokenLoss(const Options& options)
    : SumsMetric({{"total"}, {"tokens"}}), options_(options) {}

void TokenLoss::update(const Outputs& outputs, const Batch& batch) {
  const at::Tensor& loss = outputs[options_.output];
  if (loss.dim() != 0) {
    throw ShapeError(name() + ": output \"" + options_.output + "\" must have no dimensions, got " +
                     std::to_string(loss.dim()));
  }
  const at::Tensor counts =
      batch[options_.targets].to(at::kLong).ne(options_.ignore_index.value_or(kIgnoredLabel));
  const at::Tensor tokens = counts.sum().to(at::kDouble);
  // The mean over no token is NaN; such a batch adds nothing.
  sum(TotalLoss).add_(loss.detach().to(at::kDouble).mul(tokens).masked_fill(tokens.eq(0), 0));
  sum(Tokens).add_(tokens);
}

double TokenLoss::nats() const {
  return number(TotalLoss) / number(Tokens);
}

double Perplexity::compute() const {
  return std::exp(nats());
}

BitsPerByte::BitsPerByte(const Options& options)
    : TokenLoss(options), bytes_per_token_(options.bytes_per_token) {
  detail::require(
      bytes_per_token_ > 0, "BitsPerByte: bytes_per_token", "greater than 0", bytes_per_token_);
}

double BitsPerByte::compute() const {
  return nats() / std::log(2.0) / bytes_per_token_;
}

void register_token_losses(Registry<Metric>& registry) {
  add_token_keys(
      registry.add<Perplexity>("Perplexity", "Exponential of the mean loss of a token."));
  add_token_keys(registry.add<BitsPerByte>("BitsPerByte", "Mean loss of a byte in bits."))
      .key("bytes_per_token",
           &BitsPerByte::Options::bytes_per_token,
           greater_than(0),
           "mean number of bytes that a token of the data stands for");
}

}  // namespace rondo
