#include <doctest/doctest.h>
#include <torch/nn/functional.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/rnn.h>
#include <torch/types.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/vector_loop.h"
#include "optim/clip.h"
#include "optim/sgd.h"
#include "support/step_probe.h"
#include "tracing/kernels/recurrent/lstm_layer.h"
#include "tracing/make_backend.h"
#include "tracing/onednn/convolution.h"

TEST_SUITE_BEGIN("tracing/passes/without_passes");

using namespace rondo;
using namespace rondo::test;
namespace F = torch::nn::functional;

namespace {

using Make = std::function<StepProbe()>;

/// A step that computes something of the batch.
Make computing(const std::function<at::Tensor(const at::Tensor& x)>& compute) {
  return [=] {
    StepProbe probe;
    probe.body = [=](Backend&, const Batch& batch) { return Outputs{{"y", compute(batch["x"])}}; };
    return probe;
  };
}

/// A step on a batch large enough to be cut into parts.
Make of_many_elements(const Make& make) {
  return [=] {
    StepProbe probe = make();
    probe.batch = [](int step) { return random_batch(step, 2048); };
    return probe;
  };
}

StepProbe sum_of_parts() {
  return descent([](const auto& x, const auto&, const auto& w, const auto& b) {
    return (w.select(1, 0) * w.select(1, 2)).sum() * x.mean() + b.sum();
  });
}

StepProbe kept_product() {
  const at::Tensor kept = torch::zeros({6, 6});
  StepProbe probe;
  probe.state = {{"kept", kept}};
  probe.body = [=](Backend&, const Batch& batch) {
    kept.copy_(batch["x"].t().mm(batch["x"]));
    return Outputs{{"y", kept.sum()}};
  };
  return probe;
}

StepProbe clipped_updates() {
  const at::Tensor w = torch::randn({6, 3}).set_requires_grad(true);
  const auto optimizer = std::make_shared<Sgd>(Sgd::Options());
  optimizer->attach({{"w", w}});
  StepProbe probe;
  probe.more_state = [=] { return optimizer->captured_state(); };
  probe.body = [=](Backend&, const Batch& batch) {
    optimizer->zero_grad();
    const at::Tensor loss = F::cross_entropy(batch["x"].mm(w), batch["label"]);
    loss.backward();
    clip_by_norm_(optimizer->grads(), 0.01);
    optimizer->step();
    return Outputs{{"loss", loss}};
  };
  return probe;
}

StepProbe convolutions() {
  constexpr int64_t kChannels = 32;
  const std::vector<at::Tensor> weights = {torch::randn({kChannels, 1, 3, 3}),
                                           torch::ones({kChannels}),
                                           torch::zeros({kChannels}),
                                           torch::randn({kChannels, kChannels, 3, 3})};
  const at::Tensor mean = torch::zeros({kChannels});
  const at::Tensor var = torch::ones({kChannels});
  const at::Tensor lr = torch::full({}, 0.01, at::kDouble);
  StepProbe probe;
  probe.state = {{"mean", mean}, {"var", var}, {"lr", lr}};
  for (size_t i = 0; i < weights.size(); ++i) {
    probe.state.emplace_back("w" + std::to_string(i), weights[i].set_requires_grad(true));
  }
  probe.batch = [](int step) { return random_batch(step, 96); };
  probe.body = [=](Backend&, const Batch& batch) {
    for (const at::Tensor& weight : weights) {
      weight.mutable_grad().reset();
    }
    const at::Tensor first = at::conv2d(batch["x"].view({4, 1, 12, 12}), weights[0], {}, 1, 1);
    const at::Tensor normal =
        at::batch_norm(first, weights[1], weights[2], mean, var, true, 0.1, 1e-5, false);
    const at::Tensor pooled = at::max_pool2d(at::relu(normal), 2);
    const at::Tensor loss = at::conv2d(pooled, weights[3], {}, 1, 1).square().mean();
    loss.backward();
    descend(weights, lr);
    return Outputs{{"loss", loss}};
  };
  return probe;
}

StepProbe recurrence() {
  const torch::nn::LSTM lstm(torch::nn::LSTMOptions(3, 8));
  const at::Tensor lr = torch::full({}, 0.1, at::kDouble);
  StepProbe probe;
  probe.state = {{"lr", lr}};
  for (const auto& parameter : lstm->named_parameters()) {
    probe.state.emplace_back(parameter.key(), parameter.value());
  }
  probe.body = [=](Backend&, const Batch& batch) {
    for (const at::Tensor& parameter : lstm->parameters()) {
      parameter.mutable_grad().reset();
    }
    torch::nn::LSTM layer = lstm;
    const at::Tensor loss = std::get<0>(layer->forward(batch["x"].view({2, 8, 3}))).square().mean();
    loss.backward();
    descend(lstm->parameters(), lr);
    return Outputs{{"loss", loss}};
  };
  return probe;
}

/// Of few tokens.
StepProbe recurrence_on_embedding() {
  const torch::nn::Embedding embedding(3, 3);
  const torch::nn::LSTM lstm(torch::nn::LSTMOptions(3, 8).batch_first(true));
  std::vector<at::Tensor> parameters = lstm->parameters();
  parameters.push_back(embedding->weight);
  const at::Tensor lr = torch::full({}, 0.1, at::kDouble);
  StepProbe probe;
  probe.state = {{"lr", lr}};
  for (size_t i = 0; i < parameters.size(); ++i) {
    probe.state.emplace_back("w" + std::to_string(i), parameters[i]);
  }
  probe.batch = [](int step) { return random_batch(step, 40); };
  probe.body = [=](Backend&, const Batch& batch) {
    for (const at::Tensor& parameter : parameters) {
      parameter.mutable_grad().reset();
    }
    torch::nn::Embedding table = embedding;
    torch::nn::LSTM layer = lstm;
    const at::Tensor x = table->forward(batch["label"].view({8, 5}));
    const at::Tensor loss = std::get<0>(layer->forward(x)).square().mean();
    loss.backward();
    descend(parameters, lr);
    return Outputs{{"loss", loss}};
  };
  return probe;
}

StepProbe groups_in_bf16() {
  const at::Tensor w = torch::randn({6, 3});
  const auto now = std::make_shared<GroupPosition>();
  StepProbe probe;
  probe.state = {{"w", w}};
  probe.key = [=](int step) {
    *now = {step % 2 == 0, step % 2 == 1, 2};
    return StepKey{"train", *now, "bf16"};
  };
  probe.body = [=](Backend&, const Batch& batch) {
    const at::Tensor y = batch["x"].to(at::kBFloat16).mm(w.to(at::kBFloat16)).to(at::kFloat);
    if (now->is_last) {
      w.sub_(batch["x"].t().mm(y), 0.01);
    }
    return Outputs{{"y", y}};
  };
  return probe;
}

bool has_blocks() {
  return channel_block() > 0 && widest_instruction_set() == InstructionSet::Avx2;
}

bool has_layers_of_onednn() {
  return c10::Dispatcher::singleton().findSchema({"aten::mkldnn_rnn_layer", ""}).has_value() &&
         can_run_lstm({2, 8, 3, 8});
}

/// A step on which a pass acts.
struct Acting {
  std::string pass;
  Make make;
  bool can_act = true;   ///< here
  bool is_exact = true;  ///< false: in steps only that need not be
};

std::vector<Acting> all_acting() {
  const auto in_a_row = [](const at::Tensor& x) { return (x * 0.5 + x).relu() - 1; };
  return {
      {"identity_views", computing([](const auto& x) { return x.t().t().sin(); })},
      {"common_subexpressions", computing([](const auto& x) { return x.cos() * x.cos(); })},
      {"needless_copies", computing([](const auto& x) { return x.clone().cos(); })},
      {"dead_code", computing([](const auto& x) {
         x.sin();
         return x.cos();
       })},
      {"constants", computing([](const auto& x) { return x + at::ones_like(x); })},
      {"gradients_of_parts", &sum_of_parts},
      {"cross_entropy_backward", &clipped_updates},
      {"products_in_place", &kept_product},
      {"scaled_updates", &clipped_updates},
      {"batch_norm_relu_pool", &convolutions, widest_instruction_set() == InstructionSet::Avx2},
      {"channel_blocks", &convolutions, has_blocks()},
      {"lstm_layers", &recurrence, has_layers_of_onednn()},
      {"rows_of_tables", &recurrence_on_embedding, has_layers_of_onednn(), /*is_exact=*/false},
      {"kept_casts", &groups_in_bf16},
      {"elementwise_chains", of_many_elements(computing(in_a_row))},
      {"results_in_place", computing(in_a_row)},
  };
}

ProbeRun run_without(const std::vector<std::string>& passes, const Make& make, bool exact = true) {
  BackendOptions options;
  options.without_passes = passes;
  options.exact = exact;
  const auto backend = make_backend(options, TextLog(LogLevel::Error));
  return run_probe(make, *backend, 8);
}

/// How often the pass applied in all steps; the test fails when a report does not tell.
int64_t applied(const ProbeRun& run, const std::string& pass) {
  int64_t sum = 0;
  for (const StepReport& report : run.reports) {
    const PassCounts& passes = report.stats.passes;
    const auto found = std::find_if(
        passes.begin(), passes.end(), [&](const auto& known) { return known.first == pass; });
    REQUIRE(found != passes.end());
    sum += found->second;
  }
  return sum;
}

bool are_close(const StateDict& a, const StateDict& b) {
  return std::all_of(a.items().begin(), a.items().end(), [&](const StateDict::Item& item) {
    const at::Tensor* const one = std::get_if<at::Tensor>(&item.second.variant());
    const at::Tensor* const other = std::get_if<at::Tensor>(&b.find(item.first)->variant());
    return one == nullptr || !one->is_floating_point() || at::allclose(*one, *other, 1e-4, 1e-6);
  });
}

}  // namespace

