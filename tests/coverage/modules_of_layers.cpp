#include <torch/nn.h>
#include <torch/version.h>

#include "coverage/row.h"

// Modules of one tensor: activations, convolutions, poolings, paddings, norms, dropouts.

namespace rondo::test {

namespace {

namespace nn = torch::nn;

void add_activations(Rows& rows) {
  const Sizes matrix{8, 6};
  rows.module("nn::ELU", matrix, [] { return nn::ELU(); });
  rows.module("nn::SELU", matrix, [] { return nn::SELU(); });
  rows.module("nn::Hardshrink", matrix, [] { return nn::Hardshrink(); });
  rows.module("nn::Hardtanh", matrix, [] { return nn::Hardtanh(); });
  rows.module("nn::LeakyReLU", matrix, [] { return nn::LeakyReLU(); });
  rows.module("nn::LogSigmoid", matrix, [] { return nn::LogSigmoid(); });
  rows.module("nn::Softmax", matrix, [] { return nn::Softmax(1); });
  rows.module("nn::Softmin", matrix, [] { return nn::Softmin(1); });
  rows.module("nn::LogSoftmax", matrix, [] { return nn::LogSoftmax(1); });
  rows.module("nn::Softmax2d", {2, 3, 4, 4}, [] { return nn::Softmax2d(); });
  rows.module("nn::PReLU", matrix, [] { return nn::PReLU(); });
  rows.module("nn::ReLU", matrix, [] { return nn::ReLU(); });
  rows.module("nn::ReLU6", matrix, [] { return nn::ReLU6(); });
  rows.module("nn::RReLU", matrix, [] { return nn::RReLU(); });
  rows.module("nn::CELU", matrix, [] { return nn::CELU(); });
  rows.module("nn::GLU", matrix, [] { return nn::GLU(); });
  rows.module("nn::GELU", matrix, [] { return nn::GELU(); });
  rows.module(
      "nn::GELU, tanh", matrix, [] { return nn::GELU(nn::GELUOptions().approximate("tanh")); });
  rows.module("nn::SiLU", matrix, [] { return nn::SiLU(); });
  rows.module("nn::Mish", matrix, [] { return nn::Mish(); });
  rows.module("nn::Sigmoid", matrix, [] { return nn::Sigmoid(); });
  rows.module("nn::Softplus", matrix, [] { return nn::Softplus(); });
  rows.module("nn::Softshrink", matrix, [] { return nn::Softshrink(); });
  rows.module("nn::Softsign", matrix, [] { return nn::Softsign(); });
  rows.module("nn::Tanh", matrix, [] { return nn::Tanh(); });
  rows.module("nn::Tanhshrink", matrix, [] { return nn::Tanhshrink(); });
  rows.module("nn::Threshold", matrix, [] { return nn::Threshold(0.1, 2.0); });
}

void add_linear(Rows& rows) {
  rows.module("nn::Identity", {8, 6}, [] { return nn::Identity(); });
  rows.module("nn::Linear", {8, 6}, [] { return nn::Linear(6, 4); });
  rows.module("nn::Flatten", {4, 2, 3}, [] { return nn::Flatten(); });
  rows.module("nn::Unflatten", {4, 6}, [] {
    return nn::Unflatten(nn::UnflattenOptions(1, std::vector<int64_t>{2, 3}));
  });
  rows.module(
      "nn::Bilinear",
      {8, 6},
      [] { return nn::Bilinear(6, 6, 3); },
      [](auto& m, const Inputs& in) { return m->forward(in.x, in.y); });
}

void add_convolutions(Rows& rows) {
  rows.module("nn::Conv1d", {2, 3, 9}, [] { return nn::Conv1d(3, 4, 3); });
  rows.module("nn::Conv1d, dilated", {2, 3, 9}, [] {
    return nn::Conv1d(nn::Conv1dOptions(3, 4, 3).dilation(2).padding(2));
  });
  rows.module("nn::Conv2d", {2, 3, 8, 8}, [] { return nn::Conv2d(3, 4, 3); });
  rows.module("nn::Conv2d, depthwise", {2, 4, 8, 8}, [] {
    return nn::Conv2d(nn::Conv2dOptions(4, 4, 3).groups(4).stride(2).padding(1));
  });
  rows.module("nn::Conv2d, same", {2, 3, 8, 8}, [] {
    return nn::Conv2d(nn::Conv2dOptions(3, 4, 3).padding(torch::kSame));
  });
  rows.module("nn::Conv2d, circular", {2, 3, 8, 8}, [] {
    return nn::Conv2d(nn::Conv2dOptions(3, 4, 3).padding(1).padding_mode(torch::kCircular));
  });
  rows.module("nn::Conv3d", {2, 3, 5, 5, 5}, [] { return nn::Conv3d(3, 4, 3); });
  rows.module("nn::ConvTranspose1d", {2, 3, 9}, [] { return nn::ConvTranspose1d(3, 4, 3); });
  rows.module("nn::ConvTranspose2d", {2, 3, 5, 5}, [] {
    return nn::ConvTranspose2d(nn::ConvTranspose2dOptions(3, 4, 3).stride(2).output_padding(1));
  });
  rows.module("nn::ConvTranspose3d", {2, 3, 4, 4, 4}, [] { return nn::ConvTranspose3d(3, 4, 3); });
  rows.module("nn::Fold", {2, 12, 4}, [] { return nn::Fold(nn::FoldOptions({3, 3}, {2, 2})); });
  rows.module("nn::Unfold", {2, 3, 5, 5}, [] { return nn::Unfold(nn::UnfoldOptions({2, 2})); });
  rows.module("nn::PixelShuffle", {2, 8, 3, 3}, [] { return nn::PixelShuffle(2); });
  rows.module("nn::PixelUnshuffle", {2, 2, 6, 6}, [] { return nn::PixelUnshuffle(2); });
}

void add_upsamplings(Rows& rows) {
  const auto twice = [](auto mode) {
    return [mode] {
      return nn::Upsample(nn::UpsampleOptions().scale_factor(std::vector<double>{2}).mode(mode));
    };
  };
  const auto twice_of_images = [](auto mode) {
    return [mode] {
      return nn::Upsample(nn::UpsampleOptions()
                              .scale_factor(std::vector<double>{2, 2})
                              .mode(mode)
                              .align_corners(false));
    };
  };
  rows.module("nn::Upsample, nearest", {2, 3, 5}, twice(torch::kNearest));
  rows.module("nn::Upsample, linear", {2, 3, 5}, [] {
    return nn::Upsample(nn::UpsampleOptions()
                            .scale_factor(std::vector<double>{2})
                            .mode(torch::kLinear)
                            .align_corners(true));
  });
  rows.module("nn::Upsample, bilinear", {2, 3, 4, 4}, twice_of_images(torch::kBilinear));
  rows.module("nn::Upsample, bicubic", {2, 3, 4, 4}, twice_of_images(torch::kBicubic));
  rows.module("nn::Upsample, trilinear", {2, 3, 3, 3, 3}, [] {
    return nn::Upsample(nn::UpsampleOptions()
                            .size(std::vector<int64_t>{5, 5, 5})
                            .mode(torch::kTrilinear)
                            .align_corners(false));
  });
}

void add_poolings(Rows& rows) {
  const Sizes line{2, 3, 8};
  const Sizes image{2, 3, 8, 8};
  const Sizes volume{2, 3, 6, 6, 6};
  rows.module("nn::AvgPool1d", line, [] { return nn::AvgPool1d(2); });
  rows.module("nn::AvgPool2d", image, [] { return nn::AvgPool2d(2); });
  rows.module("nn::AvgPool3d", volume, [] { return nn::AvgPool3d(2); });
  rows.module("nn::MaxPool1d", line, [] { return nn::MaxPool1d(2); });
  rows.module("nn::MaxPool2d", image, [] { return nn::MaxPool2d(2); });
  rows.module("nn::MaxPool2d, overlapping", image, [] {
    return nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1).ceil_mode(true));
  });
  rows.module("nn::MaxPool3d", volume, [] { return nn::MaxPool3d(2); });
  rows.module("nn::AdaptiveAvgPool1d", line, [] { return nn::AdaptiveAvgPool1d(3); });
  rows.module("nn::AdaptiveAvgPool2d", image, [] {
    return nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({3, 3}));
  });
  rows.module("nn::AdaptiveAvgPool3d", volume, [] {
    return nn::AdaptiveAvgPool3d(nn::AdaptiveAvgPool3dOptions({2, 2, 2}));
  });
  rows.module("nn::AdaptiveMaxPool1d", line, [] { return nn::AdaptiveMaxPool1d(3); });
  rows.module("nn::AdaptiveMaxPool2d", image, [] {
    return nn::AdaptiveMaxPool2d(nn::AdaptiveMaxPool2dOptions({3, 3}));
  });
  rows.module("nn::AdaptiveMaxPool3d", volume, [] {
    return nn::AdaptiveMaxPool3d(nn::AdaptiveMaxPool3dOptions({2, 2, 2}));
  });
  rows.module("nn::FractionalMaxPool2d", image, [] {
    return nn::FractionalMaxPool2d(nn::FractionalMaxPool2dOptions(2).output_size(4));
  });
  rows.module("nn::FractionalMaxPool3d", volume, [] {
    return nn::FractionalMaxPool3d(nn::FractionalMaxPool3dOptions(2).output_size(3));
  });
  rows.module("nn::LPPool1d", line, [] { return nn::LPPool1d(2, 2); });
  rows.module("nn::LPPool2d", image, [] { return nn::LPPool2d(2, 2); });
