#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "callbacks/callback.h"
#include "callbacks/core/metric_direction.h"

namespace rondo {

/// Keeps copies of the checkpoints with the best values of a validation's metric, in `best/` beside
/// them, such as `best/checkpoint_20.pt`, and deletes the copies that fall behind. They are in no
/// index: a run never resumes from an older checkpoint because that was better, and
/// KeepNCheckpoints leaves them alone. They are known by name, so that a run can be moved, and a
/// copy of a run leaves the files of the other one alone. A copy is a hard link where the file
/// system has them, and costs nothing then. A run may have several, for several metrics: a copy
/// goes when none of them keeps it.
///
/// A checkpoint is judged by the newest validation at its own update; one without is not kept. When
/// a run saves and validates at the same update only at its end, a warning says so before it
/// begins.
class KeepBestCheckpoints final : public Callback {
 public:
  struct Options {
    std::string metric;              ///< as it is logged, such as "val/accuracy"
    std::string direction = "auto";  ///< which values are better: see MetricDirection
    int64_t n = 1;                   ///< how many to keep, >= 1
  };

  explicit KeepBestCheckpoints(const Options& options);

  void post_setup(Trainer& trainer) override;

  /// \throws UsageError  where the direction is "auto" and no metric knows it
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;
  void on_after_save_checkpoint(Trainer& trainer, const std::filesystem::path& path) override;
  void run_validation(Trainer& trainer, std::optional<int64_t> loop_idx, bool is_last) override;
  StateDict save_state() const override;
  void load_state(const StateDict& state) override;

  std::string state_subject() const override { return direction_.subject(); }

  void on_load_checkpoint(Trainer& trainer, const StateDict& checkpoint) override;

 private:
  struct Kept {
    std::string name;  // in best/
    double value = 0.0;
  };

  void judge(Trainer& trainer);
  static bool is_kept_by_any(const Trainer& trainer, const std::string& name);

  MetricDirection direction_;
  int64_t n_;
  std::vector<Kept> kept_;         // the best first
  bool is_loaded_ = false;         // `kept_` is a checkpoint's and not yet checked
  std::filesystem::path saved_;    // the newest checkpoint, until it is judged
  int64_t saved_update_ = -1;      // its update
  int64_t validated_update_ = -1;  // of the newest validation
  double value_ = 0.0;             // what that found
};

}  // namespace rondo
