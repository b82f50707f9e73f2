#pragma once

#include <filesystem>

#include "callbacks/callback.h"

namespace rondo {

/// Writes a trained ScriptModel back as TorchScript when a fit ends: `torch.jit.load` in Python, or
/// another ScriptModel, has the trained weights.
class SaveScript final : public Callback {
 public:
  struct Options {
    std::filesystem::path file = "trained.ts";  ///< in model_dir, or anywhere
  };

  explicit SaveScript(const Options& options) : options_(options) {}

  /// \throws UsageError  when the model is no ScriptModel
  void setup(Trainer& trainer) override;
  void on_fit_end(Trainer& trainer, Loop&) override;

 private:
  Options options_;
};

}  // namespace rondo
