#pragma once

// Proximal policy optimization: an agent that plays in environments, the data that it makes there,
// and the training step that learns from it.

#include <ATen/ATen.h>
#include <rondo/module.h>
#include <rondo/rondo.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

constexpr double kLogTwoPi = 1.8378770664093453;

/// A policy that draws actions from normal distributions, and an estimate of what is to come.
struct ActorCritic final : rondo::ModuleModel {
  struct Options {
    int64_t observations = 3;
    int64_t actions = 1;
    int64_t width = 64;
  };

  explicit ActorCritic(const Options& options) {
    actor = register_module("actor", layers(options.observations, options.width, options.actions));
    critic = register_module("critic", layers(options.observations, options.width, 1));
    log_deviation = register_parameter("log_deviation", at::zeros({options.actions}));
  }

  /// \return what is most likely done: [count, actions]
  at::Tensor mean(const at::Tensor& observation) { return actor->forward(observation); }

  /// \return [count]
  at::Tensor value(const at::Tensor& observation) {
    return critic->forward(observation).squeeze(-1);
  }

  /// The logarithm of the density at actions: [count].
  at::Tensor log_density(const at::Tensor& mean, const at::Tensor& action) const {
    const at::Tensor away = (action - mean) / log_deviation.exp();
    return (away * away * -0.5 - log_deviation - 0.5 * kLogTwoPi).sum(-1);
  }

  /// In a prediction: what to do.
  rondo::Outputs forward(const rondo::Batch& batch) override {
    return {{"action", mean(batch["observation"])}};
  }

  torch::nn::Sequential actor{nullptr};
  torch::nn::Sequential critic{nullptr};
  at::Tensor log_deviation;

 private:
  static torch::nn::Sequential layers(int64_t inputs, int64_t width, int64_t outputs) {
    using torch::nn::Linear;
    using torch::nn::Tanh;
    return torch::nn::Sequential(
        Linear(inputs, width), Tanh(), Linear(width, width), Tanh(), Linear(width, outputs));
  }
};

/// Episodes that the agent has played in pendulums, as samples that it learns from. A pass over the
/// data plays anew in each of them, and gives all steps several times, in another order each time.
/// What is played follows from the seed, the pass and the agent's weights. It is a part of the data
/// set's state: a run that resumes in the middle of a pass learns from the same episodes. Source:
/// Schulman et al. 2016, arXiv:1506.02438, for the advantages
class Episodes final : public rondo::IterableDataset {
 public:
  struct Options {
    int64_t environments = 16;
    int64_t steps = 200;   ///< that are played in each of them; an episode of a pendulum has 200
    int64_t repeats = 10;  ///< how often a step is given in a pass
    double discount = 0.9;
    double smoothing = 0.95;    ///< "lambda" of the source
    double reward_scale = 0.1;  ///< of rewards, so that values are of the size of one
    uint64_t seed = 0;
  };

  explicit Episodes(const Options& options) : options_(options) {}

  /// The agent that plays; null: none. It must outlive the passes. Samples are not read meanwhile.
  void use(ActorCritic* agent) const { agent_ = agent; }

  void start(int64_t epoch) override {
    epoch_ = epoch;
    given_ = 0;
    samples_ = {};
  }

  std::optional<rondo::Sample> next() override {
    if (samples_.items().empty()) {
      play();
    }
    if (given_ == *size()) {
      return std::nullopt;
    }
    const int64_t count = options_.environments * options_.steps;
    if (order_.empty() || given_ % count == 0) {
      order_ = rondo::permutation(count, options_.seed, epoch_ * options_.repeats + given_ / count);
    }
    const int64_t number = order_[static_cast<size_t>(given_++ % count)];
    rondo::Sample sample;
    for (const auto& [name, tensor] : samples_.items()) {
      sample.set(name, tensor.select(0, number));
    }
    return sample;
  }

  std::optional<int64_t> size() const override {
    return options_.environments * options_.steps * options_.repeats;
  }

  /// The sum of the rewards in an environment, on average.
  std::vector<std::pair<std::string, double>> counts() const override {
    return {{"return", mean_return_}};
  }

  bool has_state() const override { return true; }

  rondo::StateDict save_state() const override {
    rondo::StateDict samples;
    for (const auto& [name, tensor] : samples_.items()) {
      samples.set(name, tensor);
    }
    return {{"epoch", epoch_}, {"given", given_}, {"return", mean_return_}, {"samples", samples}};
  }

  void load_state(const rondo::StateDict& state) override {
    epoch_ = state.at("epoch").as_int();
    given_ = state.at("given").as_int();
    mean_return_ = state.at("return").as_double();
    samples_ = {};
    for (const rondo::StateDict::Item& item : state.at("samples").as_dict().items()) {
      samples_.set(item.first, item.second.as_tensor());
    }
    order_.clear();
  }

 private:
  /// What happened in one step of all environments, each [environments, ...].
  struct Moment {
    at::Tensor observation;
    at::Tensor action;
    at::Tensor log_density;
    at::Tensor value;
    at::Tensor next_value;  ///< zero where the world ended
    at::Tensor reward;
    at::Tensor is_inside;  ///< of an episode: one where it goes on
  };

