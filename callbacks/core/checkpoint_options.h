#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/time.h"

namespace rondo {

/// What a run that has no checkpoint of its own begins with: another run's file, or a part of it.
/// What is left out stays as the run made it. Globs are over the paths of entries, such as
/// "model/layer1.weight"; one that matches a section, such as "optimizer", means all that is in it.
struct LoadOptions {
  std::filesystem::path path = {};  ///< of the file; empty: begin afresh
  /// Where the weights are in a file of another program, such as "generator" or "nets/ema"; empty:
  /// they are looked for. Holds for files that are named elsewhere too.
  std::string key = "";
  std::vector<std::string> include = {};  ///< globs of what to load; none: everything
  std::vector<std::string> ignore = {};   ///< globs of what to leave out all the same
  /// Pairs of globs for names of parameters and buffers, such as {"old.*", "new.*"}. The other
  /// globs see the new names.
  std::vector<std::vector<std::string>> rename = {};
  /// Algorithms that changed the model of the file, and that this run does without.
  std::vector<std::string> exclude_algorithms = {};
  bool weights_only = false;  ///< the same as include = {"model"}: training begins at update 0
};

struct CheckpointOptions {
  Time steps = 0;  ///< between two saves; 0: none in between, but those that are asked for
                   ///< (`Trainer::request_save`, `save_checkpoint`)
  bool save_final_checkpoint = true;  ///< save the last update of each fit, whatever `steps` says
  bool autoload_last_checkpoint = true;  ///< continue from the newest indexed checkpoint
  bool disable_strict_checkpoint_loading =
      false;                                   ///< tolerate missing and extra entries of the model
  bool save_initial_checkpoint = false;        ///< also save before the first batch
  bool strict_version = true;                  ///< refuse files of another major or minor version
  std::filesystem::path checkpoint_root = {};  ///< where files go; model_dir when empty
  std::string checkpoint_name = "checkpoint_{step}.pt";  ///< must contain {step}
  bool async = false;  ///< write on a thread of its own, from a copy, while training goes on
  std::string on_error = "fail";  ///< what a save that fails does to the run: "fail" or "warn"
  std::string remote = "";     ///< a copy of each checkpoint goes there, such as "s3://bucket/run"
  int64_t upload_retries = 5;  ///< of each request, with longer and longer waits
  std::string remote_keep = "same";  ///< "same": what is deleted here is deleted there; or "all"
  int64_t upload_timeout = 600;      ///< seconds that the end of a fit waits for uploads
  bool save_weights_only = false;    ///< save the model alone, which no run resumes from
  std::vector<std::string> save_ignore_keys = {};  ///< globs of entries that are not saved
  bool require_finite = true;  ///< write no state with NaN or infinite weights; the run ends
  LoadOptions load = {};       ///< where a run without a checkpoint of its own begins
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