#if TORCH_VERSION_MAJOR >= 2
  rows.module("nn::LPPool3d", volume, [] { return nn::LPPool3d(2, 2); });
#endif
}

void add_unpoolings(Rows& rows) {
  const auto unpooled = [](auto pool) {
    return [pool](auto& m, const Inputs& in) mutable {
      const auto [values, indices] = pool->forward_with_indices(in.x);
      return m->forward(values, indices);
    };
  };
  rows.module(
      "nn::MaxUnpool1d", {2, 3, 8}, [] { return nn::MaxUnpool1d(2); }, unpooled(nn::MaxPool1d(2)));
  rows.module(
      "nn::MaxUnpool2d",
      {2, 3, 8, 8},
      [] { return nn::MaxUnpool2d(2); },
      unpooled(nn::MaxPool2d(2)));
  rows.module(
      "nn::MaxUnpool3d",
      {2, 3, 6, 6, 6},
      [] { return nn::MaxUnpool3d(2); },
      unpooled(nn::MaxPool3d(2)));
}

void add_paddings(Rows& rows) {
  const Sizes line{2, 3, 6};
  const Sizes image{2, 3, 5, 5};
  const Sizes volume{2, 3, 4, 4, 4};
  rows.module("nn::ReflectionPad1d", line, [] { return nn::ReflectionPad1d(2); });
  rows.module("nn::ReflectionPad2d", image, [] { return nn::ReflectionPad2d(2); });
  rows.module("nn::ReflectionPad3d", volume, [] { return nn::ReflectionPad3d(1); });
  rows.module("nn::ReplicationPad1d", line, [] { return nn::ReplicationPad1d(2); });
  rows.module("nn::ReplicationPad2d", image, [] { return nn::ReplicationPad2d(2); });
  rows.module("nn::ReplicationPad3d", volume, [] { return nn::ReplicationPad3d(1); });
#if TORCH_VERSION_MAJOR >= 2
  rows.module("nn::ZeroPad1d", line, [] { return nn::ZeroPad1d(2); });
  rows.module("nn::ZeroPad3d", volume, [] { return nn::ZeroPad3d(1); });
#endif
  rows.module("nn::ZeroPad2d", image, [] { return nn::ZeroPad2d(2); });
  rows.module("nn::ConstantPad1d", line, [] { return nn::ConstantPad1d(2, 0.5); });
  rows.module("nn::ConstantPad2d", image, [] { return nn::ConstantPad2d(2, 0.5); });
  rows.module("nn::ConstantPad3d", volume, [] { return nn::ConstantPad3d(1, 0.5); });
}

