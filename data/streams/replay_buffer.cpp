#include "data/streams/replay_buffer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/require.h"

namespace rondo {

namespace {

SampleRing::Options ring_options(const ReplayBuffer::Options& options) {
  SampleRing::Options ring;
  ring.capacity = options.capacity;
  ring.min_samples = options.min_samples;
  ring.draw = options.has_priorities ? "priority" : "uniform";
  ring.priority_power = options.priority_power;
  ring.seed = options.seed;
  return ring;
}

void check(const ReplayBuffer::Options& options) {
  const auto in_unit = [](double value) { return value >= 0 && value <= 1; };
  detail::require(options.steps >= 1, "ReplayBuffer: steps", ">= 1", options.steps);
  detail::require(
      in_unit(options.discount), "ReplayBuffer: discount", "in [0, 1]", options.discount);
  detail::require(in_unit(options.weight_power),
                  "ReplayBuffer: weight_power",
                  "in [0, 1]",
                  options.weight_power);
  detail::require(
      options.least_priority > 0, "ReplayBuffer: least_priority", "> 0", options.least_priority);
}

}  // namespace

ReplayBuffer::ReplayBuffer(const Options& options)
    : options_((check(options), options)),
      ring_(std::make_shared<SampleRing>(ring_options(options))) {}

void ReplayBuffer::add(const at::Tensor& observations,
                       const at::Tensor& actions,
                       const EnvironmentBatch::Steps& steps) {
  const int64_t count = steps.reward.size(0);
  waiting_.resize(std::max(waiting_.size(), static_cast<size_t>(count)));
  for (int64_t i = 0; i < count; ++i) {
    std::deque<Waiting>& waiting = waiting_[static_cast<size_t>(i)];
    waiting.push_back({observations.select(0, i).clone(), actions.select(0, i).clone()});
    for (Waiting& one : waiting) {
      one.reward += one.discount * static_cast<double>(steps.reward.data_ptr<float>()[i]);
      one.discount *= options_.discount;
      ++one.steps;
    }
    const bool is_terminal = steps.is_terminal.data_ptr<bool>()[i];
    const bool is_over = is_terminal || steps.is_cut.data_ptr<bool>()[i];
    while (!waiting.empty() && (is_over || waiting.front().steps == options_.steps)) {
      push(waiting.front(), steps.next_observation.select(0, i), is_terminal);
      waiting.pop_front();
    }
  }
}

void ReplayBuffer::push(const Waiting& waiting, const at::Tensor& next, bool is_terminal) {
  const double discount = is_terminal ? 0.0 : waiting.discount;
  std::string why;
  const auto result = ring_->push({{"observation", waiting.observation},
                                   {"action", waiting.action},
                                   {"next_observation", next},
                                   {"reward", at::full({}, waiting.reward, at::kFloat)},
                                   {"discount", at::full({}, discount, at::kFloat)}},
                                  {},
                                  &why);
  if (result == SampleRing::Push::Mismatch) {
    throw ShapeError("ReplayBuffer: a transition differs from earlier ones: " + why);
  }
}

ReplayBuffer::Drawn ReplayBuffer::draw(int64_t count) {
  detail::require(count >= 1, "ReplayBuffer: count", ">= 1", count);
  const std::vector<SampleRing::Drawn> drawn = ring_->draw_now(count);
  std::vector<Sample> samples;
  at::Tensor numbers = at::empty({count}, at::kLong);
  at::Tensor weights = at::empty({count}, at::kFloat);
  double least = 1.0;
  for (const SampleRing::Drawn& one : drawn) {
    least = std::min(least, one.chance);
  }
  for (size_t i = 0; i < drawn.size(); ++i) {
    samples.push_back(drawn[i].sample);
    numbers.data_ptr<int64_t>()[i] = drawn[i].number;
    weights.data_ptr<float>()[i] =
        static_cast<float>(std::pow(least / drawn[i].chance, options_.weight_power));
  }
  Batch batch = stack(samples);
  batch.set("weight", weights);
  batch.set("number", numbers);
  return batch;
}

void ReplayBuffer::set_errors(const at::Tensor& numbers, const at::Tensor& errors) {
  const at::Tensor which = numbers.to(at::kCPU, at::kLong).contiguous();
  const at::Tensor size = errors.detach().to(at::kCPU, at::kDouble).abs().contiguous();
  if (which.dim() != 1 || size.sizes() != which.sizes()) {
    throw ShapeError(
        fmt::format("ReplayBuffer: {} errors for {} transitions", size.numel(), which.numel()));
  }
  for (int64_t i = 0; i < which.numel(); ++i) {
    ring_->set_priority(which.data_ptr<int64_t>()[i],
                        size.data_ptr<double>()[i] + options_.least_priority);
  }
}

}  // namespace rondo
