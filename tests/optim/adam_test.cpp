#include "optim/adam.h"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/types.h>

#include <doctest/doctest.h>

#include "core/error.h"
#include "optim/different_from_torch.h"
#include "optim/internal/update_parts.h"
#include "parameters.h"
#include "support/with_threads.h"

using namespace rondo;
using namespace rondo::test;

namespace {

template <class TorchOptions, class Options>
TorchOptions torch_options(const Options& o) {
  return TorchOptions(o.lr)
      .betas(std::make_tuple(o.betas[0], o.betas[1]))
      .eps(o.eps)
      .weight_decay(o.weight_decay)
      .amsgrad(o.amsgrad);
}

/// Both optimizers over 50 updates, each parameter at times without a gradient; the name of what
/// first differed.
template <class T, class Reference, class TorchOptions>
std::string run_both(const typename T::Options& options, NamedTensors ours, NamedTensors theirs) {
  T adam(options);
  adam.attach(ours);
  Reference reference(tensors(theirs), torch_options<TorchOptions>(options));
  for (int step = 0; step < 50; ++step) {
    give_gradients(ours, theirs, step);
    const size_t skipped = step % 20;
    if (skipped < ours.size()) {
      ours[skipped].second.mutable_grad().reset();
      theirs[skipped].second.mutable_grad().reset();
    }
    adam.step();
    reference.step();
    const std::string different = different_from_torch(ours, theirs);
    if (!different.empty()) {
      return different + " at step " + std::to_string(step);
    }
  }
  return "";
}

std::string run_adam(const Adam::Options& options, NamedTensors ours, NamedTensors theirs) {
  return run_both<Adam, torch::optim::Adam, torch::optim::AdamOptions>(options, ours, theirs);
}

std::string run_adam_w(const AdamW::Options& options, NamedTensors ours, NamedTensors theirs) {
  return run_both<AdamW, torch::optim::AdamW, torch::optim::AdamWOptions>(options, ours, theirs);
}

}  // namespace

TEST_SUITE_BEGIN("optim/adam");

TEST_CASE("Adam and AdamW equal those of torch::optim bit for bit, in each variant and dtype") {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    for (const double decay : {0.0, 0.01}) {
      for (const bool amsgrad : {false, true}) {
        CAPTURE(dtype);
        CAPTURE(decay);
        CAPTURE(amsgrad);
        const auto p = [dtype] { return parameters(3, dtype); };
        CHECK(run_adam({2e-3, {0.9, 0.999}, 1e-8, decay, amsgrad}, p(), p()) == "");
        CHECK(run_adam_w({2e-3, {0.9, 0.999}, 1e-8, decay, amsgrad}, p(), p()) == "");
        CHECK(run_adam_w({0.1, {0.7, 0.9}, 1e-3, decay, amsgrad}, p(), p()) == "");
      }
    }
  }
}

TEST_CASE("tensors that are not contiguous are updated as torch::optim updates them") {
  const auto strided = [] {
    NamedTensors made = parameters(5, at::kFloat, {{6, 4, 3, 3}, {10, 14}});
    made[0].second = made[0].second.detach().contiguous(at::MemoryFormat::ChannelsLast);
    made[1].second = made[1].second.detach().t().slice(0, 0, 14, 2);
    for (NamedTensor& parameter : made) {
      parameter.second.requires_grad_();
    }
    return made;
  };
  CHECK(run_adam({2e-3, {0.9, 0.99}, 1e-8, 0.01, true}, strided(), strided()) == "");
  CHECK(run_adam_w({2e-3}, strided(), strided()) == "");
}

TEST_CASE("a number that moves between updates is the one that counts, as in torch::optim") {
  const NamedTensors ours = parameters(1);
  const NamedTensors theirs = parameters(1);
  AdamW adam({1e-3});
  adam.attach(ours);
  torch::optim::AdamW reference(tensors(theirs), torch::optim::AdamWOptions(1e-3));
  for (int step = 0; step < 20; ++step) {
    const double lr = 1e-3 * (1 + step % 5);
    auto& options = static_cast<torch::optim::AdamWOptions&>(reference.param_groups()[0].options());
    options.lr(lr);
    options.weight_decay(0.01 * step);
    *adam.groups()[0]["lr"].data_ptr<double>() = lr;
    *adam.groups()[0]["weight_decay"].data_ptr<double>() = 0.01 * step;
    give_gradients(ours, theirs, step);
    adam.step();
    reference.step();
  }
  CHECK(different_from_torch(ours, theirs) == "");
}

TEST_CASE("tensors that are shared out among threads are updated whole") {
  const std::vector<std::vector<int64_t>> shapes = {
      {5}, {2 * rondo::detail::kUpdatedByThread + 3}, {300, 300}, {0}, {17}};
  const NamedTensors ours = parameters(1, at::kFloat, shapes);
  const NamedTensors theirs = parameters(1, at::kFloat, shapes);
  const WithThreads two(2);
  AdamW adam({1e-3});
  adam.attach(ours);
  torch::optim::AdamW reference(tensors(theirs), torch::optim::AdamWOptions(1e-3));
  for (int step = 0; step < 3; ++step) {
    give_gradients(ours, theirs, step);
    adam.step();
    reference.step();
  }
  CHECK(different_from_torch(ours, theirs) == "");
}

TEST_CASE("a graph that still needs a parameter's old value notices the update") {
  const NamedTensors params = parameters(1, at::kFloat, {{4}});
  AdamW adam({0.1});
  adam.attach(params);
  const at::Tensor loss = params[0].second.pow(2).sum();
  loss.backward({}, /*retain_graph=*/true);
  adam.step();
  CHECK_THROWS(loss.backward());
}

TEST_CASE("options out of range are refused") {
  CHECK_THROWS_AS(Adam({-1.0}), UsageError);
  CHECK_THROWS_AS(Adam({0.1, {1.0, 0.9}}), UsageError);
  CHECK_THROWS_AS(AdamW({0.1, {0.9, -0.1}}), UsageError);
  CHECK_THROWS_AS(AdamW({0.1, {0.9, 0.99}, -1.0}), UsageError);
  CHECK_THROWS_AS(AdamW({0.1, {0.9, 0.99}, 1e-8, std::nan("")}), UsageError);
}

TEST_SUITE_END();
