#include <torch/nn/functional.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <torch/version.h>

#include <optional>
#include <tuple>

#include "coverage/row.h"

// torch::nn::functional.

namespace rondo::test {

namespace {

namespace F = torch::nn::functional;

using at::Tensor;

const Sizes kLine{2, 3, 8};
const Sizes kImage{2, 3, 8, 8};
const Sizes kVolume{2, 3, 6, 6, 6};

Tensor signs_of(const Tensor& y) {
  return at::where(y > 0, at::ones_like(y), -at::ones_like(y));
}

void add_activations(Rows& rows) {
  rows.function("F::celu", kMatrix, [](const Tensor& x) { return F::celu(x); });
  rows.function("F::elu", kMatrix, [](const Tensor& x) { return F::elu(x); });
  rows.function("F::elu, in place", kMatrix, [](const Tensor& x) {
    return F::elu(x * 2, F::ELUFuncOptions().inplace(true));
  });
  rows.function("F::gelu", kMatrix, [](const Tensor& x) { return F::gelu(x); });
  rows.function("F::glu", kMatrix, [](const Tensor& x) { return F::glu(x); });
  rows.function("F::gumbel_softmax", kMatrix, [](const Tensor& x) { return F::gumbel_softmax(x); });
  rows.function("F::gumbel_softmax, hard", kMatrix, [](const Tensor& x) {
    return F::gumbel_softmax(x, F::GumbelSoftmaxFuncOptions().hard(true));
  });
  rows.function("F::hardshrink", kMatrix, [](const Tensor& x) { return F::hardshrink(x); });
  rows.function("F::hardtanh", kMatrix, [](const Tensor& x) { return F::hardtanh(x); });
  rows.function("F::leaky_relu", kMatrix, [](const Tensor& x) { return F::leaky_relu(x); });
  rows.function("F::log_softmax", kMatrix, [](const Tensor& x) { return F::log_softmax(x, 1); });
  rows.function("F::logsigmoid", kMatrix, [](const Tensor& x) { return F::logsigmoid(x); });
  rows.function("F::mish", kMatrix, [](const Tensor& x) { return F::mish(x); });
  rows.function(
      "F::prelu", kMatrix, [](const Tensor& x) { return F::prelu(x, at::full({1}, 0.2)); });
  rows.function("F::relu", kMatrix, [](const Tensor& x) { return F::relu(x); });
  rows.function("F::relu6", kMatrix, [](const Tensor& x) { return F::relu6(x); });
  rows.function("F::rrelu", kMatrix, [](const Tensor& x) {
    return F::rrelu(x, F::RReLUFuncOptions().training(true));
  });
  rows.function("F::selu", kMatrix, [](const Tensor& x) { return F::selu(x); });
  rows.function("F::silu", kMatrix, [](const Tensor& x) { return F::silu(x); });
  rows.function("F::softmax", kMatrix, [](const Tensor& x) { return F::softmax(x, 1); });
  rows.function("F::softmin", kMatrix, [](const Tensor& x) { return F::softmin(x, 1); });
  rows.function("F::softplus", kMatrix, [](const Tensor& x) { return F::softplus(x); });
  rows.function("F::softshrink", kMatrix, [](const Tensor& x) { return F::softshrink(x); });
  rows.function("F::softsign", kMatrix, [](const Tensor& x) { return F::softsign(x); });
  rows.function("F::tanhshrink", kMatrix, [](const Tensor& x) { return F::tanhshrink(x); });
  rows.function("F::threshold", kMatrix, [](const Tensor& x) {
    return F::threshold(x, F::ThresholdFuncOptions(0.1, 2.0));
  });
}

void add_convolutions(Rows& rows) {
  rows.function("F::conv1d", kLine, [](const Tensor& x) {
    return F::conv1d(x, x.slice(0, 0, 1).slice(2, 0, 3));
  });
  rows.function("F::conv2d", kImage, [](const Tensor& x) {
    return F::conv2d(x, x.slice(2, 0, 3).slice(3, 0, 3).contiguous());
  });
  rows.function("F::conv3d", kVolume, [](const Tensor& x) {
    return F::conv3d(x, x.slice(2, 0, 2).slice(3, 0, 2).slice(4, 0, 2).contiguous());
  });
  rows.function("F::conv_transpose1d", kLine, [](const Tensor& x) {
    return F::conv_transpose1d(x, at::full({3, 2, 3}, 0.1));
  });
  rows.function("F::conv_transpose2d", kImage, [](const Tensor& x) {
    return F::conv_transpose2d(x, at::full({3, 2, 3, 3}, 0.1));
  });
  rows.function("F::conv_transpose3d", kVolume, [](const Tensor& x) {
    return F::conv_transpose3d(x, at::full({3, 2, 2, 2, 2}, 0.1));
  });
  rows.function("F::fold", {2, 12, 4}, [](const Tensor& x) {
    return F::fold(x, F::FoldFuncOptions({3, 3}, {2, 2}));
  });
  rows.function("F::unfold", kImage, [](const Tensor& x) {
    return F::unfold(x, F::UnfoldFuncOptions({2, 2}).stride(2));
  });
  rows.function("F::pixel_shuffle", {2, 8, 3, 3}, [](const Tensor& x) {
    return F::pixel_shuffle(x, F::PixelShuffleFuncOptions(2));
  });
  rows.function("F::pixel_unshuffle", {2, 2, 6, 6}, [](const Tensor& x) {
    return F::pixel_unshuffle(x, F::PixelUnshuffleFuncOptions(2));
  });
}

void add_linear(Rows& rows) {
  rows.function("F::linear", kMatrix, [](const Tensor& x) { return F::linear(x, x); });
  rows.function("F::bilinear", kMatrix, [](const Inputs& in) {
    return F::bilinear(in.x, in.y, at::full({3, 6, 6}, 0.1), Tensor());
  });
  rows.function("F::multi_head_attention_forward", {5, 3, 8}, [](const Tensor& x) {
    const F::MultiheadAttentionForwardFuncOptions options(8,
                                                          2,
                                                          at::full({24, 8}, 0.1),
                                                          at::zeros({24}),
                                                          Tensor(),
                                                          Tensor(),
                                                          false,
                                                          0.0,
                                                          at::full({8, 8}, 0.1),
                                                          at::zeros({8}));
    return std::get<0>(F::multi_head_attention_forward(x, x, x, options));
  });
}

void add_norms(Rows& rows) {
  rows.function("F::batch_norm", kMatrix, [](const Tensor& x) {
    return F::batch_norm(
        x, at::zeros({6}), at::ones({6}), F::BatchNormFuncOptions().training(true));
  });
  rows.function("F::instance_norm", kImage, [](const Tensor& x) { return F::instance_norm(x); });
  rows.function("F::layer_norm", kMatrix, [](const Tensor& x) {
    return F::layer_norm(x, F::LayerNormFuncOptions({6}));
  });
  rows.function("F::group_norm", {2, 6, 4}, [](const Tensor& x) {
    return F::group_norm(x, F::GroupNormFuncOptions(2));
  });
  rows.function("F::local_response_norm", kImage, [](const Tensor& x) {
    return F::local_response_norm(x, F::LocalResponseNormFuncOptions(2));
  });
  rows.function("F::normalize", kMatrix, [](const Tensor& x) { return F::normalize(x); });
}

void add_poolings(Rows& rows) {
  rows.function("F::avg_pool1d", kLine, [](const Tensor& x) {
    return F::avg_pool1d(x, F::AvgPool1dFuncOptions(2));
  });
  rows.function("F::avg_pool2d", kImage, [](const Tensor& x) {
    return F::avg_pool2d(x, F::AvgPool2dFuncOptions(3).stride(2).padding(1));
  });
  rows.function("F::avg_pool3d", kVolume, [](const Tensor& x) {
    return F::avg_pool3d(x, F::AvgPool3dFuncOptions(2));
  });
  rows.function("F::max_pool1d", kLine, [](const Tensor& x) {
    return F::max_pool1d(x, F::MaxPool1dFuncOptions(2));
  });
  rows.function("F::max_pool2d", kImage, [](const Tensor& x) {
    return F::max_pool2d(x, F::MaxPool2dFuncOptions(2));
  });
  rows.function("F::max_pool3d", kVolume, [](const Tensor& x) {
    return F::max_pool3d(x, F::MaxPool3dFuncOptions(2));
  });
  rows.function("F::adaptive_avg_pool1d", kLine, [](const Tensor& x) {
    return F::adaptive_avg_pool1d(x, F::AdaptiveAvgPool1dFuncOptions(3));
  });
  rows.function("F::adaptive_avg_pool2d", kImage, [](const Tensor& x) {
    return F::adaptive_avg_pool2d(x, F::AdaptiveAvgPool2dFuncOptions({1, 1}));
  });
  rows.function("F::adaptive_avg_pool3d", kVolume, [](const Tensor& x) {
    return F::adaptive_avg_pool3d(x, F::AdaptiveAvgPool3dFuncOptions({2, 2, 2}));
  });
  rows.function("F::adaptive_max_pool1d", kLine, [](const Tensor& x) {
    return F::adaptive_max_pool1d(x, F::AdaptiveMaxPool1dFuncOptions(3));
  });
  rows.function("F::adaptive_max_pool2d", kImage, [](const Tensor& x) {
    return F::adaptive_max_pool2d(x, F::AdaptiveMaxPool2dFuncOptions({3, 3}));
  });
  rows.function("F::adaptive_max_pool3d", kVolume, [](const Tensor& x) {
    return F::adaptive_max_pool3d(x, F::AdaptiveMaxPool3dFuncOptions({2, 2, 2}));
  });
  rows.function("F::fractional_max_pool2d", kImage, [](const Tensor& x) {
    return F::fractional_max_pool2d(x,
                                    F::FractionalMaxPool2dFuncOptions(2).output_ratio(
                                        torch::ExpandingArray<2, double>({0.5, 0.5})));
  });
  rows.function("F::fractional_max_pool3d", kVolume, [](const Tensor& x) {
    return F::fractional_max_pool3d(x, F::FractionalMaxPool3dFuncOptions(2).output_size(3));
  });
  rows.function("F::lp_pool1d", kLine, [](const Tensor& x) {
    return F::lp_pool1d(x, F::LPPool1dFuncOptions(2, 2));
  });
  rows.function("F::lp_pool2d", kImage, [](const Tensor& x) {
    return F::lp_pool2d(x, F::LPPool2dFuncOptions(3, 2));
  });
  rows.function("F::max_unpool1d", kLine, [](const Tensor& x) {
    const auto [y, i] = F::max_pool1d_with_indices(x, F::MaxPool1dFuncOptions(2));
    return F::max_unpool1d(y, i, F::MaxUnpool1dFuncOptions(2));
  });
  rows.function("F::max_unpool2d", kImage, [](const Tensor& x) {
    const auto [y, i] = F::max_pool2d_with_indices(x, F::MaxPool2dFuncOptions(2));
    return F::max_unpool2d(y, i, F::MaxUnpool2dFuncOptions(2));
  });
  rows.function("F::max_unpool3d", kVolume, [](const Tensor& x) {
    const auto [y, i] = F::max_pool3d_with_indices(x, F::MaxPool3dFuncOptions(2));
    return F::max_unpool3d(y, i, F::MaxUnpool3dFuncOptions(2));
  });
}

/// The maximum of each window, and where it was found.
void add_pools_with_indices(Rows& rows) {
  const auto both = [](const std::tuple<Tensor, Tensor>& found) {
    return std::get<0>(found) * (std::get<1>(found) + 1);
  };
  rows.function("F::max_pool1d_with_indices", kLine, [both](const Tensor& x) {
    return both(F::max_pool1d_with_indices(x, F::MaxPool1dFuncOptions(2)));
  });
  rows.function("F::max_pool2d_with_indices", kImage, [both](const Tensor& x) {
    return both(F::max_pool2d_with_indices(x, F::MaxPool2dFuncOptions(2)));
  });
  rows.function("F::max_pool3d_with_indices", kVolume, [both](const Tensor& x) {
    return both(F::max_pool3d_with_indices(x, F::MaxPool3dFuncOptions(2)));
  });
  rows.function("F::adaptive_max_pool1d_with_indices", kLine, [both](const Tensor& x) {
    return both(F::adaptive_max_pool1d_with_indices(x, F::AdaptiveMaxPool1dFuncOptions(3)));
  });
  rows.function("F::adaptive_max_pool2d_with_indices", kImage, [both](const Tensor& x) {
    return both(F::adaptive_max_pool2d_with_indices(x, F::AdaptiveMaxPool2dFuncOptions({3, 3})));
  });
  rows.function("F::adaptive_max_pool3d_with_indices", kVolume, [both](const Tensor& x) {
    return both(F::adaptive_max_pool3d_with_indices(x, F::AdaptiveMaxPool3dFuncOptions({2, 2, 2})));
  });
  rows.function("F::fractional_max_pool2d_with_indices", kImage, [both](const Tensor& x) {
    return both(
        F::fractional_max_pool2d_with_indices(x,
                                              F::FractionalMaxPool2dFuncOptions(2).output_ratio(
                                                  torch::ExpandingArray<2, double>({0.5, 0.5}))));
  });
  rows.function("F::fractional_max_pool3d_with_indices", kVolume, [both](const Tensor& x) {
    return both(F::fractional_max_pool3d_with_indices(
        x, F::FractionalMaxPool3dFuncOptions(2).output_size(3)));
  });
}

void add_dropouts(Rows& rows) {
  rows.function("F::dropout", kMatrix, [](const Tensor& x) { return F::dropout(x); });
  rows.function("F::dropout2d", kImage, [](const Tensor& x) { return F::dropout2d(x); });
  rows.function("F::dropout3d", kVolume, [](const Tensor& x) { return F::dropout3d(x); });
  rows.function("F::alpha_dropout", kMatrix, [](const Tensor& x) {
    return F::alpha_dropout(x, F::AlphaDropoutFuncOptions().training(true));
  });
  rows.function("F::feature_alpha_dropout", kImage, [](const Tensor& x) {
    return F::feature_alpha_dropout(x, F::FeatureAlphaDropoutFuncOptions().training(true));
  });
}

void add_images(Rows& rows) {
  const auto resized = [](auto mode, std::optional<bool> corners) {
    return [=](const Tensor& x) {
      auto options = F::InterpolateFuncOptions().size(std::vector<int64_t>{5, 11}).mode(mode);
      if (corners) {
        options.align_corners(*corners);
      }
      return F::interpolate(x, options);
    };
  };
  rows.function("F::interpolate, nearest", kImage, resized(torch::kNearest, {}));
  rows.function("F::interpolate, area", kImage, resized(torch::kArea, {}));
  rows.function("F::interpolate, bilinear", kImage, resized(torch::kBilinear, false));
  rows.function("F::interpolate, bicubic", kImage, resized(torch::kBicubic, true));
  const auto sampled = [](auto mode, auto padding) {
    return [=](const Inputs& in) {
      const Tensor turn = at::tensor({0.8F, 0.2F, 0.1F, -0.2F, 0.9F, 0.0F}).view({1, 2, 3});
      const Tensor grid = F::affine_grid(
          turn.expand({2, 2, 3}), at::IntArrayRef({2, 3, 5, 5}), /*align_corners=*/false);
      return F::grid_sample(
          in.x,
          grid,
          F::GridSampleFuncOptions().mode(mode).padding_mode(padding).align_corners(false));
    };
  };
  rows.function("F::grid_sample, bilinear", kImage, sampled(torch::kBilinear, torch::kZeros));
  rows.function("F::grid_sample, nearest", kImage, sampled(torch::kNearest, torch::kBorder));
  rows.function(
      "F::grid_sample, reflection", kImage, sampled(torch::kBilinear, torch::kReflection));
  rows.function("F::affine_grid", {2, 2, 3}, [](const Tensor& x) {
    return F::affine_grid(x, at::IntArrayRef({2, 3, 5, 5}), /*align_corners=*/true);
  });
  rows.function("F::pad, constant", kImage, [](const Tensor& x) {
    return F::pad(x, F::PadFuncOptions({1, 2, 0, 1}));
  });
  rows.function("F::pad, reflect", kImage, [](const Tensor& x) {
    return F::pad(x, F::PadFuncOptions({1, 2, 0, 1}).mode(torch::kReflect));
  });
  rows.function("F::pad, replicate", kImage, [](const Tensor& x) {
    return F::pad(x, F::PadFuncOptions({1, 2, 0, 1}).mode(torch::kReplicate));
  });
  rows.function("F::pad, circular", kImage, [](const Tensor& x) {
    return F::pad(x, F::PadFuncOptions({1, 2, 0, 1}).mode(torch::kCircular));
  });
}

void add_tables(Rows& rows) {
  rows.function(
      "F::embedding", kMatrix, [](const Inputs& in) { return F::embedding(in.index, in.x.t()); });
  rows.function("F::embedding_bag", kMatrix, [](const Inputs& in) {
    return F::embedding_bag(
        in.index, in.x.t().contiguous(), F::EmbeddingBagFuncOptions().mode(torch::kSum));
  });
  rows.function("F::embedding_bag, offsets", {6}, [](const Inputs& in) {
    return F::embedding_bag(in.index,
                            in.x.unsqueeze(1).expand({6, 3}).contiguous(),
                            F::EmbeddingBagFuncOptions()
                                .mode(torch::kMean)
                                .offsets(at::tensor(at::ArrayRef<int64_t>({0, 2, 3}))));
  });
  rows.function("F::one_hot", kMatrix, [](const Inputs& in) {
    return F::one_hot(in.index, 6).to(at::kFloat) * in.x.unsqueeze(1);
  });
  rows.function("F::one_hot, without a number of classes", kMatrix, [](const Inputs& in) {
    return F::one_hot(in.label).to(at::kFloat).sum() * in.x;
  });
}

void add_distances(Rows& rows) {
  rows.function("F::cosine_similarity", kMatrix, [](const Inputs& in) {
    return F::cosine_similarity(in.x, in.y);
  });
  rows.function("F::pairwise_distance", kMatrix, [](const Inputs& in) {
    return F::pairwise_distance(in.x, in.y);
  });
  rows.function("F::pdist", kMatrix, [](const Tensor& x) { return F::pdist(x); });
}

void add_losses(Rows& rows) {
  rows.function("F::binary_cross_entropy", kMatrix, [](const Inputs& in) {
    return F::binary_cross_entropy(in.x.sigmoid(), in.y.sigmoid());
  });
  rows.function("F::binary_cross_entropy_with_logits", kMatrix, [](const Inputs& in) {
    return F::binary_cross_entropy_with_logits(in.x, in.y.sigmoid());
  });
  rows.function("F::cosine_embedding_loss", kMatrix, [](const Inputs& in) {
    return F::cosine_embedding_loss(in.x, in.y, signs_of(in.y.select(1, 0)));
  });
  rows.function("F::cross_entropy", kMatrix, [](const Inputs& in) {
    return F::cross_entropy(in.x, in.label);
  });
  rows.function("F::ctc_loss", {8, 3, 5}, [](const Inputs& in) {
    const Tensor targets = (in.index.slice(0, 0, 3).select(2, 0) % 4 + 1).t().contiguous();
    return F::ctc_loss(
        in.x.log_softmax(2), targets, at::full({3}, 8, at::kLong), at::full({3}, 3, at::kLong));
  });
  rows.function("F::hinge_embedding_loss", kMatrix, [](const Inputs& in) {
    return F::hinge_embedding_loss(in.x, signs_of(in.y));
  });
  rows.function(
      "F::huber_loss", {32, 128}, [](const Inputs& in) { return F::huber_loss(in.x, in.y); });
  rows.function("F::kl_div", kMatrix, [](const Inputs& in) {
    return F::kl_div(in.x.log_softmax(1), in.y.softmax(1));
  });
  rows.function("F::l1_loss", kMatrix, [](const Inputs& in) { return F::l1_loss(in.x, in.y); });
  rows.function("F::margin_ranking_loss", kMatrix, [](const Inputs& in) {
    return F::margin_ranking_loss(in.x, in.x.flip(0), signs_of(in.y));
  });
  rows.function("F::mse_loss", kMatrix, [](const Inputs& in) { return F::mse_loss(in.x, in.y); });
  rows.function("F::multi_margin_loss", kMatrix, [](const Inputs& in) {
    return F::multi_margin_loss(in.x, in.label);
  });
  rows.function("F::multilabel_margin_loss", kMatrix, [](const Inputs& in) {
    return F::multilabel_margin_loss(in.x, in.index);
  });
  rows.function("F::multilabel_soft_margin_loss", kMatrix, [](const Inputs& in) {
    return F::multilabel_soft_margin_loss(in.x, (in.y > 0).to(at::kFloat));
  });
  rows.function("F::nll_loss", kMatrix, [](const Inputs& in) {
    return F::nll_loss(in.x.log_softmax(1), in.label);
  });
  rows.function("F::poisson_nll_loss", kMatrix, [](const Inputs& in) {
    return F::poisson_nll_loss(in.x, in.y.abs());
  });
  rows.function(
      "F::smooth_l1_loss", kMatrix, [](const Inputs& in) { return F::smooth_l1_loss(in.x, in.y); });
  rows.function("F::soft_margin_loss", kMatrix, [](const Inputs& in) {
    return F::soft_margin_loss(in.x, signs_of(in.y));
  });
  rows.function("F::triplet_margin_loss", kMatrix, [](const Inputs& in) {
    return F::triplet_margin_loss(in.x, in.y, in.y.flip(0));
  });
  rows.function("F::triplet_margin_with_distance_loss", kMatrix, [](const Inputs& in) {
    return F::triplet_margin_with_distance_loss(in.x, in.y, in.y.flip(0));
  });
}

}  // namespace

std::vector<Row> functionals() {
  Rows rows("functional");
  add_activations(rows);
  add_convolutions(rows);
  add_linear(rows);
  add_norms(rows);
  add_poolings(rows);
  add_pools_with_indices(rows);
  add_dropouts(rows);
  add_images(rows);
  add_tables(rows);
  add_distances(rows);
  add_losses(rows);
  return rows.take();
}

}  // namespace rondo::test
