#include <torch/torch.h>

#include "zoo.h"

namespace bench {

namespace {

namespace nn = torch::nn;
using rondo::Batch;

nn::Sequential mlp(const std::vector<int64_t>& sizes) {
  nn::Sequential layers;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    layers->push_back(nn::Linear(sizes[i], sizes[i + 1]));
    if (i + 2 < sizes.size()) {
      layers->push_back(nn::ReLU());
    }
  }
  return layers;
}

/// Embedding bags and their products with each other: Naumov et al. 2019.
class Dlrm final : public Network {
 public:
  Dlrm() {
    for (int64_t i = 0; i < kTables; ++i) {
      bags_.push_back(register_module(
          "bag" + std::to_string(i),
          nn::EmbeddingBag(nn::EmbeddingBagOptions(1000, kWidth).mode(torch::kSum))));
    }
    bottom_ = register_module("bottom", mlp({13, 64, kWidth}));
    const at::Tensor pairs = torch::tril_indices(kTables + 1, kTables + 1, -1);
    rows_ = register_buffer("rows", pairs[0].clone());
    columns_ = register_buffer("columns", pairs[1].clone());
    top_ = register_module("top", mlp({kWidth + rows_.size(0), 64, 1}));
  }

  at::Tensor loss(const Batch& batch) override {
    const at::Tensor dense = torch::relu(bottom_->forward(batch["x"]));
    std::vector<at::Tensor> vectors = {dense};
    for (int64_t i = 0; i < kTables; ++i) {
      vectors.push_back(bags_[i](batch["items"].select(1, i)));
    }
    const at::Tensor all = torch::stack(vectors, 1);
    const at::Tensor products =
        torch::bmm(all, all.transpose(1, 2)).index({torch::indexing::Slice(), rows_, columns_});
    const at::Tensor logits = top_->forward(torch::cat({dense, products}, 1)).squeeze(1);
    return torch::binary_cross_entropy_with_logits(logits, batch["clicked"]);
  }

  static Batch make_batch() {
    return {{"x", torch::rand({128, 13})},
            {"items", torch::randint(1000, {128, kTables, 4})},
            {"clicked", torch::rand({128}).round()}};
  }

 private:
  static constexpr int64_t kTables = 8;
  static constexpr int64_t kWidth = 16;

  std::vector<nn::EmbeddingBag> bags_;
  nn::Sequential bottom_ = nullptr;
  nn::Sequential top_ = nullptr;
  at::Tensor rows_;
  at::Tensor columns_;
};

/// Numbers and categories, each with an embedding; batch norm.
class Table final : public Classifier {
 public:
  Table() {
    for (int64_t i = 0; i < kCategories; ++i) {
      embeddings_.push_back(register_module("embedding" + std::to_string(i), nn::Embedding(20, 8)));
    }
    norm_ = register_module("norm", nn::BatchNorm1d(kNumbers));
    body_ = register_module("body",
                            nn::Sequential(nn::Linear(kNumbers + 8 * kCategories, 200),
                                           nn::ReLU(),
                                           nn::BatchNorm1d(200),
                                           nn::Linear(200, 100),
                                           nn::ReLU(),
                                           nn::BatchNorm1d(100),
                                           nn::Linear(100, 2)));
  }

  at::Tensor forward(const at::Tensor& x) override {
    std::vector<at::Tensor> columns;
    for (int64_t i = 0; i < kCategories; ++i) {
      columns.push_back(embeddings_[i](x.select(1, i).to(torch::kLong)));
    }
    columns.push_back(norm_(x.slice(1, kCategories)));
    return body_->forward(torch::cat(columns, 1));
  }

  static Batch make_batch() {
    return {{"x",
             torch::cat({torch::randint(20, {64, kCategories}).to(torch::kFloat),
                         torch::randn({64, kNumbers})},
                        1)},
            {"label", torch::randint(2, {64})}};
  }

 private:
  static constexpr int64_t kCategories = 6;
  static constexpr int64_t kNumbers = 10;

