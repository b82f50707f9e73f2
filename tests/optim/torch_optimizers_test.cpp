// Adagrad and RMSprop against those of C++'s torch::optim.

#include <doctest/doctest.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/rmsprop.h>
#include <torch/types.h>

#include "core/error.h"
#include "optim/adagrad.h"
#include "optim/different_from_torch.h"
#include "optim/rmsprop.h"
#include "parameters.h"

using namespace rondo;
using namespace rondo::test;

namespace {

torch::optim::AdagradOptions torch_options(const Adagrad::Options& o) {
  return torch::optim::AdagradOptions(o.lr)
      .lr_decay(o.lr_decay)
      .eps(o.eps)
      .weight_decay(o.weight_decay)
      .initial_accumulator_value(o.initial_accumulator_value);
}

torch::optim::RMSpropOptions torch_options(const RMSprop::Options& o) {
  return torch::optim::RMSpropOptions(o.lr)
      .alpha(o.alpha)
      .eps(o.eps)
      .weight_decay(o.weight_decay)
      .momentum(o.momentum)
      .centered(o.centered);
}

/// Both optimizers over 50 updates, each parameter at times without a gradient; the name of what
/// first differed.
template <class T, class Reference>
std::string run_both(const typename T::Options& options, NamedTensors ours, NamedTensors theirs) {
  T optimizer(options);
  optimizer.attach(ours);
  Reference reference(tensors(theirs), torch_options(options));
  for (int step = 0; step < 50; ++step) {
    give_gradients(ours, theirs, step);
    const size_t skipped = step % 20;
    if (skipped < ours.size()) {
      ours[skipped].second.mutable_grad().reset();
      theirs[skipped].second.mutable_grad().reset();
    }
    optimizer.step();
    reference.step();
    const std::string different = different_from_torch(ours, theirs);
    if (!different.empty()) {
      return different + " at step " + std::to_string(step);
    }
  }
  return "";
}

NamedTensors strided() {
  NamedTensors made = parameters(5, at::kFloat, {{6, 4, 3, 3}, {10, 14}});
  made[0].second = made[0].second.detach().contiguous(at::MemoryFormat::ChannelsLast);
  made[1].second = made[1].second.detach().t().slice(0, 0, 14, 2);
  for (NamedTensor& parameter : made) {
    parameter.second.requires_grad_();
  }
  return made;
}

}  // namespace

TEST_SUITE_BEGIN("optim/torch_optimizers");

TEST_CASE("Adagrad equals torch::optim::Adagrad bit for bit, in each variant and dtype") {
  const auto check = [](const Adagrad::Options& options) {
    for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
      CAPTURE(dtype);
      CHECK(run_both<Adagrad, torch::optim::Adagrad>(
                options, parameters(3, dtype), parameters(3, dtype)) == "");
    }
    CHECK(run_both<Adagrad, torch::optim::Adagrad>(options, strided(), strided()) == "");
  };
  check({});
  check({0.1, 0.05, 1e-8, 0.01, 0.3});
}

TEST_CASE("RMSprop equals torch::optim::RMSprop bit for bit, in each variant and dtype") {
  for (const double momentum : {0.0, 0.9}) {
    for (const double decay : {0.0, 0.01}) {
      for (const bool centered : {false, true}) {
        CAPTURE(momentum);
        CAPTURE(decay);
        CAPTURE(centered);
        const RMSprop::Options options = {2e-3, 0.95, 1e-8, decay, momentum, centered};
        for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
          CAPTURE(dtype);
          CHECK(run_both<RMSprop, torch::optim::RMSprop>(
                    options, parameters(3, dtype), parameters(3, dtype)) == "");
        }
        CHECK(run_both<RMSprop, torch::optim::RMSprop>(options, strided(), strided()) == "");
      }
    }
  }
}

TEST_CASE("a group of RMSprop without momentum leaves its buffers as they are") {
  RMSprop::Options options = {0.01};
  options.momentum = 0.9;
  options.params = {{{"p1"}, "", {{"momentum", 0.0}}}};
  const NamedTensors params = parameters(1);
  RMSprop optimizer(options);
  optimizer.attach(params);
  give_gradients(params, params, 1);
  optimizer.step();
  CHECK(optimizer.groups()[0].params[2].state("momentum_buffer").abs().sum().item<double>() > 0);
  CHECK(optimizer.groups()[1].params[0].state("momentum_buffer").abs().sum().item<double>() == 0);
  RMSprop plain({0.01});
  plain.attach(parameters(1));
  CHECK(plain.groups()[0].params[0].states().size() == 2);  // square_avg and step
}

TEST_SUITE_END();
