#include <torch/torch.h>

#include "unasked_attention.h"
#include "zoo.h"

namespace bench {

namespace {

namespace nn = torch::nn;
using rondo::Batch;

/// Dilated causal convolutions: Bai et al. 2018.
class Tcn final : public Network {
 public:
  Tcn() {
    for (int64_t i = 0; i < 4; ++i) {
      layers_.push_back(
          register_module("layer" + std::to_string(i),
                          std::make_shared<Layer>(i == 0 ? 1 : kWidth, int64_t{1} << i)));
    }
    head_ = register_module("head", nn::Linear(kWidth, 1));
  }

  at::Tensor loss(const Batch& batch) override {
    at::Tensor x = batch["x"];
    for (const auto& layer : layers_) {
      x = layer->forward(x);
    }
    return torch::mse_loss(head_(x.select(2, -1)), batch["target"]);
  }

  static Batch make_batch() {
    return {{"x", torch::randn({16, 1, 256})}, {"target", torch::randn({16, 1})}};
  }

 private:
  static constexpr int64_t kWidth = 32;

  struct Layer : nn::Module {
    Layer(int64_t in, int64_t dilation) : padding(2 * dilation) {
      const auto conv = [&](int64_t from) {
        return nn::Conv1d(nn::Conv1dOptions(from, kWidth, 3).padding(padding).dilation(dilation));
      };
      first = register_module("first", conv(in));
      second = register_module("second", conv(kWidth));
      if (in != kWidth) {
        shortcut = register_module("shortcut", nn::Conv1d(nn::Conv1dOptions(in, kWidth, 1)));
      }
    }

    at::Tensor causal(nn::Conv1d& conv, const at::Tensor& x) const {
      return torch::relu(conv(x).slice(2, 0, -padding).contiguous());
    }

    at::Tensor forward(const at::Tensor& x) {
      const at::Tensor y = causal(second, causal(first, x));
      return torch::relu(y + (shortcut ? shortcut(x) : x));
    }

    int64_t padding;
    nn::Conv1d first = nullptr;
    nn::Conv1d second = nullptr;
    nn::Conv1d shortcut = nullptr;
  };

  std::vector<std::shared_ptr<Layer>> layers_;
  nn::Linear head_ = nullptr;
};

class Gru final : public Classifier {
 public:
  Gru() {
    gru_ = register_module("gru", nn::GRU(nn::GRUOptions(32, 128).num_layers(2).batch_first(true)));
    head_ = register_module("head", nn::Linear(128, 10));
  }

  at::Tensor forward(const at::Tensor& x) override {
    return head_(std::get<0>(gru_(x)).select(1, -1));
  }

  static Batch make_batch() {
    return {{"x", torch::randn({16, 48, 32})}, {"label", torch::randint(10, {16})}};
  }

 private:
  nn::GRU gru_ = nullptr;
  nn::Linear head_ = nullptr;
};

/// LibTorch's own module, with the causal mask of its tutorial; without dropout, whose numbers
/// would differ among the contenders.
class Seq2Seq : public Network {
 public:
  Seq2Seq() : Seq2Seq(/*asks=*/true) {}

  at::Tensor loss(const Batch& batch) override {
    const at::Tensor from = tokens_(batch["x"].t()) + positions_;
    const at::Tensor to = tokens_(batch["shifted"].t()) + positions_;
    const at::Tensor logits =
        head_(asks_ ? transformer_->forward(from, to, {}, mask_) : decode(to, encode(from)));
    return torch::cross_entropy_loss(logits.flatten(0, 1), batch["label"].t().flatten());
  }

  static Batch make_batch() {
    const auto tokens = [] { return torch::randint(kVocabulary, {16, kLength}); };
    return {{"x", tokens()}, {"shifted", tokens()}, {"label", tokens()}};
  }

 protected:
  /// \param asks  the module asks on the host whether query and key are equal, which is a guard of
  ///              a traced step; the same without that is its measure
  explicit Seq2Seq(bool asks) : asks_(asks) {
    tokens_ = register_module("tokens", nn::Embedding(kVocabulary, kWidth));
    positions_ = register_parameter("positions", 0.02 * torch::randn({kLength, 1, kWidth}));
    transformer_ = register_module(
        "transformer",
        nn::Transformer(
            nn::TransformerOptions(kWidth, 4, 2, 2).dim_feedforward(4 * kWidth).dropout(0.0)));
    head_ = register_module("head", nn::Linear(kWidth, kVocabulary));
    mask_ = register_buffer("mask", nn::TransformerImpl::generate_square_subsequent_mask(kLength));
  }

 private:
  static constexpr int64_t kVocabulary = 100;
  static constexpr int64_t kWidth = 64;
  static constexpr int64_t kLength = 20;

  at::Tensor encode(at::Tensor x) {
    auto encoder = transformer_->encoder.get<nn::TransformerEncoder>();
    for (const auto& part : encoder->layers->children()) {
      auto& layer = *part->as<nn::TransformerEncoderLayer>();
      x = layer.norm1(x + attend_unasked(*layer.self_attn, x, x));
      x = layer.norm2(x + layer.linear2(torch::relu(layer.linear1(x))));
    }
    return encoder->norm.forward(x);
  }

  at::Tensor decode(at::Tensor x, const at::Tensor& memory) {
    auto decoder = transformer_->decoder.get<nn::TransformerDecoder>();
    for (const auto& part : decoder->layers->children()) {
      auto& layer = *part->as<nn::TransformerDecoderLayer>();
      x = layer.norm1(x + attend_unasked(*layer.self_attn, x, x, mask_));
      x = layer.norm2(x + attend_unasked(*layer.multihead_attn, x, memory));
      x = layer.norm3(x + layer.linear2(torch::relu(layer.linear1(x))));
    }
    return decoder->norm.forward(x);
  }

  bool asks_;
  nn::Embedding tokens_ = nullptr;
  at::Tensor positions_;
  nn::Transformer transformer_ = nullptr;
  nn::Linear head_ = nullptr;
  at::Tensor mask_;
};

struct UnaskedSeq2Seq final : Seq2Seq {
  UnaskedSeq2Seq() : Seq2Seq(/*asks=*/false) {}
};

}  // namespace

Workload unasked_seq2seq() {
  return in_zoo<UnaskedSeq2Seq>("unasked_seq2seq", Seq2Seq::make_batch);
}

std::vector<Workload> zoo_of_sequences() {
  return {in_zoo<Tcn>("tcn", Tcn::make_batch),
          in_zoo<Gru>("gru", Gru::make_batch),
          in_zoo<Seq2Seq>("seq2seq", Seq2Seq::make_batch)};
}

}  // namespace bench
