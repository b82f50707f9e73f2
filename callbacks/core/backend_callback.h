#pragma once

#include <map>
#include <optional>
#include <string>

#include "backends/numeric_environment.h"
#include "backends/step.h"
#include "callbacks/callback.h"

namespace rondo {

/// Everything that a step of this Trainer may read or write besides its batch, by name: "model.…",
/// "optimizer.…" and, for callbacks, "callbacks/<name>/…".
CapturedState captured_state(Trainer& trainer);

/// Builds the backend, declares to it what steps may touch and depend on, and keeps the numeric
/// environment of the checkpoint; fills slot `backend`.
class BackendCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "backend";

  void pre_setup(Trainer& trainer) override;
  void post_setup(Trainer& trainer) override;

  /// Writes the recorded steps to `<artifact_dir>/steps/`.
  void on_enter_fit(Trainer& trainer, Cleanup&, const DataLoader&, const Loaders&, Loop&) override;

  /// Finds the fastest number of threads, unless the config, a checkpoint or an earlier fit has
  /// fixed it or a stop is requested.
  void on_fit_start(Trainer& trainer, const DataLoader& train, const Loaders&, Loop&) override;
  void on_enter_validate_all(
      Trainer& trainer, Cleanup&, const Loaders&, Loop&, const Paths&) override;

  /// \throws NonFiniteLossError  as `Backend::check_state`
  void on_train_end(Trainer& trainer, Model&, Loop&, int64_t) override;

  /// Likewise.
  /// \throws RankMismatchError  as `require_same_state`
  void on_save_checkpoint(Trainer& trainer, StateDict&) override;

  /// \throws CheckpointError  when a fit would continue in another numeric environment
  void check_checkpoint(Trainer& trainer, const StateDict& state) override;

  /// Takes the checkpoint's number of threads if the config leaves it open.
  void on_load_checkpoint(Trainer& trainer, const StateDict& state) override;

 private:
  /// The environment that a resumed fit must keep; nothing when it may change.
  std::optional<NumericEnvironment> environment_to_keep(const Trainer& trainer,
                                                        const StateDict& state) const;

  CapturedState state_of_step(Trainer& trainer);

  std::map<std::string, at::Tensor> of_callbacks_;  // as the first recording found them
  bool is_open_ = false;        // whether the first fit still has to fix the threads
  std::optional<int> threads_;  // the number that it will fix, if known
  bool is_fitting_ = false;     // a validation may run anywhere
};

}  // namespace rondo
