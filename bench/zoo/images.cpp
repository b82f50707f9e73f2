#include <torch/torch.h>

#include "zoo.h"

namespace bench {

namespace {

namespace nn = torch::nn;
using rondo::Batch;

nn::Conv2dOptions conv(int64_t in, int64_t out, int64_t size, int64_t stride = 1) {
  return nn::Conv2dOptions(in, out, size).stride(stride).padding(size / 2).bias(false);
}

Batch labelled_images(int64_t batch, int64_t size, int64_t classes) {
  return {{"x", torch::rand({batch, 3, size, size})}, {"label", torch::randint(classes, {batch})}};
}

/// Ronneberger et al. 2015, with the group norm and SiLU of diffusion models.
class UNet final : public Network {
 public:
  UNet() {
    in_ = block("in", 1, kWidth);
    down_ = block("down", kWidth, 2 * kWidth);
    bottom_ = block("bottom", 2 * kWidth, 4 * kWidth);
    up1_ = register_module("up1", up(4 * kWidth));
    merge1_ = block("merge1", 4 * kWidth, 2 * kWidth);
    up2_ = register_module("up2", up(2 * kWidth));
    merge2_ = block("merge2", 2 * kWidth, kWidth);
    head_ = register_module("head", nn::Conv2d(nn::Conv2dOptions(kWidth, 1, 1)));
  }

  at::Tensor loss(const Batch& batch) override {
    const at::Tensor a = in_->forward(batch["x"]);
    const at::Tensor b = down_->forward(torch::max_pool2d(a, 2));
    at::Tensor x = bottom_->forward(torch::max_pool2d(b, 2));
    x = merge1_->forward(torch::cat({up1_(x), b}, 1));
    x = merge2_->forward(torch::cat({up2_(x), a}, 1));
    return torch::binary_cross_entropy_with_logits(head_(x), batch["mask"]);
  }

  static Batch make_batch() {
    return {{"x", torch::rand({4, 1, 64, 64})}, {"mask", torch::rand({4, 1, 64, 64}).round()}};
  }

 private:
  static constexpr int64_t kWidth = 16;

  static nn::ConvTranspose2d up(int64_t in) {
    return nn::ConvTranspose2d(nn::ConvTranspose2dOptions(in, in / 2, 2).stride(2));
  }

  nn::Sequential block(const char* name, int64_t in, int64_t out) {
    return register_module(name,
                           nn::Sequential(nn::Conv2d(conv(in, out, 3)),
                                          nn::GroupNorm(nn::GroupNormOptions(8, out)),
                                          nn::SiLU(),
                                          nn::Conv2d(conv(out, out, 3)),
                                          nn::GroupNorm(nn::GroupNormOptions(8, out)),
                                          nn::SiLU()));
  }

  nn::Sequential in_ = nullptr;
  nn::Sequential down_ = nullptr;
  nn::Sequential bottom_ = nullptr;
  nn::ConvTranspose2d up1_ = nullptr;
  nn::Sequential merge1_ = nullptr;
  nn::ConvTranspose2d up2_ = nullptr;
  nn::Sequential merge2_ = nullptr;
  nn::Conv2d head_ = nullptr;
};

/// Dosovitskiy et al. 2020.
class Vit final : public Classifier {
 public:
  Vit() {
    patches_ =
        register_module("patches", nn::Conv2d(nn::Conv2dOptions(3, kWidth, kPatch).stride(kPatch)));
    token_ = register_parameter("token", torch::zeros({1, 1, kWidth}));
    positions_ = register_parameter("positions", 0.02 * torch::randn({1, 65, kWidth}));
    for (int64_t i = 0; i < 4; ++i) {
      layers_.push_back(register_module("layer" + std::to_string(i), std::make_shared<Layer>()));
    }
    norm_ = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
    head_ = register_module("head", nn::Linear(kWidth, 10));
  }

  at::Tensor forward(const at::Tensor& images) override {
    at::Tensor x = patches_(images).flatten(2).transpose(1, 2);
    x = torch::cat({token_.expand({x.size(0), -1, -1}), x}, 1) + positions_;
    for (const auto& layer : layers_) {
      x = layer->forward(x);
    }
    return head_(norm_(x).select(1, 0));
  }

  static Batch make_batch() { return labelled_images(16, 32, 10); }

 private:
  static constexpr int64_t kWidth = 128;
  static constexpr int64_t kHeads = 4;
  static constexpr int64_t kPatch = 4;