  void play() {
    if (agent_ == nullptr) {
      throw rondo::UsageError("Episodes: nobody plays; add the callback \"Player\" to the run");
    }
    const at::NoGradGuard no_grad;
    rondo::KeyedRandom random(options_.seed, static_cast<uint64_t>(epoch_));
    rondo::EnvironmentBatch worlds(
        {[] { return std::make_unique<rondo::Pendulum>(); }, options_.environments, random.next()});
    std::vector<Moment> moments;
    at::Tensor seen = worlds.reset();
    for (int64_t i = 0; i < options_.steps; ++i) {
      moments.push_back(act(worlds, seen, random));
    }
    learn_from(moments);
  }

  Moment act(rondo::EnvironmentBatch& worlds, at::Tensor& seen, rondo::KeyedRandom& random) const {
    const at::Tensor mean = agent_->mean(seen);
    at::Tensor noise = at::empty(mean.sizes());
    for (int64_t i = 0; i < noise.numel(); ++i) {
      noise.data_ptr<float>()[i] = static_cast<float>(random.normal());
    }
    Moment moment;
    moment.observation = seen;
    moment.action = mean + noise * agent_->log_deviation.exp();
    moment.log_density = agent_->log_density(mean, moment.action);
    moment.value = agent_->value(seen);
    const auto steps = worlds.step(moment.action * worlds.description().most);
    const at::Tensor goes_on = steps.is_terminal.logical_not().to(at::kFloat);
    moment.next_value = agent_->value(steps.next_observation) * goes_on;
    moment.reward = steps.reward;
    moment.is_inside = steps.is_cut.logical_not().to(at::kFloat) * goes_on;
    seen = steps.observation;
    return moment;
  }

  void learn_from(const std::vector<Moment>& moments) {
    std::vector<at::Tensor> observation, action, log_density, advantage, gain;
    at::Tensor later = at::zeros({options_.environments});
    at::Tensor sum = at::zeros({options_.environments});
    for (auto moment = moments.rbegin(); moment != moments.rend(); ++moment) {
      const at::Tensor scaled = moment->reward * options_.reward_scale;
      const at::Tensor surprise = scaled + moment->next_value * options_.discount - moment->value;
      later = surprise + later * moment->is_inside * (options_.discount * options_.smoothing);
      sum = sum + moment->reward;
      observation.push_back(moment->observation);
      action.push_back(moment->action);
      log_density.push_back(moment->log_density);
      advantage.push_back(later);
      gain.push_back(later + moment->value);
    }
    const at::Tensor advantages = at::cat(advantage);
    samples_ = {{"observation", at::cat(observation)},
                {"action", at::cat(action)},
                {"log_density", at::cat(log_density)},
                {"advantage", (advantages - advantages.mean()) / (advantages.std() + 1e-8)},
                {"gain", at::cat(gain)}};
    mean_return_ = sum.mean().item<double>();
  }

  Options options_;
  mutable ActorCritic* agent_ = nullptr;
  int64_t epoch_ = 0;
  int64_t given_ = 0;  // samples of the pass
  double mean_return_ = 0.0;
  rondo::TensorMap samples_;  // each [steps, ...]; none before the pass has begun
  std::vector<int64_t> order_;
};

/// Has the model of the run play the episodes that it is trained on.
struct Player final : rondo::Callback {
  void on_enter_fit(rondo::Trainer& trainer,
                    rondo::Cleanup& cleanup,
                    const rondo::DataLoader& train,
                    const rondo::Loaders&,
                    rondo::Loop&) override {
    const auto* const episodes = dynamic_cast<const Episodes*>(&train.source());
    auto* const agent = dynamic_cast<ActorCritic*>(trainer.state().model.get());
    if (episodes == nullptr || agent == nullptr) {
      throw rondo::UsageError("Player: needs the data set Episodes and the model ActorCritic");
    }
    episodes->use(agent);
    cleanup.push([episodes](const std::exception_ptr&) { episodes->use(nullptr); });
  }
};

/// Makes actions likelier that were better than expected, and not by more than a share at a time.
/// Source: Schulman et al. 2017, arXiv:1707.06347, equations 7 and 9
struct PpoStep final : rondo::TrainStep {
  struct Options {
    double clip = 0.2;
    double value_weight = 0.5;
    double entropy_weight = 0.0;
  };

  explicit PpoStep(const Options& options) : options_(options) {}

  rondo::Outputs run(rondo::StepContext& step, const rondo::Batch& batch) override {
    auto& agent = step.model_as<ActorCritic>();
    rondo::Outputs outputs = step.forward(batch, [&](const rondo::Batch& input) {
      const at::Tensor mean = agent.mean(input["observation"]);
      const at::Tensor ratio =
          (agent.log_density(mean, input["action"]) - input["log_density"]).exp();
      const at::Tensor clipped = ratio.clamp(1.0 - options_.clip, 1.0 + options_.clip);
      const at::Tensor& advantage = input["advantage"];
      const at::Tensor better = at::minimum(ratio * advantage, clipped * advantage);
      const at::Tensor missed = agent.value(input["observation"]) - input["gain"];
      const at::Tensor entropy = (agent.log_deviation + 0.5 * (1.0 + kLogTwoPi)).sum();
      return rondo::Outputs{{"loss/policy", better.mean().neg()},
                            {"loss/value", (missed * missed).mean() * options_.value_weight},
                            {"loss/entropy", entropy * -options_.entropy_weight}};
    });
    step.backward(outputs);
    step.update_all();
    return outputs;
  }

 private:
  Options options_;
};
