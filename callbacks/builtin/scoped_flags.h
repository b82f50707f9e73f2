#pragma once

#include <optional>

#include "callbacks/callback.h"

namespace rondo {

/// LibTorch's global switches; one that is absent stays as it is.
struct TorchFlags {
  std::optional<bool> deterministic_algorithms = {};  ///< operators without one throw
  std::optional<bool> benchmark_cudnn = {};           ///< cuDNN tries which kernel is fastest
  std::optional<bool> tf32_matmul = {};               ///< TF32 in matrix products on CUDA
  std::optional<bool> tf32_cudnn = {};                ///< TF32 in cuDNN
};

/// Sets flags while a stage of training runs; they are given back when it ends, also by an
/// exception. They hold for the whole process.
class ScopedTrainFlags final : public Callback {
 public:
  using Options = TorchFlags;

  explicit ScopedTrainFlags(const Options& options) : options_(options) {}

  void on_enter_train(Trainer&, Cleanup& cleanup, const DataLoader&, Loop&, int64_t) override;

 private:
  Options options_;
};

/// The same while a loader is validated.
class ScopedValidateFlags final : public Callback {
 public:
  using Options = TorchFlags;

  explicit ScopedValidateFlags(const Options& options) : options_(options) {}

  void on_enter_validate(Trainer&, Cleanup& cleanup, const DataLoader&, Loop&) override;

 private:
  Options options_;
};

/// The same from the construction of the Trainer on, for whatever it does, until it is destroyed.
/// Other Trainers of the process see the flags meanwhile.
/// Source: GlobalFlags of Cerebras' ModelZoo trainer, which never gives them back.
class GlobalFlags final : public Callback {
 public:
  using Options = TorchFlags;

  explicit GlobalFlags(const Options& options) : options_(options) {}

  void pre_setup(Trainer&) override;

 private:
  Options options_;
  Cleanup give_back_;  // its destructor does
};

}  // namespace rondo
