#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>

#include "checkpoint/checkpoint_file.h"
#include "core/file_system.h"
#include "core/state_dict.h"

namespace rondo {

/// Writes checkpoints on a thread, one at a time, with the state as it was when `begin` was called.
/// Memory: one copy, and until it is made what of the state nobody else keeps. For one thread; only
/// the copying of large tensors, for which their writers wait (see CheckpointSnapshot), and the
/// writing are done by another.
class BackgroundSave {
 public:
  /// What became of a save.
  struct Done {
    std::filesystem::path path;  ///< of the file; empty when there is none
    double seconds = 0.0;        ///< that writing took
    double waited_s = 0.0;       ///< that somebody waited to change what was not copied yet
    std::exception_ptr error;    ///< null when it is written and published
  };

  explicit BackgroundSave(std::shared_ptr<FileSystem> files) : files_(std::move(files)) {}

  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;
  /// Waits for a save in flight.
  ~BackgroundSave();

  /// Takes the state and begins to write it; the save before it must have been reported. Nothing is
  /// written when it throws.
  /// \param name     asked for the path, and from the writing thread for another one when that was
  ///                 taken meanwhile; announces from the writing thread
  /// \param publish  called by the writing thread once the file is durable
  /// \param check    called by the writing thread with the copy, before anything is written
  /// \throws CheckpointError  when the state cannot be saved
  void begin(NewName name,
             const StateDict& state,
             std::function<void(const std::filesystem::path&)> publish,
             StateCheck check = {});

  /// True between `begin` and the report of what became of it.
  bool is_in_flight() const { return writing_.valid(); }

  /// What became of the save in flight, once; nothing when there is none, or it is not done. Lets
  /// go of the state once that is copied.
  std::optional<Done> poll();

  /// Waits for the save in flight. \return nothing when there is none
  std::optional<Done> wait();

 private:
  Done write();
  Done report();

  std::shared_ptr<FileSystem> files_;
  CheckpointSnapshot snapshot_;
  std::function<void(const std::filesystem::path&)> publish_;
  StateCheck check_;
  std::future<Done> writing_;  // the last one: it waits in its destructor, and uses the others
};

}  // namespace rondo
