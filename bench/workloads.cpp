#include "workloads.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/module_model.h"
#include "unasked_attention.h"
#include "zoo/zoo.h"

namespace bench {

namespace {

using namespace rondo;
namespace nn = torch::nn;

/// A network's loss, in a Trainer.
class LossModel final : public ModuleModel {
 public:
  explicit LossModel(std::shared_ptr<Network> network)
      : network_(register_module("network", std::move(network))) {}

  Outputs forward(const Batch& batch) override { return {{"loss", network_->loss(batch)}}; }

 private:
  std::shared_ptr<Network> network_;
};

class Mlp final : public Classifier {
 public:
  explicit Mlp(const std::vector<int64_t>& sizes) {
    for (size_t i = 0; i + 1 < sizes.size(); ++i) {
      layers_->push_back(nn::Linear(sizes[i], sizes[i + 1]));
      if (i + 2 < sizes.size()) {
        layers_->push_back(nn::ReLU());
      }
    }
    register_module("layers", layers_);
  }

  at::Tensor forward(const at::Tensor& x) override { return layers_->forward(x); }

 private:
  nn::Sequential layers_;
};

Batch vectors(int64_t batch, int64_t width, int64_t classes) {
  return {{"x", torch::rand({batch, width})}, {"label", torch::randint(classes, {batch})}};
}

class Cnn final : public Classifier {
 public:
  Cnn() {
    const auto conv = [](int64_t in, int64_t out) {
      return nn::Conv2dOptions(in, out, 3).padding(1);
    };
    conv1 = register_module("conv1", nn::Conv2d(conv(1, 16)));
    norm1 = register_module("norm1", nn::BatchNorm2d(16));
    conv2 = register_module("conv2", nn::Conv2d(conv(16, 32)));
    norm2 = register_module("norm2", nn::BatchNorm2d(32));
    linear = register_module("linear", nn::Linear(32 * 7 * 7, 10));
  }

  at::Tensor forward(const at::Tensor& images) override {
    at::Tensor x = torch::max_pool2d(torch::relu(norm1(conv1(images))), 2);
    x = torch::max_pool2d(torch::relu(norm2(conv2(x))), 2);
    return linear(x.flatten(1));
  }

 private:
  nn::Conv2d conv1 = nullptr;
  nn::Conv2d conv2 = nullptr;
  nn::BatchNorm2d norm1 = nullptr;
  nn::BatchNorm2d norm2 = nullptr;
  nn::Linear linear = nullptr;
};

constexpr int64_t kVocabulary = 65;

struct GptSize {
  int64_t layers;
  int64_t heads;
  int64_t width;
  int64_t context;
  int64_t vocabulary = kVocabulary;
};

class BlockImpl final : public nn::Module {
 public:
  explicit BlockImpl(const GptSize& size) : heads(size.heads) {
    norm1 = register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({size.width})));
    qkv = register_module("qkv", nn::Linear(size.width, 3 * size.width));
    projection = register_module("projection", nn::Linear(size.width, size.width));
    norm2 = register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({size.width})));
    expand = register_module("expand", nn::Linear(size.width, 4 * size.width));
    contract = register_module("contract", nn::Linear(4 * size.width, size.width));
  }

  at::Tensor forward(at::Tensor x, const at::Tensor& mask) {
    x = x + projection(attention(norm1(x), mask));
    return x + contract(torch::gelu(expand(norm2(x))));
  }

  at::Tensor attention(const at::Tensor& x, const at::Tensor& mask) {
    const int64_t width = x.size(2) / heads;
    const auto parts =
        qkv(x).view({x.size(0), x.size(1), 3, heads, width}).permute({2, 0, 3, 1, 4});
    const double scale = 1.0 / std::sqrt(static_cast<double>(width));
    const at::Tensor scores = torch::matmul(parts[0] * scale, parts[1].transpose(-2, -1));
    const at::Tensor weights =
        scores.masked_fill(mask, -std::numeric_limits<double>::infinity()).softmax(-1);
    return torch::matmul(weights, parts[2]).transpose(1, 2).reshape(x.sizes());
  }

  int64_t heads;
  nn::LayerNorm norm1 = nullptr;
  nn::Linear qkv = nullptr;
  nn::Linear projection = nullptr;
  nn::LayerNorm norm2 = nullptr;
  nn::Linear expand = nullptr;
  nn::Linear contract = nullptr;
};

class Gpt final : public Classifier {
 public:
  explicit Gpt(const GptSize& size) {
    tokens = register_module("tokens", nn::Embedding(size.vocabulary, size.width));
    positions = register_module("positions", nn::Embedding(size.context, size.width));
    mask = register_buffer(
        "mask", torch::ones({size.context, size.context}, torch::kBool).triu(/*diagonal=*/1));
    for (int64_t i = 0; i < size.layers; ++i) {
      blocks.push_back(
          register_module("block" + std::to_string(i), std::make_shared<BlockImpl>(size)));
    }
    norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({size.width})));
    head = register_module("head", nn::Linear(size.width, size.vocabulary));
  }

  at::Tensor forward(const at::Tensor& x) override {
    at::Tensor h = tokens(x) + positions->weight;
    for (const auto& block : blocks) {
      h = block->forward(h, mask);
    }
    return head(norm(h));
  }

  nn::Embedding tokens = nullptr;
  nn::Embedding positions = nullptr;
  at::Tensor mask;
  std::vector<std::shared_ptr<BlockImpl>> blocks;
  nn::LayerNorm norm = nullptr;
  nn::Linear head = nullptr;
};

