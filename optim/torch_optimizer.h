#pragma once

#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "optim/optimizer.h"

namespace torch::optim {
class LBFGS;
}

namespace rondo {

/// An optimizer of LibTorch, or one derived from its base class, with optional LibTorch schedulers;
/// for eager steps only. It has one group, whose number "lr" rondo's schedulers can drive too.
/// LibTorch's schedulers advance after each update. Made by `from_torch`.
class TorchOptimizer final : public Optimizer {
 public:
  using Make =
      std::function<std::unique_ptr<torch::optim::Optimizer>(const std::vector<at::Tensor>&)>;
  using MakeScheduler =
      std::function<std::unique_ptr<torch::optim::LRScheduler>(torch::optim::Optimizer&)>;

  struct Options {
    Make make = {};
    std::vector<MakeScheduler> schedulers = {};
    bool needs_closure = false;  ///< whether its `step` recomputes the loss, as LBFGS does
  };

  explicit TorchOptimizer(const Options& options);

  torch::optim::Optimizer& inner() { return *inner_; }

  StateDict state_dict() const override;

  /// \throws CheckpointError  for the state of another optimizer
  void load(const StateDict& state) override;

  bool has_fixed_layout() const override { return false; }

  bool needs_evaluate() const override { return options_.needs_closure; }

  std::string eager_only() const override;

 protected:
  void on_attached() override;

  /// \throws UsageError  when it needs a closure at the end of a group of batches
  void update(ParamGroup& group) override;

 private:
  void make_inner();
  double inner_lr() const;

  Options options_;
  std::unique_ptr<torch::optim::Optimizer> inner_;
  std::vector<std::unique_ptr<torch::optim::LRScheduler>> schedulers_;
  double written_lr_ = 0.0;  // what `inner_` has
  int64_t updates_ = 0;
};

/// Describes LibTorch's optimizer `T` for a Trainer, such as
/// `from_torch<torch::optim::LBFGS>(torch::optim::LBFGSOptions(0.5))`.
/// \param schedulers  each makes one, such as
///     `[](auto& o) { return std::make_unique<torch::optim::StepLR>(o, 10); }`
template <class T, class TorchOptions>
Factory<Optimizer> from_torch(TorchOptions torch_options,
                              std::vector<TorchOptimizer::MakeScheduler> schedulers = {}) {
  TorchOptimizer::Options options;
  options.make = [torch_options](const std::vector<at::Tensor>& params) {
    return std::make_unique<T>(params, torch_options);
  };
  options.schedulers = std::move(schedulers);
  options.needs_closure = std::is_same_v<T, torch::optim::LBFGS>;
  return use<TorchOptimizer>(std::move(options));
}

}  // namespace rondo
