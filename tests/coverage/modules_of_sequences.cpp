#include <torch/nn.h>

#include "coverage/row.h"

// Containers, tables, recurrent layers, attention.

namespace rondo::test {

namespace {

namespace nn = torch::nn;
namespace rnn = torch::nn::utils::rnn;

// A module with the parts that a container holds, and a forward of its own.
template <class Container>
struct HolderImpl : nn::Module {
  explicit HolderImpl(Container parts) : container(register_module("parts", parts)) {}

  Container container;
};

template <class Container, class Call>
std::function<Trained()> holding(Container (*make)(), Call call) {
  return [make, call] {
    const auto holder = std::make_shared<HolderImpl<Container>>(make());
    return Trained{holder, [holder, call](const Inputs& in) {
                     return at::Tensor(call(holder->container, in.x));
                   }};
  };
}

void add_containers(Rows& rows) {
  const Sizes matrix{8, 6};
  rows.module("nn::Sequential", matrix, [] {
    return nn::Sequential(nn::Linear(6, 5), nn::ReLU(), nn::Linear(5, 3));
  });
  rows.add(
      "nn::ModuleList",
      matrix,
      holding<nn::ModuleList>([] { return nn::ModuleList(nn::Linear(6, 5), nn::Linear(5, 3)); },
                              [](nn::ModuleList& list, at::Tensor x) {
                                for (const auto& part : *list) {
                                  x = part->as<nn::Linear>()->forward(x);
                                }
                                return x;
                              }));
  rows.add(
      "nn::ModuleDict",
      matrix,
      holding<nn::ModuleDict>(
          [] {
            return nn::ModuleDict(std::vector<std::pair<std::string, std::shared_ptr<nn::Module>>>{
                {"a", nn::Linear(6, 6).ptr()}, {"b", nn::Linear(6, 3).ptr()}});
          },
          [](nn::ModuleDict& dict, const at::Tensor& x) {
            return dict["b"]->as<nn::Linear>()->forward(dict["a"]->as<nn::Linear>()->forward(x));
          }));
  rows.add("nn::ParameterList",
           matrix,
           holding<nn::ParameterList>(
               [] { return nn::ParameterList(at::ones({6}), at::full({6}, 0.5)); },
               [](nn::ParameterList& list, const at::Tensor& x) { return x * list[0] + list[1]; }));
  rows.add("nn::ParameterDict",
           matrix,
           holding<nn::ParameterDict>(
               [] {
                 nn::ParameterDict dict;
                 dict->insert("scale", at::ones({6}));
                 return dict;
               },
               [](nn::ParameterDict& dict, const at::Tensor& x) { return x * dict["scale"]; }));
  rows.module("nn::Functional", matrix, [] {
    return nn::Functional([](const at::Tensor& x) { return at::relu(x); });
  });
  rows.add("nn::AnyModule", matrix, [] {
    const nn::Linear linear(6, 3);
    const auto any = std::make_shared<nn::AnyModule>(linear);
    return Trained{linear.ptr(), [any](const Inputs& in) { return any->forward(in.x); }};
  });
}

void add_tables(Rows& rows) {
  const auto of_indices = [](auto& m, const Inputs& in) { return m->forward(in.index); };
  const Sizes tokens{4, 6};
  rows.module(
      "nn::Embedding", tokens, [] { return nn::Embedding(6, 3); }, of_indices);
  rows.module(
      "nn::Embedding, padding_idx",
      tokens,
      [] { return nn::Embedding(nn::EmbeddingOptions(6, 3).padding_idx(0)); },
      of_indices);
  rows.module(
      "nn::Embedding, max_norm",
      tokens,
      [] { return nn::Embedding(nn::EmbeddingOptions(6, 3).max_norm(1.0)); },
      of_indices);
  rows.module(
      "nn::Embedding, sparse",
      tokens,
      [] { return nn::Embedding(nn::EmbeddingOptions(6, 3).sparse(true)); },
      of_indices);
  const auto bag_of = [](auto mode) {
    return [mode] { return nn::EmbeddingBag(nn::EmbeddingBagOptions(6, 3).mode(mode)); };
  };
  rows.module("nn::EmbeddingBag, mean", tokens, bag_of(torch::kMean), of_indices);
  rows.module("nn::EmbeddingBag, sum", tokens, bag_of(torch::kSum), of_indices);
  rows.module("nn::EmbeddingBag, max", tokens, bag_of(torch::kMax), of_indices);
}

void add_recurrent(Rows& rows) {
  const auto first = [](auto& m, const Inputs& in) { return std::get<0>(m->forward(in.x)); };
  const Sizes sequence{5, 3, 4};
  const Sizes matrix{8, 6};
  rows.module(
      "nn::RNN", sequence, [] { return nn::RNN(4, 6); }, first);
  rows.module(
      "nn::RNN, relu",
      sequence,
      [] { return nn::RNN(nn::RNNOptions(4, 6).nonlinearity(torch::kReLU)); },
      first);
  rows.module(
      "nn::LSTM", sequence, [] { return nn::LSTM(4, 6); }, first);
  rows.module(
      "nn::LSTM, bidirectional",
      sequence,
      [] { return nn::LSTM(nn::LSTMOptions(4, 6).num_layers(2).bidirectional(true)); },
      first);
  rows.module(
      "nn::LSTM, dropout and projection",
      sequence,
      [] { return nn::LSTM(nn::LSTMOptions(4, 6).num_layers(2).dropout(0.3).proj_size(3)); },
      first);
  rows.module(
      "nn::GRU", sequence, [] { return nn::GRU(4, 6); }, first);
  rows.module(
      "nn::GRU, bidirectional",
      sequence,
      [] { return nn::GRU(nn::GRUOptions(4, 6).num_layers(2).bidirectional(true)); },
      first);
  const auto packed = [](auto& m, const Inputs& in) {
    const at::Tensor lengths = in.label.slice(0, 0, 3) + 3;
    const auto sequences = rnn::pack_padded_sequence(in.x, lengths, false, false);
    const auto result = std::get<0>(m->forward_with_packed_input(sequences));
    return std::get<0>(rnn::pad_packed_sequence(result, false, 0.0, 5));
  };
  rows.module(
      "nn::RNN, packed", sequence, [] { return nn::RNN(4, 6); }, packed);
  rows.module(
      "nn::LSTM, packed", sequence, [] { return nn::LSTM(4, 6); }, packed);
  rows.module(
      "nn::GRU, packed", sequence, [] { return nn::GRU(4, 6); }, packed);
  rows.module("nn::RNNCell", matrix, [] { return nn::RNNCell(6, 4); });
  rows.module(
      "nn::LSTMCell", matrix, [] { return nn::LSTMCell(6, 4); }, first);
  rows.module("nn::GRUCell", matrix, [] { return nn::GRUCell(6, 4); });
}

void add_attention(Rows& rows) {
  const Sizes sequence{5, 3, 8};
  rows.module(
      "nn::MultiheadAttention, self",
      sequence,
      [] { return nn::MultiheadAttention(8, 2); },
      [](auto& m, const Inputs& in) { return std::get<0>(m->forward(in.x, in.x, in.x)); });
  rows.module(
      "nn::MultiheadAttention, cross",
      sequence,
      [] { return nn::MultiheadAttention(8, 2); },
      [](auto& m, const Inputs& in) { return std::get<0>(m->forward(in.x, in.y, in.y)); });
  rows.module("nn::TransformerEncoderLayer", sequence, [] {
    return nn::TransformerEncoderLayer(
        nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16));
  });
  rows.module(
      "nn::TransformerDecoderLayer",
      sequence,
      [] {
        return nn::TransformerDecoderLayer(
            nn::TransformerDecoderLayerOptions(8, 2).dim_feedforward(16));
      },
      [](auto& m, const Inputs& in) { return m->forward(in.x, in.y); });
  rows.module("nn::TransformerEncoder", sequence, [] {
    return nn::TransformerEncoder(nn::TransformerEncoderOptions(
        nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16), 2));
  });
  rows.module(
      "nn::TransformerDecoder",
      sequence,
      [] {
        return nn::TransformerDecoder(nn::TransformerDecoderOptions(
            nn::TransformerDecoderLayerOptions(8, 2).dim_feedforward(16), 2));
      },
      [](auto& m, const Inputs& in) { return m->forward(in.x, in.y); });
  const auto transformer = [] {
    return nn::Transformer(
        nn::TransformerOptions(8, 2).num_encoder_layers(1).num_decoder_layers(1).dim_feedforward(
            16));
  };
  rows.module("nn::Transformer", sequence, transformer, [](auto& m, const Inputs& in) {
    return m->forward(in.x, in.y);
  });
  rows.module("nn::Transformer, masked", sequence, transformer, [](auto& m, const Inputs& in) {
    const at::Tensor mask = nn::TransformerImpl::generate_square_subsequent_mask(5);
    return m->forward(in.x, in.y, mask, mask, {}, {}, {}, {});
  });
}

}  // namespace

std::vector<Row> modules_of_sequences() {
  Rows rows("module");
  add_containers(rows);
  add_tables(rows);
  add_recurrent(rows);
  add_attention(rows);
  return rows.take();
}

}  // namespace rondo::test
