#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "callbacks/callback.h"

namespace rondo {

/// Writes chosen sections of every k-th checkpoint, and of the one at the end of a run, to a file
/// beside it, such as `model_checkpoint_20.pt`: weights to hand on, without what a run needs to go
/// on. These files are in no index: they are neither loaded by themselves nor deleted.
/// Source: SaveCheckpointState of Cerebras' ModelZoo.
class SaveCheckpointState final : public Callback {
 public:
  struct Options {
    int64_t k = 1;                                ///< every k-th save, >= 1
    std::vector<std::string> states = {"model"};  ///< sections; those that begin with "__" always
  };

  explicit SaveCheckpointState(const Options& options);

  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;

  /// \throws CheckpointError  naming a section that the checkpoint does not have, and those it has
  void on_after_save_checkpoint(Trainer& trainer, const std::filesystem::path& path) override;
  StateDict save_state() const override;
  void load_state(const StateDict& state) override;
  void on_load_checkpoint(Trainer& trainer, const StateDict& checkpoint) override;

 private:
  bool is_due(const Trainer& trainer) const;
  std::filesystem::path part_of(const std::filesystem::path& checkpoint) const;
  void write_part(const std::filesystem::path& checkpoint) const;

  Options options_;
  int64_t saves_ = 0;       // of the run
  bool is_loaded_ = false;  // `saves_` is a checkpoint's and not yet checked
};

}  // namespace rondo