  struct Layer : nn::Module {
    Layer() {
      norm1 = register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
      qkv = register_module("qkv", nn::Linear(kWidth, 3 * kWidth));
      out = register_module("out", nn::Linear(kWidth, kWidth));
      norm2 = register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
      mlp = register_module(
          "mlp",
          nn::Sequential(
              nn::Linear(kWidth, 4 * kWidth), nn::GELU(), nn::Linear(4 * kWidth, kWidth)));
    }

    at::Tensor forward(at::Tensor x) {
      const int64_t width = kWidth / kHeads;
      const auto parts = qkv(norm1(x)).chunk(3, -1);
      const auto by_head = [&](const at::Tensor& t) {
        return t.view({x.size(0), x.size(1), kHeads, width}).transpose(1, 2);
      };
      const at::Tensor scores =
          torch::matmul(by_head(parts[0]), by_head(parts[1]).transpose(-1, -2)) / std::sqrt(width);
      const at::Tensor mixed = torch::matmul(scores.softmax(-1), by_head(parts[2]));
      x = x + out(mixed.transpose(1, 2).reshape({x.size(0), x.size(1), kWidth}));
      return x + mlp->forward(norm2(x));
    }

    nn::LayerNorm norm1 = nullptr;
    nn::Linear qkv = nullptr;
    nn::Linear out = nullptr;
    nn::LayerNorm norm2 = nullptr;
    nn::Sequential mlp = nullptr;
  };

  nn::Conv2d patches_ = nullptr;
  at::Tensor token_;
  at::Tensor positions_;
  std::vector<std::shared_ptr<Layer>> layers_;
  nn::LayerNorm norm_ = nullptr;
  nn::Linear head_ = nullptr;
};

/// Inverted residuals with squeeze and excitation: Howard et al. 2019 (MobileNetV3).
class Depthwise final : public Classifier {
 public:
  Depthwise() {
    stem_ = register_module(
        "stem",
        nn::Sequential(
            nn::Conv2d(conv(3, 16, 3, 2)), nn::BatchNorm2d(16), nn::Functional(torch::hardswish)));
    const int64_t widths[] = {16, 24, 24, 40, 40};
    for (int64_t i = 0; i < 4; ++i) {
      blocks_.push_back(register_module("block" + std::to_string(i),
                                        std::make_shared<Block>(widths[i], widths[i + 1])));
    }
    head_ = register_module("head", nn::Linear(40, 10));
  }

  at::Tensor forward(const at::Tensor& images) override {
    at::Tensor x = stem_->forward(images);
    for (const auto& block : blocks_) {
      x = block->forward(x);
    }
    return head_(x.mean({2, 3}));
  }

  static Batch make_batch() { return labelled_images(16, 32, 10); }

 private:
  struct Block : nn::Module {
    Block(int64_t in, int64_t out) : is_residual(in == out) {
      const int64_t wide = 4 * in;
      expand = register_module("expand",
                               nn::Sequential(nn::Conv2d(conv(in, wide, 1)),
                                              nn::BatchNorm2d(wide),
                                              nn::Functional(torch::hardswish),
                                              nn::Conv2d(conv(wide, wide, 3).groups(wide)),
                                              nn::BatchNorm2d(wide),
                                              nn::Functional(torch::hardswish)));
      squeeze = register_module("squeeze", nn::Conv2d(nn::Conv2dOptions(wide, wide / 4, 1)));
      excite = register_module("excite", nn::Conv2d(nn::Conv2dOptions(wide / 4, wide, 1)));
      project = register_module(
          "project", nn::Sequential(nn::Conv2d(conv(wide, out, 1)), nn::BatchNorm2d(out)));
    }

    at::Tensor forward(const at::Tensor& input) {
      at::Tensor x = expand->forward(input);
      const at::Tensor pooled = torch::adaptive_avg_pool2d(x, {1, 1});
      x = x * torch::hardsigmoid(excite(torch::relu(squeeze(pooled))));
      x = project->forward(x);
      return is_residual ? x + input : x;
    }

    bool is_residual;
    nn::Sequential expand = nullptr;
    nn::Conv2d squeeze = nullptr;
    nn::Conv2d excite = nullptr;
    nn::Sequential project = nullptr;
  };