TEST_CASE("each pass is switched off by its name, does nothing then, and the bytes are the same") {
  for (const Acting& acting : all_acting()) {
    CAPTURE(acting.pass);
    if (!acting.can_act) {
      MESSAGE("skipped: the pass has nothing to do with this LibTorch or on this machine");
      continue;
    }
    const ProbeRun with = run_without({}, acting.make, acting.is_exact);
    const ProbeRun without = run_without({acting.pass}, acting.make, acting.is_exact);
    CHECK(applied(with, acting.pass) > 0);
    CHECK(applied(without, acting.pass) == 0);
    if (acting.is_exact) {
      CHECK(first_difference(with.bytes, without.bytes) == "");
    } else {
      CHECK(are_close(with.bytes, without.bytes));
      CHECK(applied(run_without({}, acting.make), acting.pass) == 0);
    }
    CHECK(without.replays() == with.replays());
  }
}

TEST_CASE("a report counts every pass that can be switched off, and no other") {
  std::vector<std::string> names = pass_names();
  std::vector<std::string> acting;
  for (const Acting& one : all_acting()) {
    acting.push_back(one.pass);
  }
  std::vector<std::string> counted;
  const ProbeRun run = run_without({}, &kept_product);
  for (const auto& pass : run.reports.at(0).stats.passes) {
    counted.push_back(pass.first);
  }
  CHECK(counted == names);
  std::sort(names.begin(), names.end());
  std::sort(acting.begin(), acting.end());
  CHECK(acting == names);
}

TEST_SUITE_END();