void add_norms(Rows& rows) {
  const Sizes line{4, 6, 5};
  const Sizes image{4, 6, 5, 5};
  const Sizes volume{4, 6, 3, 3, 3};
  rows.module("nn::BatchNorm1d", {8, 6}, [] { return nn::BatchNorm1d(6); });
  rows.module("nn::BatchNorm1d, cumulative", {8, 6}, [] {
    return nn::BatchNorm1d(nn::BatchNorm1dOptions(6).momentum(c10::nullopt));
  });
  rows.module("nn::BatchNorm1d, without statistics", {8, 6}, [] {
    return nn::BatchNorm1d(nn::BatchNorm1dOptions(6).track_running_stats(false).affine(false));
  });
  rows.module("nn::BatchNorm2d", image, [] { return nn::BatchNorm2d(6); });
  rows.module("nn::BatchNorm2d, cumulative", image, [] {
    return nn::BatchNorm2d(nn::BatchNorm2dOptions(6).momentum(c10::nullopt));
  });
  rows.module("nn::BatchNorm3d", volume, [] { return nn::BatchNorm3d(6); });
  rows.module("nn::InstanceNorm1d", line, [] { return nn::InstanceNorm1d(6); });
  rows.module("nn::InstanceNorm2d", image, [] {
    return nn::InstanceNorm2d(nn::InstanceNorm2dOptions(6).affine(true).track_running_stats(true));
  });
  rows.module("nn::InstanceNorm3d", volume, [] { return nn::InstanceNorm3d(6); });
  rows.module("nn::LayerNorm", {4, 5, 6}, [] { return nn::LayerNorm(nn::LayerNormOptions({6})); });
  rows.module("nn::GroupNorm", image, [] { return nn::GroupNorm(2, 6); });
  rows.module("nn::LocalResponseNorm", image, [] { return nn::LocalResponseNorm(2); });
  rows.module("nn::CrossMapLRN2d", image, [] { return nn::CrossMapLRN2d(3); });
}

