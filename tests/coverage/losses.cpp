#include <torch/nn.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "coverage/row.h"

// The losses of torch::nn, and the loss with a module of its own.

namespace rondo::test {

namespace {

namespace nn = torch::nn;

at::Tensor signs_of(const at::Tensor& y) {
  return at::where(y > 0, at::ones_like(y), -at::ones_like(y));
}

void add_regressions(Rows& rows) {
  const auto of_two = [](auto& m, const Inputs& in) { return m->forward(in.x, in.y); };
  rows.module(
      "nn::L1Loss", kMatrix, [] { return nn::L1Loss(); }, of_two);
  rows.module(
      "nn::MSELoss", kMatrix, [] { return nn::MSELoss(); }, of_two);
  rows.module(
      "nn::MSELoss, sum",
      kMatrix,
      [] { return nn::MSELoss(nn::MSELossOptions(torch::kSum)); },
      of_two);
  rows.module(
      "nn::SmoothL1Loss", kMatrix, [] { return nn::SmoothL1Loss(); }, of_two);
  rows.module(
      "nn::HuberLoss", kMatrix, [] { return nn::HuberLoss(); }, of_two);
  rows.module(
      "nn::HuberLoss, sum",
      {32, 128},
      [] { return nn::HuberLoss(nn::HuberLossOptions().reduction(torch::kSum)); },
      of_two);
  rows.module(
      "nn::PoissonNLLLoss",
      kMatrix,
      [] { return nn::PoissonNLLLoss(nn::PoissonNLLLossOptions().full(true)); },
      [](auto& m, const Inputs& in) { return m->forward(in.x, in.y.abs() * 3); });
  rows.module(
      "nn::KLDivLoss",
      kMatrix,
      [] { return nn::KLDivLoss(nn::KLDivLossOptions().reduction(torch::kBatchMean)); },
      [](auto& m, const Inputs& in) { return m->forward(in.x.log_softmax(1), in.y.softmax(1)); });
}

void add_classifications(Rows& rows) {
  const auto of_labels = [](auto& m, const Inputs& in) { return m->forward(in.x, in.label); };
  const auto of_signs = [](auto& m, const Inputs& in) { return m->forward(in.x, signs_of(in.y)); };
  const auto of_targets = [](auto& m, const Inputs& in) {
    return m->forward(in.x, in.y.sigmoid());
  };
  rows.module(
      "nn::NLLLoss",
      kMatrix,
      [] { return nn::NLLLoss(); },
      [](auto& m, const Inputs& in) { return m->forward(in.x.log_softmax(1), in.label); });
  rows.module(
      "nn::CrossEntropyLoss", kMatrix, [] { return nn::CrossEntropyLoss(); }, of_labels);
  rows.module(
      "nn::CrossEntropyLoss, label_smoothing",
      kMatrix,
      [] { return nn::CrossEntropyLoss(nn::CrossEntropyLossOptions().label_smoothing(0.1)); },
      of_labels);
  rows.module(
      "nn::CrossEntropyLoss, ignore_index",
      kMatrix,
      [] { return nn::CrossEntropyLoss(nn::CrossEntropyLossOptions().ignore_index(2)); },
      of_labels);
  rows.module(
      "nn::CrossEntropyLoss, probabilities",
      kMatrix,
      [] { return nn::CrossEntropyLoss(); },
      [](auto& m, const Inputs& in) { return m->forward(in.x, in.y.softmax(1)); });
  rows.module(
      "nn::BCELoss",
      kMatrix,
      [] { return nn::BCELoss(); },
      [](auto& m, const Inputs& in) { return m->forward(in.x.sigmoid(), in.y.sigmoid()); });
  rows.module(
      "nn::BCELoss, sum",
      kMatrix,
      [] { return nn::BCELoss(nn::BCELossOptions().reduction(torch::kSum)); },
      [](auto& m, const Inputs& in) { return m->forward(in.x.sigmoid(), in.y.sigmoid()); });
  rows.module(
      "nn::BCEWithLogitsLoss", kMatrix, [] { return nn::BCEWithLogitsLoss(); }, of_targets);
  rows.module(
      "nn::BCEWithLogitsLoss, pos_weight",
      kMatrix,
      [] {
        return nn::BCEWithLogitsLoss(nn::BCEWithLogitsLossOptions().pos_weight(at::full({6}, 2.0)));
      },
      of_targets);
  rows.module(
      "nn::SoftMarginLoss", kMatrix, [] { return nn::SoftMarginLoss(); }, of_signs);
  rows.module(
      "nn::HingeEmbeddingLoss", kMatrix, [] { return nn::HingeEmbeddingLoss(); }, of_signs);
  rows.module(
      "nn::MultiMarginLoss", kMatrix, [] { return nn::MultiMarginLoss(); }, of_labels);
  rows.module(
      "nn::MultiLabelMarginLoss",
      kMatrix,
      [] { return nn::MultiLabelMarginLoss(); },
      [](auto& m, const Inputs& in) { return m->forward(in.x, in.index); });
  rows.module(
      "nn::MultiLabelSoftMarginLoss",
      kMatrix,
      [] { return nn::MultiLabelSoftMarginLoss(); },
      [](auto& m, const Inputs& in) { return m->forward(in.x, (in.y > 0).to(at::kFloat)); });
}

void add_distance_losses(Rows& rows) {
  rows.module(
      "nn::MarginRankingLoss",
      kMatrix,
      [] { return nn::MarginRankingLoss(); },
      [](auto& m, const Inputs& in) { return m->forward(in.x, in.x.flip(0), signs_of(in.y)); });
  rows.module(
      "nn::CosineEmbeddingLoss",
      kMatrix,
      [] { return nn::CosineEmbeddingLoss(); },
      [](auto& m, const Inputs& in) {
        return m->forward(in.x, in.y, signs_of(in.y.select(1, 0)));
      });
  const auto of_three = [](auto& m, const Inputs& in) {
    return m->forward(in.x, in.y, in.y.flip(0));
  };
  rows.module(
      "nn::TripletMarginLoss", kMatrix, [] { return nn::TripletMarginLoss(); }, of_three);
  rows.module(
      "nn::TripletMarginWithDistanceLoss",
      kMatrix,
      [] { return nn::TripletMarginWithDistanceLoss(); },
      of_three);
}

void add_other_losses(Rows& rows) {
  const auto targets = [](const Inputs& in) {
    return (in.index.slice(0, 0, 3).slice(2, 0, 2) % 4 + 1).select(2, 0).t().contiguous();
  };
  rows.module(
      "nn::CTCLoss",
      {8, 3, 5},
      [] { return nn::CTCLoss(); },
      [targets](auto& m, const Inputs& in) {
        return m->forward(in.x.log_softmax(2),
                          targets(in),
                          at::full({3}, 8, at::kLong),
                          at::full({3}, 3, at::kLong));
      });
  rows.module(
      "nn::CTCLoss, lengths of the data",
      {8, 3, 5},
      [] { return nn::CTCLoss(); },
      [targets](auto& m, const Inputs& in) {
        const at::Tensor length = in.label.slice(0, 0, 3);
        return m->forward(in.x.log_softmax(2), targets(in), length + 6, length + 1);
      });
  rows.module(
      "nn::AdaptiveLogSoftmaxWithLoss",
      kMatrix,
      [] {
        return nn::AdaptiveLogSoftmaxWithLoss(
            nn::AdaptiveLogSoftmaxWithLossOptions(6, 9, {2, 5}).div_value(2));
      },
      [](auto& m, const Inputs& in) { return m->forward(in.x, in.label).output; });
}

}  // namespace

std::vector<Row> losses() {
  Rows rows("loss");
  add_regressions(rows);
  add_classifications(rows);
  add_distance_losses(rows);
  add_other_losses(rows);
  return rows.take();
}

}  // namespace rondo::test
