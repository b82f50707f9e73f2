#include "callbacks/algorithms/gyro_dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <vector>

#include "callbacks/algorithms/register.h"
#include "callbacks/core/run_plan.h"
#include "core/random.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

constexpr int64_t kLow32 = 0xffffffff;

// In 32 bits, so that no product leaves int64. Source: the finaliser of "prospector", C. Wellons
// 2018, with its first constant twice.
at::Tensor mixed(const at::Tensor& numbers) {
  constexpr int64_t kFactor = 0x45d9f3b;
  at::Tensor x = numbers.bitwise_and(kLow32);
  for (int round = 0; round < 2; ++round) {
    x = x.bitwise_xor(x.bitwise_right_shift(16)).mul(kFactor).bitwise_and(kLow32);
  }
  return x.bitwise_xor(x.bitwise_right_shift(16));
}

}  // namespace

GyroDropout::GyroDropout(const Options& options) : options_(options) {
  detail::require(options.p >= 0 && options.p < 1, "GyroDropout: p", "in [0, 1)", options.p);
  detail::require(options.sigma >= 1, "GyroDropout: sigma", ">= 1", options.sigma);
  detail::require(options.tau >= 1 && options.tau <= options.sigma,
                  "GyroDropout: tau",
                  "in [1, sigma]",
                  options.tau);
}

at::Tensor GyroDropout::kept(
    const at::Tensor& numbers, int64_t features, int64_t place, uint64_t seed, double p) {
  const auto salt = static_cast<int64_t>(KeyedRandom(seed, static_cast<uint64_t>(place)).next() >>
                                         32);  // another one for each dropout
  const at::Tensor rows = mixed(numbers + salt).unsqueeze(1);
  const at::Tensor bits = mixed(mixed(at::arange(features, numbers.options())) + rows);
  return bits.to(at::kDouble).ge(p * static_cast<double>(kLow32 + 1));
}

void GyroDropout::change(torch::nn::Module&) {
  replace("dropout", [this](const LayerCall& layer) {
    constexpr size_t kIsTraining = 2;
    const at::Tensor& input = layer.input();
    if (input.dim() != 2 || !layer.argument(kIsTraining).toBool()) {
      return layer(input);
    }
    const int64_t samples = input.size(0);
    const at::Tensor turns = at::arange(samples, masks_.options()).mul(options_.tau);
    const at::Tensor mine = masks_.index_select(0, turns.div(samples, "floor"));
    const at::Tensor stays = kept(mine, input.size(1), place_++, seed_, options_.p);
    return input * stays.to(input.scalar_type()) * (1.0 / (1.0 - options_.p));
  });
}

void GyroDropout::post_setup(Trainer& trainer) {
  seed_ = trainer.state().seed;
  masks_ =
      at::zeros({options_.tau},
                at::TensorOptions().dtype(at::kLong).device(trainer.state().backend->device()));
}

void GyroDropout::on_train_batch_start(Trainer& trainer, Model&, const Batch&, int64_t) {
  const State& state = trainer.state();
  const double done = state.plan->elapsed_share(state.timestamp);
  const auto selections = static_cast<double>(options_.sigma) / static_cast<double>(options_.tau);
  const auto first = static_cast<int64_t>(done * selections) * options_.tau;
  const std::vector<int64_t> order = permutation(options_.sigma, seed_, /*epoch=*/0);
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < options_.tau; ++i) {
    chosen.push_back(order[static_cast<size_t>((first + i) % options_.sigma)]);
  }
  masks_.copy_(at::tensor(chosen, at::kLong));
}

void GyroDropout::begin_forward() {
  place_ = 0;
  LayerSurgery::begin_forward();
}

void register_gyro_dropout(Registry<Algorithm>& registry) {
  using Options = GyroDropout::Options;
  registry.add<GyroDropout>("GyroDropout", "Trains few masks of dropout, each for a while.")
      .key("p", &Options::p, below_one(), "share of features that a mask sets to zero")
      .key("sigma", &Options::sigma, at_least(1), "masks of the run")
      .key("tau", &Options::tau, at_least(1), "masks that are used at a time");
}

}  // namespace rondo
