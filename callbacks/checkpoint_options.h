#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/time.h"

namespace rondo {

struct CheckpointOptions {
  Time steps = 0;  ///< between two saves; 0: never. The last update of a run is always saved
  bool autoload_last_checkpoint = true;  ///< continue from the newest indexed checkpoint
  bool disable_strict_checkpoint_loading =
      false;                                   ///< tolerate missing and extra entries of the model
  bool save_initial_checkpoint = false;        ///< also save before the first batch
  bool strict_version = true;                  ///< refuse files of another major or minor version
  std::filesystem::path checkpoint_root = {};  ///< where files go; model_dir when empty
  std::string checkpoint_name = "checkpoint_{step}.pt";  ///< must contain {step}
};

/// Which checkpoint to start from: the newest one (the default), none, or a file.
class LoadFrom {
 public:
  LoadFrom() = default;

  LoadFrom(const char* path) : LoadFrom(std::filesystem::path(path)) {}  // NOLINT

  LoadFrom(const std::string& path) : LoadFrom(std::filesystem::path(path)) {}  // NOLINT

  LoadFrom(std::filesystem::path path) : path_(std::move(path)) {}  // NOLINT

  static LoadFrom nothing() {
    LoadFrom from;
    from.is_nothing_ = true;
    return from;
  }

  bool is_nothing() const { return is_nothing_; }

  const std::optional<std::filesystem::path>& path() const { return path_; }

 private:
  bool is_nothing_ = false;
  std::optional<std::filesystem::path> path_;
};

}  // namespace rondo
