#include "models/builtin/lstm.h"

#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <array>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/require.h"
#include "metrics/metric.h"
#include "models/blocks/auto_sizes.h"
#include "models/blocks/judge.h"
#include "models/blocks/next_token.h"
#include "models/blocks/recurrence.h"
#include "models/losses/loss_option.h"
#include "models/module_model.h"
#include "models/register.h"

namespace rondo {

namespace {

constexpr std::array<detail::AutoSize<RecurrentOptions>, 1> kSizesOfRecurrent{
    {{"vocabulary", &RecurrentOptions::vocabulary}}};

RecurrentOptions validated(const std::string& name, const RecurrentOptions& options) {
  detail::require(options.layers >= 1, name + ": layers", ">= 1", options.layers);
  detail::require(options.width >= 1, name + ": width", ">= 1", options.width);
  detail::check_sizes(name.c_str(), kSizesOfRecurrent, options);
  detail::require(options.dropout >= 0 && options.dropout < 1,
                  name + ": dropout",
                  "in [0, 1)",
                  options.dropout);
  return options;
}

class RecurrentNetwork final : public ModuleModel {
 public:
  RecurrentNetwork(std::string name, const std::string& cell, const RecurrentOptions& options)
      : name_(std::move(name)),
        embedding_(*validated(name_, options).vocabulary, options.width),
        head_(options.width, *options.vocabulary),
        layers_({cell, options.layers, options.width, options.width, options.dropout}),
        judge_(options.loss, "targets") {
    register_module("embedding", embedding_);
    layers_.add_to(*this);
    register_module("head", head_);
  }

  Outputs forward(const Batch& batch) override {
    const at::Tensor& tokens = batch["tokens"];
    detail::require_tokens(name_, tokens, std::numeric_limits<int64_t>::max());
    return judge_(head_(layers_.forward(embedding_(tokens), is_training())), batch);
  }

  const Criterion* criterion() const override { return &judge_.loss(); }

  std::vector<Factory<Metric>> metrics() const override { return judge_.token_metrics(); }

 private:
  std::string name_;
  torch::nn::Embedding embedding_;
  torch::nn::Linear head_;
  detail::Recurrence layers_;
  detail::Judge judge_;
};

std::unique_ptr<Model> recurrent_network(const char* name,
                                         const char* cell,
                                         const RecurrentOptions& options) {
  return std::make_unique<RecurrentNetwork>(
      name, cell, detail::resolved(name, kSizesOfRecurrent, options));
}

template <class T>
void add_to(Registry<Model>& registry,
            const Registry<Criterion>& losses,
            const char* name,
            const char* doc) {
  using Options = RecurrentOptions;
  registry.add<T>(name, doc)
      .key("layers", &Options::layers, at_least(1), "stacked recurrent layers")
      .key("width", &Options::width, at_least(1), "width of embedding and state")
      .key("vocabulary", &Options::vocabulary, at_least(1), "number of different tokens")
      .key("dropout", &Options::dropout, below_one(), "share that is set to zero between layers")
      .key_of("loss", &Options::loss, LossOption(losses), "what the model is trained for");
}

}  // namespace

Lstm::Lstm(const Options& options) : WrappedModel(recurrent_network("Lstm", "lstm", options)) {}

Gru::Gru(const Options& options) : WrappedModel(recurrent_network("Gru", "gru", options)) {}

void Lstm::resolve(Options& options, const DatasetFacts& facts) {
  detail::resolve_sizes("Lstm", kSizesOfRecurrent, options, facts);
}

void Gru::resolve(Options& options, const DatasetFacts& facts) {
  detail::resolve_sizes("Gru", kSizesOfRecurrent, options, facts);
}

void register_lstm(Registry<Model>& registry, const Registry<Criterion>& losses) {
  add_to<Lstm>(registry, losses, "Lstm", "LSTM that predicts the next token.");
  add_to<Gru>(registry, losses, "Gru", "GRU that predicts the next token.");
}

}  // namespace rondo
