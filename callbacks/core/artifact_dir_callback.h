#pragma once

#include <filesystem>

#include "callbacks/callback.h"

namespace rondo {

/// Makes `<model_dir>/logs/<YYYYmmdd_HHMMSS>/`, the directory of everything that one Trainer writes
/// besides checkpoints, and points `logs/latest` at it; fills slot `artifact_dir`. The resolved
/// config goes there, as `trainer_params.toml`; of a fit with the seed that the run has, also where
/// the config gives none, so that the file makes the same run again. Of several ranks, all but rank
/// 0 have a temporary directory, which is gone with the Trainer.
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
  /// Writes metadata.json of the loop that begins, into a numbered directory of its own: among
  /// others the threads of tensor operators, which may have been found by a fit.
  void write_metadata(Trainer& trainer, const char* stage);

  int executors_ = 0;                // loops that were begun
  std::filesystem::path temporary_;  // of a rank that does not write; empty: none
};

/// Makes `link` a relative symbolic link to `target`, replacing what was there in one step.
/// \throws IoError
void link_relative(const std::filesystem::path& link, const std::filesystem::path& target);

}  // namespace rondo
