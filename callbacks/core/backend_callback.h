#pragma once

#include <map>
#include <optional>
#include <string>

#include "backends/numeric_environment.h"
#include "backends/step.h"
#include "callbacks/callback.h"

namespace rondo {

/// Everything that a step of this Trainer may read or write besides its batch, by name: "model.…",
/// "optimizer.…" and, of callbacks, "callbacks/<name>/…".
CapturedState captured_state(Trainer& trainer);

/// Builds the backend, tells it what steps may touch and depend on, and holds the numeric
/// environment to what a checkpoint was trained in; fills slot `backend`.
class BackendCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "backend";

  void pre_setup(Trainer& trainer) override;
  void post_setup(Trainer& trainer) override;

  /// Writes what was recorded to `<artifact_dir>/steps/`.
  void on_enter_fit(Trainer& trainer, Cleanup&, const DataLoader&, const Loaders&, Loop&) override;

  /// Finds the fastest number of threads where neither the config nor a checkpoint has fixed it,
  /// and no fit has found it before, unless the run is asked to stop.
  void on_fit_start(Trainer& trainer, const DataLoader& train, const Loaders&, Loop&) override;
  void on_enter_validate_all(
      Trainer& trainer, Cleanup&, const Loaders&, Loop&, const Paths&) override;

  /// \throws NonFiniteLossError  as `Backend::check_state`
  void on_train_end(Trainer& trainer, Model&, Loop&, int64_t) override;
  void on_save_checkpoint(Trainer& trainer, StateDict&) override;

  /// \throws CheckpointError  when a fit would go on in another numeric environment
  void check_checkpoint(Trainer& trainer, const StateDict& state) override;

  /// Takes the checkpoint's number of threads where it is left open.
  void on_load_checkpoint(Trainer& trainer, const StateDict& state) override;

 private:
  /// What a fit that goes on from a checkpoint has to keep; nothing when it may be another.
  std::optional<NumericEnvironment> environment_to_keep(const Trainer& trainer,
                                                        const StateDict& state) const;

  CapturedState state_of_step(Trainer& trainer);

  std::map<std::string, at::Tensor> of_callbacks_;  // as the first recording found them
  bool is_open_ = false;        // the number of threads, until the first fit fixes it
  std::optional<int> threads_;  // what it will fix it to, as far as that is known
  bool is_fitting_ = false;     // a validation may run anywhere
};

}  // namespace rondo
