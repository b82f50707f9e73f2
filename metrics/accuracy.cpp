#include "metrics/accuracy.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/topk.h>
#include <fmt/format.h>

#include <tuple>

#include "core/error.h"
#include "core/ignored_label.h"
#include "core/require.h"
#include "metrics/internal/class_rows.h"
#include "metrics/register.h"

namespace rondo {

namespace {

enum AccuracySums { Correct, Labels };

/// Whether each label is among the largest logits of its row: bool [rows].
/// \param rows  [rows, classes]
at::Tensor is_among_largest(const at::Tensor& rows, const at::Tensor& labels, int64_t top_k) {
  if (top_k == 1) {
    return rows.argmax(1).eq(labels);
  }
  if (rows.size(1) < top_k) {
    throw ShapeError(
        fmt::format("Accuracy: top_k is {}, there are {} classes only", top_k, rows.size(1)));
  }
  return std::get<1>(rows.topk(top_k, 1)).eq(labels.unsqueeze(1)).any(1);
}

}  // namespace

Accuracy::Accuracy(const Options& options)
    : SumsMetric({{"correct"}, {"labels"}}), options_(options) {
  detail::require(options.top_k >= 1, "Accuracy: top_k", ">= 1", options.top_k);
}

std::string Accuracy::name() const {
  return options_.top_k == 1 ? "accuracy" : fmt::format("top_{}_accuracy", options_.top_k);
}

void Accuracy::update(const Outputs& outputs, const Batch& batch) {
  const auto [rows, labels, counts] =
      detail::class_rows("Accuracy",
                         outputs[options_.logits].detach(),
                         batch[options_.label],
                         options_.ignore_index.value_or(kIgnoredLabel));
  const at::Tensor is_right = is_among_largest(rows, labels, options_.top_k);
  sum(Correct).add_(is_right.logical_and(counts).sum());
  sum(Labels).add_(counts.sum());
}

double Accuracy::compute() const {
  return number(Correct) / number(Labels);
}

void register_accuracy(Registry<Metric>& registry) {
  using Options = Accuracy::Options;
  registry
      .add<Accuracy>("Accuracy",
                     "Share of labels that are among the largest logits. That of each class is "
                     "Recall with average = \"none\".")
      .key("logits", &Options::logits, "an output: [..., classes]")
      .key("target", &Options::label, "name in the batch: integers [...]")
      .key("ignore_index",
           &Options::ignore_index,
           "a label that does not count; absent: the one that the model's loss leaves out")
      .key("top_k", &Options::top_k, at_least(1), "how many of the largest logits count as right");
}

}  // namespace rondo
