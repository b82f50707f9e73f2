#include "data/streams/environment.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include "core/error.h"
#include "core/random.h"
#include "core/require.h"

namespace rondo {

EnvironmentBatch::EnvironmentBatch(const Options& options) : seed_(options.seed) {
  if (!options.make) {
    throw UsageError("EnvironmentBatch: make must be given");
  }
  detail::require(options.count >= 1, "EnvironmentBatch: count", ">= 1", options.count);
  for (int64_t i = 0; i < options.count; ++i) {
    all_.push_back(options.make());
    if (all_.back() == nullptr) {
      throw UsageError("EnvironmentBatch: make returned no environment");
    }
  }
  episodes_.assign(all_.size(), 0);
}

at::Tensor EnvironmentBatch::begin_episode(size_t environment) {
  KeyedRandom random(seed_, environment, episodes_[environment]++);
  return all_[environment]->reset(random.next());
}

at::Tensor EnvironmentBatch::reset() {
  std::vector<at::Tensor> first;
  for (size_t i = 0; i < all_.size(); ++i) {
    first.push_back(begin_episode(i));
  }
  return at::stack(first);
}

EnvironmentBatch::Steps EnvironmentBatch::step(const at::Tensor& actions) {
  if (actions.dim() < 1 || actions.size(0) != count()) {
    throw ShapeError(
        fmt::format("EnvironmentBatch: one action for each of {} environments is "
                    "needed, got {}",
                    count(),
                    actions.dim() < 1 ? 0 : actions.size(0)));
  }
  Steps steps;
  steps.reward = at::empty({count()}, at::kFloat);
  steps.is_terminal = at::empty({count()}, at::kBool);
  steps.is_cut = at::empty({count()}, at::kBool);
  std::vector<at::Tensor> observations;
  std::vector<at::Tensor> next;
  for (size_t i = 0; i < all_.size(); ++i) {
    const Environment::Step step = all_[i]->step(actions.select(0, static_cast<int64_t>(i)));
    steps.reward.data_ptr<float>()[i] = static_cast<float>(step.reward);
    steps.is_terminal.data_ptr<bool>()[i] = step.is_terminal;
    steps.is_cut.data_ptr<bool>()[i] = step.is_cut;
    next.push_back(step.observation);
    observations.push_back(step.is_terminal || step.is_cut ? begin_episode(i) : step.observation);
  }
  steps.next_observation = at::stack(next);
  steps.observation = at::stack(observations);
  return steps;
}

}  // namespace rondo