  nn::Sequential stem_ = nullptr;
  std::vector<std::shared_ptr<Block>> blocks_;
  nn::Linear head_ = nullptr;
};

/// He et al. 2015, 18 layers.
class ResNet18 final : public Classifier {
 public:
  ResNet18() {
    stem_ = register_module(
        "stem", nn::Sequential(nn::Conv2d(conv(3, 64, 7, 2)), nn::BatchNorm2d(64), nn::ReLU()));
    int64_t in = 64;
    for (int64_t i = 0; i < 8; ++i) {
      const int64_t out = int64_t{64} << (i / 2);
      blocks_.push_back(register_module("block" + std::to_string(i),
                                        std::make_shared<Block>(in, out, out == in ? 1 : 2)));
      in = out;
    }
    head_ = register_module("head", nn::Linear(512, 10));
  }

  at::Tensor forward(const at::Tensor& images) override {
    at::Tensor x = torch::max_pool2d(stem_->forward(images), 3, 2, 1);
    for (const auto& block : blocks_) {
      x = block->forward(x);
    }
    return head_(torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }

  static Batch make_batch() { return labelled_images(8, 64, 10); }

 private:
  struct Block : nn::Module {
    Block(int64_t in, int64_t out, int64_t stride) {
      body = register_module("body",
                             nn::Sequential(nn::Conv2d(conv(in, out, 3, stride)),
                                            nn::BatchNorm2d(out),
                                            nn::ReLU(nn::ReLUOptions(true)),
                                            nn::Conv2d(conv(out, out, 3)),
                                            nn::BatchNorm2d(out)));
      if (stride != 1) {
        shortcut = register_module(
            "shortcut", nn::Sequential(nn::Conv2d(conv(in, out, 1, stride)), nn::BatchNorm2d(out)));
      }
    }

    at::Tensor forward(const at::Tensor& x) {
      return torch::relu(body->forward(x) + (shortcut ? shortcut->forward(x) : x));
    }

    nn::Sequential body = nullptr;
    nn::Sequential shortcut = nullptr;
  };

  nn::Sequential stem_ = nullptr;
  std::vector<std::shared_ptr<Block>> blocks_;
  nn::Linear head_ = nullptr;
};

/// Dense connections, whose inputs are concatenated: Huang et al. 2016.
class DenseNet final : public Classifier {
 public:
  DenseNet() {
    stem_ = register_module("stem", nn::Conv2d(conv(3, kGrowth, 3)));
    for (int64_t i = 0; i < 6; ++i) {
      const int64_t in = kGrowth * (i + 1);
      layers_.push_back(register_module(
          "layer" + std::to_string(i),
          nn::Sequential(nn::BatchNorm2d(in), nn::ReLU(), nn::Conv2d(conv(in, kGrowth, 3)))));
    }
    head_ = register_module("head", nn::Linear(kGrowth * 7, 10));
  }

  at::Tensor forward(const at::Tensor& images) override {
    at::Tensor x = torch::avg_pool2d(stem_(images), 2);
    for (auto& layer : layers_) {
      x = torch::cat({x, layer->forward(x)}, 1);
    }
    return head_(x.mean({2, 3}));
  }

  static Batch make_batch() { return labelled_images(16, 32, 10); }

 private:
  static constexpr int64_t kGrowth = 16;

  nn::Conv2d stem_ = nullptr;
  std::vector<nn::Sequential> layers_;
  nn::Linear head_ = nullptr;
};

/// Tolstikhin et al. 2021.
class Mixer final : public Classifier {
 public:
  Mixer() {
    patches_ = register_module("patches", nn::Conv2d(nn::Conv2dOptions(3, kWidth, 4).stride(4)));
    for (int64_t i = 0; i < 4; ++i) {
      const std::string name = std::to_string(i);
      norms_.push_back(register_module("token_norm" + name, norm()));
      mlps_.push_back(register_module("tokens" + name, mlp(kTokens, 2 * kTokens)));
      norms_.push_back(register_module("channel_norm" + name, norm()));
      mlps_.push_back(register_module("channels" + name, mlp(kWidth, 4 * kWidth)));
    }
    norm_ = register_module("norm", norm());
    head_ = register_module("head", nn::Linear(kWidth, 10));
  }

  at::Tensor forward(const at::Tensor& images) override {
    at::Tensor x = patches_(images).flatten(2).transpose(1, 2);
    for (size_t i = 0; i < mlps_.size(); i += 2) {
      x = x + mlps_[i]->forward(norms_[i](x).transpose(1, 2)).transpose(1, 2);
      x = x + mlps_[i + 1]->forward(norms_[i + 1](x));
    }
    return head_(norm_(x).mean(1));
  }

  static Batch make_batch() { return labelled_images(16, 32, 10); }

