#include <torch/torch.h>

#include "zoo.h"

namespace bench {

namespace {

namespace nn = torch::nn;
using rondo::Batch;

/// Actor and critic under PPO's clipped objective: Schulman et al. 2017.
class Ppo final : public Network {
 public:
  Ppo() {
    actor_ = register_module("actor", body(kActions));
    critic_ = register_module("critic", body(1));
  }

  at::Tensor loss(const Batch& batch) override {
    const at::Tensor log_probs = torch::log_softmax(actor_->forward(batch["x"]), 1);
    const at::Tensor chosen = log_probs.gather(1, batch["action"].unsqueeze(1)).squeeze(1);
    const at::Tensor ratio = torch::exp(chosen - batch["log_prob"]);
    const at::Tensor& advantage = batch["advantage"];
    const at::Tensor gain =
        torch::min(ratio * advantage, torch::clamp(ratio, 0.8, 1.2) * advantage).mean();
    const at::Tensor value = critic_->forward(batch["x"]).squeeze(1);
    const at::Tensor entropy = -(log_probs.exp() * log_probs).sum(1).mean();
    return -gain + 0.5 * torch::mse_loss(value, batch["return"]) - 0.01 * entropy;
  }

  static Batch make_batch() {
    return {{"x", torch::randn({64, 8})},
            {"action", torch::randint(kActions, {64})},
            {"log_prob", -torch::rand({64})},
            {"advantage", torch::randn({64})},
            {"return", torch::randn({64})}};
  }

 private:
  static constexpr int64_t kActions = 4;

  static nn::Sequential body(int64_t out) {
    return nn::Sequential(
        nn::Linear(8, 64), nn::Tanh(), nn::Linear(64, 64), nn::Tanh(), nn::Linear(64, out));
  }

  nn::Sequential actor_ = nullptr;
  nn::Sequential critic_ = nullptr;
};

/// A network of values and an older copy of it that says what comes after: Mnih et al. 2015.
class Dqn final : public Network {
 public:
  Dqn() {
    values_ = register_module("values", body());
    const nn::Sequential older = body();
    for (const auto& parameter : older->named_parameters()) {
      std::string name = "older_" + parameter.key();
      std::replace(name.begin(), name.end(), '.', '_');
      older_.push_back(register_buffer(name, parameter.value().detach().clone()));
    }
  }

  at::Tensor loss(const Batch& batch) override {
    const at::Tensor value =
        values_->forward(batch["x"]).gather(1, batch["action"].unsqueeze(1)).squeeze(1);
    at::Tensor target;
    {
      const torch::NoGradGuard no_grad;
      const at::Tensor best = std::get<0>(older_values(batch["next"]).max(1));
      target = batch["reward"] + 0.99 * best * (1 - batch["done"]);
    }
    return torch::smooth_l1_loss(value, target);
  }

  static Batch make_batch() {
    return {{"x", torch::randn({64, 8})},
            {"next", torch::randn({64, 8})},
            {"action", torch::randint(4, {64})},
            {"reward", torch::randn({64})},
            {"done", torch::rand({64}).round()}};
  }

 private:
  static nn::Sequential body() {
    return nn::Sequential(
        nn::Linear(8, 128), nn::ReLU(), nn::Linear(128, 128), nn::ReLU(), nn::Linear(128, 4));
  }

  at::Tensor older_values(at::Tensor x) const {
    for (size_t i = 0; i < older_.size(); i += 2) {
      x = torch::linear(x, older_[i], older_[i + 1]);
      if (i + 2 < older_.size()) {
        x = torch::relu(x);
      }
    }
    return x;
  }

  nn::Sequential values_ = nullptr;
  std::vector<at::Tensor> older_;  // weight and bias of each layer
};

Workload ppo() {
  Workload w = in_zoo<Ppo>("ppo", Ppo::make_batch);
  w.rule = Rule::Adam;
  w.clip_norm = 0.5;
  return w;
}

}  // namespace

std::vector<Workload> zoo_of_agents() {
  return {ppo(), in_zoo<Dqn>("dqn", Dqn::make_batch)};
}

}  // namespace bench