  std::vector<nn::Embedding> embeddings_;
  nn::BatchNorm1d norm_ = nullptr;
  nn::Sequential body_ = nullptr;
};

/// Burgers' equation, whose residual takes second derivatives: Raissi et al. 2017.
class Physics final : public Network {
 public:
  Physics() {
    body_ = register_module("body",
                            nn::Sequential(nn::Linear(2, 32),
                                           nn::Tanh(),
                                           nn::Linear(32, 32),
                                           nn::Tanh(),
                                           nn::Linear(32, 32),
                                           nn::Tanh(),
                                           nn::Linear(32, 1)));
  }

  at::Tensor loss(const Batch& batch) override {
    const at::Tensor x = batch["x"].slice(1, 0, 1).detach().requires_grad_();
    const at::Tensor t = batch["x"].slice(1, 1, 2).detach().requires_grad_();
    const at::Tensor u = body_->forward(torch::cat({x, t}, 1));
    const at::Tensor u_x = derivative(u, x);
    const at::Tensor residual = derivative(u, t) + u * u_x - (0.01 / M_PI) * derivative(u_x, x);
    const at::Tensor edge = body_->forward(batch["edge"]);
    return residual.pow(2).mean() + torch::mse_loss(edge, batch["value"]);
  }

  static Batch make_batch() {
    return {{"x", torch::rand({256, 2})},
            {"edge", torch::rand({256, 2})},
            {"value", torch::rand({256, 1})}};
  }

 private:
  static at::Tensor derivative(const at::Tensor& of, const at::Tensor& by) {
    return torch::autograd::grad({of}, {by}, {torch::ones_like(of)}, true, true)[0];
  }

  nn::Sequential body_ = nullptr;
};

/// Messages along edges, added up at their ends: Gilmer et al. 2017.
class Messages final : public Network {
 public:
  Messages() {
    encode_ = register_module("encode", nn::Linear(8, kWidth));
    for (int64_t i = 0; i < 3; ++i) {
      const std::string name = std::to_string(i);
      messages_.push_back(register_module("message" + name, mlp({2 * kWidth, kWidth, kWidth})));
      updates_.push_back(register_module("update" + name, mlp({2 * kWidth, kWidth, kWidth})));
    }
    head_ = register_module("head", nn::Linear(kWidth, 1));
  }

  at::Tensor loss(const Batch& batch) override {
    at::Tensor nodes = encode_(batch["x"].flatten(0, 1));
    const at::Tensor first = torch::arange(batch["x"].size(0)).unsqueeze(1) * kNodes;
    const at::Tensor from = (batch["from"] + first).flatten();
    const at::Tensor to = (batch["to"] + first).flatten();
    for (size_t i = 0; i < messages_.size(); ++i) {
      const at::Tensor sent = messages_[i]->forward(
          torch::cat({nodes.index_select(0, from), nodes.index_select(0, to)}, 1));
      const at::Tensor received = torch::zeros_like(nodes).index_add(0, to, sent);
      nodes = nodes + updates_[i]->forward(torch::cat({nodes, received}, 1));
    }
    const at::Tensor graphs = nodes.view({-1, kNodes, kWidth}).mean(1);
    return torch::mse_loss(head_(graphs), batch["target"]);
  }

  static Batch make_batch() {
    return {{"x", torch::randn({16, kNodes, 8})},
            {"from", torch::randint(kNodes, {16, 96})},
            {"to", torch::randint(kNodes, {16, 96})},
            {"target", torch::randn({16, 1})}};
  }

 private:
  static constexpr int64_t kNodes = 32;
  static constexpr int64_t kWidth = 64;

  nn::Linear encode_ = nullptr;
  std::vector<nn::Sequential> messages_;
  std::vector<nn::Sequential> updates_;
  nn::Linear head_ = nullptr;
};

}  // namespace

std::vector<Workload> zoo_of_tables() {
  return {in_zoo<Dlrm>("dlrm", Dlrm::make_batch),
          in_zoo<Table>("table", Table::make_batch),
          in_zoo<Physics>("physics", Physics::make_batch),
          in_zoo<Messages>("messages", Messages::make_batch)};
}

}  // namespace bench