void add_dropouts(Rows& rows) {
  const Sizes image{2, 3, 4, 4};
  rows.module("nn::Dropout", {8, 6}, [] { return nn::Dropout(0.5); });
  rows.module("nn::Dropout2d", image, [] { return nn::Dropout2d(0.5); });
  rows.module("nn::Dropout3d", {2, 3, 2, 2, 2}, [] { return nn::Dropout3d(0.5); });
  rows.module("nn::AlphaDropout", {8, 6}, [] { return nn::AlphaDropout(0.5); });
  rows.module("nn::FeatureAlphaDropout", image, [] { return nn::FeatureAlphaDropout(0.5); });
}

void add_distances(Rows& rows) {
  const auto of_two = [](auto& m, const Inputs& in) { return m->forward(in.x, in.y); };
  rows.module(
      "nn::CosineSimilarity", {8, 6}, [] { return nn::CosineSimilarity(); }, of_two);
  rows.module(
      "nn::PairwiseDistance", {8, 6}, [] { return nn::PairwiseDistance(); }, of_two);
}

}  // namespace

std::vector<Row> modules_of_layers() {
  Rows rows("module");
  add_activations(rows);
  add_linear(rows);
  add_convolutions(rows);
  add_upsamplings(rows);
  add_poolings(rows);
  add_unpoolings(rows);
  add_paddings(rows);
  add_norms(rows);
  add_dropouts(rows);
  add_distances(rows);
  return rows.take();
}

}  // namespace rondo::test