 private:
  static constexpr int64_t kWidth = 128;
  static constexpr int64_t kTokens = 64;

  static nn::LayerNorm norm() { return nn::LayerNorm(nn::LayerNormOptions({kWidth})); }

  static nn::Sequential mlp(int64_t width, int64_t hidden) {
    return nn::Sequential(nn::Linear(width, hidden), nn::GELU(), nn::Linear(hidden, width));
  }

  nn::Conv2d patches_ = nullptr;
  std::vector<nn::LayerNorm> norms_;
  std::vector<nn::Sequential> mlps_;
  nn::LayerNorm norm_ = nullptr;
  nn::Linear head_ = nullptr;
};

/// Kingma and Welling 2013; the noise comes with the batch.
class Vae final : public Network {
 public:
  Vae() {
    encoder_ = register_module("encoder", nn::Linear(784, 400));
    mean_ = register_module("mean", nn::Linear(400, kLatent));
    log_variance_ = register_module("log_variance", nn::Linear(400, kLatent));
    hidden_ = register_module("hidden", nn::Linear(kLatent, 400));
    decoder_ = register_module("decoder", nn::Linear(400, 784));
  }

  at::Tensor loss(const Batch& batch) override {
    const at::Tensor& x = batch["x"];
    const at::Tensor h = torch::relu(encoder_(x));
    const at::Tensor mean = mean_(h);
    const at::Tensor log_variance = log_variance_(h);
    const at::Tensor z = mean + batch["noise"] * torch::exp(0.5 * log_variance);
    const at::Tensor seen = torch::sigmoid(decoder_(torch::relu(hidden_(z))));
    const at::Tensor error = torch::binary_cross_entropy(seen, x, {}, at::Reduction::Sum);
    const at::Tensor divergence =
        -0.5 * torch::sum(1 + log_variance - mean.pow(2) - log_variance.exp());
    return (error + divergence) / x.size(0);
  }

  static Batch make_batch() {
    return {{"x", torch::rand({128, 784})}, {"noise", torch::randn({128, kLatent})}};
  }

 private:
  static constexpr int64_t kLatent = 20;

  nn::Linear encoder_ = nullptr;
  nn::Linear mean_ = nullptr;
  nn::Linear log_variance_ = nullptr;
  nn::Linear hidden_ = nullptr;
  nn::Linear decoder_ = nullptr;
};

/// The step of DCGAN's discriminator (Radford et al. 2015), on images and on a generator's.
class Discriminator final : public Network {
 public:
  Discriminator() {
    const auto down = [](int64_t in, int64_t out) {
      return nn::Conv2d(nn::Conv2dOptions(in, out, 4).stride(2).padding(1).bias(false));
    };
    const nn::LeakyReLU leaky(nn::LeakyReLUOptions().negative_slope(0.2).inplace(true));
    body_ = register_module("body",
                            nn::Sequential(down(3, 32),
                                           leaky,
                                           down(32, 64),
                                           nn::BatchNorm2d(64),
                                           nn::LeakyReLU(leaky->options),
                                           down(64, 128),
                                           nn::BatchNorm2d(128),
                                           nn::LeakyReLU(leaky->options),
                                           nn::Conv2d(nn::Conv2dOptions(128, 1, 4).bias(false))));
  }

  at::Tensor loss(const Batch& batch) override {
    return judge(batch["x"], 1.0) + judge(batch["made"], 0.0);
  }

  static Batch make_batch() {
    return {{"x", torch::rand({16, 3, 32, 32})}, {"made", torch::rand({16, 3, 32, 32})}};
  }

 private:
  at::Tensor judge(const at::Tensor& images, double label) {
    const at::Tensor logits = body_->forward(images).view(-1);
    return torch::binary_cross_entropy_with_logits(logits, torch::full_like(logits, label));
  }

  nn::Sequential body_ = nullptr;
};

}  // namespace

std::vector<Workload> zoo_of_images() {
  return {in_zoo<UNet>("unet", UNet::make_batch),
          in_zoo<Vit>("vit", Vit::make_batch),
          in_zoo<Depthwise>("depthwise", Depthwise::make_batch),
          in_zoo<ResNet18>("resnet18", ResNet18::make_batch),
          in_zoo<DenseNet>("densenet", DenseNet::make_batch),
          in_zoo<Mixer>("mixer", Mixer::make_batch),
          in_zoo<Vae>("vae", Vae::make_batch),
          in_zoo<Discriminator>("dcgan", Discriminator::make_batch)};
}

}  // namespace bench