Batch token_batch(int64_t batch, int64_t context, int64_t vocabulary = kVocabulary) {
  return {{"x", torch::randint(vocabulary, {batch, context})},
          {"label", torch::randint(vocabulary, {batch, context})}};
}

class Lstm final : public Classifier {
 public:
  Lstm() {
    tokens = register_module("tokens", nn::Embedding(kVocabulary, 128));
    lstm = register_module("lstm",
                           nn::LSTM(nn::LSTMOptions(128, 128).num_layers(2).batch_first(true)));
    head = register_module("head", nn::Linear(128, kVocabulary));
  }

  at::Tensor forward(const at::Tensor& x) override { return head(std::get<0>(lstm(tokens(x)))); }

  nn::Embedding tokens = nullptr;
  nn::LSTM lstm = nullptr;
  nn::Linear head = nullptr;
};

/// Attention from one sequence to another. LibTorch's module asks on the host whether query and key
/// are equal, which is a guard of a traced step; the same step without that is its measure.
class Attention final : public Classifier {
 public:
  explicit Attention(bool asks) : asks_(asks) {
    query = register_module("query", nn::Linear(kWidth, kWidth));
    attention = register_module(
        "attention", nn::MultiheadAttention(nn::MultiheadAttentionOptions(kWidth, kHeads)));
    head = register_module("head", nn::Linear(kWidth, 10));
  }

  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor q = query(x);
    return head(asks_ ? std::get<0>(attention->forward(q, x, x))
                      : attend_unasked(*attention, q, x));
  }

  static constexpr int64_t kWidth = 128;
  static constexpr int64_t kHeads = 4;

 private:
  bool asks_;
  nn::Linear query = nullptr;
  nn::MultiheadAttention attention = nullptr;
  nn::Linear head = nullptr;
};

Workload make_mlp(const char* name, Rule rule, double lr) {
  Workload w;
  w.name = name;
  w.rule = rule;
  w.lr = lr;
  w.make_network = [] { return std::make_shared<Mlp>(std::vector<int64_t>{784, 256, 256, 10}); };
  w.make_batch = [] { return vectors(64, 784, 10); };
  return w;
}

Workload make_tiny() {
  Workload w;
  w.name = "tiny";
  w.make_network = [] { return std::make_shared<Mlp>(std::vector<int64_t>{16, 32, 32, 10}); };
  w.make_batch = [] { return vectors(32, 16, 10); };
  return w;
}

Workload make_cnn() {
  Workload w;
  w.name = "cnn";
  w.make_network = [] { return std::make_shared<Cnn>(); };
  w.make_batch = [] {
    return Batch{{"x", torch::rand({64, 1, 28, 28})}, {"label", torch::randint(10, {64})}};
  };
  return w;
}

Workload make_gpt(const char* name, const GptSize& size, int64_t batch) {
  Workload w;
  w.name = name;
  w.rule = Rule::AdamW;
  w.lr = 1e-3;
  w.make_network = [size] { return std::make_shared<Gpt>(size); };
  w.make_batch = [size, batch] { return token_batch(batch, size.context, size.vocabulary); };
  return w;
}

Workload make_lstm() {
  Workload w;
  w.name = "lstm";
  w.rule = Rule::Adam;
  w.lr = 1e-3;
  w.make_network = [] { return std::make_shared<Lstm>(); };
  w.make_batch = [] { return token_batch(16, 64); };
  return w;
}

Workload make_attention(const char* name, bool asks) {
  Workload w;
  w.name = name;
  w.rule = Rule::AdamW;
  w.lr = 1e-3;
  w.make_network = [asks] { return std::make_shared<Attention>(asks); };
  w.make_batch = [] {
    return Batch{{"x", torch::rand({32, 16, Attention::kWidth})},
                 {"label", torch::randint(10, {32, 16})}};
  };
  return w;
}

Workload make_accum() {
  Workload w = make_mlp("accum", Rule::SgdMomentum, 0.01);
  w.micro_batches = 4;
  w.clip_norm = 1.0;
  w.is_scheduled = true;
  w.is_saved = true;
  w.make_batch = [] { return vectors(16, 784, 10); };
  return w;
}

}  // namespace

at::Tensor Classifier::loss(const Batch& batch) {
  return at::cross_entropy_loss(forward(batch["x"]).flatten(0, -2), batch["label"].flatten());
}

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> all = [] {
    std::vector<Workload> tuned = {make_tiny(),
                                   make_mlp("mlp", Rule::SgdMomentum, 0.01),
                                   make_mlp("adam", Rule::AdamW, 1e-3),
                                   make_cnn(),
                                   make_gpt("gpt", {4, 4, 128, 64}, 8),
                                   make_gpt("gptbig", {6, 6, 384, 256}, 4),
                                   make_gpt("gpt124m", {12, 12, 768, 1024, 50257}, 8),
                                   make_lstm(),
                                   make_accum(),
                                   make_attention("attention", /*asks=*/true),
                                   make_attention("unasked", /*asks=*/false),
                                   unasked_seq2seq()};
    const std::vector<Workload> others = zoo();
    tuned.insert(tuned.end(), others.begin(), others.end());
    return tuned;
  }();
  return all;
}

std::vector<std::string> workload_names() {
  std::vector<std::string> names;
  for (const Workload& w : workloads()) {
    names.push_back(w.name);
  }
  return names;
}

const Workload& workload(const std::string& name) {
  return *std::find_if(
      workloads().begin(), workloads().end(), [&](const Workload& w) { return w.name == name; });
}

Factory<Model> model_of(const Workload& w) {
  return {w.name, typeid(LossModel), nullptr, [make = w.make_network] {
            return std::make_unique<LossModel>(make());
          }};
}

}  // namespace bench
