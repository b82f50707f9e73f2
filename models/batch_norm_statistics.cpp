#include "models/batch_norm_statistics.h"

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace rondo {

namespace nn = torch::nn;

namespace {

/// The modes of a module and its parts, given back at the end.
class KeptModes {
 public:
  explicit KeptModes(nn::Module& module) : module_(module), was_training_(module.is_training()) {
    for (const auto& part : module.modules(/*include_self=*/false)) {
      parts_.emplace_back(part, part->is_training());
    }
  }

  KeptModes(const KeptModes&) = delete;
  KeptModes& operator=(const KeptModes&) = delete;

  ~KeptModes() {
    module_.train(was_training_);
    for (const auto& [part, was_training] : parts_) {
      part->train(was_training);  // those in it come later
    }
  }

  const std::vector<std::pair<std::shared_ptr<nn::Module>, bool>>& parts() const { return parts_; }

 private:
  nn::Module& module_;
  bool was_training_;
  std::vector<std::pair<std::shared_ptr<nn::Module>, bool>> parts_;
};

/// A batch norm that takes the mean of all batches, and its own momentum again at the end.
class Averaging {
 public:
  template <class Norm>
  explicit Averaging(Norm& norm) {
    const auto momentum = norm.options.momentum();
    norm.reset_running_stats();
    norm.options.momentum(std::decay_t<decltype(norm.options.momentum())>());
    norm.train();
    give_back_ = [&norm, momentum] { norm.options.momentum(momentum); };
  }

  Averaging(Averaging&& other) noexcept : give_back_(std::exchange(other.give_back_, nullptr)) {}

  Averaging(const Averaging&) = delete;
  Averaging& operator=(const Averaging&) = delete;

  ~Averaging() {
    if (give_back_) {
      give_back_();
    }
  }

 private:
  std::function<void()> give_back_;
};

}  // namespace

bool recompute_batch_norms(nn::Module& module, const std::function<bool()>& forward) {
  const at::NoGradGuard no_grad;
  const KeptModes modes(module);
  module.eval();
  std::vector<Averaging> norms;
  for (const auto& part : modes.parts()) {
    if (auto* norm1d = part.first->as<nn::BatchNorm1dImpl>()) {
      norms.emplace_back(*norm1d);
    } else if (auto* norm2d = part.first->as<nn::BatchNorm2dImpl>()) {
      norms.emplace_back(*norm2d);
    } else if (auto* norm3d = part.first->as<nn::BatchNorm3dImpl>()) {
      norms.emplace_back(*norm3d);
    }
  }
  while (!norms.empty() && forward()) {
  }
  return !norms.empty();
}

}  // namespace rondo
