#pragma once

#include <filesystem>

#include "callbacks/callback.h"

namespace rondo {

/// Creates `<model_dir>/logs/<YYYYmmdd_HHMMSS>/`, the directory for everything that one Trainer
/// writes besides checkpoints, and points `logs/latest` at it; fills slot `artifact_dir`. Writes
/// the resolved config there as `trainer_params.toml`. For a fit the file includes the run's seed
/// even if the config sets none, so that it reproduces the run. With several ranks, all but rank 0
/// use a temporary directory, which is deleted with the Trainer.
class ArtifactDirCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "artifact_dir";

  ArtifactDirCallback() = default;
  ArtifactDirCallback(const ArtifactDirCallback&) = delete;
  ArtifactDirCallback& operator=(const ArtifactDirCallback&) = delete;
  ~ArtifactDirCallback() override;

  void pre_setup(Trainer& trainer) override;
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;
  void on_train_start(Trainer& trainer, Model&, const DataLoader&, Loop&, int64_t) override;
  void on_validate_start(Trainer& trainer, Model&, const DataLoader&, Loop&) override;
  void on_train_batch_start(Trainer& trainer, Model&, const Batch&, int64_t batch_idx) override;
  void on_validate_batch_start(Trainer& trainer, Model&, const Batch&, int64_t batch_idx) override;

 private:
  /// Writes metadata.json of the starting loop into its own numbered directory. It includes the
  /// threads of tensor operators, which a fit may have chosen.
  void write_metadata(Trainer& trainer, const char* stage);

  int executors_ = 0;                // loops started so far
  std::filesystem::path temporary_;  // of a rank that does not write; empty: none
};

/// Makes `link` a relative symbolic link to `target`, replacing an existing entry in one step.
/// \throws IoError
void link_relative(const std::filesystem::path& link, const std::filesystem::path& target);

}  // namespace rondo
